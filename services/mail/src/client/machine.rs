//! A dialogue of the client.

use std::collections::VecDeque;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use inhost_base::{Duration, Instant};

use super::extensions::Extensions;
use crate::codec::{MailFrom, Recipient, Reply, ReplyError, ReplyReader, Returns, encode_xtext};
use crate::trace::{Speaker, Trace};

/// Commands that may be under way at once.
const UNDER_WAY: usize = 64;

/// Configuration of a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The name that it gives itself.
    pub hello: String,
    /// Whether the server speaks LMTP (RFC 2033).
    pub is_lmtp: bool,
    /// Whether TLS is wanted.
    pub tls: TlsWish,
    /// Name and password to log in with.
    login: Option<(String, String)>,
    /// How long the greeting may take (RFC 5321 §4.5.3.2.1). Default 5 minutes.
    pub greeting: Duration,
    /// How long a reply may take. Default 5 minutes.
    pub reply: Duration,
    /// How long the reply to a whole message may take (RFC 5321 §4.5.3.2.6). Default 10 minutes.
    pub end: Duration,
}

impl ClientConfig {
    /// SMTP with TLS where it is offered, as the host `hello`.
    pub fn new(hello: &str) -> ClientConfig {
        ClientConfig {
            hello: hello.to_owned(),
            is_lmtp: false,
            tls: TlsWish::IfOffered,
            login: None,
            greeting: Duration::from_secs(300),
            reply: Duration::from_secs(300),
            end: Duration::from_secs(600),
        }
    }
}

impl ClientConfig {
    /// Logs in as `user`. A password is given to a server whose certificate is right, unless TLS is not wanted at all.
    pub fn log_in(&mut self, user: &str, password: &str) {
        self.login = Some((user.to_owned(), password.to_owned()));
        if self.tls == TlsWish::IfOffered {
            self.tls = TlsWish::Required;
        }
    }
}

/// Whether TLS is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TlsWish {
    /// It is not used.
    Never,
    /// It is used where it is offered; any certificate will do.
    #[default]
    IfOffered,
    /// Nothing is sent without it, and the certificate has to be right.
    Required,
}

/// A message to send: its envelope, and what has to be known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Transaction {
    /// The sender with its parameters.
    pub mail: MailFrom,
    /// The recipients; at least one.
    pub recipients: Vec<Recipient>,
    /// Size of the message in octets.
    pub size_bytes: u64,
}

impl Transaction {
    /// A message of `size_bytes`.
    pub fn new(mail: MailFrom, recipients: Vec<Recipient>, size_bytes: u64) -> Transaction {
        Transaction { mail, recipients, size_bytes }
    }
}

/// A step of a dialogue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The greeting.
    Greeting,
    /// EHLO, HELO or LHLO.
    Hello,
    /// STARTTLS and the handshake.
    Tls,
    /// AUTH.
    Auth,
    /// MAIL FROM.
    Mail,
    /// RCPT TO.
    Recipient,
    /// DATA.
    Data,
    /// The end of the message.
    End,
    /// RSET, QUIT.
    Other,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Greeting => "greeting",
            Step::Hello => "EHLO",
            Step::Tls => "STARTTLS",
            Step::Auth => "AUTH",
            Step::Mail => "MAIL FROM",
            Step::Recipient => "RCPT TO",
            Step::Data => "DATA",
            Step::End => "the end of the message",
            Step::Other => "RSET",
        })
    }
}

/// What came of a recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The server has taken the message for it.
    Accepted(Reply),
    /// The server refused, now or for ever.
    Refused(Step, Reply),
    /// The server cannot take such a message.
    Impossible(Impossible),
}

/// Why a server cannot take a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Impossible {
    /// It is larger than the server takes.
    TooLarge {
        /// The server's limit in octets.
        limit_bytes: u64,
    },
    /// It has octets above 127, and the server does not offer 8BITMIME.
    EightBit,
    /// It has addresses in UTF-8, and the server does not offer SMTPUTF8.
    Utf8,
}

/// Why a dialogue ended before its time.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The server refused a step that everything depends on.
    Refused(Step, Reply),
    /// The server said something that is not a reply.
    NotSmtp(Step, ReplyError),
    /// The server took too long.
    Late(Step),
    /// The server closed the connection.
    Closed(Step),
    /// TLS is required, and the server does not offer it.
    NoTls,
    /// The server offers no mechanism to log in that this client knows.
    NoMechanism,
    /// A name and a password are not sent without TLS.
    ClearPassword,
}

/// What a driver has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Do a handshake, then [`Dialogue::tls_started`].
    StartTls,
    /// A transaction may begin: [`Dialogue::begin`] or [`Dialogue::quit`].
    Ready,
    /// Send the message, its points doubled, with the point at its end; then [`Dialogue::body_sent`].
    SendBody,
    /// What came of each recipient, in their order.
    Done(Vec<Outcome>),
    /// Send what is pending, and close.
    Close(Option<Failure>),
}

/// A reply that is to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Greeting,
    Hello { is_extended: bool },
    StartTls,
    Auth,
    AuthName,
    AuthPassword,
    Mail,
    Recipient(usize),
    Data,
    End(usize),
    EndOfNothing,
    Reset,
    Quit,
}

impl Expected {
    fn step(self) -> Step {
        match self {
            Expected::Greeting => Step::Greeting,
            Expected::Hello { .. } => Step::Hello,
            Expected::StartTls => Step::Tls,
            Expected::Auth | Expected::AuthName | Expected::AuthPassword => Step::Auth,
            Expected::Mail => Step::Mail,
            Expected::Recipient(_) => Step::Recipient,
            Expected::Data => Step::Data,
            Expected::End(_) | Expected::EndOfNothing => Step::End,
            Expected::Reset | Expected::Quit => Step::Other,
        }
    }
}

/// One connection of the client, pure.
///
/// Octets of the server go in by [`network`](Self::network); octets come out by [`pending`](Self::pending) and
/// [`sent`](Self::sent). After each call the driver takes every [`action`](Self::action).
#[derive(Debug)]
pub struct Dialogue {
    config: ClientConfig,
    extensions: Extensions,
    is_in_tls: bool,
    expected: VecDeque<Expected>,
    /// Commands that wait until fewer are under way.
    queued: VecDeque<(Expected, Vec<u8>)>,
    transaction: Option<UnderWay>,
    needs_reset: bool,
    actions: VecDeque<Action>,
    reader: ReplyReader,
    output: Vec<u8>,
    trace: Trace,
    /// When the last reply came, or the last command was sent.
    last: Instant,
    closed: bool,
    sending_body: bool,
}

#[derive(Debug)]
struct UnderWay {
    outcomes: Vec<Option<Outcome>>,
    /// Recipients that the server accepted.
    accepted: Vec<usize>,
    /// The message was sent.
    is_sent: bool,
}

impl Dialogue {
    /// On a connection that was just made; `is_in_tls` if TLS was begun first (RFC 8314 §3.3).
    pub fn new(config: ClientConfig, is_in_tls: bool, now: Instant) -> Dialogue {
        Dialogue {
            config,
            extensions: Extensions::default(),
            is_in_tls,
            expected: VecDeque::from([Expected::Greeting]),
            queued: VecDeque::new(),
            transaction: None,
            needs_reset: false,
            actions: VecDeque::new(),
            reader: ReplyReader::default(),
            output: Vec::new(),
            trace: Trace::new(now),
            last: now,
            closed: false,
            sending_body: false,
        }
    }
    /// What the server offers.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }
    /// The last lines of the dialogue.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }
    /// A remark for the trace.
    pub fn note(&mut self, text: &str, now: Instant) {
        self.trace.say(Speaker::Note, text.as_bytes(), now);
    }
    /// Whether the connection is in TLS.
    pub fn is_in_tls(&self) -> bool {
        self.is_in_tls
    }
    /// What is to be done next.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    /// Octets for the server.
    pub fn pending(&self) -> &[u8] {
        &self.output
    }
    /// So many of them were sent.
    pub fn sent(&mut self, count: usize, now: Instant) {
        self.output.drain(..count.min(self.output.len()));
        self.last = now;
    }
    /// When [`timeout`](Self::timeout) is to be called, if nothing comes before. While the body is sent, the driver
    /// watches that it moves.
    pub fn deadline(&self) -> Option<Instant> {
        if self.closed || self.sending_body {
            return None;
        }
        let limit = match self.expected.front()? {
            Expected::Greeting => self.config.greeting,
            Expected::End(_) => self.config.end,
            _ => self.config.reply,
        };
        Some(self.last + limit)
    }
    /// A deadline may be over.
    pub fn timeout(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            self.fail(Failure::Late(self.step()), now);
        }
    }
    /// The connection has ended.
    pub fn closed(&mut self, now: Instant) {
        self.fail(Failure::Closed(self.step()), now);
    }
    /// The step that the server has to answer.
    pub fn step(&self) -> Step {
        self.expected.front().map_or(Step::Other, |expected| expected.step())
    }
    /// Octets of the server.
    pub fn network(&mut self, mut octets: &[u8], now: Instant) {
        while !octets.is_empty() && !self.closed {
            let reply = match self.reader.receive(&mut octets) {
                Ok(Some(reply)) => reply,
                Ok(None) => return,
                Err(error) => return self.fail(Failure::NotSmtp(self.step(), error), now),
            };
            self.trace.say(Speaker::Server, reply.to_string().as_bytes(), now);
            self.last = now;
            match self.expected.pop_front() {
                Some(expected) => self.reply(expected, reply, now),
                // 421, or words out of turn.
                None => return self.fail(Failure::Refused(Step::Other, reply), now),
            }
            if self.actions.back() == Some(&Action::StartTls) && !octets.is_empty() {
                // Words in clear text behind the last one are somebody else's.
                self.actions.pop_back();
                return self.fail(Failure::NotSmtp(Step::Tls, ReplyError::NotAReply), now);
            }
            self.flush(now);
        }
    }
    /// The handshake is done. What the server offered before is forgotten (RFC 3207 §4.2).
    pub fn tls_started(&mut self, what: &str, now: Instant) {
        self.is_in_tls = true;
        (self.extensions, self.reader) = Default::default();
        self.note(&format!("TLS: {what}"), now);
        self.hello(true, now);
    }
    /// Begins a transaction, when it is [`Action::Ready`].
    pub fn begin(&mut self, transaction: &Transaction, now: Instant) {
        let outcomes = vec![None; transaction.recipients.len()];
        if let Some(why) = self.impossible(transaction) {
            self.actions.push_back(Action::Done(vec![Outcome::Impossible(why); outcomes.len()]));
            self.actions.push_back(Action::Ready);
            return;
        }
        self.transaction = Some(UnderWay { outcomes, accepted: Vec::new(), is_sent: false });
        if core::mem::take(&mut self.needs_reset) {
            self.queue(Expected::Reset, "RSET".into());
        }
        self.queue(Expected::Mail, self.mail(transaction));
        for (at, recipient) in transaction.recipients.iter().enumerate() {
            self.queue(Expected::Recipient(at), self.recipient(recipient));
        }
        self.queue(Expected::Data, "DATA".into());
        self.flush(now);
    }
    /// The whole body was sent.
    pub fn body_sent(&mut self, octets: u64, now: Instant) {
        self.sending_body = false;
        self.trace.say(Speaker::Client, format!("({octets} octets of message)").as_bytes(), now);
        self.last = now;
        let Some(transaction) = &mut self.transaction else { return };
        transaction.is_sent = true;
        match (self.config.is_lmtp, transaction.accepted.as_slice()) {
            (true, accepted) => self.expected.extend(accepted.iter().map(|at| Expected::End(*at))),
            (false, _) => self.expected.push_back(Expected::End(0)),
        }
    }
    /// Nothing more is to be sent.
    pub fn quit(&mut self, now: Instant) {
        self.command(Expected::Quit, "QUIT", now);
    }

    fn reply(&mut self, expected: Expected, reply: Reply, now: Instant) {
        match expected {
            Expected::Greeting => match reply.code {
                220 => self.hello(true, now),
                _ => self.fail(Failure::Refused(Step::Greeting, reply), now),
            },
            Expected::Hello { is_extended } => self.hello_reply(is_extended, reply, now),
            Expected::StartTls => match reply.code {
                220 => self.actions.push_back(Action::StartTls),
                _ if self.config.tls == TlsWish::Required => {
                    self.fail(Failure::Refused(Step::Tls, reply), now);
                }
                _ => self.log_in(now),
            },
            Expected::AuthName | Expected::AuthPassword if reply.code == 334 => {
                let (user, password) = self.config.login.clone().unwrap_or_default();
                let (next, text) = match expected {
                    Expected::AuthName => (Expected::AuthPassword, user),
                    _ => (Expected::Auth, password),
                };
                self.secret(next, STANDARD.encode(text), now);
            }
            Expected::Auth if reply.code == 235 => self.actions.push_back(Action::Ready),
            Expected::Auth | Expected::AuthName | Expected::AuthPassword => {
                self.fail(Failure::Refused(Step::Auth, reply), now);
            }
            Expected::Mail if !reply.is_positive() => self.all(Outcome::Refused(Step::Mail, reply)),
            Expected::Mail | Expected::Reset => {}
            Expected::Recipient(at) => self.recipient_reply(at, reply),
            Expected::Data => self.data_reply(reply, now),
            Expected::End(at) => self.end_reply(at, reply, now),
            Expected::EndOfNothing => self.done(),
            Expected::Quit => {
                self.closed = true;
                self.actions.push_back(Action::Close(None));
            }
        }
    }

    fn hello(&mut self, is_extended: bool, now: Instant) {
        let verb = match (self.config.is_lmtp, is_extended) {
            (true, _) => "LHLO",
            (false, true) => "EHLO",
            (false, false) => "HELO",
        };
        let line = format!("{verb} {}", self.config.hello);
        self.command(Expected::Hello { is_extended }, &line, now);
    }

    fn hello_reply(&mut self, is_extended: bool, reply: Reply, now: Instant) {
        if !reply.is_positive() {
            // RFC 5321 §3.2: a server that does not know EHLO.
            return match is_extended && reply.is_permanent() && !self.config.is_lmtp {
                true => self.hello(false, now),
                false => self.fail(Failure::Refused(Step::Hello, reply), now),
            };
        }
        if is_extended {
            self.extensions = Extensions::parse(&reply.text);
        }
        match self.config.tls {
            _ if self.is_in_tls => self.log_in(now),
            TlsWish::Never => self.log_in(now),
            _ if self.extensions.starttls => self.command(Expected::StartTls, "STARTTLS", now),
            TlsWish::Required => self.fail(Failure::NoTls, now),
            TlsWish::IfOffered => self.log_in(now),
        }
    }

    fn log_in(&mut self, now: Instant) {
        let Some((user, password)) = &self.config.login else {
            return self.actions.push_back(Action::Ready);
        };
        if !self.is_in_tls && self.config.tls != TlsWish::Never {
            return self.fail(Failure::ClearPassword, now);
        }
        let offers = |mechanism: &str| self.extensions.auth.iter().any(|offered| offered == mechanism);
        if offers("PLAIN") {
            let response = STANDARD.encode(format!("\0{user}\0{password}"));
            self.secret(Expected::Auth, format!("AUTH PLAIN {response}"), now);
        } else if offers("LOGIN") {
            self.command(Expected::AuthName, "AUTH LOGIN", now);
        } else {
            self.fail(Failure::NoMechanism, now);
        }
    }

    fn impossible(&self, transaction: &Transaction) -> Option<Impossible> {
        let (offered, mail) = (&self.extensions, &transaction.mail);
        let limit_bytes = offered.size_bytes.filter(|limit| *limit > 0 && *limit < transaction.size_bytes);
        if let Some(limit_bytes) = limit_bytes {
            return Some(Impossible::TooLarge { limit_bytes });
        }
        let is_ascii = mail.sender.as_ref().is_none_or(|sender| sender.is_ascii())
            && transaction.recipients.iter().all(|recipient| recipient.mailbox.is_ascii());
        // A header in UTF-8 needs the extension as addresses do; which of them it was is not known.
        if !offered.utf8 && (!is_ascii || mail.is_utf8) {
            return Some(Impossible::Utf8);
        }
        (mail.is_eight_bit && !offered.eight_bit).then_some(Impossible::EightBit)
    }

    fn mail(&self, transaction: &Transaction) -> String {
        let (offered, mail) = (&self.extensions, &transaction.mail);
        let sender = mail.sender.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut line = format!("MAIL FROM:<{sender}>");
        if offered.size_bytes.is_some() {
            line += &format!(" SIZE={}", transaction.size_bytes);
        }
        if offered.eight_bit && mail.is_eight_bit {
            line += " BODY=8BITMIME";
        }
        if offered.utf8 && mail.is_utf8 {
            line += " SMTPUTF8";
        }
        if offered.dsn {
            match mail.returns {
                Some(Returns::Full) => line += " RET=FULL",
                Some(Returns::Headers) => line += " RET=HDRS",
                None => {}
            }
            if let Some(id) = &mail.envelope_id {
                line += &format!(" ENVID={}", encode_xtext(id));
            }
        }
        line
    }

    fn recipient(&self, recipient: &Recipient) -> String {
        let mut line = format!("RCPT TO:<{}>", recipient.mailbox);
        if self.extensions.dsn {
            if let Some(notify) = recipient.notify {
                line += &format!(" NOTIFY={notify}");
            }
            if let Some((kind, address)) = recipient.original.as_deref().and_then(|text| text.split_once(';'))
            {
                line += &format!(" ORCPT={kind};{}", encode_xtext(address));
            }
        }
        line
    }

    fn recipient_reply(&mut self, at: usize, reply: Reply) {
        let Some(transaction) = &mut self.transaction else { return };
        let Some(outcome) = transaction.outcomes.get_mut(at) else { return };
        if reply.is_positive() {
            transaction.accepted.push(at);
        } else if outcome.is_none() {
            *outcome = Some(Outcome::Refused(Step::Recipient, reply));
        }
    }

    fn data_reply(&mut self, reply: Reply, now: Instant) {
        let Some(transaction) = &self.transaction else { return };
        let is_refused = transaction.accepted.is_empty()
            || transaction.accepted.iter().all(|at| transaction.outcomes[*at].is_some());
        match (reply.code, is_refused) {
            (354, false) => {
                self.sending_body = true;
                self.actions.push_back(Action::SendBody);
            }
            // RFC 2920 §3.1: a server that wants the text of a message for nobody gets none.
            (354, true) => {
                self.output.extend_from_slice(b".\r\n");
                self.expected.push_back(Expected::EndOfNothing);
                self.last = now;
            }
            _ => {
                self.all(Outcome::Refused(Step::Data, reply));
                self.needs_reset = true;
                self.done();
            }
        }
    }

    fn end_reply(&mut self, at: usize, reply: Reply, _now: Instant) {
        let Some(transaction) = &mut self.transaction else { return };
        let outcome = match reply.is_positive() {
            true => Outcome::Accepted(reply),
            false => Outcome::Refused(Step::End, reply),
        };
        let at: &[usize] = if self.config.is_lmtp { &[at] } else { &transaction.accepted.clone() };
        for at in at {
            transaction.outcomes[*at] = Some(outcome.clone());
        }
        if !self.expected.iter().any(|expected| matches!(expected, Expected::End(_))) {
            self.done();
        }
    }

    /// The same outcome for all recipients that have none.
    fn all(&mut self, outcome: Outcome) {
        if let Some(transaction) = &mut self.transaction {
            for missing in transaction.outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
                *missing = Some(outcome.clone());
            }
        }
    }

    fn done(&mut self) {
        let Some(transaction) = self.transaction.take() else { return };
        let none =
            || Outcome::Refused(Step::Data, Reply::new(451, "4.5.0", "The server refused all recipients"));
        let outcomes = transaction.outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(none));
        self.actions.push_back(Action::Done(outcomes.collect()));
        self.actions.push_back(Action::Ready);
    }

    /// What came of each recipient of a message whose connection is lost, where the server had taken it for any: RFC 2033 has an
    /// answer for each. For the others it is sent again.
    pub fn outcomes_so_far(&mut self) -> Option<Vec<Outcome>> {
        let is_taken = |of: &Option<Outcome>| matches!(of, Some(Outcome::Accepted(_)));
        let transaction = self.transaction.take_if(|of| of.outcomes.iter().any(is_taken))?;
        let lost = || {
            let reply = Reply::new(451, "4.4.2", "The connection was lost before the answer");
            Outcome::Refused(Step::End, reply)
        };
        Some(transaction.outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(lost)).collect())
    }

    fn queue(&mut self, expected: Expected, line: String) {
        self.queued.push_back((expected, line.into_bytes()));
    }

    /// Sends commands that wait, as many as may be under way.
    fn flush(&mut self, now: Instant) {
        let limit = if self.extensions.pipelining { UNDER_WAY } else { 1 };
        while self.expected.len() < limit
            && let Some((expected, line)) = self.queued.pop_front()
        {
            self.say(expected, &line, now);
        }
    }

    fn command(&mut self, expected: Expected, line: &str, now: Instant) {
        self.say(expected, line.as_bytes(), now);
    }

    fn say(&mut self, expected: Expected, line: &[u8], now: Instant) {
        self.trace.say(Speaker::Client, line, now);
        self.output.extend_from_slice(line);
        self.output.extend_from_slice(b"\r\n");
        self.expected.push_back(expected);
        self.last = now;
    }

    /// A line that the trace does not show.
    fn secret(&mut self, expected: Expected, line: String, now: Instant) {
        self.trace.say(Speaker::Client, b"AUTH (not shown)", now);
        self.output.extend_from_slice(line.as_bytes());
        self.output.extend_from_slice(b"\r\n");
        self.expected.push_back(expected);
        self.last = now;
    }

    fn fail(&mut self, failure: Failure, _now: Instant) {
        if !core::mem::replace(&mut self.closed, true) {
            self.actions.push_back(Action::Close(Some(failure)));
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(step, reply) => write!(f, "it refused {step}: {reply}"),
            Failure::NotSmtp(step, why) => write!(f, "at {step}, {why}"),
            Failure::Late(step) => write!(f, "it did not answer {step} in time"),
            Failure::Closed(step) => write!(f, "it closed the connection at {step}"),
            Failure::NoTls => f.write_str("it does not offer STARTTLS, and TLS is required"),
            Failure::NoMechanism => f.write_str("it offers no way to log in that is known here"),
            Failure::ClearPassword => {
                f.write_str("it does not offer STARTTLS, and a password is not sent in clear text")
            }
        }
    }
}
impl std::error::Error for Failure {}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Impossible::TooLarge { limit_bytes } => {
                write!(f, "the message is larger than the {limit_bytes} octets that it takes")
            }
            Impossible::EightBit => {
                f.write_str("the message has octets above 127, and it does not offer 8BITMIME")
            }
            Impossible::Utf8 => {
                f.write_str("the message has addresses in UTF-8, and it does not offer SMTPUTF8")
            }
        }
    }
}
