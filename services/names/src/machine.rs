//! One question's way through the servers, as a machine: whom to ask next and how, until one of them says something of
//! use or none does.

use crate::answer::{Answer, AnswerError, code_name};
use crate::asked::{Mismatch, Question, SentQuery, dislikes_extension};
use crate::health::{Health, MOST_WAIT};
use hickory_proto::op::ResponseCode;
use inhost_base::{Duration, Endpoint, Instant, Random};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Servers that are asked about one question.
pub const ASKED_LIMIT: usize = 8;
/// Limit of ignored mismatches; beyond it a forger is assumed, and TCP is used, which is hard to forge.
pub const MISMATCHES_LIMIT: u32 = 32;
/// Timeout of a server over TCP.
const TCP_WAIT: Duration = Duration::from_secs(4);
/// Timeout of a query in all.
pub const QUESTION_LIMIT: Duration = Duration::from_secs(10);

/// Retry schedule: attempts and timeouts of each server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RetrySchedule {
    /// Times that each server is asked. Default 2.
    pub rounds: usize,
    /// The wait for a server's answer when it is asked for the last time; before that, what its round trips suggest, and
    /// no longer. Default 3 s.
    pub timeout: Duration,
}

impl Default for RetrySchedule {
    fn default() -> Self {
        RetrySchedule { rounds: 2, timeout: MOST_WAIT }
    }
}

/// By which way a server is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transport {
    /// A datagram, from its own port.
    Udp,
    /// A connection.
    Tcp,
    /// A datagram to everybody on the link.
    Multicast,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
            Transport::Multicast => "mDNS",
        })
    }
}

/// Result of one query to one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttemptOutcome {
    /// It said something of use.
    Answered(ResponseCode),
    /// Its answer is too long for a datagram.
    Truncated,
    /// It changed the case of the name's letters, which a forger would do, too.
    CaseChanged,
    /// So much came that did not fit that somebody must be guessing.
    Guessing,
    /// It does not know EDNS.
    NoExtension,
    /// It said something of no use.
    AnswerError(AnswerError),
    /// It said nothing in its time.
    Silent,
    /// It cannot be reached, for this reason.
    Unreachable(String),
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttemptOutcome::Answered(ResponseCode::NoError) => f.write_str("answered"),
            AttemptOutcome::Answered(code) => f.write_str(code_name(*code)),
            AttemptOutcome::Truncated => f.write_str("too long for a datagram, asked again over TCP"),
            AttemptOutcome::CaseChanged => {
                f.write_str("changed the case of the letters, asked again over TCP")
            }
            AttemptOutcome::Guessing => f.write_str("too much that does not fit, asked again over TCP"),
            AttemptOutcome::NoExtension => f.write_str("does not know EDNS, asked again without"),
            AttemptOutcome::AnswerError(why) => fmt::Display::fmt(why, f),
            AttemptOutcome::Silent => f.write_str("no answer"),
            AttemptOutcome::Unreachable(why) => write!(f, "cannot be reached: {why}"),
        }
    }
}

/// One server asked once.
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt {
    /// Whom.
    pub server: Endpoint,
    /// How.
    pub transport: Transport,
    /// When.
    pub at: Instant,
    /// Elapsed time.
    pub took: Duration,
    /// The result.
    pub outcome: AttemptOutcome,
    /// Replies that were ignored because they did not match.
    pub mismatches: BTreeMap<Mismatch, u32>,
}

/// Action for the driver.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Send this from a new port, and receive on it.
    Udp(Endpoint, Vec<u8>),
    /// Send this over a new connection, behind its length.
    Tcp(Endpoint, Vec<u8>),
    /// Nothing more: [`Exchange::into_report`] has what came of it.
    Over,
}

/// Result of a query.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolution {
    /// The question.
    pub question: Question,
    /// The answer, or why there is none.
    pub result: Result<Answer, Failed>,
    /// Each server asked, in order.
    pub attempts: Vec<Attempt>,
}

/// Why a question has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Failed {
    /// Nobody could be asked.
    NoServers,
    /// The name or its type cannot be asked for.
    NotAskable,
    /// Nobody said anything.
    Silence,
    /// The last thing that a server said.
    AnswerError(AnswerError),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::NoServers => f.write_str("there is no name server to ask"),
            Failed::NotAskable => f.write_str("that cannot be asked for"),
            Failed::Silence => f.write_str("no name server answered"),
            Failed::AnswerError(why) => fmt::Display::fmt(why, f),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    server: Endpoint,
    transport: Transport,
    extended: bool,
    /// Whether it is asked for the last time: then its answer is waited for longer, for a server that asks others itself
    /// takes its time for what it has not kept.
    is_last: bool,
}

struct UnderWay {
    step: Step,
    asked: SentQuery,
    since: Instant,
    until: Instant,
    mismatches: BTreeMap<Mismatch, u32>,
}

/// The machine. It is driven by what it asks for: [`Exchange::action`] until it gives nothing, then
/// [`Exchange::datagram`], [`Exchange::reply`], [`Exchange::failed`] as they happen, and [`Exchange::timeout`] at
/// [`Exchange::deadline`]. What comes when it is not waited for is ignored.
pub struct Exchange {
    question: Question,
    plan: VecDeque<Step>,
    under_way: Option<UnderWay>,
    action: Option<Action>,
    attempts: Vec<Attempt>,
    result: Option<Result<Answer, Failed>>,
    last: Failed,
    ends: Instant,
    timeout: Duration,
}

impl Exchange {
    /// Begins to ask `servers`, those that are known to answer first; `over_tcp` from the start.
    pub fn new(
        question: Question,
        servers: &[Endpoint],
        over_tcp: bool,
        retries: RetrySchedule,
        health: &Health,
        random: &mut Random,
        now: Instant,
    ) -> Exchange {
        let servers = &servers[..servers.len().min(ASKED_LIMIT)];
        let transport = if over_tcp { Transport::Tcp } else { Transport::Udp };
        let order = health.order(servers, now);
        let RetrySchedule { rounds, timeout } = retries;
        let mut plan = VecDeque::with_capacity(rounds * order.len());
        for round in 1..=rounds {
            plan.extend(order.iter().map(|&server| {
                let extended = health.knows_extension(server, now);
                Step { server, transport, extended, is_last: round == rounds }
            }));
        }
        let last = if servers.is_empty() { Failed::NoServers } else { Failed::Silence };
        let mut exchange = Exchange {
            question,
            plan,
            under_way: None,
            action: None,
            attempts: Vec::new(),
            result: None,
            last,
            ends: now + QUESTION_LIMIT,
            timeout,
        };
        exchange.next(health, random, now);
        exchange
    }
    /// The next action; `None` to wait.
    pub fn action(&mut self) -> Option<Action> {
        self.action.take()
    }
    /// When to call [`Exchange::timeout`].
    pub fn deadline(&self) -> Option<Instant> {
        self.under_way.as_ref().map(|under_way| under_way.until.min(self.ends))
    }
    /// Whether there is nothing more to do.
    pub fn is_over(&self) -> bool {
        self.result.is_some()
    }
    /// The result; before the end, that no server has answered.
    pub fn into_report(self) -> Resolution {
        let result = self.result.unwrap_or(Err(self.last));
        Resolution { question: self.question, result, attempts: self.attempts }
    }

    /// A datagram came to the port that was asked from.
    pub fn datagram(
        &mut self,
        from: Endpoint,
        bytes: &[u8],
        health: &mut Health,
        random: &mut Random,
        now: Instant,
    ) {
        let Some(under_way) = self.under_way.as_mut().filter(|u| u.step.transport == Transport::Udp) else {
            return;
        };
        let fits = match from == under_way.step.server {
            true => under_way.asked.fits(bytes, false),
            false => Err(Mismatch::OtherSource),
        };
        match fits {
            Ok(()) => self.said(bytes, health, random, now),
            Err(mismatch) => {
                *under_way.mismatches.entry(mismatch).or_insert(0) += 1;
                let step = Step { transport: Transport::Tcp, ..under_way.step };
                if mismatch == Mismatch::OtherCase {
                    self.again(step, AttemptOutcome::CaseChanged, health, random, now);
                } else if under_way.mismatches.values().sum::<u32>() >= MISMATCHES_LIMIT {
                    self.again(step, AttemptOutcome::Guessing, health, random, now);
                }
            }
        }
    }
    /// A message came over the connection that was asked over.
    pub fn reply(&mut self, bytes: &[u8], health: &mut Health, random: &mut Random, now: Instant) {
        let Some(under_way) = self.under_way.as_mut().filter(|u| u.step.transport == Transport::Tcp) else {
            return;
        };
        match under_way.asked.fits(bytes, true) {
            Ok(()) => self.said(bytes, health, random, now),
            Err(mismatch) => {
                *under_way.mismatches.entry(mismatch).or_insert(0) += 1;
                self.useless(AnswerError::Unreadable, health, random, now);
            }
        }
    }
    /// The server cannot be reached, or ended the connection.
    pub fn failed(&mut self, why: String, health: &mut Health, random: &mut Random, now: Instant) {
        let Some(under_way) = &self.under_way else { return };
        health.unreachable(under_way.step.server, now);
        self.close(AttemptOutcome::Unreachable(why), now);
        self.next(health, random, now);
    }
    /// Time has passed.
    pub fn timeout(&mut self, health: &mut Health, random: &mut Random, now: Instant) {
        let Some(under_way) = self.under_way.as_ref().filter(|u| u.until.min(self.ends) <= now) else {
            return;
        };
        health.silent(under_way.step.server, now);
        self.close(AttemptOutcome::Silent, now);
        self.next(health, random, now);
    }

    /// The server said something that fits the question.
    fn said(&mut self, bytes: &[u8], health: &mut Health, random: &mut Random, now: Instant) {
        let Some(under_way) = &self.under_way else { return };
        let step = under_way.step;
        health.answered(step.server, now.since(under_way.since), now);
        let Some(message) = under_way.asked.read(bytes) else {
            return self.useless(AnswerError::Unreadable, health, random, now);
        };
        if step.extended && dislikes_extension(&message) {
            health.is_plain(step.server, now);
            return self.again(
                Step { extended: false, ..step },
                AttemptOutcome::NoExtension,
                health,
                random,
                now,
            );
        }
        if message.metadata.truncation && step.transport == Transport::Udp {
            return self.again(
                Step { transport: Transport::Tcp, ..step },
                AttemptOutcome::Truncated,
                health,
                random,
                now,
            );
        }
        if message.metadata.truncation {
            return self.useless(AnswerError::CutOff, health, random, now);
        }
        match Answer::read(&message, &self.question) {
            Ok(answer) => {
                self.close(AttemptOutcome::Answered(answer.code), now);
                self.end(Ok(answer));
            }
            // Names that go round do so at every server.
            Err(why @ (AnswerError::AliasLoop(_) | AnswerError::TooManyAliases)) => {
                self.close(AttemptOutcome::AnswerError(why.clone()), now);
                self.end(Err(Failed::AnswerError(why)));
            }
            Err(why) => self.useless(why, health, random, now),
        }
    }
    /// The server is of no use for this question; nothing better is to be expected of it.
    fn useless(&mut self, why: AnswerError, health: &Health, random: &mut Random, now: Instant) {
        if let Some(server) = self.under_way.as_ref().map(|under_way| under_way.step.server) {
            self.plan.retain(|step| step.server != server);
        }
        self.last = Failed::AnswerError(why.clone());
        self.close(AttemptOutcome::AnswerError(why), now);
        self.next(health, random, now);
    }
    fn again(
        &mut self,
        step: Step,
        outcome: AttemptOutcome,
        health: &Health,
        random: &mut Random,
        now: Instant,
    ) {
        self.close(outcome, now);
        self.plan.push_front(step);
        self.next(health, random, now);
    }
    fn close(&mut self, outcome: AttemptOutcome, now: Instant) {
        let Some(UnderWay { step, since, mismatches, .. }) = self.under_way.take() else { return };
        let Step { server, transport, .. } = step;
        self.attempts.push(Attempt {
            server,
            transport,
            at: since,
            took: now.since(since),
            outcome,
            mismatches,
        });
    }
    fn next(&mut self, health: &Health, random: &mut Random, now: Instant) {
        let Some(step) = self.plan.pop_front().filter(|_| now < self.ends) else {
            return self.end(Err(self.last.clone()));
        };
        let Some(asked) = SentQuery::new(&self.question, step.extended, random) else {
            return self.end(Err(Failed::NotAskable));
        };
        let bytes = asked.bytes().to_vec();
        let (action, wait) = match step.transport {
            Transport::Tcp => (Action::Tcp(step.server, bytes), TCP_WAIT),
            // The link as a whole is not a server, and is asked by another machine.
            Transport::Udp | Transport::Multicast => {
                let wait =
                    if step.is_last { self.timeout } else { health.wait(step.server).min(self.timeout) };
                (Action::Udp(step.server, bytes), wait)
            }
        };
        self.action = Some(action);
        self.under_way =
            Some(UnderWay { step, asked, since: now, until: now + wait, mismatches: BTreeMap::new() });
    }
    fn end(&mut self, result: Result<Answer, Failed>) {
        self.plan.clear();
        self.result = Some(result);
        self.action = Some(Action::Over);
    }
}

#[cfg(test)]
mod tests;
