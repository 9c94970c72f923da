//! A rule: what it matches, what it does and how often.

use std::fmt;

use inhost_base::{Cidr, Duration};
use inhost_common::Pattern;

/// The point of an SMTP session at which rules are asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// A client has connected; nothing was said.
    Connect,
    /// HELO or EHLO.
    Hello,
    /// AUTH.
    Auth,
    /// MAIL.
    Mail,
    /// RCPT, for each recipient.
    Recipient,
    /// DATA or the first BDAT.
    Data,
    /// The whole message has come.
    Message,
}

impl Stage {
    /// All stages, in the order of a session.
    pub const ALL: [Stage; 7] = [
        Stage::Connect,
        Stage::Hello,
        Stage::Auth,
        Stage::Mail,
        Stage::Recipient,
        Stage::Data,
        Stage::Message,
    ];
    /// Its name in rules.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Connect => "connect",
            Stage::Hello => "hello",
            Stage::Auth => "auth",
            Stage::Mail => "mail",
            Stage::Recipient => "recipient",
            Stage::Data => "data",
            Stage::Message => "message",
        }
    }
    /// The stage of a name.
    pub fn named(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

/// A negative reply: its code is 400 to 599.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The reply code (RFC 5321 §4.2.1).
    pub code: u16,
    /// The enhanced status code (RFC 3463), of the same class; empty for none.
    pub enhanced: String,
    /// The text: printable ASCII.
    pub text: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        for part in [&self.enhanced, &self.text].into_iter().filter(|part| !part.is_empty()) {
            write!(f, " {part}")?;
        }
        Ok(())
    }
}

/// What a rule matches. What is not given matches everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matches {
    /// The stage.
    pub stage: Stage,
    /// A shell pattern of the sender, in lower case; the null sender is empty.
    pub sender: Option<(String, Pattern)>,
    /// A shell pattern of a recipient, in lower case. At `data` and `message` one of all is enough.
    pub recipient: Option<(String, Pattern)>,
    /// The network of the client.
    pub client: Option<Cidr>,
}

/// What a rule does, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Action {
    /// Waits that long.
    pub delay: Duration,
    /// Reads the session from now on with so many bytes a second.
    pub bytes_per_second: Option<u64>,
    /// Refuses.
    pub refusal: Option<Refusal>,
    /// Resets the connection.
    pub drops: bool,
}

/// How often a rule fires among the events that it matches. All conditions must hold.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Frequency {
    /// Not for the first so many.
    pub after: u64,
    /// For that many at most, counted behind `after`.
    pub first: Option<u64>,
    /// For every so manieth alone, counted behind `after`.
    pub every: Option<u64>,
    /// With that probability, 0 to 1.
    pub rate: Option<f64>,
    /// For those above so many in a time that begins with the first: a rate limit.
    pub over: Option<(u64, Duration)>,
    /// While more than so many sessions are open: a limit of connections.
    pub sessions_over: Option<u64>,
}

/// A rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// What it matches.
    pub matches: Matches,
    /// What it does.
    pub action: Action,
    /// How often.
    pub frequency: Frequency,
}
