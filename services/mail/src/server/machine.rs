//! A session of the server.

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant};

use super::auth::{Auth, Step};
use super::config::{Client, Envelope, ServerConfig, Stage, TlsOffer};
use crate::codec::{
    AUTH_BYTES, COMMAND_BYTES, Command, CommandError, Content, ContentError, DataDecoder, DataEnd, MailFrom,
    Recipient, Reply,
};
use crate::trace::{Speaker, Trace};

/// Octets of a message that may wait to be taken.
const BODY_BYTES: usize = 256 << 10;
/// Octets of replies that may wait to be sent, beyond which no command is taken.
const OUTPUT_BYTES: usize = 16 << 10;
/// How much more than the largest message is read and thrown away, so that its sender hears why it is refused.
const DISCARDED_FACTOR: u64 = 4;

/// What a driver has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Ask the owner, then [`Session::decided`].
    Ask(Stage),
    /// Check the password, then [`Session::authenticated`].
    Authenticate {
        /// The user's name.
        user: String,
        /// The password.
        password: String,
    },
    /// Send what is pending, do a handshake, then [`Session::tls_started`].
    StartTls,
    /// A message begins; its octets come by [`Session::take_body`].
    Begin,
    /// The message is whole: store it, then [`Session::stored`].
    Finish,
    /// The message is none: forget what came of it.
    Discard,
    /// Send what is pending, and close.
    Close(Closing),
}

/// Why a session ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Closing {
    /// QUIT.
    Quit,
    /// Nothing came for too long.
    Idle,
    /// A command or a message came too slowly.
    TooSlow,
    /// Too many commands were refused.
    Errors,
    /// Lines that do not end in CRLF, or are too long: what follows cannot be trusted.
    Lines,
    /// The message is far larger than it may be.
    TooLarge,
    /// TLS failed.
    Tls,
    /// The owner wants it so, without a word.
    Dropped,
    /// The owner refused the client.
    Refused,
    /// The host goes down.
    HostEnds,
    /// An operator has ended it.
    Operator,
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Closing::Quit => "left",
            Closing::Idle => "idle too long",
            Closing::TooSlow => "too slow",
            Closing::Errors => "too many errors",
            Closing::Lines => "lines that do not end in CRLF, or are too long",
            Closing::TooLarge => "the message is far too large",
            Closing::Tls => "TLS failed",
            Closing::Dropped => "dropped",
            Closing::Refused => "refused",
            Closing::HostEnds => "the host goes down",
            Closing::Operator => "ended by an operator",
        })
    }
}

/// What an owner says to a stage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Verdict {
    /// It goes on.
    #[default]
    Accept,
    /// It is refused with this reply.
    Refuse(Reply),
    /// The connection is closed without a word.
    Drop,
}

/// What an owner says to a stage, and how slowly.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// What it says.
    pub verdict: Verdict,
    /// How long the answer is held back.
    pub delay: Duration,
    /// From now on no more octets a second are read.
    pub input_bytes_per_second: Option<u64>,
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Decision {
        Decision { verdict, ..Decision::default() }
    }
}

/// What the next octets are.
#[derive(Debug)]
enum Phase {
    Command,
    Auth(Auth),
    Data(DataDecoder),
    Chunk {
        left_bytes: u64,
        is_last: bool,
    },
    /// The driver works; commands wait.
    Waiting(Waiting),
    Closed,
}

#[derive(Debug)]
enum Waiting {
    Stage(Stage),
    Password(String),
    Tls,
    Stored,
}

/// A message that comes.
#[derive(Debug)]
struct Message {
    content: Content,
    bytes: u64,
    began: Instant,
    /// Whether it comes by BDAT.
    is_chunked: bool,
    refusal: Option<Reply>,
}

/// One session of the server, pure.
///
/// Octets go in by [`network`](Self::network) while [`takes_input`](Self::takes_input); octets come out by
/// [`pending`](Self::pending) and [`sent`](Self::sent), those of messages by [`take_body`](Self::take_body). After each
/// call the driver takes every [`action`](Self::action) and answers it in its time by the method that the action names.
/// It calls [`timeout`](Self::timeout) at the [`deadline`](Self::deadline); a spurious call does nothing, and an answer
/// to what was not asked is ignored.
#[derive(Debug)]
pub struct Session {
    config: Rc<ServerConfig>,
    client: Rc<Client>,
    envelope: Option<Rc<Envelope>>,
    phase: Phase,
    /// AUTH was said: lines that are not commands may be a name and a password.
    expects_secrets: bool,
    message: Option<Message>,
    actions: VecDeque<Action>,
    input: Vec<u8>,
    output: Vec<u8>,
    body: Vec<u8>,
    errors: u32,
    trace: Trace,
    /// When the last command was answered.
    last: Instant,
    line_began: Option<Instant>,
}

impl Session {
    /// A client calls from `address`.
    pub fn new(config: Rc<ServerConfig>, address: Endpoint, now: Instant) -> Session {
        Session {
            config,
            client: Rc::new(Client::new(address)),
            envelope: None,
            phase: Phase::Waiting(Waiting::Stage(Stage::Connect)),
            expects_secrets: false,
            message: None,
            actions: VecDeque::from([Action::Ask(Stage::Connect)]),
            input: Vec::new(),
            output: Vec::new(),
            body: Vec::new(),
            errors: 0,
            trace: Trace::new(now),
            last: now,
            line_began: None,
        }
    }
    /// The same on a connection that was in TLS from its start (RFC 8314 §3.3).
    pub fn in_tls(mut self, tls: String) -> Session {
        Rc::make_mut(&mut self.client).tls = Some(tls);
        self
    }
    /// What is known of the client.
    pub fn client(&self) -> &Rc<Client> {
        &self.client
    }
    /// The envelope, between MAIL and the end of the message.
    pub fn envelope(&self) -> Option<&Rc<Envelope>> {
        self.envelope.as_ref()
    }
    /// Whether the message has octets above 127; once it is whole.
    pub fn is_eight_bit(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.content.is_eight_bit())
    }
    /// The last lines of the dialogue.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }
    /// Octets of memory that it holds.
    pub fn held_bytes(&self) -> usize {
        self.input.capacity() + self.output.capacity() + self.body.capacity()
    }
    /// Whether octets of the client are wanted.
    pub fn takes_input(&self) -> bool {
        let is_busy = matches!(self.phase, Phase::Waiting(_) | Phase::Closed);
        !is_busy && self.output.len() < OUTPUT_BYTES && self.body.len() < BODY_BYTES
    }
    /// What is to be done next.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    /// Octets for the client.
    pub fn pending(&self) -> &[u8] {
        &self.output
    }
    /// So many of them were sent.
    pub fn sent(&mut self, count: usize, now: Instant) {
        self.output.drain(..count.min(self.output.len()));
        self.last = now;
        self.go_on(now);
    }
    /// Octets of the message that came; `into` is emptied first, and its memory is used for those to come.
    pub fn take_body(&mut self, into: &mut Vec<u8>, now: Instant) {
        into.clear();
        core::mem::swap(&mut self.body, into);
        self.go_on(now);
    }
    /// Octets of the client.
    pub fn network(&mut self, octets: &[u8], now: Instant) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        if self.line_began.is_none() {
            self.line_began = Some(now);
        }
        if self.input.is_empty() {
            // What is understood at once is not copied.
            let left = self.process(octets, now);
            self.input.extend_from_slice(&octets[octets.len() - left..]);
        } else {
            self.input.extend_from_slice(octets);
            self.go_on(now);
        }
        if self.input.is_empty() {
            self.line_began = None;
        }
    }
    /// When [`timeout`](Self::timeout) is to be called, if nothing comes before.
    pub fn deadline(&self) -> Option<Instant> {
        if let Some(message) = &self.message
            && matches!(self.phase, Phase::Data(_) | Phase::Chunk { .. })
        {
            let earned = Duration::from_secs(message.bytes / self.config.slowest_bytes_per_second.max(1));
            return Some((message.began + self.config.message + earned).min(self.last + self.config.idle));
        }
        match self.phase {
            Phase::Command | Phase::Auth(_) => {
                let idle = self.last + self.config.idle;
                Some(self.line_began.map_or(idle, |began| idle.min(began + self.config.command)))
            }
            _ => None,
        }
    }
    /// A deadline may be over.
    pub fn timeout(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        let is_idle = self.line_began.is_none() && self.message.is_none();
        let (closing, text) = match is_idle {
            true => (Closing::Idle, "Idle too long"),
            false => (Closing::TooSlow, "Too slow"),
        };
        self.close(closing, Some(Reply::new(421, "4.4.2", text)), now);
    }
    /// The host goes down.
    pub fn end(&mut self, now: Instant) {
        // A message that was acknowledged is safe; one that was not comes again.
        self.close(Closing::HostEnds, Some(Reply::new(421, "4.3.2", "The host goes down")), now);
    }

    /// An operator ends the session.
    pub fn end_by_operator(&mut self, now: Instant) {
        self.close(
            Closing::Operator,
            Some(Reply::new(421, "4.3.0", "The operator has ended this session")),
            now,
        );
    }

    /// What the owner says to the stage that was asked about.
    pub fn decided(&mut self, verdict: Verdict, now: Instant) {
        let Phase::Waiting(Waiting::Stage(stage)) = self.phase else { return };
        self.phase = Phase::Command;
        match verdict {
            Verdict::Accept => self.accepted(stage, now),
            Verdict::Drop => self.close(Closing::Dropped, None, now),
            Verdict::Refuse(reply) => self.refused(stage, reply, now),
        }
        self.go_on(now);
    }
    /// Whether the password was right; or why it could not be checked.
    pub fn authenticated(&mut self, outcome: Result<bool, Reply>, now: Instant) {
        if !matches!(self.phase, Phase::Waiting(Waiting::Password(_))) {
            return;
        }
        let Phase::Waiting(Waiting::Password(user)) = core::mem::replace(&mut self.phase, Phase::Command)
        else {
            return;
        };
        match outcome {
            Ok(true) => {
                Rc::make_mut(&mut self.client).user = Some(user);
                self.ask(Stage::Auth);
            }
            Ok(false) => self.error(Reply::new(535, "5.7.8", "Wrong name or password"), now),
            Err(reply) => self.error(reply, now),
        }
        self.go_on(now);
    }
    /// The handshake is done, with this version and cipher, or it failed.
    pub fn tls_started(&mut self, tls: Option<String>, now: Instant) {
        if !matches!(self.phase, Phase::Waiting(Waiting::Tls)) {
            return;
        }
        let Some(tls) = tls else {
            return self.close(Closing::Tls, None, now);
        };
        self.trace.say(Speaker::Note, format!("TLS: {tls}").as_bytes(), now);
        // RFC 3207 §4.2: what was said before is forgotten.
        self.client = Rc::new(Client { tls: Some(tls), ..Client::new(self.client.address) });
        self.envelope = None;
        self.phase = Phase::Command;
        self.last = now;
    }
    /// The message is safe under this name, or was refused.
    pub fn stored(&mut self, outcome: Result<String, Reply>, now: Instant) {
        if !matches!(self.phase, Phase::Waiting(Waiting::Stored)) {
            return;
        }
        self.phase = Phase::Command;
        self.forget();
        match outcome {
            Ok(name) => self.reply(Reply::new(250, "2.0.0", format!("Ok: queued as {name}")), now),
            Err(reply) => self.reply(reply, now),
        }
        self.go_on(now);
    }

    /// Goes on with what has come.
    fn go_on(&mut self, now: Instant) {
        if self.input.is_empty() {
            return;
        }
        let input = core::mem::take(&mut self.input);
        let left = self.process(&input, now);
        if self.input.is_empty() {
            self.input = input;
            let taken = self.input.len() - left;
            self.input.drain(..taken);
        }
        if self.input.is_empty() {
            self.line_began = None;
        }
    }

    /// Understands what it can; returns how many octets are left.
    fn process(&mut self, mut input: &[u8], now: Instant) -> usize {
        while self.takes_input() && !input.is_empty() {
            match &mut self.phase {
                Phase::Data(_) | Phase::Chunk { .. } => self.text(&mut input, now),
                _ => {
                    let limit = if matches!(self.phase, Phase::Auth(_)) { AUTH_BYTES } else { COMMAND_BYTES };
                    let Some(end) = memchr::memchr(b'\n', &input[..input.len().min(limit)]) else {
                        if input.len() >= limit {
                            let reply = Reply::new(500, "5.5.6", "The line is too long");
                            self.close(Closing::Lines, Some(reply), now);
                        }
                        break;
                    };
                    let (line, rest) = input.split_at(end + 1);
                    input = rest;
                    self.line_began = (!rest.is_empty()).then_some(now);
                    self.line(line, now);
                    if matches!(self.phase, Phase::Waiting(Waiting::Tls)) {
                        // Commands injected in front of the handshake.
                        return 0;
                    }
                }
            }
        }
        if matches!(self.phase, Phase::Closed) { 0 } else { input.len() }
    }

    fn line(&mut self, line: &[u8], now: Instant) {
        let text = line.strip_suffix(b"\r\n").filter(|text| memchr::memchr2(b'\r', 0, text).is_none());
        let Some(text) = text else {
            self.trace.say(Speaker::Client, line, now);
            let reply = Reply::new(500, "5.5.2", "A line ends in CRLF, and has no other CR, LF or NUL");
            return self.close(Closing::Lines, Some(reply), now);
        };
        if let Phase::Auth(_) = self.phase {
            self.trace.say(Speaker::Client, b"(response)", now);
            let Phase::Auth(auth) = core::mem::replace(&mut self.phase, Phase::Command) else { return };
            let step = core::str::from_utf8(text).map_or(Step::Wrong, |text| auth.respond(text));
            return self.auth_step(step, now);
        }
        let parsed = core::str::from_utf8(text).map_err(|_| CommandError::Arguments("that is not UTF-8"));
        let parsed = parsed.and_then(Command::parse);
        self.expects_secrets &= parsed.is_err();
        let shown = match text.get(..5) {
            Some(verb) if verb.eq_ignore_ascii_case(b"AUTH ") => &b"AUTH (not shown)"[..],
            // A client that did not wait for the refusal of its AUTH.
            _ if self.expects_secrets => b"(not shown)",
            _ => text,
        };
        self.trace.say(Speaker::Client, shown, now);
        match parsed {
            Ok(command) => self.command(command, now),
            Err(CommandError::Unknown) => {
                self.error(Reply::new(500, "5.5.2", "There is no such command"), now)
            }
            Err(CommandError::Arguments(why)) => self.error(Reply::new(501, "5.5.4", why), now),
            Err(CommandError::Parameter(key)) => {
                self.error(Reply::new(555, "5.5.4", format!("The parameter {key} is not known")), now);
            }
            Err(CommandError::Address(why)) => self.error(Reply::new(501, "5.1.3", why.to_string()), now),
        }
    }

    fn command(&mut self, command: Command, now: Instant) {
        let is_chunked = self.message.as_ref().is_some_and(|message| message.is_chunked);
        if is_chunked
            && !matches!(command, Command::Chunk { .. } | Command::Reset | Command::Quit | Command::Noop)
        {
            return self.error(Reply::new(503, "5.5.1", "BDAT LAST has not come yet"), now);
        }
        match command {
            Command::Hello { name, is_extended } => {
                self.forget();
                let client = Rc::make_mut(&mut self.client);
                (client.hello, client.is_extended) = (name, is_extended);
                self.ask(Stage::Hello);
            }
            Command::Mail(mail) => self.mail(mail, now),
            Command::Recipient(recipient) => self.recipient(recipient, now),
            Command::Data => self.data(now),
            Command::Chunk { size_bytes, is_last } => self.chunk(size_bytes, is_last, now),
            Command::Reset => {
                self.forget();
                self.reply(Reply::new(250, "2.0.0", "Ok"), now);
            }
            Command::Noop => self.reply(Reply::new(250, "2.0.0", "Ok"), now),
            Command::Quit => {
                self.close(Closing::Quit, Some(Reply::new(221, "2.0.0", "Bye")), now);
            }
            Command::Verify => self.reply(Reply::new(252, "2.5.0", "Send mail, and see"), now),
            Command::Help => {
                let text = "HELO EHLO MAIL RCPT DATA BDAT RSET NOOP QUIT VRFY STARTTLS AUTH";
                self.reply(Reply::new(214, "2.0.0", text), now);
            }
            Command::StartTls => self.start_tls(now),
            Command::Auth { mechanism, initial } => self.auth(&mechanism, initial.as_deref(), now),
        }
    }

    fn mail(&mut self, mail: MailFrom, now: Instant) {
        let refusal = if self.client.hello.is_empty() {
            Some(Reply::new(503, "5.5.1", "Say EHLO first"))
        } else if self.envelope.is_some() {
            Some(Reply::new(503, "5.5.1", "There is a sender already; RSET forgets it"))
        } else if self.config.tls == TlsOffer::Required && self.client.tls.is_none() {
            Some(Reply::new(530, "5.7.0", "Say STARTTLS first"))
        } else if self.config.auth_required && self.client.user.is_none() {
            Some(Reply::new(530, "5.7.0", "Log in first, by AUTH"))
        } else if mail.size_bytes.is_some_and(|size| size > self.config.message_bytes) {
            Some(self.too_large())
        } else if !mail.is_utf8 && mail.sender.as_ref().is_some_and(|sender| !sender.is_ascii()) {
            Some(Reply::new(553, "5.6.7", "That address needs SMTPUTF8"))
        } else {
            None
        };
        match refusal {
            Some(reply) => self.error(reply, now),
            None => {
                self.envelope = Some(Rc::new(Envelope { mail, recipients: Vec::new() }));
                self.ask(Stage::Mail);
            }
        }
    }

    fn recipient(&mut self, recipient: Recipient, now: Instant) {
        let Some(envelope) = &mut self.envelope else {
            return self.error(Reply::new(503, "5.5.1", "Say MAIL FROM first"), now);
        };
        if envelope.recipients.len() >= self.config.recipients {
            return self.reply(Reply::new(452, "4.5.3", "Too many recipients"), now);
        }
        if !envelope.mail.is_utf8 && !recipient.mailbox.is_ascii() {
            return self.error(Reply::new(553, "5.6.7", "That address needs SMTPUTF8"), now);
        }
        Rc::make_mut(envelope).recipients.push(recipient);
        self.ask(Stage::Recipient);
    }

    /// Why no message can come now.
    fn no_message(&self) -> Option<Reply> {
        match &self.envelope {
            None => Some(Reply::new(503, "5.5.1", "Say MAIL FROM first")),
            Some(envelope) if envelope.recipients.is_empty() => {
                Some(Reply::new(554, "5.5.1", "There is no valid recipient"))
            }
            Some(_) => None,
        }
    }

    fn data(&mut self, now: Instant) {
        match self.no_message() {
            Some(reply) => self.error(reply, now),
            None => self.ask(Stage::Data),
        }
    }

    fn chunk(&mut self, size_bytes: u64, is_last: bool, now: Instant) {
        // RFC 3030 §2: the octets come whatever the answer is.
        if self.message.is_none() {
            let refusal = self.no_message();
            self.begin(true, now);
            if let Some(message) = &mut self.message {
                message.refusal = refusal;
            }
        }
        self.phase = Phase::Chunk { left_bytes: size_bytes, is_last };
        if size_bytes == 0 {
            self.chunk_ends(is_last, now);
        }
    }

    fn begin(&mut self, is_chunked: bool, now: Instant) {
        let content = Content::new(self.config.content);
        self.message = Some(Message { content, bytes: 0, began: now, is_chunked, refusal: None });
        self.actions.push_back(Action::Begin);
    }

    /// The text of a message, as far as it has come.
    fn text(&mut self, input: &mut &[u8], now: Instant) {
        let Some(message) = &mut self.message else { return };
        let (start, mut ended) = (self.body.len(), false);
        match &mut self.phase {
            Phase::Data(decoder) => match decoder.decode(input, &mut self.body) {
                Some(DataEnd::Whole) => ended = true,
                Some(DataEnd::BareLineEnd) => {
                    let reply = refusal(ContentError::BareLineEnd);
                    self.actions.push_back(Action::Discard);
                    return self.close(Closing::Lines, Some(reply), now);
                }
                None => {}
            },
            Phase::Chunk { left_bytes, .. } => {
                let count = usize::try_from(*left_bytes).unwrap_or(usize::MAX).min(input.len());
                let (text, rest) = input.split_at(count);
                self.body.extend_from_slice(text);
                *input = rest;
                *left_bytes -= count as u64;
                ended = *left_bytes == 0;
            }
            _ => return,
        }
        let text = &self.body[start..];
        message.bytes += text.len() as u64;
        message.content.take(text);
        let (bytes, limit) = (message.bytes, self.config.message_bytes);
        if message.refusal.is_none() {
            message.refusal = message.content.error().map(refusal);
        }
        if bytes > limit && message.refusal.is_none() {
            message.refusal = Some(too_large(limit));
        }
        if message.refusal.is_some() {
            self.body.clear();
        }
        self.last = now;
        if bytes > limit.saturating_mul(DISCARDED_FACTOR) {
            self.actions.push_back(Action::Discard);
            return self.close(Closing::TooLarge, Some(too_large(limit)), now);
        }
        if ended {
            match self.phase {
                Phase::Chunk { is_last, .. } => self.chunk_ends(is_last, now),
                _ => self.message_ends(now),
            }
        }
    }

    fn chunk_ends(&mut self, is_last: bool, now: Instant) {
        if is_last {
            return self.message_ends(now);
        }
        self.phase = Phase::Command;
        match self.message.as_ref().and_then(|message| message.refusal.clone()) {
            Some(reply) => self.reply(reply, now),
            None => self.reply(Reply::new(250, "2.0.0", "Ok"), now),
        }
    }

    fn message_ends(&mut self, now: Instant) {
        let Some(message) = &mut self.message else { return };
        message.content.end();
        let refusal = message.refusal.clone().or_else(|| message.content.error().map(refusal));
        self.trace.say(Speaker::Client, format!("({} octets of message)", message.bytes).as_bytes(), now);
        match refusal {
            None => {
                self.phase = Phase::Waiting(Waiting::Stored);
                self.actions.push_back(Action::Finish);
            }
            Some(reply) => {
                self.phase = Phase::Command;
                self.forget();
                self.reply(reply, now);
            }
        }
    }

    fn start_tls(&mut self, now: Instant) {
        if self.client.tls.is_some() {
            return self.error(Reply::new(503, "5.5.1", "The connection is in TLS"), now);
        }
        if self.config.tls == TlsOffer::Off {
            return self.error(Reply::new(502, "5.5.1", "There is no TLS here"), now);
        }
        self.reply(Reply::new(220, "2.0.0", "Go ahead"), now);
        self.phase = Phase::Waiting(Waiting::Tls);
        self.actions.push_back(Action::StartTls);
    }

    fn auth(&mut self, mechanism: &str, initial: Option<&str>, now: Instant) {
        self.expects_secrets = true;
        let refusal = if !self.config.auth {
            Some(Reply::new(502, "5.5.1", "Nobody can log in here"))
        } else if self.client.hello.is_empty() {
            Some(Reply::new(503, "5.5.1", "Say EHLO first"))
        } else if self.client.user.is_some() || self.envelope.is_some() {
            Some(Reply::new(503, "5.5.1", "Not now"))
        } else if self.client.tls.is_none() && !self.config.auth_in_clear {
            Some(Reply::new(538, "5.7.11", "Say STARTTLS first"))
        } else {
            None
        };
        match (refusal, Auth::begin(mechanism, initial)) {
            (Some(reply), _) => self.error(reply, now),
            (None, None) => self.error(Reply::new(504, "5.5.4", "The mechanisms are PLAIN and LOGIN"), now),
            (None, Some(step)) => self.auth_step(step, now),
        }
    }

    fn auth_step(&mut self, step: Step, now: Instant) {
        match step {
            Step::Challenge(text, auth) => {
                self.phase = Phase::Auth(auth);
                self.reply(Reply::new(334, "", text), now);
            }
            Step::Check(user, password) => {
                self.phase = Phase::Waiting(Waiting::Password(user.clone()));
                self.actions.push_back(Action::Authenticate { user, password });
            }
            Step::Cancelled => self.error(Reply::new(501, "5.7.0", "Cancelled"), now),
            Step::Wrong => self.error(Reply::new(501, "5.5.2", "That is not a response to this"), now),
        }
    }

    fn ask(&mut self, stage: Stage) {
        self.phase = Phase::Waiting(Waiting::Stage(stage));
        self.actions.push_back(Action::Ask(stage));
    }

    fn accepted(&mut self, stage: Stage, now: Instant) {
        let reply = match stage {
            Stage::Connect => Reply::new(220, "", format!("{} ESMTP inhost", self.config.host_name)),
            Stage::Hello => self.hello(),
            Stage::Auth => Reply::new(235, "2.7.0", "Welcome"),
            Stage::Mail => Reply::new(250, "2.1.0", "Ok"),
            Stage::Recipient => Reply::new(250, "2.1.5", "Ok"),
            Stage::Data => {
                self.begin(false, now);
                self.phase = Phase::Data(DataDecoder::default());
                Reply::new(354, "", "End with a point on a line by itself")
            }
        };
        self.reply(reply, now);
    }

    fn refused(&mut self, stage: Stage, reply: Reply, now: Instant) {
        match stage {
            Stage::Connect => return self.close(Closing::Refused, Some(reply), now),
            Stage::Hello => Rc::make_mut(&mut self.client).hello.clear(),
            Stage::Auth => Rc::make_mut(&mut self.client).user = None,
            Stage::Mail => self.envelope = None,
            Stage::Recipient => {
                self.envelope.as_mut().and_then(|envelope| Rc::make_mut(envelope).recipients.pop());
            }
            Stage::Data => {}
        }
        // RFC 5321 §3.8: 421 announces the end.
        match reply.code {
            421 => self.close(Closing::Refused, Some(reply), now),
            _ => self.error(reply, now),
        }
    }

    fn hello(&self) -> Reply {
        let config = &self.config;
        let mut lines = format!("{} greets {}", config.host_name, self.client.hello);
        if self.client.is_extended {
            lines += &format!("\nPIPELINING\nSIZE {}", config.message_bytes);
            lines += "\n8BITMIME\nCHUNKING\nSMTPUTF8\nDSN\nENHANCEDSTATUSCODES";
            if config.tls != TlsOffer::Off && self.client.tls.is_none() {
                lines += "\nSTARTTLS";
            }
            if config.auth && (self.client.tls.is_some() || config.auth_in_clear) {
                lines += "\nAUTH PLAIN LOGIN";
            }
        }
        Reply::new(250, "", lines)
    }

    fn too_large(&self) -> Reply {
        too_large(self.config.message_bytes)
    }

    /// Forgets the message and its envelope.
    fn forget(&mut self) {
        self.envelope = None;
        self.body.clear();
        if self.message.take().is_some() {
            self.actions.push_back(Action::Discard);
        }
    }

    fn error(&mut self, reply: Reply, now: Instant) {
        self.errors += 1;
        self.reply(reply, now);
        if self.errors > self.config.errors {
            self.close(Closing::Errors, Some(Reply::new(421, "4.7.0", "Too many errors")), now);
        }
    }

    fn reply(&mut self, reply: Reply, now: Instant) {
        let start = self.output.len();
        reply.encode(&mut self.output);
        self.trace.say(Speaker::Server, &self.output[start..], now);
        self.last = now;
    }

    fn close(&mut self, closing: Closing, reply: Option<Reply>, now: Instant) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        if let Some(reply) = reply {
            self.reply(reply, now);
        }
        self.phase = Phase::Closed;
        self.input = Vec::new();
        self.actions.push_back(Action::Close(closing));
    }
}

fn too_large(limit_bytes: u64) -> Reply {
    Reply::new(552, "5.3.4", format!("The message is larger than {limit_bytes} octets"))
}

fn refusal(error: ContentError) -> Reply {
    match error {
        ContentError::Header => Reply::new(552, "5.3.4", error.to_string()),
        ContentError::Loop => Reply::new(554, "5.4.6", error.to_string()),
        ContentError::Containers => Reply::new(554, "5.6.0", error.to_string()),
        ContentError::BareLineEnd => Reply::new(550, "5.5.2", error.to_string()),
    }
}
