//! A server's session from greeting to end, pure.

use std::collections::VecDeque;

use inhost_base::{Duration, Instant};

use super::applications::Application;
use super::config::ServerConfig;
use super::environment::{language, terminal};
use super::login::{LoginHandler, Purpose, Said};
use super::pace::Pace;
use crate::codec::{Charset, Command, FlowControl, Function, Side, TelnetOption};
use crate::machine::{Config, Event, OUTPUT_BYTES, Telnet, Violation};
use crate::pty::{TerminalKeys, TerminalSignal, characters};
use crate::translation::Translator;
use inhost_common::service::Order;
use inhost_common::users::{Account, Verdict};

/// Typed octets that wait for the shell. While there are more, no more is taken from the network, unless a
/// Synch is on.
const TYPED_BYTES: usize = 2048;
/// Output since the last key beyond which an interrupt is followed by a Synch: less is on the screen before
/// the Synch could overtake it.
const UNSEEN_BYTES: usize = 256;

/// Timeout of a silent shell after end of input.
const LAST_WORDS_TIME: Duration = Duration::from_secs(30);

/// Actions for the driver, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Find out whether the user may log in; [`Session::verdict`] takes the answer.
    Authenticate {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// Fetch the news for [`Session::reply`].
    News,
    /// Fetch the state of the host for [`Session::reply`].
    Netstat,
    /// Fetch sessions and load in numbers for [`Session::reply`].
    Figures,
    /// This user is an operator from now on: write it down.
    Operate(String),
    /// This user gave the right password, and is not an operator: write it down.
    NotOperator(String),
    /// Carry out what the operator orders, for [`Session::reply`].
    Order(Order),
    /// Start a shell; [`Session::shell_started`] or [`Session::shell_failed`] takes the outcome.
    StartShell(ShellRequest),
    /// A wrong password: write it down; call [`Session::resume`] after this time.
    Denied {
        /// The name that was tried.
        user: String,
        /// Time until the next call.
        pause: Duration,
    },
    /// The window has changed.
    Resize {
        /// Its width.
        columns: u16,
        /// Its height.
        rows: u16,
    },
    /// Interrupt the foreground process itself: the terminal has no interrupt key, or cannot take it now.
    Interrupt,
    /// Raise a signal in the shell's terminal, which raises none itself.
    Signal(TerminalSignal),
    /// The client has chosen special characters for the shell's terminal; 0 is none.
    SetCharacters(Vec<(Function, u8)>),
    /// The client edits the shell's lines, or no longer does.
    EditExternally(bool),
    /// The charset that the client agreed on, or an application's own, lacks characters, and its substitute stands for them: write it down. Comes once.
    Substituted(Charset),
    /// Drop the shell's output that has not been read.
    DiscardOutput,
    /// End the session once the output has gone.
    Close(Closing),
}

/// Why a session ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Closing {
    /// The visitor left.
    Quit,
    /// The shell ended.
    ShellEnded,
    /// Too many wrong passwords.
    Attempts,
    /// Nobody logged in, or typed, for too long.
    Idle,
    /// The shell could not be started.
    NoShell,
    /// The client closed the connection.
    Disconnected,
    /// The host goes down.
    HostEnds,
    /// An operator has ended it.
    Dropped,
    /// The peer went beyond a limit of the protocol.
    Violation(Violation),
}

impl Closing {
    /// The reason as the log tells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Closing::Quit => "left",
            Closing::Disconnected => "connection closed",
            Closing::ShellEnded => "shell ended",
            Closing::Attempts => "too many wrong passwords",
            Closing::Idle => "idle too long",
            Closing::NoShell => "no shell",
            Closing::HostEnds => "the host goes down",
            Closing::Dropped => "ended by an operator",
            Closing::Violation(_) => "broke the protocol's limits",
        }
    }
}

/// Start parameters of a shell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShellRequest {
    /// The logged-in user; one without a name has given no password.
    pub account: Account,
    /// What is to be started in place of the user's shell.
    pub application: Option<Application>,
    /// TERM, validated.
    pub terminal: String,
    /// LANG, validated, if the client told it.
    pub language: Option<String>,
    /// The window; 80 by 24 unless the client told it.
    pub window: (u16, u16),
}

/// One session.
#[derive(Debug)]
pub struct Session {
    pub(super) telnet: Telnet,
    config: ServerConfig,
    phase: Phase,
    pub(super) typed: VecDeque<u8>,
    pub(super) actions: VecDeque<Action>,
    pub(super) keys: TerminalKeys,
    terminal: Option<String>,
    language: Option<String>,
    window: Option<(u16, u16)>,
    user: String,
    /// For what the user of the last attempt gives a password.
    purpose: Purpose,
    /// Who has given a password.
    account: Option<Account>,
    /// The dialogue with the menu from which an application was started.
    menu: Option<Box<LoginHandler>>,
    unseen_bytes: usize,
    pace: Pace,
    stopped: bool,
    /// The client has closed its sending half.
    pub(super) input_ended: bool,
    /// Lines are edited by the client, and the shell's terminal knows.
    pub(super) edits_externally: bool,
    /// Whether ECHO is to be performed here.
    pub(super) echoes: bool,
    /// Between the caller and an application with a charset of its own.
    translator: Option<Translator>,
    /// The host knows that characters were replaced.
    substitutes_are_told: bool,
    deadline: Deadline,
}

#[derive(Debug)]
enum Phase {
    LoginHandler(Box<LoginHandler>),
    /// The shell has been asked for.
    Starting,
    Shell,
    Over,
}

#[derive(Debug)]
struct Deadline {
    started: Instant,
    typed: Instant,
}

impl Session {
    /// A session that begins now: the first negotiation and the greeting are in its output.
    pub fn new(config: ServerConfig, now: Instant) -> Session {
        let mut options = Config::server();
        if config.line_mode {
            options.request = options.request.with(TelnetOption::LineMode);
        }
        if config.charset {
            options.offer = options.offer.with(TelnetOption::Charset);
        }
        let mut telnet = Telnet::new(options);
        telnet.set_special_characters(&characters(TerminalKeys::default()));
        telnet.advance(now);
        telnet.start();
        let front = LoginHandler::new(&config.host_name, config.attempts);
        let mut front = front.with_applications(config.applications.clone(), config.contact.as_deref());
        let mut screen = Vec::new();
        let said = front.greet(&config.greeting, &mut screen);
        telnet.send(&screen);
        let mut session = Session {
            telnet,
            config,
            phase: Phase::LoginHandler(Box::new(front)),
            typed: VecDeque::new(),
            actions: VecDeque::new(),
            keys: TerminalKeys::default(),
            terminal: None,
            language: None,
            window: None,
            user: String::new(),
            purpose: Purpose::LogOn,
            account: None,
            menu: None,
            unseen_bytes: 0,
            pace: Pace::new(now),
            stopped: false,
            input_ended: false,
            edits_externally: false,
            echoes: true,
            translator: None,
            substitutes_are_told: false,
            deadline: Deadline { started: now, typed: now },
        };
        if let Some(Said::Start(application)) = said {
            session.start(Some(application));
        }
        session
    }

    /// The protocol machine, for what waits to be sent.
    pub fn telnet(&mut self) -> &mut Telnet {
        &mut self.telnet
    }
    /// The next thing to do.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front().or_else(|| self.substituted())
    }
    /// That characters were replaced is told once.
    fn substituted(&mut self) -> Option<Action> {
        if self.substitutes_are_told {
            return None;
        }
        let own = self.telnet.charset().filter(|_| self.telnet.counters().substituted_characters > 0);
        let translator = self.translator.as_ref().filter(|of| of.substituted_characters() > 0);
        let charset = own.or(translator.map(Translator::charset))?;
        self.substitutes_are_told = true;
        Some(Action::Substituted(charset))
    }
    /// Whether octets from the network are taken now.
    pub fn takes_input(&self) -> bool {
        self.telnet.is_synchronizing() || (self.typed.len() < TYPED_BYTES && self.telnet.has_room())
    }
    /// Whether the shell's output is taken now: not while earlier output is unread by the client.
    pub fn takes_output(&self, now: Instant) -> bool {
        // An answer to a mark does not come after the end of input, nor past input that the shell has no room for; and
        // a shell may have room only when its output has gone.
        let hears_answers = !self.input_ended && self.typed.len() < TYPED_BYTES;
        let has_room = self.pace.has_room(now) || !hears_answers;
        matches!(self.phase, Phase::Shell) && self.telnet.has_room() && has_room
    }
    /// When output that waits for the client is taken all the same.
    pub fn pace_deadline(&self) -> Option<Instant> {
        self.pace.deadline()
    }
    /// Octets for the shell; the driver says with [`taken`](Session::taken) how many it took.
    pub fn typed(&self) -> &[u8] {
        match self.phase {
            Phase::Shell if self.edits_externally => self.next_line(),
            Phase::Shell => self.typed.as_slices().0,
            _ => &[],
        }
    }
    /// `count` of [`typed`](Session::typed) are with the shell.
    pub fn taken(&mut self, count: usize) {
        self.typed.drain(..count.min(self.typed.len()));
    }
    /// The user of the last login attempt.
    pub fn user(&self) -> &str {
        &self.user
    }
    /// Deadline of the next call of [`timeout`](Session::timeout).
    pub fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::LoginHandler(front) if front.operator().is_some() || front.is_user_known() => {
                self.idle_deadline()
            }
            Phase::LoginHandler(_) | Phase::Starting => Some(self.deadline.started + self.config.login_time),
            Phase::Shell if self.input_ended => Some(self.deadline.typed + LAST_WORDS_TIME),
            Phase::Shell => self.idle_deadline(),
            Phase::Over => None,
        }
    }
    fn idle_deadline(&self) -> Option<Instant> {
        self.config.idle_time.map(|idle| self.deadline.typed + idle)
    }
    /// Time has passed.
    pub fn timeout(&mut self, now: Instant) {
        self.telnet.advance(now);
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            if self.input_ended && self.in_shell() {
                return self.close(Closing::Disconnected);
            }
            self.telnet.send(b"\r\nIdle for too long; good-bye.\r\n");
            self.close(Closing::Idle);
        }
    }

    /// The client has closed its sending half: what it typed before is still obeyed, and answered. Then the shell's
    /// input is closed, and its last output is sent.
    pub fn end_input(&mut self, now: Instant) {
        self.input_ended = true;
        self.deadline.typed = now;
        match self.phase {
            Phase::Shell => self.type_end_of_file(),
            Phase::LoginHandler(_) => self.front(),
            Phase::Starting | Phase::Over => {}
        }
    }
    /// The first two end a line that was not finished, as dash has it, and the third the input.
    fn type_end_of_file(&mut self) {
        let key = self.keys.end_of_file;
        if self.edits_externally {
            self.edits_externally = false;
            self.actions.push_back(Action::EditExternally(false));
        }
        if key != 0 {
            self.typed.extend([key; 3]);
        }
    }
    /// Whether the client has closed its sending half.
    pub fn has_input_ended(&self) -> bool {
        self.input_ended
    }

    /// The host goes down, and the session with it.
    pub fn host_ends(&mut self) {
        if !matches!(self.phase, Phase::Over) {
            self.telnet.send(b"\r\nThis host goes down; good-bye.\r\n");
            self.close(Closing::HostEnds);
        }
    }

    /// An operator ends the session.
    pub fn dropped(&mut self) {
        if !matches!(self.phase, Phase::Over) {
            self.telnet.send(b"\r\nThe operator has ended this session; good-bye.\r\n");
            self.close(Closing::Dropped);
        }
    }

    /// Octets from the network. `keys` is what the shell's terminal makes of them at this moment.
    pub fn network(&mut self, input: &[u8], keys: TerminalKeys, now: Instant) {
        self.telnet.advance(now);
        self.deadline.typed = now;
        self.set_keys(keys);
        let mut rest = input;
        while !matches!(self.phase, Phase::Over) {
            match self.telnet.receive(&mut rest) {
                Some(event) => self.event(event, now),
                None => break,
            }
        }
    }

    fn event(&mut self, event: Event<'_>, now: Instant) {
        match event {
            Event::Data(data) => self.data(data),
            Event::Text(text) => self.data(&text),
            Event::Command(command) => self.command(command),
            Event::WindowSize { columns, rows } => self.resized(columns, rows),
            Event::TerminalType(name) => {
                let name = name.split('@').next().unwrap_or_default();
                self.terminal = self.terminal.take().or_else(|| terminal(name));
            }
            Event::Environment(variables) => {
                let lang = variables.iter().rev().find(|variable| variable.name == b"LANG");
                let lang = lang.and_then(|variable| language(variable.value.as_deref()?));
                self.language = lang.or(self.language.take());
            }
            Event::OptionChanged {
                side: Side::Remote,
                option: TelnetOption::RemoteFlowControl,
                active: true,
            } => {
                self.send_flow_control();
            }
            Event::TimingMark => {
                self.pace.answered(now);
                if self.in_shell() && self.pace.wants_mark(now) {
                    self.mark(now);
                }
            }
            Event::EditMode(_) | Event::OptionChanged { option: TelnetOption::LineMode, .. } => {
                self.follow_terminal();
            }
            Event::SpecialCharacters => self.set_characters(),
            Event::Violation(violation) => self.close(Closing::Violation(violation)),
            Event::OptionChanged { .. }
            | Event::OptionRefused { .. }
            | Event::Synchronized
            | Event::TerminalSpeed { .. }
            | Event::FlowControl(_)
            | Event::Charset(_)
            | Event::CharsetRejected
            | Event::Status(_) => {}
        }
    }

    fn data(&mut self, data: &[u8]) {
        match self.phase {
            Phase::Shell => {
                for &octet in data {
                    self.key(octet);
                }
            }
            _ => {
                self.typed.extend(data);
                self.front();
            }
        }
    }

    /// A key that a command stands for. A Synch lets commands through though nobody takes what is typed, so that they
    /// must not fill the queue; the key is lost then, as one is that is typed into a full terminal.
    fn type_key(&mut self, key: u8) {
        if self.typed.len() < TYPED_BYTES {
            self.typed.push_back(key);
        }
    }

    /// A key for the shell. One that raises a signal flushes what the terminal has to say, as it would on a
    /// real line: what is queued here, and by Synch what is on its way.
    fn key(&mut self, octet: u8) {
        let keys = self.keys;
        if self.edits_externally {
            let is_end = octet == b'\r' && keys.return_is_newline;
            return self.type_octet(if is_end { b'\n' } else { octet });
        }
        let raises = keys.signals && octet != 0 && [keys.interrupt, keys.quit, keys.suspend].contains(&octet);
        self.type_octet(octet);
        if raises {
            self.flush_output();
        }
    }
    fn type_octet(&mut self, octet: u8) {
        match &mut self.translator {
            Some(translator) => translator.typed(octet, &self.keys, &mut self.typed),
            None => self.typed.push_back(octet),
        }
    }
    fn flush_output(&mut self) {
        self.actions.push_back(Action::DiscardOutput);
        if self.unseen_bytes > UNSEEN_BYTES {
            self.telnet.send_synch();
        }
        self.unseen_bytes = 0;
    }

    /// Goes on with what was typed ahead, once output has been sent. True when something came of it.
    pub fn resume_typing(&mut self) -> bool {
        let before = self.typed.len();
        if matches!(self.phase, Phase::LoginHandler(_)) && before > 0 {
            self.front();
        }
        self.typed.len() != before
    }

    /// Lets the dialogue before the shell take what was typed, until as much waits to be sent as may: a key can draw
    /// many times its length, and the peer may read nothing.
    fn front(&mut self) {
        let echoes = self.telnet.is_active(Side::Local, TelnetOption::Echo);
        let mut screen = Vec::new();
        while let Phase::LoginHandler(front) = &mut self.phase {
            let is_full = self.telnet.pending_bytes() + screen.len() >= OUTPUT_BYTES;
            if !front.is_listening() || self.stopped || is_full {
                break;
            }
            let Some(key) = self.typed.pop_front() else { break };
            match front.key(key, echoes, &mut screen) {
                Some(Said::News) => self.actions.push_back(Action::News),
                Some(Said::Netstat) => self.actions.push_back(Action::Netstat),
                Some(Said::Figures) => self.actions.push_back(Action::Figures),
                Some(Said::Order(order)) => self.actions.push_back(Action::Order(order)),
                Some(Said::Start(application)) => self.start(Some(application)),
                Some(Said::LogOn { purpose, user, password }) => {
                    self.purpose = purpose;
                    self.user.clone_from(&user);
                    self.actions.push_back(Action::Authenticate { user, password });
                }
                Some(Said::Leave) => {
                    screen.extend_from_slice(b"Good-bye.\r\n");
                    self.close(Closing::Quit);
                }
                None => {}
            }
        }
        self.telnet.send(&screen);
        let is_idle =
            matches!(&self.phase, Phase::LoginHandler(front) if front.is_listening() && !self.stopped);
        if self.input_ended && self.typed.is_empty() && is_idle {
            self.close(Closing::Disconnected);
        }
    }

    /// What each command does to the shell, or to the line before it.
    /// spec: RFC854 commands
    fn command(&mut self, command: Command) {
        let keys = self.keys;
        match command {
            Command::AreYouThere => {
                let answer = b"\r\n[Yes]\r\n";
                if self.telnet.spend_reply(answer.len()) {
                    self.telnet.send(answer);
                } else {
                    self.close(Closing::Violation(Violation::ReplyBudget));
                }
            }
            Command::AbortOutput if self.in_shell() => {
                // One Synch is enough for all that was said before it: a flood of these draws no flood of answers.
                if self.unseen_bytes > 0 {
                    self.unseen_bytes = usize::MAX;
                }
                self.flush_output();
            }
            Command::InterruptProcess | Command::Break => {
                self.interrupt(keys.interrupt, TerminalSignal::Interrupt)
            }
            Command::Abort => self.interrupt(keys.quit, TerminalSignal::Quit),
            Command::Suspend => self.interrupt(keys.suspend, TerminalSignal::Suspend),
            Command::EndOfFile => self.editing(keys.end_of_file),
            Command::EraseCharacter => self.editing(keys.erase),
            Command::EraseLine => self.editing(keys.kill),
            Command::AbortOutput
            | Command::NoOperation
            | Command::EndOfRecord
            | Command::GoAhead
            | Command::DataMark => {}
        }
    }

    pub(super) fn in_shell(&self) -> bool {
        matches!(self.phase, Phase::Shell)
    }

    /// The terminal's own key where it has one and will see it at once, so that the program decides; else
    /// the signal itself.
    fn interrupt(&mut self, key: u8, signal: TerminalSignal) {
        if !self.in_shell() {
            self.typed.clear();
            self.typed.push_back(3);
            self.front();
            return;
        }
        if self.edits_externally {
            self.typed.clear();
            self.flush_output();
            self.actions.push_back(Action::Signal(signal));
            return;
        }
        if key == 0 || !self.typed.is_empty() {
            self.typed.clear();
            // First, so that what the program says of the interrupt is not among what is dropped.
            self.flush_output();
            self.actions.push_back(Action::Interrupt);
        } else {
            self.typed.push_back(key);
            self.flush_output();
        }
    }

    fn editing(&mut self, key: u8) {
        if self.in_shell() {
            if key != 0 {
                self.type_key(key);
            }
            return;
        }
        let echoes = self.telnet.is_active(Side::Local, TelnetOption::Echo);
        let mut screen = Vec::new();
        if let Phase::LoginHandler(front) = &mut self.phase {
            if key == self.keys.end_of_file {
                self.type_key(4);
                self.front();
                return;
            }
            front.erase(key == self.keys.kill, echoes, &mut screen);
        }
        self.telnet.send(&screen);
    }

    fn resized(&mut self, columns: u16, rows: u16) {
        let known = |size: u16, usual: u16| if size == 0 { usual } else { size };
        let window = (known(columns, 80), known(rows, 24));
        self.window = Some(window);
        if self.in_shell() {
            let (columns, rows) = window;
            // Only the last size matters: a peer cannot fill the queue with them.
            self.actions.retain(|action| !matches!(action, Action::Resize { .. }));
            self.actions.push_back(Action::Resize { columns, rows });
        }
    }

    fn set_keys(&mut self, keys: TerminalKeys) {
        let changed = keys.flow_control != self.keys.flow_control;
        if self.in_shell() {
            let mut differing = characters(keys);
            let before = characters(self.keys);
            differing.retain(|character| !before.contains(character));
            self.telnet.set_special_characters(&differing);
        }
        self.keys = keys;
        self.follow_terminal();
        if changed {
            self.send_flow_control();
        }
    }
    /// The shell's terminal is in these modes now.
    pub fn terminal_changed(&mut self, keys: TerminalKeys) {
        if keys != self.keys {
            self.set_keys(keys);
        }
    }
    fn send_flow_control(&mut self) {
        let flow = if self.keys.flow_control { FlowControl::On } else { FlowControl::Off };
        self.telnet.send_flow_control(flow);
    }

    /// The text for the visitor who asked.
    pub fn reply(&mut self, text: &str) {
        let mut screen = Vec::new();
        if let Phase::LoginHandler(front) = &mut self.phase {
            front.reply(text, &mut screen);
        }
        self.telnet.send(&screen);
        self.front();
    }

    /// Whether the user may log in.
    pub fn verdict(&mut self, verdict: Verdict) {
        let Phase::LoginHandler(front) = &mut self.phase else { return };
        match verdict {
            Verdict::Granted(account) if self.purpose == Purpose::Operate => {
                let name = account.name;
                if !account.is_operator {
                    self.actions.push_back(Action::NotOperator(name));
                    return self.reply("You are not an operator of this host; LOGON logs you in.");
                }
                let mut screen = Vec::new();
                front.operate(&name, &mut screen);
                self.actions.push_back(Action::Operate(name));
                self.telnet.send(&screen);
                self.front();
            }
            Verdict::Granted(account) => {
                front.knows_user();
                self.account = Some(account);
                let application = match &self.purpose {
                    Purpose::Application(name) => self.config.applications.find(name).cloned(),
                    _ => None,
                };
                self.start(application);
            }
            // A password that was not checked is not a wrong one.
            Verdict::Busy => self.reply("Busy, try again."),
            Verdict::Unavailable(_) => self.reply("Passwords cannot be checked now, try again later."),
            Verdict::Denied => {
                let failures = self.config.attempts.saturating_sub(front.attempts_left());
                let pause = self.config.denial.times(1 << failures.min(8));
                self.stopped = true;
                self.typed.clear();
                self.actions.push_back(Action::Denied { user: self.user.clone(), pause });
            }
        }
    }

    /// Has the user's shell, or an application, started.
    fn start(&mut self, application: Option<Application>) {
        let terminal = self.terminal.clone().unwrap_or_else(|| self.config.default_terminal.clone());
        let visitor = || Account { name: String::new(), shell: None, is_operator: false };
        let request = ShellRequest {
            account: self.account.clone().unwrap_or_else(visitor),
            application,
            terminal,
            language: self.language.clone(),
            window: self.window.unwrap_or((80, 24)),
        };
        let translation = request.application.as_ref().and_then(|of| of.translation.clone());
        self.translator = translation.map(Translator::new);
        let before = std::mem::replace(&mut self.phase, Phase::Starting);
        if let Phase::LoginHandler(front) = before {
            self.menu = Some(front).filter(|front| front.has_menu());
        }
        self.actions.push_back(Action::StartShell(request));
    }
    /// Shows the menu again from which the last application was started; false where there was none.
    fn back_to_menu(&mut self, why: &str, now: Instant) -> bool {
        if self.translator.take().is_some() {
            // In the application's own charset: nothing else reads it.
            self.typed.clear();
        }
        let Some(mut front) = self.menu.take().filter(|_| !self.input_ended) else { return false };
        let mut screen = Vec::new();
        front.back(why, &mut screen);
        self.telnet.send(&screen);
        self.phase = Phase::LoginHandler(front);
        self.deadline = Deadline { started: now, typed: now };
        self.keys = TerminalKeys::default();
        self.follow_terminal();
        self.front();
        true
    }

    /// This caller has tried too many wrong passwords, here and in its other sessions.
    pub fn too_many_denials(&mut self) {
        self.telnet.send(b"Too many wrong passwords from your address, try later.\r\n");
        self.close(Closing::Attempts);
    }

    /// The pause after a wrong password is over.
    pub fn resume(&mut self) {
        self.stopped = false;
        let mut screen = Vec::new();
        let goes_on = match &mut self.phase {
            Phase::LoginHandler(front) => front.denied("Not logged in: wrong name or password.", &mut screen),
            _ => true,
        };
        self.telnet.send(&screen);
        if goes_on {
            self.front();
        } else {
            self.close(Closing::Attempts);
        }
    }

    /// The shell runs.
    pub fn shell_started(&mut self, now: Instant) {
        self.phase = Phase::Shell;
        self.deadline.typed = now;
        if self.input_ended {
            self.type_end_of_file();
        }
        if let Some((columns, rows)) = self.window {
            self.resized(columns, rows);
        }
        self.set_characters();
        self.follow_terminal();
    }
    /// The shell does not.
    pub fn shell_failed(&mut self, now: Instant) {
        if self.back_to_menu("It could not be started.", now) {
            return;
        }
        self.telnet.send(b"No shell could be started.\r\n");
        self.close(Closing::NoShell);
    }
    /// The shell's output. Where it runs ahead of the client, a mark follows it.
    /// spec: RFC860
    pub fn output(&mut self, data: &[u8], now: Instant) {
        if self.input_ended {
            self.deadline.typed = now;
        }
        let translated;
        let data = match &mut self.translator {
            Some(translator) => {
                translated = translator.shown(data);
                &translated
            }
            None => data,
        };
        self.unseen_bytes = self.unseen_bytes.saturating_add(data.len());
        self.telnet.send(data);
        if self.pace.said(data.len(), now) {
            self.mark(now);
        }
    }
    fn mark(&mut self, now: Instant) {
        if self.telnet.send_timing_mark() {
            self.pace.marked(now);
        }
    }
    /// The shell is gone.
    pub fn shell_ended(&mut self, now: Instant) {
        if !self.back_to_menu("", now) {
            self.close(Closing::ShellEnded);
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
