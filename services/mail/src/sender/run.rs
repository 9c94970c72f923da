//! The sender's tasks: one that gives work out, and one for each connection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration as UnixDuration;

use bytes::Bytes;
use futures_lite::future::or;
use inhost_base::{Duration, Endpoint};
use inhost_names::{ConnectByNameError, LookUpError, Names};
use inhost_socket::{Host, Stream};
use tracing::{debug, error, info, warn};

use super::report::{Report, ReportKind, Reported};
use super::route::{Route, SMTP_PORT, exchangers};
use crate::body::Body;
use crate::client::{ClientConfig, Failure, Outcome, Step, TlsWish, Transaction};
use crate::codec::{MailFrom, Mailbox, Notify};
use crate::driver::{Answer, Connection, ConnectionError, TlsClient};
use crate::queue::{
    Attempted, Batch, DestinationFate, Fate, Item, NewMessage, Queue, Reason, Schedule, Settlement,
    StoreError, Stored,
};

/// Recipients that a connection is given at a time.
const BATCH: usize = 20;
/// Expired recipients that are reported at a time.
const EXPIRED: usize = 100;
/// How often the queue is looked at for what others have put there.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long the sender waits after the queue could not be used.
const AFTER_AN_ERROR: Duration = Duration::from_secs(10);

/// Configuration of a sender.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SenderConfig {
    /// The name that it gives itself.
    pub host_name: String,
    /// Port of servers that the DNS names. Default 25.
    pub port: u16,
    /// Connections at once. Default 100.
    pub connections: usize,
    /// Connections at once to one destination. Default 5.
    pub connections_per_destination: usize,
    /// Messages over one connection. Default 100.
    pub messages_per_connection: usize,
    /// When messages are tried again.
    pub schedule: Schedule,
    /// Destinations that do not go where the DNS says; `*` is all others.
    pub routes: BTreeMap<String, Route>,
    /// Destinations for which TLS is wanted otherwise than if it is offered; `*` is all others.
    pub tls: BTreeMap<String, TlsWish>,
    /// Name and password for the server of the route `*`.
    pub login: Option<(String, String)>,
    /// How long a connection may take to come about. Default 60 seconds.
    pub connect: Duration,
    /// Time limits of dialogues: a server's greeting, its replies, and its reply to a whole message. Default 5, 5 and 10
    /// minutes.
    pub replies: [Duration; 3],
}

impl SenderConfig {
    /// A sender that calls itself `host_name`.
    pub fn new(host_name: &str) -> SenderConfig {
        SenderConfig {
            host_name: host_name.to_owned(),
            port: SMTP_PORT,
            connections: 100,
            connections_per_destination: 5,
            messages_per_connection: 100,
            schedule: Schedule::default(),
            routes: BTreeMap::new(),
            tls: BTreeMap::new(),
            login: None,
            connect: Duration::from_secs(60),
            replies: [300, 300, 600].map(Duration::from_secs),
        }
    }
    fn route(&self, domain: &str) -> Option<&Route> {
        self.routes.get(domain).or_else(|| self.routes.get("*"))
    }
    fn tls(&self, domain: &str) -> TlsWish {
        self.tls.get(domain).or_else(|| self.tls.get("*")).copied().unwrap_or_default()
    }
}

/// Mailboxes of this host.
pub trait Mailboxes {
    /// Puts a message into the mailbox of `recipient`. Once this is done, it is durable.
    fn deliver<'a>(
        &'a self,
        recipient: &Mailbox,
        sender: Option<&Mailbox>,
        body: &Body,
    ) -> Answer<'a, Result<(), Reason>>;
}

/// What signs messages: gives header lines to put in front.
pub type Sign = Rc<dyn Fn(&MailFrom, &Body) -> Answer<'static, Option<String>>>;

/// The sender. Its owner spawns [`run`](Self::run).
pub struct Sender {
    host: Host,
    names: Rc<Names>,
    queue: Queue,
    mailboxes: Rc<dyn Mailboxes>,
    tls: TlsClient,
    sign: Option<Sign>,
    unix_time: fn() -> UnixDuration,
    config: RefCell<Rc<SenderConfig>>,
    active: RefCell<BTreeMap<String, usize>>,
    total: Cell<usize>,
    reports: Cell<u64>,
    poke: (async_channel::Sender<()>, async_channel::Receiver<()>),
}

/// Why no connection came about.
struct Trouble {
    reason: Reason,
    is_final: bool,
    dialogue: Option<String>,
}

impl Trouble {
    fn new(reason: Reason, is_final: bool) -> Trouble {
        Trouble { reason, is_final, dialogue: None }
    }
}

/// A connection to a server of a destination.
struct Reached {
    connection: Connection<Stream>,
    server: String,
}

impl Sender {
    /// A sender on `host`.
    pub fn new(
        host: &Host,
        names: Rc<Names>,
        queue: Queue,
        mailboxes: Rc<dyn Mailboxes>,
        tls: TlsClient,
        unix_time: fn() -> UnixDuration,
        config: SenderConfig,
    ) -> Sender {
        Sender {
            host: host.clone(),
            names,
            queue,
            mailboxes,
            tls,
            sign: None,
            unix_time,
            config: RefCell::new(Rc::new(config)),
            active: RefCell::default(),
            total: Cell::new(0),
            reports: Cell::new(0),
            poke: async_channel::bounded(1),
        }
    }
    /// The same, with what signs messages.
    pub fn signing(self, sign: Sign) -> Sender {
        Sender { sign: Some(sign), ..self }
    }
    /// Other settings from now on; connections that exist go on with theirs.
    pub fn set_config(&self, config: SenderConfig) {
        self.config.replace(Rc::new(config));
        self.poke();
    }
    /// Something may be due.
    pub fn poke(&self) {
        let _ = self.poke.0.try_send(());
    }
    /// Connections that exist.
    pub fn connections(&self) -> usize {
        self.total.get()
    }
    /// Gives out what is due, until the host goes down.
    pub async fn run(self: Rc<Self>) {
        let sending = async {
            loop {
                let wait = match self.give_out().await {
                    Ok(wait) => wait,
                    Err(why) => {
                        error!(target: "mail", "nothing is sent: {why}");
                        AFTER_AN_ERROR
                    }
                };
                let poked = async { drop(self.poke.1.recv().await) };
                or(poked, self.host.sleep(wait)).await;
            }
        };
        or(sending, self.host.draining()).await;
    }

    fn now_s(&self) -> u64 {
        (self.unix_time)().as_secs()
    }

    /// Gives out what is due; how long nothing will be.
    async fn give_out(self: &Rc<Self>) -> Result<Duration, StoreError> {
        loop {
            let config = self.config.borrow().clone();
            let free = config.connections.saturating_sub(self.total.get());
            if free == 0 {
                return Ok(LOOK_AGAIN);
            }
            let limit = config.connections_per_destination.max(1);
            let busy: BTreeSet<_> = {
                let active = self.active.borrow();
                active
                    .iter()
                    .filter(|(_, count)| **count >= limit)
                    .map(|(domain, _)| domain.clone())
                    .collect()
            };
            let batches = self.queue.claim(self.now_s(), free, BATCH, busy).await?;
            if batches.is_empty() {
                return Ok(LOOK_AGAIN);
            }
            for batch in batches {
                self.total.set(self.total.get() + 1);
                *self.active.borrow_mut().entry(batch.domain.clone()).or_default() += 1;
                let own = self.clone();
                self.host.spawn(async move { own.work(batch, config_of(&own)).await }).detach();
            }
        }
    }

    /// A connection's task.
    async fn work(&self, batch: Batch, config: Rc<SenderConfig>) {
        let domain = batch.domain.clone();
        let result = match config.route(&domain) {
            Some(Route::Local) => self.deliver_here(batch, &config).await,
            route => self.deliver_there(batch, route, &config).await,
        };
        if let Err(why) = result {
            error!(target: "mail", domain, "{why}");
        }
        self.total.set(self.total.get() - 1);
        {
            let mut active = self.active.borrow_mut();
            if let Some(count) = active.get_mut(&domain) {
                *count -= 1;
                if *count == 0 {
                    active.remove(&domain);
                }
            }
        }
        self.poke();
    }

    async fn deliver_here(&self, mut batch: Batch, config: &SenderConfig) -> Result<(), StoreError> {
        while !batch.items.is_empty() {
            for items in batch.items.chunk_by(|a, b| a.message == b.message) {
                let Some(stored) = self.queue.load(items[0].message).await? else { continue };
                let mut fates = Vec::new();
                for item in items {
                    let mailbox = &item.recipient.mailbox;
                    let delivered =
                        self.mailboxes.deliver(mailbox, stored.mail.sender.as_ref(), &stored.body).await;
                    fates.push((
                        item,
                        delivered.map_err(|reason| {
                            let is_final = matches!(reason, Reason::NoDomain { .. });
                            (reason, is_final)
                        }),
                    ));
                }
                let delivered = ReportKind::Delivered;
                self.settle(&batch.domain, &stored, fates, delivered, None, config).await?;
            }
            batch = self.queue.claim_of(&batch.domain, self.now_s(), BATCH).await?;
        }
        Ok(())
    }

    async fn deliver_there(
        &self,
        mut batch: Batch,
        route: Option<&Route>,
        config: &SenderConfig,
    ) -> Result<(), StoreError> {
        let turn = batch.items.first().map_or(0, |item| usize::try_from(item.message).unwrap_or(0));
        let mut reached = match self.reach(&batch.domain, route, turn, config).await {
            Ok(reached) => reached,
            Err(trouble) => return self.unreachable(batch, trouble, config).await,
        };
        let (mut sent, mut accepted) = (0, false);
        while !batch.items.is_empty() {
            let groups: Vec<Vec<Item>> =
                batch.items.chunk_by(|a, b| a.message == b.message).map(<[Item]>::to_vec).collect();
            let mut groups = groups.into_iter();
            while let Some(items) = groups.next() {
                let Some(stored) = self.queue.load(items[0].message).await? else { continue };
                match self.send(&mut reached, &items, stored, &batch.domain, config).await? {
                    Ok(was_accepted) => accepted |= was_accepted,
                    Err(trouble) => {
                        // Others may go over another connection; where nothing ever went, the destination is at fault.
                        let rest: Vec<_> = groups.flatten().collect();
                        let fates = rest.iter().map(|item| (item.id, Fate::Back)).collect();
                        let destination = (!accepted).then_some(trouble.reason);
                        return self
                            .give_back(&batch.domain, fates, destination, trouble.dialogue, config)
                            .await;
                    }
                }
                sent += 1;
            }
            if sent >= config.messages_per_connection {
                break;
            }
            batch = self.queue.claim_of(&batch.domain, self.now_s(), BATCH).await?;
        }
        reached.connection.quit().await;
        Ok(())
    }

    /// Sends one message. Whether a recipient was accepted; or, after the outcome was noted, why the connection is of no
    /// more use.
    async fn send(
        &self,
        reached: &mut Reached,
        items: &[Item],
        mut stored: Stored,
        domain: &str,
        config: &SenderConfig,
    ) -> Result<Result<bool, Trouble>, StoreError> {
        if stored.is_signed
            && let Some(sign) = &self.sign
            && let Some(head) = sign(&stored.mail, &stored.body).await
        {
            stored.body = stored.body.with_head(head);
        }
        let recipients = items.iter().map(|item| item.recipient.clone()).collect();
        let transaction = Transaction::new(stored.mail.clone(), recipients, stored.body.size_bytes());
        let server = reached.server.clone();
        let outcomes = reached.connection.send(&transaction, &stored.body).await;
        let relayed = match reached.connection.passes_notify() {
            // The server reports.
            true => None,
            false => Some(ReportKind::Relayed),
        };
        match outcomes {
            Ok(outcomes) => {
                let accepted = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Accepted(_)));
                let all = outcomes.len() == items.len()
                    && outcomes.iter().all(|outcome| matches!(outcome, Outcome::Accepted(_)));
                let dialogue = (!all).then(|| reached.connection.trace().to_string());
                let fates = items.iter().zip(outcomes).map(|(item, outcome)| {
                    let fate = match outcome {
                        Outcome::Accepted(reply) => {
                            info!(target: "mail", to = %item.recipient.mailbox, server, "sent: {reply}");
                            Ok(())
                        }
                        Outcome::Refused(step, reply) => {
                            let is_final = reply.is_permanent();
                            Err((Reason::Refused { server: server.clone(), step, reply }, is_final))
                        }
                        Outcome::Impossible(why) => {
                            Err((Reason::Impossible { server: server.clone(), what: why.to_string() }, true))
                        }
                    };
                    (item, fate)
                });
                let fates = fates.collect();
                self.settle_or_relay(domain, &stored, fates, relayed, dialogue, config).await?;
                Ok(Ok(accepted))
            }
            Err(error) => {
                let reason = match &error {
                    ConnectionError::Message(error) => Reason::Message { what: error.to_string() },
                    ConnectionError::Dialogue(Failure::Refused(step, reply)) => {
                        Reason::Refused { server, step: *step, reply: reply.clone() }
                    }
                    error => Reason::Dialogue { server, what: error.to_string() },
                };
                let dialogue = reached.connection.trace().to_string();
                let fates = items.iter().map(|item| (item, Err((reason.clone(), false)))).collect();
                self.settle_or_relay(domain, &stored, fates, None, None, config).await?;
                Ok(Err(Trouble { reason, is_final: false, dialogue: Some(dialogue) }))
            }
        }
    }

    /// Finds a server of a destination and begins a dialogue with it.
    async fn reach(
        &self,
        domain: &str,
        route: Option<&Route>,
        turn: usize,
        config: &SenderConfig,
    ) -> Result<Reached, Trouble> {
        let mut client = ClientConfig::new(&config.host_name);
        client.tls = config.tls(domain);
        [client.greeting, client.reply, client.end] = config.replies;
        let (servers, port, is_implicit) = match route {
            Some(Route::Server { host, port, is_lmtp, is_implicit }) => {
                client.is_lmtp = *is_lmtp;
                if !config.routes.contains_key(domain) {
                    client.login.clone_from(&config.login);
                }
                (vec![host.clone()], *port, *is_implicit)
            }
            _ => {
                let found = exchangers(&self.names, domain, &config.host_name, turn).await;
                let found = found.map_err(|(reason, is_final)| Trouble::new(reason, is_final))?;
                (found.into_iter().map(|one| one.host).collect(), config.port, false)
            }
        };
        let (mut tried, mut last) = (Vec::new(), None);
        for server in servers {
            let is_only_name = server == domain;
            match self.open(&server, port, is_implicit, client.clone(), config).await {
                Ok(connection) => return Ok(Reached { connection, server }),
                Err(Opening::Tcp(error)) => {
                    let is_final = is_only_name && is_nowhere(&error);
                    if is_final {
                        let what = format!("{domain} has neither a mail exchanger nor an address: {error}");
                        return Err(Trouble::new(Reason::NoDomain { what }, true));
                    }
                    tried.push(Attempted::new(&server, error));
                }
                Err(Opening::Late) => tried.push(Attempted::new(&server, "no connection in time")),
                Err(Opening::Dialogue(trouble)) => {
                    tried.push(Attempted::new(&server, &trouble.reason));
                    last = Some(trouble);
                }
            }
        }
        match (last, tried.len()) {
            (Some(trouble), 1) => Err(*trouble),
            (last, _) => {
                let dialogue = last.and_then(|trouble| trouble.dialogue);
                Err(Trouble { dialogue, ..Trouble::new(Reason::Unreachable { tried }, false) })
            }
        }
    }

    async fn open(
        &self,
        server: &str,
        port: u16,
        is_implicit: bool,
        client: ClientConfig,
        config: &SenderConfig,
    ) -> Result<Connection<Stream>, Opening> {
        let mut client = client;
        loop {
            let connect = async { Some(self.names.connect(server, port).await) };
            let late = async {
                self.host.sleep(config.connect).await;
                None
            };
            let stream = match or(connect, late).await {
                Some(connected) => connected.map_err(Opening::Tcp)?,
                None => return Err(Opening::Late),
            };
            stream.set_nagle(false);
            let peer: Endpoint = stream.remote();
            let wish = client.tls;
            let opened =
                Connection::open(stream, server, is_implicit, client.clone(), &self.tls, &self.host).await;
            let (failure, trace) = match opened {
                Ok(connection) => return Ok(connection),
                Err(failed) => failed,
            };
            if matches!(failure, ConnectionError::Tls(_)) && wish == TlsWish::IfOffered && !is_implicit {
                // RFC 7435 §3: mail that may go in clear text does so rather than not at all.
                warn!(target: "mail", server, %peer, "TLS was offered and failed, sending without it: {failure}");
                client.tls = TlsWish::Never;
                client.login = None;
                continue;
            }
            debug!(target: "mail", server, %peer, "no dialogue: {failure}");
            let what = failure.to_string();
            let server = format!("{server} ({})", peer.address);
            let reason = match failure {
                ConnectionError::Tls(_) | ConnectionError::Dialogue(Failure::NoTls) => {
                    Reason::Tls { server, what }
                }
                ConnectionError::Dialogue(
                    Failure::Refused(Step::Auth, _) | Failure::NoMechanism | Failure::ClearPassword,
                ) => Reason::Login { server, what },
                ConnectionError::Dialogue(Failure::Refused(step, reply)) => {
                    Reason::Refused { server, step, reply }
                }
                _ => Reason::Dialogue { server, what },
            };
            let dialogue = Some(trace.to_string());
            return Err(Opening::Dialogue(Box::new(Trouble { reason, is_final: false, dialogue })));
        }
    }

    /// No server of the destination could be reached.
    async fn unreachable(
        &self,
        batch: Batch,
        trouble: Trouble,
        config: &SenderConfig,
    ) -> Result<(), StoreError> {
        let Trouble { reason, is_final, dialogue } = trouble;
        info!(target: "mail", domain = batch.domain, "not sent: {reason}");
        let due_s = self.destination_due_s(&batch.domain, config).await?;
        let mut items = batch.items;
        let mut dialogue = dialogue.map(|text| (batch.domain.clone(), self.now_s(), text));
        loop {
            for items in items.chunk_by(|a, b| a.message == b.message) {
                let Some(stored) = self.queue.load(items[0].message).await? else { continue };
                let fates =
                    items.iter().map(|item| (item, Err((reason.clone(), is_final)))).collect::<Vec<_>>();
                let mut settlement = self.outcome(&stored, fates, None, Some(due_s), config).await;
                settlement.dialogue = dialogue.take();
                self.queue.settle(settlement).await?;
            }
            // The others wait with the destination; those whose time is over are reported.
            items = self.queue.claim_expired(&batch.domain, self.now_s(), EXPIRED).await?;
            if items.is_empty() {
                break;
            }
            items.sort_by_key(|item| item.message);
        }
        let destination = match is_final {
            true => None,
            false => Some((batch.domain.clone(), DestinationFate::Failed { due_s, reason })),
        };
        self.queue.settle(Settlement { destination, ..Settlement::default() }).await
    }

    async fn destination_due_s(&self, domain: &str, config: &SenderConfig) -> Result<u64, StoreError> {
        let failures = self.queue.failures(domain).await?;
        Ok(self.now_s() + config.schedule.wait_s(failures.saturating_add(1)))
    }

    async fn give_back(
        &self,
        domain: &str,
        fates: Vec<(i64, Fate)>,
        failed: Option<Reason>,
        dialogue: Option<String>,
        config: &SenderConfig,
    ) -> Result<(), StoreError> {
        let dialogue = dialogue.map(|text| (domain.to_owned(), self.now_s(), text));
        self.queue.settle(Settlement { fates, dialogue, ..Settlement::default() }).await?;
        if let Some(reason) = failed {
            let due_s = self.destination_due_s(domain, config).await?;
            let destination = Some((domain.to_owned(), DestinationFate::Failed { due_s, reason }));
            self.queue.settle(Settlement { destination, ..Settlement::default() }).await?;
        }
        Ok(())
    }

    async fn settle_or_relay(
        &self,
        domain: &str,
        stored: &Stored,
        fates: Vec<(&Item, Result<(), (Reason, bool)>)>,
        success: Option<ReportKind>,
        dialogue: Option<String>,
        config: &SenderConfig,
    ) -> Result<(), StoreError> {
        let mut settlement = self.outcome(stored, fates, success, None, config).await;
        settlement.destination = Some((domain.to_owned(), DestinationFate::Reached));
        settlement.dialogue = dialogue.map(|text| (domain.to_owned(), self.now_s(), text));
        self.queue.settle(settlement).await
    }

    async fn settle(
        &self,
        domain: &str,
        stored: &Stored,
        fates: Vec<(&Item, Result<(), (Reason, bool)>)>,
        success: ReportKind,
        dialogue: Option<String>,
        config: &SenderConfig,
    ) -> Result<(), StoreError> {
        self.settle_or_relay(domain, stored, fates, Some(success), dialogue, config).await
    }

    /// What is noted about recipients of a message, with the reports about it. `due_s` is when those that wait are tried
    /// again, where the destination says it.
    async fn outcome(
        &self,
        stored: &Stored,
        fates: Vec<(&Item, Result<(), (Reason, bool)>)>,
        success: Option<ReportKind>,
        due_s: Option<u64>,
        config: &SenderConfig,
    ) -> Settlement {
        let now_s = self.now_s();
        let (mut settlement, mut succeeded, mut failed, mut delayed) =
            (Settlement::default(), Vec::new(), Vec::new(), Vec::new());
        let until_s = stored.expires_s;
        for (item, fate) in fates {
            let notify = item.recipient.notify;
            let reported = |reason| Reported { recipient: item.recipient.clone(), reason };
            let fate = match fate {
                Ok(()) => {
                    if notify.is_some_and(|notify| notify.success) {
                        succeeded.push(reported(None));
                    }
                    Fate::Done
                }
                Err((reason, is_final)) if is_final || now_s >= until_s => {
                    info!(target: "mail", to = %item.recipient.mailbox, "failed: {reason}");
                    if notify.unwrap_or(FAILURE_AND_DELAY).failure {
                        failed.push(reported(Some(reason)));
                    }
                    Fate::Done
                }
                Err((reason, _)) => {
                    let schedule = &config.schedule;
                    let due_s =
                        due_s.unwrap_or_else(|| now_s + schedule.wait_s(item.attempts.saturating_add(1)));
                    let is_late = schedule.warning_s > 0
                        && now_s.saturating_sub(stored.arrived_s) >= schedule.warning_s
                        && notify.unwrap_or(FAILURE_AND_DELAY).delay;
                    if is_late && !item.is_warned {
                        delayed.push(reported(Some(reason.clone())));
                    }
                    // The last attempt is at the end, not long after it.
                    Fate::Later {
                        due_s: due_s.min(until_s.max(now_s + 1)),
                        reason,
                        is_warned: item.is_warned || is_late,
                    }
                }
            };
            settlement.fates.push((item.id, fate));
        }
        let reports = [
            (ReportKind::Failed, failed),
            (ReportKind::Delayed { until_s }, delayed),
            (
                success.unwrap_or(ReportKind::Delivered),
                if success.is_some() { succeeded } else { Vec::new() },
            ),
        ];
        for (kind, recipients) in reports {
            if !recipients.is_empty() {
                settlement.reports.extend(self.report(kind, stored, recipients, config).await);
            }
        }
        settlement
    }

    async fn report(
        &self,
        kind: ReportKind,
        stored: &Stored,
        recipients: Vec<Reported>,
        config: &SenderConfig,
    ) -> Option<NewMessage> {
        let body = stored.body.clone();
        let read = move || body.read(RETURNED_BYTES);
        let text = match stored.body.is_in_memory() {
            true => read(),
            false => blocking::unblock(read).await,
        };
        let text: Bytes = text.unwrap_or_default();
        self.reports.set(self.reports.get() + 1);
        let report = Report {
            host: &config.host_name,
            kind,
            mail: &stored.mail,
            text: &text,
            arrived_s: stored.arrived_s,
            recipients,
            number: self.reports.get(),
        };
        let now_s = self.now_s();
        report.message(now_s, now_s + config.schedule.expires_s)
    }
}

/// Octets of a message that are read for a report.
const RETURNED_BYTES: usize = (64 << 10) + 1;
/// When a sender is told that says nothing about it (RFC 3461 §4.1).
const FAILURE_AND_DELAY: Notify = Notify { success: false, failure: true, delay: true };

/// Why a server could not be used.
enum Opening {
    Tcp(ConnectByNameError),
    Late,
    Dialogue(Box<Trouble>),
}

fn is_nowhere(error: &ConnectByNameError) -> bool {
    use LookUpError::{NoAddress, NoSuchName, NotAName};
    matches!(error, ConnectByNameError::LookUp(NoSuchName { .. } | NoAddress { .. } | NotAName { .. }))
}

fn config_of(sender: &Sender) -> Rc<SenderConfig> {
    sender.config.borrow().clone()
}
