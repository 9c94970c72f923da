//! A session of the rlogin server, pure (RFC 1282).

use std::collections::VecDeque;

use inhost_base::{Duration, Instant};
use inhost_common::users::{Account, Verdict};
use inhost_telnet::pty::TerminalKeys;
use inhost_telnet::server::{ShellRequest, terminal};

use super::fields::{Fields, is_name};
use super::output::Output;

/// Signals to the client.
const FLUSH: u8 = 0x02;
const RAW: u8 = 0x10;
const COOKED: u8 = 0x20;
const WINDOW: u8 = 0x80;
/// The client tells its window's size: two of these, `ss`, and four numbers of 16 bits.
const CONTROL: u8 = 0xff;
const SIZE_BYTES: usize = 12;

/// The longest name of a user, and of a terminal with its speed.
const NAME_BYTES: usize = 255;
/// The longest password.
const PASSWORD_BYTES: usize = 128;
/// Typed octets that wait for the shell.
const TYPED_BYTES: usize = 2048;

/// Times and names of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SessionConfig {
    /// Longest time until the shell is asked for. Default 1 minute.
    pub login_time: Duration,
    /// Idle timeout of a user; `None` for none. Default 1 hour.
    pub idle_time: Option<Duration>,
    /// Delay of the word that a password was wrong. Default 1 s.
    pub denial: Duration,
    /// The terminal of a user whose client names none. Default "vt100".
    pub default_terminal: String,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            login_time: Duration::from_secs(60),
            idle_time: Some(Duration::from_secs(3600)),
            denial: Duration::from_secs(1),
            default_terminal: "vt100".into(),
        }
    }
}

/// Actions for the driver, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Say by [`Session::decide`] whether the user is let in without a password.
    Decide {
        /// The user at the client's host.
        client_user: String,
        /// The user here.
        server_user: String,
    },
    /// Find out whether the user may log in; [`Session::verdict`] takes the answer.
    Authenticate {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A wrong password: write it down; call [`Session::denied`] after this time.
    Denied {
        /// The name.
        user: String,
        /// Time until the next call.
        pause: Duration,
    },
    /// Start a shell; [`Session::shell_started`] or [`Session::shell_failed`] takes the outcome.
    StartShell(ShellRequest),
    /// The window has changed.
    Resize {
        /// Its width.
        columns: u16,
        /// Its height.
        rows: u16,
    },
    /// Drop the shell's output that has not been read.
    DiscardOutput,
    /// End the session once the output has gone.
    Close(Closing),
}

/// Why a session ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Closing {
    /// What the client asked for cannot be read.
    Malformed,
    /// The password was wrong, or none may be given.
    Denied,
    /// Nobody logged in, or typed, for too long.
    Idle,
    /// The shell ended.
    ShellEnded,
    /// The shell could not be started.
    NoShell,
    /// The client closed the connection.
    Disconnected,
    /// The host goes down.
    HostEnds,
    /// An operator has ended it.
    Dropped,
}

impl Closing {
    /// The reason as the log tells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Closing::Malformed => "the request cannot be read",
            Closing::Denied => "not logged in",
            Closing::Idle => "idle too long",
            Closing::ShellEnded => "shell ended",
            Closing::NoShell => "no shell",
            Closing::Disconnected => "connection closed",
            Closing::HostEnds => "the host goes down",
            Closing::Dropped => "ended by an operator",
        }
    }
}

/// One session.
///
/// In: [`network`](Session::network), [`output`](Session::output), the answers to its [actions](Session::action) and
/// [`timeout`](Session::timeout). Out: [`pending`](Session::pending) with [`sent`](Session::sent), [`typed`](Session::typed)
/// with [`taken`](Session::taken).
#[derive(Clone, Debug)]
pub struct Session {
    config: SessionConfig,
    phase: Phase,
    output: Output,
    typed: VecDeque<u8>,
    actions: VecDeque<Action>,
    keys: TerminalKeys,
    server_user: String,
    terminal: Option<String>,
    window: (u16, u16),
    /// The beginning of what may be a window's size.
    size: Vec<u8>,
    started: Instant,
    last: Instant,
    input_ended: bool,
}

#[derive(Clone, Debug)]
enum Phase {
    /// So many texts were read: the first octet, both users.
    Opening(Fields, Vec<String>),
    Password(Vec<u8>),
    /// A decision, a verdict or a shell is awaited.
    Waiting,
    Shell,
    Over,
}

impl Session {
    /// A session that begins now.
    pub fn new(config: SessionConfig, now: Instant) -> Session {
        Session {
            config,
            phase: Phase::Opening(Fields::default(), Vec::new()),
            output: Output::default(),
            typed: VecDeque::new(),
            actions: VecDeque::new(),
            keys: TerminalKeys::default(),
            server_user: String::new(),
            terminal: None,
            window: (80, 24),
            size: Vec::new(),
            started: now,
            last: now,
            input_ended: false,
        }
    }
    /// The next thing to do.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    /// The next octets to send, and whether the last of them is urgent.
    pub fn pending(&mut self) -> (&[u8], bool) {
        self.output.pending()
    }
    /// So many octets wait to be sent.
    pub fn pending_bytes(&self) -> usize {
        self.output.len()
    }
    /// `count` of [`pending`](Session::pending) were sent.
    pub fn sent(&mut self, count: usize) {
        self.output.sent(count);
    }
    /// Octets for the shell.
    pub fn typed(&self) -> &[u8] {
        if matches!(self.phase, Phase::Shell) { self.typed.as_slices().0 } else { &[] }
    }
    /// `count` of [`typed`](Session::typed) are with the shell.
    pub fn taken(&mut self, count: usize) {
        self.typed.drain(..count.min(self.typed.len()));
    }
    /// Whether octets of the client are taken now.
    pub fn takes_input(&self) -> bool {
        self.typed.len() < TYPED_BYTES && self.output.has_room() && !self.input_ended
    }
    /// Whether the shell's output is taken now.
    pub fn takes_output(&self) -> bool {
        matches!(self.phase, Phase::Shell) && self.output.has_room()
    }
    /// When [`timeout`](Session::timeout) is to be called next.
    pub fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Shell => self.config.idle_time.map(|idle| self.last + idle),
            Phase::Over => None,
            _ => Some(self.started + self.config.login_time),
        }
    }
    /// Time has passed.
    pub fn timeout(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            self.say("\r\nIdle for too long; good-bye.\r\n");
            self.close(Closing::Idle);
        }
    }

    /// Octets of the client. `keys` is what the shell's terminal makes of them now.
    pub fn network(&mut self, mut octets: &[u8], keys: TerminalKeys, now: Instant) {
        self.last = now;
        self.set_keys(keys);
        while !octets.is_empty() {
            match &mut self.phase {
                Phase::Opening(fields, texts) => match fields.take(&mut octets, NAME_BYTES) {
                    Ok(None) => {}
                    Ok(Some(text)) => {
                        texts.push(text);
                        let texts = std::mem::take(texts);
                        self.opening(texts);
                    }
                    Err(_) => self.malformed(),
                },
                Phase::Over => return,
                _ => {
                    let (&octet, rest) = octets.split_first().unwrap_or((&0, &[]));
                    octets = rest;
                    self.octet(octet);
                }
            }
        }
    }
    fn malformed(&mut self) {
        self.output.extend(b"\x01rlogin: the names cannot be read.\r\n");
        self.close(Closing::Malformed);
    }
    /// The first octet is zero, then come the client's user, the user here, and the terminal with its speed.
    fn opening(&mut self, texts: Vec<String>) {
        match &texts[..] {
            [first, ..] if !first.is_empty() => self.malformed(),
            [_, client_user, server_user, line] => {
                if !is_name(client_user) || !is_name(server_user) {
                    return self.malformed();
                }
                self.terminal = line.split('/').next().and_then(terminal);
                self.server_user.clone_from(server_user);
                let (client_user, server_user) = (client_user.clone(), server_user.clone());
                self.phase = Phase::Waiting;
                self.actions.push_back(Action::Decide { client_user, server_user });
            }
            _ => self.phase = Phase::Opening(Fields::default(), texts),
        }
    }
    /// An octet of a session that has begun. A window's size is not for the shell.
    fn octet(&mut self, octet: u8) {
        self.size.push(octet);
        // What was taken for the beginning of a size and is not one was typed.
        while !is_beginning(&self.size) {
            let first = self.size.remove(0);
            self.key(first);
        }
        if self.size.len() == SIZE_BYTES {
            let number = |at: usize| u16::from_be_bytes([self.size[at], self.size[at + 1]]);
            let known = |size: u16, usual: u16| if size == 0 { usual } else { size };
            self.window = (known(number(6), 80), known(number(4), 24));
            self.size.clear();
            if matches!(self.phase, Phase::Shell) {
                self.resize();
            }
        }
    }
    fn resize(&mut self) {
        let (columns, rows) = self.window;
        // Only the last size matters: a peer cannot fill the queue with them.
        self.actions.retain(|action| !matches!(action, Action::Resize { .. }));
        self.actions.push_back(Action::Resize { columns, rows });
    }
    fn key(&mut self, key: u8) {
        match &mut self.phase {
            Phase::Password(typed) => match key {
                b'\r' | b'\n' => {
                    let password = String::from_utf8_lossy(typed).into_owned();
                    let user = self.server_user.clone();
                    self.say("\r\n");
                    self.phase = Phase::Waiting;
                    self.actions.push_back(Action::Authenticate { user, password });
                }
                0x7f | 0x08 => drop(typed.pop()),
                0x15 => typed.clear(),
                0x03 | 0x04 => self.close(Closing::Denied),
                key if typed.len() < PASSWORD_BYTES => typed.push(key),
                _ => {}
            },
            Phase::Shell | Phase::Waiting => {
                self.typed.push_back(key);
                let keys = self.keys;
                let raises = keys.signals && [keys.interrupt, keys.quit, keys.suspend].contains(&key);
                if raises && key != 0 && matches!(self.phase, Phase::Shell) {
                    // What the terminal has to say is flushed, as on a real line, here and at the client.
                    self.output.discard();
                    self.output.signal(FLUSH);
                    self.actions.push_back(Action::DiscardOutput);
                }
            }
            Phase::Opening(..) | Phase::Over => {}
        }
    }
    fn set_keys(&mut self, keys: TerminalKeys) {
        let changed = keys.flow_control != self.keys.flow_control;
        self.keys = keys;
        if changed && matches!(self.phase, Phase::Shell) {
            self.output.signal(if keys.flow_control { COOKED } else { RAW });
        }
    }
    /// The client has closed its sending half.
    pub fn end_input(&mut self) {
        self.input_ended = true;
        match self.phase {
            Phase::Shell => self.typed.extend([self.keys.end_of_file; 3].iter().filter(|&&key| key != 0)),
            _ => self.close(Closing::Disconnected),
        }
    }

    /// Whether the user is let in without a password; `None` refuses, since a password is not taken.
    pub fn decide(&mut self, is_let_in: Option<bool>) {
        match is_let_in {
            Some(true) => {
                self.start(Account { name: self.server_user.clone(), shell: None, is_operator: false })
            }
            Some(false) => {
                self.output.extend(b"\0Password: ");
                self.phase = Phase::Password(Vec::new());
            }
            None => {
                self.output.extend(b"\x01Permission denied.\r\n");
                self.close(Closing::Denied);
            }
        }
    }
    /// Whether the password is right.
    pub fn verdict(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Granted(account) => self.start(account),
            Verdict::Denied => {
                let (user, pause) = (self.server_user.clone(), self.config.denial);
                self.actions.push_back(Action::Denied { user, pause });
            }
            Verdict::Busy | Verdict::Unavailable(_) => {
                self.say("Passwords cannot be checked now, try again later.\r\n");
                self.close(Closing::Denied);
            }
        }
    }
    /// The pause after a wrong password is over, or the caller may give no more of them.
    pub fn denied(&mut self) {
        self.say("Login incorrect\r\n");
        self.close(Closing::Denied);
    }
    fn start(&mut self, account: Account) {
        self.phase = Phase::Waiting;
        let terminal = self.terminal.clone().unwrap_or_else(|| self.config.default_terminal.clone());
        let window = self.window;
        self.actions.push_back(Action::StartShell(ShellRequest {
            account,
            application: None,
            terminal,
            language: None,
            window,
        }));
    }
    /// The shell runs. `asked` says whether a password was: then the client has had its first word.
    pub fn shell_started(&mut self, asked: bool, now: Instant) {
        if !asked {
            self.output.extend(b"\0");
        }
        self.output.signal(WINDOW);
        self.phase = Phase::Shell;
        self.last = now;
        self.resize();
    }
    /// The shell does not.
    pub fn shell_failed(&mut self, asked: bool) {
        self.output.extend(if asked { b"" } else { b"\x01" });
        self.say("No shell could be started.\r\n");
        self.close(Closing::NoShell);
    }
    /// The shell's output; `keys` is its terminal now.
    pub fn output(&mut self, data: &[u8], keys: TerminalKeys, now: Instant) {
        if self.input_ended {
            self.last = now;
        }
        self.set_keys(keys);
        self.output.extend(data);
    }
    /// The shell is gone.
    pub fn shell_ended(&mut self) {
        self.close(Closing::ShellEnded);
    }
    /// The host goes down.
    pub fn host_ends(&mut self) {
        self.say("\r\nThis host goes down; good-bye.\r\n");
        self.close(Closing::HostEnds);
    }
    /// An operator ends the session.
    pub fn dropped(&mut self) {
        self.say("\r\nThe operator has ended this session; good-bye.\r\n");
        self.close(Closing::Dropped);
    }
    fn say(&mut self, text: &str) {
        if !matches!(self.phase, Phase::Over) {
            self.output.extend(text.as_bytes());
        }
    }
    fn close(&mut self, closing: Closing) {
        if !matches!(self.phase, Phase::Over) {
            self.phase = Phase::Over;
            self.typed.clear();
            self.actions.push_back(Action::Close(closing));
        }
    }
}

/// Whether a window's size may begin so.
fn is_beginning(octets: &[u8]) -> bool {
    let begin = [CONTROL, CONTROL, b's', b's'];
    let known = octets.len().min(begin.len());
    octets[..known] == begin[..known]
}
