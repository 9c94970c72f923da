//! The sender's tasks: one that gives work out, and one for each connection.

use std::collections::BTreeSet;
use std::rc::Rc;

use futures_lite::future::or;
use inhost_base::Duration;
use tracing::{error, info, warn};

use super::config::SenderConfig;
use super::handle::Sender;
use super::outcome::{Setback, Tried};
use super::reach::{Reached, Trouble};
use super::report::ReportKind;
use super::route::Route;
use crate::client::{Failure, Outcome, Transaction};
use crate::driver::ConnectionError;
use crate::queue::{Batch, DestinationFate, Fate, Item, Reason, Settlement, StoreError, Stored};

/// Recipients that a connection is given at a time.
const BATCH: usize = 20;
/// Expired recipients that are reported at a time.
const EXPIRED: usize = 100;
/// How often the queue is looked at for what others have put there.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long the sender waits after the queue could not be used.
const AFTER_AN_ERROR: Duration = Duration::from_secs(10);

impl Sender {
    /// Gives out what is due, until the host goes down; then waits until what is under way is done. While another process
    /// sends from the queue, it waits for that one's end.
    pub async fn run(self: Rc<Self>) {
        let locked = async {
            let mut is_told = false;
            loop {
                match self.queue.lock().await {
                    Ok(lock) => return Some(lock),
                    Err(why) if !is_told => {
                        warn!(target: "mail", "nothing is sent yet: {why}");
                        is_told = true;
                    }
                    Err(_) => {}
                }
                self.host.sleep(LOOK_AGAIN).await;
            }
        };
        let over = async {
            self.host.draining().await;
            None
        };
        let Some(_lock) = or(locked, over).await else { return };
        let sending = async {
            loop {
                let wait = match self.give_out().await {
                    Ok(wait) => wait,
                    Err(why) => {
                        error!(target: "mail", "nothing is sent: {why}");
                        AFTER_AN_ERROR
                    }
                };
                let poked = async {
                    let _ = self.poke.1.recv().await;
                };
                or(poked, self.host.sleep(wait)).await;
            }
        };
        or(sending, self.host.draining()).await;
        while self.total.get() > 0 {
            let _ = self.poke.1.recv().await;
        }
    }
    /// Takes back what was given out in vain, once nobody works for its destination.
    async fn take_back(&self) -> Result<(), StoreError> {
        let idle: Vec<_> = {
            let active = self.active.borrow();
            self.unsettled.borrow().iter().filter(|domain| !active.contains_key(*domain)).cloned().collect()
        };
        for domain in idle {
            self.queue.release(&domain).await?;
            self.unsettled.borrow_mut().remove(&domain);
        }
        Ok(())
    }

    /// Gives out what is due; how long nothing will be.
    async fn give_out(self: &Rc<Self>) -> Result<Duration, StoreError> {
        self.take_back().await?;
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
            self.unsettled.borrow_mut().insert(domain.clone());
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
                    let setback = |reason| {
                        let is_final = matches!(reason, Reason::NoDomain { .. });
                        Setback { reason, is_final }
                    };
                    fates.push((item, delivered.map_err(setback)));
                }
                let delivered = Some(ReportKind::Delivered);
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
        // Connections that fail together have failed once.
        let failures = self.queue.failures(&batch.domain).await?.saturating_add(1);
        let turn = batch.items.first().map_or(0, |item| usize::try_from(item.message).unwrap_or(0));
        let mut reached = match self.reach(&batch.domain, route, turn, config).await {
            Ok(reached) => reached,
            Err(trouble) => return self.unreachable(batch, trouble, failures, config).await,
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
                        let destination = (!accepted).then_some((trouble.reason, failures));
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
        let sign = self.sign.borrow().clone().filter(|_| stored.is_signed);
        if let Some(sign) = sign
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
                            let server = server.clone();
                            Err(Setback { reason: Reason::Refused { server, step, reply }, is_final })
                        }
                        Outcome::Impossible(why) => {
                            let reason = Reason::Impossible { server: server.clone(), what: why.to_string() };
                            Err(Setback { reason, is_final: true })
                        }
                    };
                    (item, fate)
                });
                let fates = fates.collect();
                self.settle(domain, &stored, fates, relayed, dialogue, config).await?;
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
                let fates = items
                    .iter()
                    .map(|item| (item, Err(Setback { reason: reason.clone(), is_final: false })))
                    .collect();
                self.settle(domain, &stored, fates, None, None, config).await?;
                Ok(Err(Trouble { reason, is_final: false, dialogue: Some(dialogue) }))
            }
        }
    }

    /// No server of the destination could be reached.
    async fn unreachable(
        &self,
        batch: Batch,
        trouble: Trouble,
        failures: u32,
        config: &SenderConfig,
    ) -> Result<(), StoreError> {
        let Trouble { reason, is_final, dialogue } = trouble;
        info!(target: "mail", domain = batch.domain, "not sent: {reason}");
        let due_s = self.now_s() + config.schedule.wait_s(failures);
        // First of all: what comes meanwhile does not try it again.
        let destination = match is_final {
            true => DestinationFate::Reached,
            false => DestinationFate::Failed { due_s, failures, reason: reason.clone() },
        };
        let destination = Some((batch.domain.clone(), destination));
        self.queue.settle(Settlement { destination, ..Settlement::default() }).await?;
        let mut items = batch.items;
        let mut dialogue = dialogue.map(|text| (batch.domain.clone(), self.now_s(), text));
        loop {
            for items in items.chunk_by(|a, b| a.message == b.message) {
                let Some(stored) = self.queue.load(items[0].message).await? else { continue };
                let fates = items
                    .iter()
                    .map(|item| (item, Err(Setback { reason: reason.clone(), is_final })))
                    .collect::<Vec<_>>();
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
        Ok(())
    }

    async fn give_back(
        &self,
        domain: &str,
        fates: Vec<(i64, Fate)>,
        failed: Option<(Reason, u32)>,
        dialogue: Option<String>,
        config: &SenderConfig,
    ) -> Result<(), StoreError> {
        let dialogue = dialogue.map(|text| (domain.to_owned(), self.now_s(), text));
        self.queue.settle(Settlement { fates, dialogue, ..Settlement::default() }).await?;
        if let Some((reason, failures)) = failed {
            let due_s = self.now_s() + config.schedule.wait_s(failures);
            let destination = Some((domain.to_owned(), DestinationFate::Failed { due_s, failures, reason }));
            self.queue.settle(Settlement { destination, ..Settlement::default() }).await?;
        }
        Ok(())
    }

    async fn settle(
        &self,
        domain: &str,
        stored: &Stored,
        fates: Vec<Tried<'_>>,
        success: Option<ReportKind>,
        dialogue: Option<String>,
        config: &SenderConfig,
    ) -> Result<(), StoreError> {
        let mut settlement = self.outcome(stored, fates, success, None, config).await;
        settlement.destination = Some((domain.to_owned(), DestinationFate::Reached));
        settlement.dialogue = dialogue.map(|text| (domain.to_owned(), self.now_s(), text));
        self.queue.settle(settlement).await
    }
}

fn config_of(sender: &Sender) -> Rc<SenderConfig> {
    sender.config.borrow().clone()
}
