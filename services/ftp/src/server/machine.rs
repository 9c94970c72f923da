//! The state of one control connection.

use std::collections::VecDeque;
use std::rc::Rc;

use inhost_base::{Endpoint, Instant, IpAddr};

use super::action::{Action, Closing, Rights};
use super::config::{ServerConfig, TlsPolicy};
use super::output::Output;
use super::state::{Phase, Running, Security, Settings, Waiting};
use crate::codec::{Command, LineEvent, LineReader, Needs, ParseError, Verb, write_reply};
use inhost_common::storage::VirtualPath;

/// Octets of input that may wait to be understood.
const INPUT_BYTES: usize = 16 * 1024;
/// Commands that may wait for the end of a transfer.
const QUEUED: usize = 16;
/// Replies to a user who is not logged in.
const NOT_LOGGED_IN: &str = "Log in with USER and PASS.";

/// One session of the server, pure.
///
/// Octets go in by [`network`](Session::network) while [`takes_input`](Session::takes_input); octets come out by
/// [`pending`](Session::pending) and [`sent`](Session::sent). After each call that puts something in, the driver takes
/// every [`action`](Session::action) and answers it in its time by the method that the action names. A spurious
/// [`timeout`](Session::timeout) does nothing; an answer to what was not asked is ignored.
pub struct Session {
    pub(super) config: Rc<ServerConfig>,
    pub(super) local: Endpoint,
    pub(super) peer: Endpoint,
    /// The client's outer address if a gateway forwards it; `peer` is then the gateway's end.
    pub(super) outer: Option<IpAddr>,
    pub(super) phase: Phase,
    pub(super) waiting: Waiting,
    pub(super) security: Security,
    pub(super) settings: Settings,
    pub(super) running: Option<Running>,
    pub(super) failures: u8,
    pub(super) quitting: bool,
    pub(super) closed: bool,
    actions: VecDeque<Action>,
    lines: LineReader,
    input: Vec<u8>,
    queued: VecDeque<Vec<u8>>,
    output: Output,
    began: Instant,
    line_began: Option<Instant>,
    last_command: Instant,
    /// Since when replies have waited, none of them read, with no room for another.
    unread_since: Option<Instant>,
}

impl Session {
    /// A caller from `peer` is there at `local`; with `encrypted`, TLS was begun before anything was said.
    pub fn new(
        config: Rc<ServerConfig>,
        local: Endpoint,
        peer: Endpoint,
        encrypted: bool,
        now: Instant,
    ) -> Session {
        let mut session = Session {
            settings: Settings::new(&config),
            local,
            peer,
            outer: None,
            phase: Phase::Visitor,
            waiting: Waiting::Nothing,
            // RFC 4217 has no AUTH on implicit TLS; data is protected there from the start.
            security: Security { encrypted, sized: encrypted, data: encrypted },
            running: None,
            failures: 0,
            quitting: false,
            closed: false,
            actions: VecDeque::new(),
            lines: LineReader::default(),
            input: Vec::new(),
            queued: VecDeque::new(),
            output: Output::default(),
            began: now,
            line_began: None,
            last_command: now,
            unread_since: None,
            config,
        };
        let greeting = format!("{} FTP server ready.", session.config.host_name);
        session.reply(220, &greeting);
        session
    }

    /// The same, of a client that comes from `outer` through a gateway.
    pub fn forwarded_from(self, outer: IpAddr) -> Session {
        Session { outer: Some(outer), ..self }
    }
    /// Whether more octets are wanted from the client. None are while it leaves replies unread: the memory that it can
    /// pin is limited.
    pub fn takes_input(&self) -> bool {
        !self.closed && self.input.len() < INPUT_BYTES && self.queued.len() < QUEUED && !self.blocks()
    }
    /// Whether events of the transfer may be reported now. Markers are acknowledged on the control connection, so the
    /// data of a client that does not read it waits as well.
    pub fn takes_events(&self) -> bool {
        self.output.has_room()
    }
    /// Octets of memory that input and replies take.
    pub fn held_bytes(&self) -> usize {
        let queued: usize = self.queued.iter().map(Vec::capacity).sum();
        self.input.capacity() + self.lines.held_bytes() + queued + self.output.held_bytes()
    }
    /// Whether the connection is, or is to be, in TLS.
    pub fn is_encrypted(&self) -> bool {
        self.security.encrypted
    }
    /// Whether data connections are in TLS.
    pub fn is_data_protected(&self) -> bool {
        self.security.data
    }
    /// The logged-in user.
    pub fn user(&self) -> Option<&str> {
        match &self.phase {
            Phase::User { user, .. } => Some(user),
            _ => None,
        }
    }
    /// Octets from the client.
    pub fn network(&mut self, octets: &[u8], now: Instant) {
        if self.closed {
            return;
        }
        self.input.extend_from_slice(octets);
        self.process(now);
    }
    /// Urgent data lies ahead: what the client said before it is overtaken (RFC 959 §4.1.3, RFC 1123 §3.2.4).
    pub fn urgent(&mut self) {
        self.queued.clear();
    }
    /// Octets for the client.
    pub fn pending(&self) -> &[u8] {
        self.output.pending()
    }
    /// So many of them were sent; commands that waited for that are understood.
    pub fn sent(&mut self, count: usize, now: Instant) {
        let waited = self.unread_since.take().is_some();
        self.output.sent(count);
        if waited {
            self.process(now);
        }
    }
    /// The next thing to be done.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    /// Deadline of the next call of [`timeout`](Session::timeout).
    pub fn deadline(&self) -> Option<Instant> {
        if self.closed {
            return None;
        }
        let waiting = match self.waiting {
            Waiting::Denial(at) | Waiting::Tls(at) | Waiting::Clear(at) => Some(at),
            _ => None,
        };
        let line = self.line_began.map(|began| began + self.config.line_time);
        let unread = self.unread_since.map(|since| since + self.config.stall_time);
        let person = match self.phase {
            _ if self.running.is_some() => None,
            Phase::User { .. } => Some(self.last_command + self.settings.idle),
            _ => Some(self.began + self.config.login_time),
        };
        [waiting, line, unread, person].into_iter().flatten().min()
    }
    /// Time has passed.
    pub fn timeout(&mut self, now: Instant) {
        if self.closed || self.deadline().is_none_or(|at| at > now) {
            return;
        }
        match self.waiting {
            Waiting::Denial(at) if at <= now => {
                self.waiting = Waiting::Nothing;
                self.denied(now);
                self.process(now);
            }
            Waiting::Tls(at) | Waiting::Clear(at) if at <= now => self.close(Closing::Tls),
            // Another word would not be read either.
            _ if self.unread_since.is_some_and(|since| since + self.config.stall_time <= now) => {
                self.close(Closing::TooSlow);
            }
            _ if self.line_began.is_some_and(|began| began + self.config.line_time <= now) => {
                self.reply(421, "A command took too long to come; closing.");
                self.close(Closing::TooSlow);
            }
            _ => {
                let (text, closing) = match self.phase {
                    Phase::User { .. } => ("Nothing was said for too long; closing.", Closing::Idle),
                    _ => ("Nobody logged in in time; closing.", Closing::TooSlow),
                };
                self.reply(421, text);
                self.close(closing);
            }
        }
    }
    /// The host goes down.
    pub fn host_ends(&mut self) {
        if !self.closed {
            self.reply(421, "The host goes down; closing.");
            self.close(Closing::HostEnds);
        }
    }
    /// An operator ends the session.
    pub fn dropped(&mut self) {
        if !self.closed {
            self.reply(421, "The operator has ended this session; closing.");
            self.close(Closing::Dropped);
        }
    }
    /// TLS has begun, or failed.
    pub fn tls_started(&mut self, begun: bool, now: Instant) {
        if !matches!(self.waiting, Waiting::Tls(_)) {
            return;
        }
        if !begun {
            return self.close(Closing::Tls);
        }
        self.waiting = Waiting::Nothing;
        self.security = Security { encrypted: true, ..self.security };
        self.last_command = now;
    }
    /// TLS has ended, or could not be.
    pub fn tls_ended(&mut self, ended: bool, now: Instant) {
        if !matches!(self.waiting, Waiting::Clear(_)) {
            return;
        }
        if !ended {
            return self.close(Closing::Tls);
        }
        self.waiting = Waiting::Nothing;
        self.security.encrypted = false;
        self.last_command = now;
    }

    /// Whether the next command has to wait, that it is ABOR among them.
    fn blocks(&self) -> bool {
        self.waiting != Waiting::Nothing || !self.output.has_room()
    }

    /// Understands what can be understood now.
    pub(super) fn process(&mut self, now: Instant) {
        while !self.closed && !self.blocks() {
            if self.running.is_none()
                && let Some(line) = self.queued.pop_front()
            {
                self.line(&line, now);
                continue;
            }
            if self.queued.len() >= QUEUED {
                break;
            }
            let input = core::mem::take(&mut self.input);
            let mut rest = &input[..];
            let event = self.lines.receive(&mut rest, self.output.end());
            self.input = rest.to_vec();
            // The time that a line takes counts from its first octet.
            let midway = self.lines.is_midway();
            self.line_began = if midway { self.line_began.or(Some(now)) } else { None };
            let Some(event) = event else { break };
            self.line_began = None;
            match event {
                LineEvent::TooLong => self.reply(500, "The line is too long."),
                LineEvent::Line(line) if self.running.is_some() && !self.is_for_now(&line) => {
                    self.queued.push_back(line);
                }
                LineEvent::Line(line) => self.line(&line, now),
            }
        }
        self.unread_since = if self.output.has_room() { None } else { self.unread_since.or(Some(now)) };
    }

    /// RFC 959 §5.4: what may be said while a transfer runs.
    fn is_for_now(&self, line: &[u8]) -> bool {
        matches!(
            Command::parse(line),
            Ok(Command { verb: Verb::Abor | Verb::Stat | Verb::Quit | Verb::Noop, .. })
        )
    }

    fn line(&mut self, line: &[u8], now: Instant) {
        self.last_command = now;
        let rights = match self.phase {
            Phase::User { rights, .. } => Some(rights),
            _ => None,
        };
        let command = match Command::parse(line) {
            Ok(command) => command,
            // A command that requires an argument.
            Err(ParseError::NoArgument(verb)) if rights.is_none() && verb.needs() != Needs::Nothing => {
                return self.reply(530, NOT_LOGGED_IN);
            }
            Err(error) => {
                let code = match error {
                    ParseError::Unknown(_) => 500,
                    ParseError::NotImplemented(_) => 502,
                    ParseError::NoArgument(_) | ParseError::Text => 501,
                };
                return self.reply(code, &format!("{error}."));
            }
        };
        match (command.verb.needs(), rights) {
            (Needs::Login | Needs::Write, None) => return self.reply(530, NOT_LOGGED_IN),
            (Needs::Write, Some(Rights { write: false })) => {
                return self.reply(550, "You may read here, and not change anything.");
            }
            _ => {}
        }
        // RFC 959 §4.1.3: RNFR and REST hold for the command behind them.
        let (rename_from, restart) = (self.settings.rename_from.take(), self.settings.restart.take());
        match command.verb {
            Verb::Rnto => self.settings.rename_from = rename_from,
            Verb::Retr | Verb::Stor | Verb::Appe => self.settings.restart = restart,
            // Between REST and the transfer clients prepare the connection.
            Verb::Port
            | Verb::Pasv
            | Verb::Eprt
            | Verb::Epsv
            | Verb::Lprt
            | Verb::Allo
            | Verb::Noop
            | Verb::Stat
            | Verb::Type => self.settings.restart = restart,
            _ => {}
        }
        self.command(command, now);
    }

    fn command(&mut self, command: Command, now: Instant) {
        let argument = &*command.argument;
        match command.verb {
            Verb::User => self.user_named(argument),
            Verb::Pass => self.password(argument),
            Verb::Acct => self.account(argument, now),
            Verb::Quit => self.quit(),
            Verb::Rein => self.reinitialize(now),
            Verb::Auth => self.auth(argument, now),
            Verb::Pbsz => self.pbsz(argument),
            Verb::Prot => self.prot(argument),
            Verb::Ccc => self.ccc(now),
            Verb::Feat => self.feat(),
            Verb::Opts => self.opts(argument),
            Verb::Syst => self.reply(215, "UNIX Type: L8"),
            Verb::Help => self.help(argument),
            Verb::Noop => self.reply(200, "Still here."),
            Verb::Stat => self.stat(argument),
            Verb::Type | Verb::Stru | Verb::Mode | Verb::Allo | Verb::Rest => self.parameter(&command),
            Verb::Port | Verb::Eprt | Verb::Lprt => self.active(&command),
            Verb::Pasv | Verb::Epsv => self.passive(&command),
            Verb::Retr | Verb::Stor | Verb::Stou | Verb::Appe => self.transfer_file(&command),
            Verb::List | Verb::Nlst | Verb::Mlsd => self.transfer_listing(&command),
            Verb::Abor => self.abort(),
            Verb::Smnt => self.reply(502, "There is but one file system here."),
            Verb::Pwd => {
                let directory = quoted(&self.settings.directory);
                self.reply(257, &format!("{directory} is the current directory."));
            }
            Verb::Site => self.site(argument),
            _ => self.file(&command),
        }
    }

    fn quit(&mut self) {
        if self.running.is_some() {
            // RFC 959 §4.1.1: the connection stays for the result.
            self.quitting = true;
            return;
        }
        self.reply(221, "Good-bye.");
        self.close(Closing::Quit);
    }

    fn reinitialize(&mut self, now: Instant) {
        if self.security.encrypted && self.config.tls == TlsPolicy::Required {
            return self.reply(502, "Connect anew instead.");
        }
        self.phase = Phase::Visitor;
        self.settings = Settings::new(&self.config);
        self.act(Action::StopListening);
        self.began = now;
        self.reply(220, "Log in with USER and PASS.");
        // RFC 4217 §11: what REIN leaves is unprotected.
        if self.security.encrypted {
            self.security = Security { encrypted: true, sized: false, data: false };
            self.waiting = Waiting::Clear(now + self.config.login_time);
            self.forget_input();
            self.act(Action::EndTls);
        }
    }

    pub(super) fn touched(&mut self, now: Instant) {
        self.last_command = now;
    }
    pub(super) fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }
    pub(super) fn reply(&mut self, code: u16, text: &str) {
        write_reply(self.output.end(), code, &[text]);
    }
    pub(super) fn reply_lines(&mut self, code: u16, lines: &[String]) {
        write_reply(self.output.end(), code, lines);
    }
    /// Whether input follows the current command.
    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty() || !self.queued.is_empty() || self.lines.is_midway()
    }
    pub(super) fn forget_input(&mut self) {
        self.input.clear();
        self.queued.clear();
        self.lines.clear();
    }
    pub(super) fn close(&mut self, closing: Closing) {
        if !self.closed {
            self.closed = true;
            self.running = None;
            self.waiting = Waiting::Nothing;
            self.act(Action::AbortTransfer);
            self.act(Action::Close(closing));
        }
    }
}

/// A path as reply 257 writes it: quotes within it are doubled (RFC 959, appendix II).
pub(super) fn quoted(path: &VirtualPath) -> String {
    format!("\"{}\"", path.to_string().replace('"', "\"\""))
}
