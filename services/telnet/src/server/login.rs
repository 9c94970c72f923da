//! Command level before login: information, queries, and login (UCLA §2.6.1); and the operator's prompt behind it.

use std::rc::Rc;

use super::applications::{Application, Applications, Target};
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
    applications: Rc<Applications>,
    /// What the caller's port leads to, in place of the commands.
    contact: Option<String>,
    /// The menu from which the caller chose last.
    menu: Option<String>,
    /// The caller has given a user's password.
    is_known: bool,
}

#[derive(Debug)]
enum State {
    Command,
    User(Purpose),
    Password(Purpose, String),
    Menu(String),
    /// A verdict, a text or an end of a pause is awaited; what is typed waits.
    Waiting,
}

/// For what a name and a password are given.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// A shell.
    LogOn,
    /// The operator's prompt.
    Operate,
    /// The application of this name.
    Application(String),
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
    /// To be led to an application that asks for no password, or whose user is known.
    Start(Application),
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
            applications: Rc::default(),
            contact: None,
            menu: None,
            is_known: false,
        }
    }
    /// With these applications; `contact` names the one to which the caller's port leads.
    #[must_use]
    pub fn with_applications(mut self, all: Rc<Applications>, contact: Option<&str>) -> LoginHandler {
        self.contact = contact.map(str::to_owned);
        self.applications = all;
        self
    }

    /// The greeting and the first prompt, or what the caller's port leads to.
    pub fn greet(&mut self, greeting: &str, screen: &mut Vec<u8>) -> Option<Said> {
        screen.extend_from_slice(format!("{}\r\n", self.host_name).as_bytes());
        write_text(greeting, screen);
        if let Some(of) = self.contact.as_deref().and_then(|name| self.applications.find(name)).cloned() {
            return self.choose(of, screen);
        }
        screen.extend_from_slice(b"HELP for help, LOGON to log in.\r\n");
        self.prompt(screen);
        None
    }

    /// Leads to an application: a menu is shown, a user asked for, or it is started.
    fn choose(&mut self, of: Application, screen: &mut Vec<u8>) -> Option<Said> {
        match of.target {
            Target::Menu(_) => {
                self.show_menu(&of, screen);
                None
            }
            _ if of.needs_password && !self.is_known => {
                self.ask_user(Purpose::Application(of.name), screen);
                None
            }
            _ => {
                self.state = State::Waiting;
                Some(Said::Start(of))
            }
        }
    }
    fn show_menu(&mut self, of: &Application, screen: &mut Vec<u8>) {
        write_text(&self.applications.menu(of), screen);
        screen.extend_from_slice(b"Number or name, QUIT to leave: ");
        self.menu = Some(of.name.clone());
        self.state = State::Menu(of.name.clone());
    }
    fn ask_user(&mut self, purpose: Purpose, screen: &mut Vec<u8>) {
        self.state = State::User(purpose);
        screen.extend_from_slice(b"User: ");
    }
    /// A line at a menu.
    fn menu_line(&mut self, menu: &str, line: &str, screen: &mut Vec<u8>) -> Option<Said> {
        self.commands_left = self.commands_left.saturating_sub(1);
        let of = self.applications.find(menu).cloned();
        if let Some(chosen) = of.as_ref().and_then(|of| self.applications.chosen(of, line)).cloned() {
            return self.choose(chosen, screen);
        }
        let leaves = ["QUIT", "EXIT", "LOGOUT", "0"].iter().any(|word| word.eq_ignore_ascii_case(line));
        if self.commands_left == 0 || leaves && self.contact.is_some() {
            return Some(Said::Leave);
        }
        if leaves {
            self.menu = None;
        } else if !line.is_empty() {
            screen.extend_from_slice(b"That is not among them.\r\n");
        }
        self.home(screen);
        None
    }
    /// Waits for what the caller wants next: at the menu, at the user of the port's application, or for a command.
    fn home(&mut self, screen: &mut Vec<u8>) {
        let place = self.menu.as_deref().or(self.contact.as_deref());
        match place.and_then(|name| self.applications.find(name)).cloned() {
            Some(of) if matches!(of.target, Target::Menu(_)) => self.show_menu(&of, screen),
            Some(of) => self.ask_user(Purpose::Application(of.name), screen),
            None => {
                self.state = State::Command;
                self.prompt(screen);
            }
        }
    }
    /// The user is known from now on, and is not asked for again.
    pub fn knows_user(&mut self) {
        self.is_known = true;
    }
    /// Whether a user's password was given.
    pub fn is_user_known(&self) -> bool {
        self.is_known
    }
    /// Whether the caller comes back to a menu when an application ends.
    pub fn has_menu(&self) -> bool {
        self.menu.is_some()
    }
    /// The application that was started from a menu has ended.
    pub fn back(&mut self, why: &str, screen: &mut Vec<u8>) {
        screen.extend_from_slice(b"\r\n");
        write_text(why, screen);
        self.home(screen);
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
                self.home(screen);
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
            State::Menu(menu) => self.menu_line(&menu, text.trim(), screen),
            // A caller whom a port leads here has nothing to do here without a user.
            State::User(_) if text.trim().is_empty() && self.contact.is_some() && self.menu.is_none() => {
                Some(Said::Leave)
            }
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
                let application = self.applications.find(rest.trim()).filter(|_| purpose == Purpose::LogOn);
                if let Some(of) = application.cloned() {
                    return self.choose(of, screen);
                }
                match rest.trim() {
                    "" => self.ask_user(purpose, screen),
                    user => self.user(purpose, user, screen),
                }
                return None;
            }
            Matching::One("SYSSTAT") => return Some(Said::Figures),
            Matching::One("NEWS") => return Some(Said::News),
            Matching::One("NETSTAT") => return Some(Said::Netstat),
            Matching::One("QUIT" | "LOGOUT" | "EXIT") => return Some(Said::Leave),
            Matching::One(_) => {
                screen.extend_from_slice(HELP.as_bytes());
                write_text(&self.applications.help(), screen);
            }
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
            self.home(screen);
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
        self.home(screen);
    }

    /// Name or password were wrong, or could not be verified. False when that was the last attempt.
    pub fn denied(&mut self, reason: &str, screen: &mut Vec<u8>) -> bool {
        self.attempts_left = self.attempts_left.saturating_sub(1);
        write_text(reason, screen);
        if self.attempts_left == 0 {
            return false;
        }
        self.home(screen);
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
