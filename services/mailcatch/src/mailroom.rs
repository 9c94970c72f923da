//! The catcher as the owner of an SMTP server: every login and every message is right, unless a rule says otherwise.

use std::rc::Rc;

use inhost_mail::codec::Reply;
use inhost_mail::driver::{Answer, Mailroom};
use inhost_mail::server::{Client, Closing, Decision, Envelope, Stage, Verdict};
use inhost_mail::{Body, Speaker, Trace};
use inhost_socket::Stream;

use crate::catcher::{Caller, Catcher};
use crate::rules::{self, Action};
use crate::sessions::Line;

/// The catcher in one session.
pub(crate) struct Room<'a> {
    pub(crate) catcher: &'a Catcher,
    /// The session's connection, for rules that drop it.
    pub(crate) stream: &'a Stream,
    /// The largest message in octets.
    pub(crate) message_bytes: usize,
}

impl Mailroom for Room<'_> {
    fn stage<'a>(
        &'a self,
        stage: Stage,
        client: &Rc<Client>,
        envelope: Option<&Rc<Envelope>>,
    ) -> Answer<'a, Decision> {
        let action = self.decide(stage_of(stage), client, envelope.map(|envelope| &**envelope));
        let delay = action.delay;
        let input_bytes_per_second = action.bytes_per_second;
        let verdict = match (action.drops, action.refusal) {
            (true, _) => Verdict::Drop,
            (false, Some(refusal)) => Verdict::Refuse(reply(refusal)),
            (false, None) => Verdict::Accept,
        };
        let decision = Decision { verdict, delay, input_bytes_per_second };
        Box::pin(async move {
            if decision.verdict == Verdict::Drop {
                self.catcher.host.sleep(delay).await;
                self.stream.abort();
            }
            decision
        })
    }
    fn authenticate<'a>(&'a self, _: &Rc<Client>, _: String, _: String) -> Answer<'a, Result<bool, Reply>> {
        Box::pin(std::future::ready(Ok(true)))
    }
    fn message<'a>(
        &'a self,
        client: &Rc<Client>,
        envelope: &Rc<Envelope>,
        body: Body,
        _: bool,
    ) -> Answer<'a, Result<String, Reply>> {
        let (client, envelope) = (client.clone(), envelope.clone());
        Box::pin(async move {
            let action = self.decide(rules::Stage::Message, &client, Some(&envelope));
            self.catcher.host.sleep(action.delay).await;
            if action.drops {
                self.stream.abort();
            }
            if let Some(refusal) = action.refusal {
                return Err(reply(refusal));
            }
            if action.drops {
                return Err(Reply::new(451, "4.3.0", "Dropped"));
            }
            let limit = self.message_bytes;
            let raw = match body.memory() {
                Some(octets) if body.head().is_empty() => Ok(octets.clone()),
                _ => blocking::unblock(move || body.read(limit)).await,
            };
            let (sender, recipients) = addresses(&envelope);
            let stored = match raw {
                Ok(raw) => self.catcher.receive(&caller(&client), sender, recipients, raw).await,
                Err(error) => Err(error),
            };
            stored.map(|id| id.to_string()).map_err(|error| {
                tracing::error!(target: "mail-catcher", "a message cannot be stored: {error}");
                Reply::new(452, "4.3.1", "The message cannot be stored now")
            })
        })
    }
    fn ended(&self, client: &Client, trace: &Trace, _: Option<Closing>) {
        let line = |line: &inhost_mail::TraceLine| Line {
            at_ms: line.at.as_millis(),
            speaker: match line.speaker {
                Speaker::Client => "client",
                Speaker::Server => "server",
                Speaker::Note => "note",
            },
            text: line.text(),
        };
        self.catcher.end_session(client.address, trace.lines().map(line).collect());
    }
}

impl Room<'_> {
    fn decide(&self, stage: rules::Stage, client: &Client, envelope: Option<&Envelope>) -> Action {
        let (sender, recipients) = match envelope {
            Some(envelope) => {
                let (sender, recipients) = addresses(envelope);
                (Some(sender.unwrap_or_default()), recipients)
            }
            None => (None, Vec::new()),
        };
        self.catcher.decide(stage, &caller(client), sender.as_deref(), &recipients)
    }
}

fn stage_of(stage: Stage) -> rules::Stage {
    match stage {
        Stage::Connect => rules::Stage::Connect,
        Stage::Hello => rules::Stage::Hello,
        Stage::Auth => rules::Stage::Auth,
        Stage::Mail => rules::Stage::Mail,
        Stage::Recipient => rules::Stage::Recipient,
        Stage::Data => rules::Stage::Data,
    }
}

fn caller(client: &Client) -> Caller {
    let (hello, tls, user) = (client.hello.clone(), client.tls.clone(), client.user.clone());
    Caller { address: client.address, hello, tls, user }
}

/// The sender, `None` for the null one, and the recipients.
fn addresses(envelope: &Envelope) -> (Option<String>, Vec<String>) {
    let recipients = envelope.recipients.iter().map(|recipient| recipient.mailbox.to_string());
    (envelope.mail.sender.as_ref().map(ToString::to_string), recipients.collect())
}

fn reply(refusal: rules::Refusal) -> Reply {
    Reply::new(refusal.code, refusal.enhanced, refusal.text)
}
