//! Command level before login: information, queries, and login (UCLA §2.6.1); and the operator's prompt behind it.

use crate::line::{Echo, Edited, EditingKeys, LineEditor};
use inhost_common::Cleaner;
use inhost_common::service::{Line, Order};
use inhost_common::users::PASSWORD_BYTES;

/// Octets of a line at the prompts.
const LINE_BYTES: usize = PASSWORD_BYTES;
/// Octets of a text that is shown: what may wait for a client that reads nothing.
pub(super) const TEXT_BYTES: usize = 32 << 10;
/// Commands that a visitor may give. Then the connection is closed.
const COMMANDS: u32 = 200;

/// The dialogue before the shell: typed octets in; screen octets, and now and then something [`Said`], out.
#[derive(Debug)]
pub struct LoginHandler {
    host_name: String,
    state: State,
    editor: LineEditor,
    attempts_left: u8,
    commands_left: u32,
    /// The operator whose prompt this is by now.
    operator: Option<String>,
}

#[derive(Debug)]
enum State {
    Command,
    User(Purpose),
    Password(Purpose, String),
    /// A verdict, a text or an end of a pause is awaited; what is typed waits.
    Waiting,
}

/// For what a name and a password are given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// A shell.
    LogOn,
    /// The operator's prompt.
    Operate,
}

/// Requests of a visitor. Each but [`Said::Leave`] is answered by one of the methods of [`LoginHandler`], and nothing
/// is read until then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// The news: answer with [`LoginHandler::reply`].
    News,
    /// The state of the host: answer with [`LoginHandler::reply`].
    Netstat,
    /// The load in numbers: answer with [`LoginHandler::reply`].
    Figures,
    /// An operator's order: answer with [`LoginHandler::reply`].
    Order(Order),
    /// To log in: answer with [`LoginHandler::denied`] or [`LoginHandler::operate`], or start the shell.
    LogOn {
        /// For what.
        purpose: Purpose,
        /// The name as typed.
        user: String,
        /// The password as typed.
        password: String,
    },
    /// To leave.
    Leave,
}

const HELP: &str = "\
LOGON [name]     log in (LOGIN is the same)\r
NEWS             read the news\r
NETSTAT          the state of this host\r
SYSSTAT          sessions and load, in numbers\r
OPERATOR [name]  look after this host\r
HELP             this list (also ?)\r
QUIT             leave (also LOGOUT, EXIT)\r
Any unambiguous beginning will do.\r
";

impl LoginHandler {
    /// A visitor who has typed nothing.
    pub fn new(host_name: &str, attempts: u8) -> LoginHandler {
        LoginHandler {
            host_name: host_name.to_owned(),
            state: State::Command,
            editor: LineEditor::new(LINE_BYTES, EditingKeys::default()),
            attempts_left: attempts,
            commands_left: COMMANDS,
            operator: None,
        }
    }

    /// The greeting and the first prompt.
    pub fn greet(&self, greeting: &str, screen: &mut Vec<u8>) {
        screen.extend_from_slice(format!("{}\r\n", self.host_name).as_bytes());
        write_text(greeting, screen);
        screen.extend_from_slice(b"HELP for help, LOGON to log in.\r\n");
        self.prompt(screen);
    }

    /// The operator who has this prompt; `None` for a visitor.
    pub fn operator(&self) -> Option<&str> {
        self.operator.as_deref()
    }

    /// Whether keys are taken now. While they are not, the driver keeps them.
    pub fn is_listening(&self) -> bool {
        !matches!(self.state, State::Waiting)
    }

    /// One typed octet. `echoes`: whether this end echoes (the ECHO option is in force).
    pub fn key(&mut self, key: u8, echoes: bool, screen: &mut Vec<u8>) -> Option<Said> {
        let hidden = matches!(self.state, State::Password(..)) || !echoes;
        let echo = if hidden { Echo::Hidden } else { Echo::Shown };
        let mut typed = Vec::new();
        let edited = self.editor.key(key, echo, &mut typed);
        // A client that echoes for itself has moved to the next line; that of a password is shown by us.
        if echoes || matches!(self.state, State::Password(..)) {
            screen.extend_from_slice(&typed);
        }
        match edited? {
            Edited::Line(line) => self.line(&line, screen),
            Edited::Interrupt => {
                self.state = State::Command;
                self.prompt(screen);
                None
            }
            Edited::EndOfFile => {
                self.state = State::Waiting;
                Some(Said::Leave)
            }
        }
    }
    /// Erases a character, as EC asks; the line, as EL does.
    pub fn erase(&mut self, whole_line: bool, echoes: bool, screen: &mut Vec<u8>) {
        let hidden = matches!(self.state, State::Password(..)) || !echoes;
        let echo = if hidden { Echo::Hidden } else { Echo::Shown };
        match whole_line {
            true => self.editor.kill(echo, screen),
            false => self.editor.erase(echo, screen),
        }
    }

    fn line(&mut self, line: &[u8], screen: &mut Vec<u8>) -> Option<Said> {
        let text = String::from_utf8_lossy(line).into_owned();
        match core::mem::replace(&mut self.state, State::Waiting) {
            State::Command if self.operator.is_some() => self.order(&text, screen),
            State::Command => self.command(text.trim(), screen),
            State::User(purpose) => {
                self.user(purpose, text.trim(), screen);
                None
            }
            State::Password(purpose, user) => Some(Said::LogOn { purpose, user, password: text }),
            State::Waiting => None,
        }
    }

    fn command(&mut self, text: &str, screen: &mut Vec<u8>) -> Option<Said> {
        self.commands_left = self.commands_left.saturating_sub(1);
        if self.commands_left == 0 {
            return Some(Said::Leave);
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match matching(word) {
            Matching::One(word @ ("LOGON" | "LOGIN" | "OPERATOR")) => {
                let purpose = if word == "OPERATOR" { Purpose::Operate } else { Purpose::LogOn };
                match rest.trim() {
                    "" => {
                        self.state = State::User(purpose);
                        screen.extend_from_slice(b"User: ");
                    }
                    user => self.user(purpose, user, screen),
                }
                return None;
            }
            Matching::One("SYSSTAT") => return Some(Said::Figures),
            Matching::One("NEWS") => return Some(Said::News),
            Matching::One("NETSTAT") => return Some(Said::Netstat),
            Matching::One("QUIT" | "LOGOUT" | "EXIT") => return Some(Said::Leave),
            Matching::One(_) => screen.extend_from_slice(HELP.as_bytes()),
            Matching::Several => screen.extend_from_slice(b"Ambiguous; HELP lists the commands.\r\n"),
            Matching::None if word.is_empty() => {}
            Matching::None => screen.extend_from_slice(b"Unknown; HELP lists the commands.\r\n"),
        }
        self.state = State::Command;
        self.prompt(screen);
        None
    }

    /// A line of an operator.
    fn order(&mut self, line: &str, screen: &mut Vec<u8>) -> Option<Said> {
        match Line::parse(line) {
            Line::Order(order) => return Some(Said::Order(order)),
            Line::Quit => return Some(Said::Leave),
            Line::Help => write_text(&Line::help(), screen),
            Line::Wrong(why) => write_text(&why, screen),
            _ => {}
        }
        self.state = State::Command;
        self.prompt(screen);
        None
    }

    fn user(&mut self, purpose: Purpose, user: &str, screen: &mut Vec<u8>) {
        if user.is_empty() {
            self.state = State::Command;
            self.prompt(screen);
        } else {
            self.state = State::Password(purpose, user.to_owned());
            screen.extend_from_slice(b"Password: ");
        }
    }

    /// Gives the prompt of the operator `user`, from now on.
    pub fn operate(&mut self, user: &str, screen: &mut Vec<u8>) {
        self.operator = Some(user.to_owned());
        self.reply("HELP lists the commands, QUIT leaves.", screen);
    }

    /// The text that was asked for. What is beyond 32 KiB is left out, and a line says so.
    pub fn reply(&mut self, text: &str, screen: &mut Vec<u8>) {
        let (shown, rest) = text.split_at(text.floor_char_boundary(TEXT_BYTES));
        write_text(shown, screen);
        if !rest.is_empty() {
            write_text("... and more than is shown here.", screen);
        }
        self.state = State::Command;
        self.prompt(screen);
    }

    /// Name or password were wrong, or could not be verified. False when that was the last attempt.
    pub fn denied(&mut self, reason: &str, screen: &mut Vec<u8>) -> bool {
        self.attempts_left = self.attempts_left.saturating_sub(1);
        write_text(reason, screen);
        if self.attempts_left == 0 {
            return false;
        }
        self.state = State::Command;
        self.prompt(screen);
        true
    }

    /// Number of wrong passwords.
    pub fn attempts_left(&self) -> u8 {
        self.attempts_left
    }

    fn prompt(&self, screen: &mut Vec<u8>) {
        let prompt = match &self.operator {
            Some(user) => format!("{user}# "),
            None => format!("{}> ", self.host_name),
        };
        screen.extend_from_slice(prompt.as_bytes());
    }
}

enum Matching {
    One(&'static str),
    Several,
    None,
}

/// The command that `word` begins, in any case of letters. LOGON and LOGIN are one.
fn matching(word: &str) -> Matching {
    const COMMANDS: [&str; 10] =
        ["HELP", "NEWS", "NETSTAT", "SYSSTAT", "OPERATOR", "LOGON", "LOGIN", "LOGOUT", "QUIT", "EXIT"];
    if word == "?" {
        return Matching::One("HELP");
    }
    let word = word.to_ascii_uppercase();
    let mut found = COMMANDS.into_iter().filter(|command| !word.is_empty() && command.starts_with(&*word));
    let Some(first) = found.next() else { return Matching::None };
    let log_on = |command: &str| matches!(command, "LOGON" | "LOGIN");
    match found.find(|other| *other != first && !(log_on(first) && log_on(other))) {
        Some(_) if first != word => Matching::Several,
        _ => Matching::One(first),
    }
}

/// Text for a terminal: line ends become CR LF, and what a terminal might obey is replaced.
fn write_text(text: &str, screen: &mut Vec<u8>) {
    let (mut clean, mut cleaner) = (String::new(), Cleaner::default());
    cleaner.take(text.as_bytes(), &mut clean);
    cleaner.end(&mut clean);
    for line in clean.lines() {
        screen.extend_from_slice(line.as_bytes());
        screen.extend_from_slice(b"\r\n");
    }
}
