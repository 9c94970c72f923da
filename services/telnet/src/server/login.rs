//! Command level before login: information, queries, and login (UCLA §2.6.1).

use crate::line::{Echo, Edited, EditingKeys, LineEditor};
use inhost_common::Cleaner;
use inhost_common::users::PASSWORD_BYTES;

/// Octets of a line at the prompts.
const LINE_BYTES: usize = PASSWORD_BYTES;
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
}

#[derive(Debug)]
enum State {
    Command,
    User,
    Password(String),
    /// A verdict, a text or an end of a pause is awaited; what is typed waits.
    Waiting,
}

/// Requests of a visitor. Each but [`Said::Leave`] is answered by one of the methods of [`LoginHandler`], and nothing
/// is read until then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// The news: answer with [`LoginHandler::reply`].
    News,
    /// The state of the host: answer with [`LoginHandler::reply`].
    Netstat,
    /// To log in: answer with [`LoginHandler::denied`], or start the shell.
    LogOn {
        /// The name as typed.
        user: String,
        /// The password as typed.
        password: String,
    },
    /// To leave.
    Leave,
}

const HELP: &str = "\
LOGON [name]  log in (LOGIN is the same)\r
NEWS          read the news\r
NETSTAT       the state of this host\r
HELP          this list (also ?)\r
QUIT          leave (also LOGOUT, EXIT)\r
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
        }
    }

    /// The greeting and the first prompt.
    pub fn greet(&self, greeting: &str, screen: &mut Vec<u8>) {
        screen.extend_from_slice(format!("{}\r\n", self.host_name).as_bytes());
        write_text(greeting, screen);
        screen.extend_from_slice(b"HELP for help, LOGON to log in.\r\n");
        self.prompt(screen);
    }

    /// Whether keys are taken now. While they are not, the driver keeps them.
    pub fn is_listening(&self) -> bool {
        !matches!(self.state, State::Waiting)
    }

    /// One typed octet. `echoes`: whether this end echoes (the ECHO option is in force).
    pub fn key(&mut self, key: u8, echoes: bool, screen: &mut Vec<u8>) -> Option<Said> {
        let hidden = matches!(self.state, State::Password(_)) || !echoes;
        let echo = if hidden { Echo::Hidden } else { Echo::Shown };
        let mut typed = Vec::new();
        let edited = self.editor.key(key, echo, &mut typed);
        // A client that echoes for itself has moved to the next line; that of a password is shown by us.
        if echoes || matches!(self.state, State::Password(_)) {
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
        let hidden = matches!(self.state, State::Password(_)) || !echoes;
        let echo = if hidden { Echo::Hidden } else { Echo::Shown };
        match whole_line {
            true => self.editor.kill(echo, screen),
            false => self.editor.erase(echo, screen),
        }
    }

    fn line(&mut self, line: &[u8], screen: &mut Vec<u8>) -> Option<Said> {
        let text = String::from_utf8_lossy(line).into_owned();
        match core::mem::replace(&mut self.state, State::Waiting) {
            State::Command => self.command(text.trim(), screen),
            State::User => {
                self.user(text.trim(), screen);
                None
            }
            State::Password(user) => Some(Said::LogOn { user, password: text }),
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
            Matching::One("LOGON" | "LOGIN") => {
                match rest.trim() {
                    "" => {
                        self.state = State::User;
                        screen.extend_from_slice(b"User: ");
                    }
                    user => self.user(user, screen),
                }
                return None;
            }
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

    fn user(&mut self, user: &str, screen: &mut Vec<u8>) {
        if user.is_empty() {
            self.state = State::Command;
            self.prompt(screen);
        } else {
            self.state = State::Password(user.to_owned());
            screen.extend_from_slice(b"Password: ");
        }
    }

    /// The text that was asked for.
    pub fn reply(&mut self, text: &str, screen: &mut Vec<u8>) {
        write_text(text, screen);
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
        screen.extend_from_slice(format!("{}> ", self.host_name).as_bytes());
    }
}

enum Matching {
    One(&'static str),
    Several,
    None,
}

/// The command that `word` begins, in any case of letters. LOGON and LOGIN are one.
fn matching(word: &str) -> Matching {
    const COMMANDS: [&str; 8] = ["HELP", "NEWS", "NETSTAT", "LOGON", "LOGIN", "LOGOUT", "QUIT", "EXIT"];
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
