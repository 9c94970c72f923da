//! What this host accepts, from whom, and where it goes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use inhost_base::{Cidr, IpAddr};
use inhost_common::SessionEvent;
use inhost_common::users::{Authenticate, ThreadAuthenticator, Verdict as Password};
use inhost_mailauth::{
    CheckConfig, Envelope as Origin, HEADER_BYTES_LIMIT, MessageError, Verdict as Judgement,
    without_forged_results,
};
use inhost_names::Names;
use inhost_socket::Host;
use tracing::info;

use super::LOG;
use super::boxes::Boxes;
use super::section::Check;
use crate::body::{Body, Turn, Turns};
use crate::codec::{Recipient, Reply};
use crate::date::date;
use crate::driver::{Answer, Mailroom};
use crate::queue::{NewMessage, NewRecipient, Queue, Schedule};
use crate::sender::Sender;
use crate::server::{Client, Closing, Decision, Envelope, Stage, Verdict};
use crate::trace::Trace;

/// Octets of a header that are looked at for what a submission lacks.
const HEADER_BYTES: usize = 64 << 10;
/// Octets of a message whose origin is checked; a larger one is not.
const CHECKED_BYTES: usize = 64 << 20;

/// What can change while the service runs.
pub(super) struct Rules {
    pub host_name: String,
    pub domains: Vec<String>,
    /// Those of them whose mailboxes another server knows.
    pub forwarded: Vec<String>,
    pub networks: Vec<Cidr>,
    pub check: Check,
    pub schedule: Schedule,
    pub boxes: Rc<Boxes>,
}

impl Rules {
    /// Whether mail for `domain` is taken from anybody and given to another server.
    fn is_forwarded(&self, domain: &str) -> bool {
        self.forwarded.iter().any(|own| own == domain)
    }
    /// Whether mail for `domain` goes into mailboxes of this host.
    fn is_local(&self, domain: &str) -> bool {
        if self.is_forwarded(domain) {
            return false;
        }
        domain.is_empty()
            || domain.eq_ignore_ascii_case(&self.host_name)
            || self.domains.iter().any(|own| own == domain)
    }
}

/// The owner of this host's servers.
pub(super) struct Exchange {
    pub host: Host,
    pub queue: Queue,
    pub sender: Rc<Sender>,
    pub names: RefCell<Rc<Names>>,
    pub authenticator: ThreadAuthenticator,
    pub rules: RefCell<Rc<Rules>>,
    pub unix_time: fn() -> std::time::Duration,
    /// Messages whose origin is checked at a time.
    pub turns: Turns,
}

impl Exchange {
    fn rules(&self) -> Rc<Rules> {
        self.rules.borrow().clone()
    }

    async fn recipient(&self, client: &Client, recipient: &Recipient) -> Verdict {
        let rules = self.rules();
        let mailbox = &recipient.mailbox;
        if rules.is_local(mailbox.domain()) {
            rules.boxes.refresh(self.host.now()).await;
            return match rules.boxes.resolve(mailbox.local()).is_empty() {
                false => Verdict::Accept,
                true => {
                    Verdict::Refuse(Reply::new(550, "5.1.1", format!("There is no mailbox {mailbox} here")))
                }
            };
        }
        match rules.is_forwarded(mailbox.domain()) || may_relay(client, &rules) {
            true => Verdict::Accept,
            false => {
                info!(target: "mail", peer = %client.address.address, to = %mailbox, "relaying refused");
                let text = "This host relays for its users alone; log in, or ask the recipient's own server";
                Verdict::Refuse(Reply::new(550, "5.7.1", text))
            }
        }
    }

    /// Takes a message; gives its name.
    async fn take(
        &self,
        client: &Client,
        envelope: &Envelope,
        body: Body,
        is_eight_bit: bool,
    ) -> Result<String, Reply> {
        let rules = self.rules();
        let now_s = (self.unix_time)().as_secs();
        let is_own = may_relay(client, &rules);
        let results = match is_own || rules.check == Check::Off {
            true => String::new(),
            false => self.judge(client, envelope, &body, &rules, now_s).await?,
        };
        // A signature may cover what is removed here, so it was checked before.
        let body = self.without_forgeries(body, &rules.host_name).await?;
        let mut head = results + &received(client, envelope, &rules.host_name, now_s);
        if is_own {
            head += &self.completed(&body, &rules.host_name, now_s).await;
        }
        let mut mail = envelope.mail.clone();
        mail.is_eight_bit = is_eight_bit;
        let origin = match &client.user {
            Some(user) => format!("{user} at {}", client.address.address),
            None => format!("{} ({})", client.address.address, client.hello),
        };
        let message = NewMessage {
            mail,
            recipients: recipients(envelope, &rules),
            body: body.with_head(head),
            origin,
            arrived_s: now_s,
            expires_s: now_s + rules.schedule.expires_s,
            is_signed: is_own,
        };
        let (bytes, count) = (message.body.size_bytes(), message.recipients.len());
        match self.queue.add(message).await {
            Ok(id) => {
                let peer = client.address.address;
                let from = envelope.mail.sender.as_ref().map(ToString::to_string).unwrap_or_default();
                info!(target: "mail", %peer, from, recipients = count, bytes, "received as m{id}");
                self.sender.poke();
                Ok(format!("m{id}"))
            }
            Err(why) => {
                tracing::error!(target: "mail", "a message cannot be queued: {why}");
                Err(Reply::new(452, "4.3.1", "The message cannot be stored now"))
            }
        }
    }

    /// Checks who sent a message; a line that tells what was found.
    async fn judge(
        &self,
        client: &Client,
        envelope: &Envelope,
        body: &Body,
        rules: &Rules,
        now_s: u64,
    ) -> Result<String, Reply> {
        match (body.size_bytes() > CHECKED_BYTES as u64, rules.check) {
            (false, _) => {}
            (true, Check::Reject) => {
                return Err(Reply::new(552, "5.3.4", "A message of more than 64 MiB cannot be checked"));
            }
            (true, _) => return Ok(String::new()),
        }
        let _turn = self.turn(body).await;
        let text = read(body, CHECKED_BYTES).await?;
        let sender = envelope.mail.sender.as_ref().map(ToString::to_string).unwrap_or_default();
        let origin = Origin::new(client.address.address.to_canonical(), &client.hello, &sender);
        let config = CheckConfig::new(&rules.host_name);
        let names = self.names.borrow().clone();
        let report = inhost_mailauth::check(&config, origin, text.clone(), &names, &self.host, now_s).await;
        if rules.check == Check::Reject {
            match report.verdict {
                Judgement::Reject => {
                    let peer = client.address.address;
                    info!(target: "mail", %peer, from = sender, "refused: the author's domain did not send it (DMARC)");
                    let text = "The domain of the author says that it did not send this (DMARC)";
                    return Err(Reply::new(550, "5.7.1", text));
                }
                Judgement::TemporaryError => {
                    return Err(Reply::new(451, "4.7.24", "The domain of the author cannot be asked now"));
                }
                _ => {}
            }
        }
        Ok(report.field())
    }

    /// Few large messages are in memory at a time.
    async fn turn(&self, body: &Body) -> Option<Turn> {
        if body.is_in_memory() { None } else { Some(self.turns.next().await) }
    }

    /// A message without results of checks that say they are this host's, from a stranger or a user (RFC 8601 §5).
    async fn without_forgeries(&self, body: Body, host_name: &str) -> Result<Body, Reply> {
        let unreadable =
            |why: MessageError| Reply::new(550, "5.6.0", format!("The message is not taken: {why}"));
        let header = read(&body, HEADER_BYTES_LIMIT).await?;
        if let Cow::Borrowed(_) = without_forged_results(&header, &[host_name]).map_err(unreadable)? {
            return Ok(body);
        }
        if body.size_bytes() > CHECKED_BYTES as u64 {
            let text = "The message has an Authentication-Results in this host's name, and is too large to remove it";
            return Err(Reply::new(550, "5.7.1", text));
        }
        let _turn = self.turn(&body).await;
        let text = read(&body, CHECKED_BYTES).await?;
        Ok(match without_forged_results(&text, &[host_name]).map_err(unreadable)? {
            Cow::Owned(text) => Body::new(text),
            Cow::Borrowed(_) => body,
        })
    }

    /// What a user's message lacks (RFC 6409 §8).
    async fn completed(&self, body: &Body, host_name: &str, now_s: u64) -> String {
        let Ok(header) = read(body, HEADER_BYTES).await else { return String::new() };
        let mut lines = String::new();
        if !has_field(&header, "Date") {
            lines += &format!("Date: {}\r\n", date(now_s));
        }
        if !has_field(&header, "Message-ID") {
            let nanos = (self.unix_time)().as_nanos();
            lines += &format!("Message-ID: <{nanos:x}.{:x}@{host_name}>\r\n", std::process::id());
        }
        lines
    }
}

/// The beginning of a message.
async fn read(body: &Body, limit_bytes: usize) -> Result<Bytes, Reply> {
    let theirs = body.clone();
    let text = match body.is_in_memory() {
        true => theirs.read(limit_bytes),
        false => blocking::unblock(move || theirs.read(limit_bytes)).await,
    };
    text.map_err(|_| Reply::new(452, "4.3.1", "The message cannot be read again"))
}

/// Whether a client may send to anybody.
fn may_relay(client: &Client, rules: &Rules) -> bool {
    let is_in = |network: &Cidr| network.contains(client.address.address.to_canonical());
    client.user.is_some() || rules.networks.iter().any(is_in)
}

/// The recipients of a message with their destinations; names of this host become mailboxes.
fn recipients(envelope: &Envelope, rules: &Rules) -> Vec<NewRecipient> {
    let mut all: Vec<NewRecipient> = Vec::new();
    for recipient in &envelope.recipients {
        let is_local = rules.is_local(recipient.mailbox.domain());
        let targets = match is_local {
            true => rules.boxes.resolve(recipient.mailbox.local()),
            false => vec![recipient.mailbox.clone()],
        };
        for mailbox in targets {
            if all.iter().any(|known| known.recipient.mailbox == mailbox) {
                continue;
            }
            let mut target = recipient.clone();
            if mailbox != target.mailbox && target.original.is_none() {
                target.original = Some(format!("rfc822;{}", target.mailbox));
            }
            let domain = mailbox.domain().to_owned();
            target.mailbox = mailbox;
            all.push(NewRecipient { recipient: target, domain });
        }
    }
    all.sort_by(|a, b| a.domain.cmp(&b.domain));
    all
}

/// The line that says from where a message came (RFC 5321 §4.4).
fn received(client: &Client, envelope: &Envelope, host_name: &str, now_s: u64) -> String {
    let address = match client.address.address.to_canonical() {
        IpAddr::V6(address) => format!("IPv6:{address}"),
        address => address.to_string(),
    };
    let tls = client.tls.as_ref().map(|tls| format!("\r\n\t({tls})")).unwrap_or_default();
    let to = match envelope.recipients.as_slice() {
        [only] => format!("\r\n\tfor <{}>", only.mailbox),
        _ => String::new(),
    };
    format!(
        "Received: from {} ([{address}])\r\n\tby {host_name} with {}{tls}{to};\r\n\t{}\r\n",
        client.hello,
        client.protocol(envelope.mail.is_utf8),
        date(now_s)
    )
}

/// Whether the header of a message has a field.
fn has_field(text: &[u8], name: &str) -> bool {
    for line in text.split(|octet| *octet == b'\n') {
        if line.is_empty() || line == b"\r" {
            return false;
        }
        let is_name = line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
        if is_name && line.get(name.len()) == Some(&b':') {
            return true;
        }
    }
    false
}

impl Mailroom for Exchange {
    fn stage<'a>(
        &'a self,
        stage: Stage,
        client: &Rc<Client>,
        envelope: Option<&Rc<Envelope>>,
    ) -> Answer<'a, Decision> {
        match (stage, envelope) {
            (Stage::Recipient, Some(envelope)) => {
                let (client, envelope) = (client.clone(), envelope.clone());
                Box::pin(async move {
                    match envelope.recipients.last() {
                        Some(recipient) => self.recipient(&client, recipient).await.into(),
                        None => Decision::default(),
                    }
                })
            }
            _ => Box::pin(std::future::ready(Decision::default())),
        }
    }
    fn authenticate<'a>(
        &'a self,
        client: &Rc<Client>,
        user: String,
        password: String,
    ) -> Answer<'a, Result<bool, Reply>> {
        let peer = client.address.address;
        let name = user.clone();
        let verdict = self.authenticator.authenticate(user, password);
        Box::pin(async move {
            match verdict.await {
                Password::Granted(_) => {
                    LOG(SessionEvent::LoggedIn { peer, user: &name });
                    Ok(true)
                }
                Password::Denied => {
                    LOG(SessionEvent::Denied { peer, user: &name });
                    Ok(false)
                }
                Password::Busy => Err(Reply::new(454, "4.7.0", "Too many passwords are being checked")),
                Password::Unavailable(why) => {
                    LOG(SessionEvent::Unavailable { reason: &why });
                    Err(Reply::new(454, "4.7.0", "Passwords cannot be checked now"))
                }
            }
        })
    }
    fn message<'a>(
        &'a self,
        client: &Rc<Client>,
        envelope: &Rc<Envelope>,
        body: Body,
        is_eight_bit: bool,
    ) -> Answer<'a, Result<String, Reply>> {
        let (client, envelope) = (client.clone(), envelope.clone());
        Box::pin(async move { self.take(&client, &envelope, body, is_eight_bit).await })
    }
    fn ended(&self, client: &Client, trace: &Trace, closing: Option<Closing>) {
        let peer = client.address.address;
        let why = match closing {
            Some(Closing::Quit | Closing::HostEnds) => return,
            Some(closing) => closing.to_string(),
            None => "connection lost".into(),
        };
        info!(target: "mail", %peer, hello = client.hello, "ended: {why}\n{trace}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_the_header_alone() {
        let text = b"Subject: x\r\ndate : y\r\nDate: z\r\n\r\nMessage-ID: <a>\r\n";
        assert!(has_field(text, "date") && !has_field(text, "Message-ID"));
    }
}
