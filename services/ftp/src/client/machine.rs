//! The client's state of one control connection.

use std::collections::VecDeque;

use inhost_base::Endpoint;

use super::operation::{Action, Answer, ClientError, DataVia, Features, Operation, Passive, Transfer};
use crate::codec::{
    Family, Parameters, Reply, ReplyReader, Representation, extended_text, name_octets, parse_epsv,
    parse_pasv, port_text,
};

/// State of an operation: the expected reply or driver event.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    Idle,
    Greeting,
    Auth,
    Tls,
    Size,
    Protect,
    User,
    Password,
    Account,
    Features,
    Utf8,
    Simple,
    /// TYPE, STRU, MODE or ALLO, and more of these to come.
    Setting,
    Passive(Ask),
    Listening,
    Port,
    Restart,
    Begun,
    /// The data moves; with the reply that has come already, if one has.
    Moving(Option<Reply>),
    /// The data has moved; its last reply is to come.
    Ending(Result<(), String>),
    Finish,
    Abort(u8),
}

/// State of the passive command, which has alternatives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    Epsv,
    Pasv,
}

/// A client, pure.
///
/// [`begin`](Client::begin) starts an operation; octets go in by [`network`](Client::network) and come out by
/// [`pending`](Client::pending) and [`sent`](Client::sent). After each call the driver takes every
/// [`action`](Client::action); [`Action::Done`] ends the operation. One operation runs at a time, but that
/// [`Operation::Abort`] takes the place of a transfer.
pub struct Client {
    family: Family,
    step: Step,
    operation: Option<Operation>,
    replies: ReplyReader,
    output: Vec<u8>,
    sent: usize,
    said: String,
    actions: VecDeque<Action>,
    /// Commands that set what a transfer needs, still to be said.
    settings: VecDeque<String>,
    parameters: Parameters,
    features: Features,
    /// EPSV and EPRT are not known to this server.
    plain_ports: bool,
    last: Option<Reply>,
    answers: u64,
}

impl Client {
    /// For a connection to a server of this family.
    pub fn new(family: Family) -> Client {
        Client {
            family,
            step: Step::Idle,
            operation: None,
            replies: ReplyReader::default(),
            output: Vec::new(),
            sent: 0,
            said: String::new(),
            actions: VecDeque::new(),
            settings: VecDeque::new(),
            parameters: Parameters::default(),
            features: Features::default(),
            plain_ports: false,
            last: None,
            answers: 0,
        }
    }
    /// Features of the server, known after login.
    pub fn features(&self) -> &Features {
        &self.features
    }
    /// Replies that were not preliminary. While this stays the same, nothing is going on but perhaps a transfer.
    pub fn answers(&self) -> u64 {
        self.answers
    }
    /// Transfer parameters set at the server.
    pub fn representation(&self) -> Representation {
        self.parameters.representation
    }
    /// Octets for the server.
    pub fn pending(&self) -> &[u8] {
        &self.output[self.sent..]
    }
    /// So many of them were sent.
    pub fn sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.output.len() {
            self.output.clear();
            self.sent = 0;
        }
    }
    /// The next thing to be done.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    /// Starts an operation.
    pub fn begin(&mut self, operation: Operation) {
        if !operation.is_of_lines() {
            let why = "FTP has no way to send a name with a line end or NUL; rename it";
            return self.finish(Err(ClientError::Local(why.into())));
        }
        let step = match &operation {
            Operation::Greet => Step::Greeting,
            Operation::Secure => self.say("AUTH TLS", Step::Auth),
            Operation::Protect => self.say("PBSZ 0", Step::Size),
            Operation::LogIn { user, .. } => {
                let line = format!("USER {user}");
                self.say(&line, Step::User)
            }
            Operation::Command(line) => self.say(&line.clone(), Step::Simple),
            Operation::Transfer(transfer) => {
                self.set(transfer.parameters);
                // RFC 959 §4.1.3; a server that has no use for it says 202, and some do not know it.
                if let Some(size) = transfer.size_bytes {
                    self.settings.push_back(format!("ALLO {size}"));
                }
                self.operation = Some(operation);
                return self.next_setting();
            }
            Operation::Offer(parameters) | Operation::Call(parameters, _) => {
                self.set(*parameters);
                self.operation = Some(operation);
                return self.next_setting();
            }
            Operation::Begin(line) => self.say(&line.clone(), Step::Begun),
            Operation::Finish => Step::Finish,
            Operation::Abort => {
                // IP and DM in the same octets: where they cannot be urgent, they do no harm.
                self.output.extend_from_slice(b"\xff\xf4\xff\xf2");
                self.say("ABOR", Step::Abort(0))
            }
        };
        self.step = step;
        self.operation = Some(operation);
        let last = self.last.take();
        if self.step == Step::Finish
            && let Some(reply) = last
        {
            self.reply(reply);
        }
    }
    /// Octets from the server.
    pub fn network(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            match self.replies.receive(&mut octets) {
                None => break,
                Some(Ok(reply)) => self.reply(reply),
                Some(Err(error)) => {
                    self.finish(Err(error.into()));
                    break;
                }
            }
        }
    }
    /// TLS has begun. What the server said before it counts no more.
    pub fn tls_started(&mut self) {
        if self.step == Step::Tls {
            self.replies = ReplyReader::default();
            self.step = self.say("PBSZ 0", Step::Size);
        }
    }
    /// Whether an octet of a reply is there that was not understood yet: none may be when TLS begins.
    pub fn is_midway(&self) -> bool {
        self.replies.is_midway()
    }
    /// Our listening endpoint.
    pub fn listening(&mut self, at: Endpoint) {
        if self.step == Step::Listening {
            self.call(at);
        }
    }
    /// The data has moved, or could not be.
    pub fn data_ended(&mut self, outcome: Result<(), String>) {
        match core::mem::replace(&mut self.step, Step::Idle) {
            Step::Moving(Some(reply)) => self.transferred(reply, outcome),
            Step::Moving(None) => self.step = Step::Ending(outcome),
            other => self.step = other,
        }
    }

    fn say(&mut self, line: &str, then: Step) -> Step {
        // Text shown to a person contains no password.
        self.said = if line.starts_with("PASS ") { "PASS".to_owned() } else { line.to_owned() };
        // A name with a line end in it would be two commands.
        let octets = name_octets(line);
        for &octet in octets.iter().filter(|octet| !matches!(octet, b'\r' | b'\n' | 0)) {
            self.output.push(octet);
            if octet == 0xff {
                self.output.push(octet);
            }
        }
        self.output.extend_from_slice(b"\r\n");
        then
    }

    fn finish(&mut self, outcome: Result<Answer, ClientError>) {
        self.step = Step::Idle;
        self.operation = None;
        self.settings.clear();
        self.actions.push_back(Action::Done(outcome));
    }
    fn refused(&mut self, reply: Reply) {
        let said = core::mem::take(&mut self.said);
        if matches!(self.operation, Some(Operation::Transfer(_))) {
            self.actions.push_back(Action::DropData);
        }
        self.finish(Err(ClientError::Refused(said, reply)));
    }

    fn reply(&mut self, reply: Reply) {
        self.answers += u64::from(reply.class() != 1);
        if reply.code == 421 {
            self.said = "the server ends the session".into();
            return self.refused(reply);
        }
        match (self.step.clone(), reply.class()) {
            (Step::Idle, _) => self.last = Some(reply),
            (Step::Greeting, 1) => {}
            (Step::Auth, 2) => {
                // Words behind 234 are nobody's that TLS would vouch for.
                self.step = Step::Tls;
                self.actions.push_back(Action::StartTls);
            }
            (Step::Tls, _) => self
                .finish(Err(ClientError::Protocol("the server says something between AUTH and TLS".into()))),
            (Step::Size, 2) => self.step = self.say("PROT P", Step::Protect),
            (Step::User | Step::Password | Step::Account, _) => self.log_in(reply),
            (Step::Features, class) => {
                if class == 2 {
                    self.features = Features::of(&reply);
                }
                if self.features.has("UTF8") {
                    self.step = self.say("OPTS UTF8 ON", Step::Utf8);
                } else {
                    self.logged_in();
                }
            }
            (Step::Utf8, _) => self.logged_in(),
            // A setting that is refused is refused, but for ALLO, which is a courtesy.
            (Step::Setting, 4 | 5) if !self.said.starts_with("ALLO") => {
                self.parameters = Parameters::default();
                self.refused(reply);
            }
            (Step::Setting, _) => self.next_setting(),
            (Step::Passive(ask), class) => self.passive(ask, class, reply),
            (Step::Port, 2) => match self.operation {
                Some(Operation::Transfer(_)) => self.restart(),
                _ => self.finish(Ok(Answer::Reply(reply))),
            },
            (Step::Port, 5) if self.said.starts_with("EPRT") && self.family == Family::V4 => {
                self.plain_ports = true;
                match &self.operation {
                    Some(Operation::Call(_, at)) => self.call(*at),
                    _ => {
                        self.step = Step::Listening;
                        self.actions.push_back(Action::Listen);
                    }
                }
            }
            (Step::Restart, 3) => self.begin_transfer(),
            (Step::Begun, 1) => self.begun(reply),
            (Step::Begun, 2) if matches!(self.operation, Some(Operation::Transfer(_))) => {
                self.actions.push_back(Action::Move);
                self.step = Step::Moving(Some(reply));
            }
            (Step::Moving(None), 1) | (Step::Ending(_) | Step::Finish | Step::Simple, 1) => {}
            (Step::Moving(None), 2) => self.step = Step::Moving(Some(reply)),
            (Step::Moving(_), _) => self.refused(reply),
            (Step::Ending(outcome), 2) => self.transferred(reply, outcome),
            // 426 for the transfer, then 226 for ABOR; or 226 or 225 alone, and then what is left is idle talk.
            (Step::Abort(0), 4 | 5) => self.step = Step::Abort(1),
            (Step::Abort(_), _) => self.finish(Ok(Answer::Reply(reply))),
            (Step::Greeting | Step::Protect | Step::Begun | Step::Finish, 2) | (Step::Simple, 2 | 3) => {
                // Parameters set by the user hold for later transfers.
                if let Some(kind) = self.said.strip_prefix("TYPE ").and_then(Representation::parse) {
                    self.parameters.representation = kind;
                }
                self.finish(Ok(Answer::Reply(reply)));
            }
            (_, 1) => {}
            // Any other reply is not consent: RFC 2228's 334 to AUTH, say, is not TLS.
            _ => self.refused(reply),
        }
    }

    fn log_in(&mut self, reply: Reply) {
        let Some(Operation::LogIn { password, account, .. }) = self.operation.clone() else { return };
        match (&self.step, reply.code) {
            (_, 200..300) => self.step = self.say("FEAT", Step::Features),
            (Step::User, 331) => {
                let line = format!("PASS {password}");
                self.step = self.say(&line, Step::Password);
            }
            (Step::User | Step::Password, 332) => match account {
                Some(account) => {
                    let line = format!("ACCT {account}");
                    self.step = self.say(&line, Step::Account);
                }
                None => self.refused(reply),
            },
            _ => self.refused(reply),
        }
    }

    fn logged_in(&mut self) {
        let reply = Reply { code: 230, lines: vec!["Logged in.".into()] };
        self.finish(Ok(Answer::Reply(reply)));
    }

    /// Notes what has to be said for these parameters, and nothing of what the server has already.
    fn set(&mut self, wanted: Parameters) {
        let has = core::mem::replace(&mut self.parameters, wanted);
        self.settings.clear();
        if has.representation != wanted.representation {
            self.settings.push_back(format!("TYPE {}", wanted.representation.argument()));
        }
        if has.structure != wanted.structure {
            self.settings.push_back(format!("STRU {}", wanted.structure.letter()));
        }
        if has.mode != wanted.mode {
            self.settings.push_back(format!("MODE {}", wanted.mode.letter()));
        }
    }

    fn next_setting(&mut self) {
        if let Some(line) = self.settings.pop_front() {
            self.step = self.say(&line, Step::Setting);
            return;
        }
        match self.operation.clone() {
            Some(Operation::Call(_, at)) => self.call(at),
            Some(Operation::Transfer(Transfer { via: DataVia::Active, .. })) => {
                self.step = Step::Listening;
                self.actions.push_back(Action::Listen);
            }
            // Two servers have each other's addresses by PASV only.
            Some(Operation::Offer(_)) => self.step = self.say("PASV", Step::Passive(Ask::Pasv)),
            _ if self.plain_ports => self.step = self.say("PASV", Step::Passive(Ask::Pasv)),
            _ => self.step = self.say("EPSV", Step::Passive(Ask::Epsv)),
        }
    }

    fn passive(&mut self, ask: Ask, class: u16, reply: Reply) {
        let at = match (ask, class) {
            (Ask::Epsv, 2) => parse_epsv(reply.last()).map(Passive::Port),
            (Ask::Pasv, 2) => parse_pasv(reply.last()).map(Passive::Named),
            // RFC 959 has PASV everywhere that IPv4 is.
            (Ask::Epsv, 5) if self.family == Family::V4 => {
                self.plain_ports = true;
                self.step = self.say("PASV", Step::Passive(Ask::Pasv));
                return;
            }
            _ => return self.refused(reply),
        };
        match (at, &self.operation) {
            (Ok(Passive::Named(at)), Some(Operation::Offer(_))) => self.finish(Ok(Answer::Offered(at))),
            (Ok(at), _) => {
                self.actions.push_back(Action::Connect(at));
                self.restart();
            }
            (Err(_), _) => {
                self.finish(Err(ClientError::Protocol(format!("no address in {:?}", reply.last()))))
            }
        }
    }

    fn call(&mut self, at: Endpoint) {
        let plain = self.plain_ports || matches!(self.operation, Some(Operation::Call(..)));
        let line = match port_text(at).filter(|_| plain) {
            Some(text) => format!("PORT {text}"),
            None => format!("EPRT {}", extended_text(at)),
        };
        self.step = self.say(&line, Step::Port);
    }

    fn restart(&mut self) {
        let Some(Operation::Transfer(transfer)) = &self.operation else { return };
        match transfer.restart {
            Some(at) => {
                let line = format!("REST {at}");
                self.step = self.say(&line, Step::Restart);
            }
            None => self.begin_transfer(),
        }
    }

    fn begin_transfer(&mut self) {
        let Some(Operation::Transfer(transfer)) = &self.operation else { return };
        let line = transfer.command.clone();
        self.step = self.say(&line, Step::Begun);
    }

    fn begun(&mut self, reply: Reply) {
        match self.operation {
            Some(Operation::Transfer(_)) => {
                self.step = Step::Moving(None);
                self.actions.push_back(Action::Move);
            }
            _ => self.finish(Ok(Answer::Reply(reply))),
        }
    }

    fn transferred(&mut self, reply: Reply, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.finish(Ok(Answer::Reply(reply))),
            Err(why) => self.finish(Err(ClientError::Data(why))),
        }
    }
}
