//! The panels of a host: a menu, NEWS, NETSTAT, SYSSTAT, HELP, logging on, files, and operators' orders.

use std::future::poll_fn;
use std::rc::Rc;

use inhost_base::Duration;
use inhost_common::service::{Line, Operator};
use inhost_common::storage::{Kind, Names, Storage, StorageResult, VirtualPath};
use inhost_common::users::{Account, Verdict};
use inhost_common::{Cleaner, Clock, LocalFuture, Permit, SessionEvent};
use tracing::info;

use super::LOG;
use crate::codec::Aid;
use crate::server::{
    Body, Dialog, DialogFuture, Entered, Input, InputKind, Next, Panel, Panels, Style, Visitor,
};

/// Names that the list of files shows.
const FILES: usize = 5_000;
/// How long the answer to the first wrong password of a session takes. Each one after it takes twice as long.
const DENIAL: Duration = Duration::from_secs(1);
/// How often that time is doubled.
const DOUBLINGS: u32 = 8;

/// What panels need of the host.
pub(super) trait HostText {
    /// The text of NEWS.
    fn news(&self) -> LocalFuture<String>;
    /// The text of NETSTAT.
    fn netstat(&self) -> String;
    /// What operators can do.
    fn operator(&self) -> Rc<dyn Operator>;
    /// Whether a password is right.
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict>;
    /// The files of users; `None` where there are none.
    fn files(&self) -> Option<Rc<dyn Storage>>;
}

/// The panels of one connection.
pub(super) struct HostPanels<H, C> {
    pub(super) host: Rc<H>,
    pub(super) clock: C,
    pub(super) permit: Rc<Permit>,
    pub(super) title: String,
    pub(super) attempts: u32,
}

impl<H: HostText + 'static, C: Clock + Clone + 'static> Panels for HostPanels<H, C> {
    fn open(&self, visitor: &Visitor) -> Box<dyn Dialog> {
        Box::new(Talk {
            host: self.host.clone(),
            clock: self.clock.clone(),
            permit: self.permit.clone(),
            title: self.title.clone(),
            visitor: visitor.clone(),
            attempts: self.attempts.max(1),
            wrong: 0,
            user: None,
            shown: None,
        })
    }
}

struct Talk<H, C> {
    host: Rc<H>,
    clock: C,
    permit: Rc<Permit>,
    title: String,
    visitor: Visitor,
    /// Wrong passwords that end the session.
    attempts: u32,
    /// Wrong passwords so far.
    wrong: u32,
    user: Option<Account>,
    /// The text that is shown, for a print.
    shown: Option<Box<Panel>>,
}

const HELP: &str = "\
Type the number or the name of an option at the command line, and press Enter.

  NEWS       the news
  NETSTAT    the state of this host
  SYSSTAT    sessions and load, in numbers
  LOGON      log on with the name and the password of an account
  LOGOFF     log off
  FILES      the files that you can transfer, once you have logged on
  HELP       this text
  EXIT       leave (also QUIT and X)

PF3 goes back, and leaves at the menu. PF7 and PF8 go through a text.
PF5 prints a text on the printer that is associated with this terminal.

Files are transferred by IND$FILE, which terminals have as \"Transfer\"; the
command goes to the command line:

  IND$FILE GET name (ASCII CRLF     from this host
  IND$FILE PUT name (ASCII CRLF     to this host

An operator, once logged on, types OPER and an order, such as OPER SYSSTAT;
OPER HELP lists them.
";

impl<H: HostText, C: Clock> Talk<H, C> {
    fn menu(&self) -> Panel {
        let user = self.user.as_ref().map_or("nobody", |account| &account.name);
        let mut panel = Panel::new("MENU", &self.title)
            .text(1, 2, "Terminal")
            .styled(1, 12, &self.visitor.device, Style::TEXT)
            .text(2, 2, "User")
            .styled(2, 12, user, Style::TEXT)
            .with_command()
            .key(Aid::Pf(1), "Help")
            .key(Aid::Pf(3), "Exit");
        let log_on = match self.user {
            Some(_) => ("LOGOFF", "log off"),
            None => ("LOGON", "log on"),
        };
        let options = [
            ("1", "NEWS", "read the news"),
            ("2", "NETSTAT", "the state of this host"),
            ("3", "SYSSTAT", "sessions and load, in numbers"),
            ("4", log_on.0, log_on.1),
            ("5", "FILES", "files to transfer"),
            ("6", "HELP", "what can be done here"),
            ("X", "EXIT", "leave"),
        ];
        for (row, (number, name, purpose)) in (4..).zip(options) {
            panel = panel.styled(row, 4, number, Style::TITLE).text(row, 8, name).styled(
                row,
                18,
                purpose,
                Style::TEXT,
            );
        }
        panel
    }
    fn log_on() -> Panel {
        Panel::new("LOGON", "Log On")
            .text(2, 2, "User")
            .input(Input::new("user", 2, 14, 32).called("a user").required())
            .text(3, 2, "Password")
            .input(
                Input::new("password", 3, 14, 60)
                    .called("a password")
                    .of_kind(InputKind::Password)
                    .required(),
            )
            .key(Aid::Pf(3), "Back")
    }
    fn text(&mut self, name: &str, title: &str, text: &str) -> Next {
        let panel = Box::new(Panel::lines(name, title, text).key(Aid::Pf(5), "Print"));
        self.shown = Some(panel.clone());
        Next::Show(panel)
    }
    fn show(panel: Panel) -> Next {
        Next::Show(Box::new(panel))
    }

    async fn option(&mut self, typed: &str) -> Next {
        let (word, rest) = typed.split_once(' ').unwrap_or((typed, ""));
        let word = word.to_ascii_uppercase();
        match &*word {
            "" => Self::show(self.menu()),
            "1" | "NEWS" => {
                let news = self.host.news().await;
                self.text("NEWS", "News", &news)
            }
            "2" | "NETSTAT" => {
                let text = self.host.netstat();
                self.text("NETSTAT", "State of this Host", &text)
            }
            "3" | "SYSSTAT" => {
                let text = self.host.operator().figures();
                self.text("SYSSTAT", "Sessions and Load", &text)
            }
            "4" | "LOGON" | "LOGIN" if self.user.is_none() => Self::show(Self::log_on()),
            "4" | "LOGOFF" | "LOGOUT" if self.user.is_some() => {
                self.user = None;
                Self::show(self.menu().note("You have logged off"))
            }
            "5" | "FILES" => self.list().await,
            "6" | "HELP" | "?" => self.text("HELP", "Help", HELP),
            "X" | "EXIT" | "QUIT" => Next::End,
            "OPER" | "OPERATOR" => self.operate(rest).await,
            _ => Self::show(self.menu().error(&format!("{typed} is not an option"))),
        }
    }

    async fn log_on_as(&mut self, user: String, password: String) -> Next {
        let permit = self.permit.clone();
        let peer = self.visitor.peer;
        let attempt = poll_fn(|cx| permit.poll_attempt(cx, self.clock.now())).await;
        let Ok(attempt) = attempt else {
            return Self::show(Self::log_on().error("Too many wrong passwords from your address, try later"));
        };
        match self.host.authenticate(user.clone(), password).await {
            Verdict::Granted(account) => {
                LOG(SessionEvent::LoggedIn { peer, user: &user });
                self.permit.logged_in(&account.name);
                let note = format!("Welcome, {}", account.name);
                self.user = Some(account);
                Self::show(self.menu().note(&note))
            }
            Verdict::Denied => {
                let now = self.clock.now();
                attempt.denied(now);
                LOG(SessionEvent::Denied { peer, user: &user });
                self.clock.sleep_until(now + DENIAL.times(1 << self.wrong.min(DOUBLINGS))).await;
                self.wrong = self.wrong.saturating_add(1);
                if self.wrong >= self.attempts {
                    return Next::End;
                }
                Self::show(Self::log_on().error("User and password do not match"))
            }
            Verdict::Busy => Self::show(Self::log_on().error("Too many users log on, try again")),
            Verdict::Unavailable(why) => {
                LOG(SessionEvent::Unavailable { reason: &why });
                Self::show(Self::log_on().error("Passwords cannot be checked now"))
            }
        }
    }

    async fn operate(&mut self, order: &str) -> Next {
        let name = match &self.user {
            Some(account) if account.is_operator => account.name.clone(),
            _ => return Self::show(self.menu().error("You are not an operator")),
        };
        let text = match Line::parse(order) {
            Line::Order(order) => {
                let peer = self.visitor.peer;
                // As a text, it is quoted and escaped.
                let shown = &*order.to_string();
                info!(target: "tn3270", %peer, user = name, order = shown, "operator's order");
                self.host.operator().carry_out(&name, order).await
            }
            Line::Help | Line::Empty => Line::help(),
            Line::Wrong(why) => return Self::show(self.menu().error(&why)),
            _ => return Self::show(self.menu()),
        };
        self.text("OPER", "Operator", &text)
    }

    async fn list(&mut self) -> Next {
        let Some(files) = self.files() else {
            let why = match self.user {
                None => "Log on to see files",
                Some(_) => "This host has no files",
            };
            return Self::show(self.menu().error(why));
        };
        match names(files).await {
            Ok(names) => self.text("FILES", "Files", &listing(names)),
            Err(error) => Self::show(self.menu().error(&error.to_string())),
        }
    }

    async fn entered(&mut self, entered: Entered) -> Next {
        match (&*entered.panel, entered.aid) {
            ("", _) | ("LOGON", Aid::Pf(3)) => Self::show(self.menu()),
            ("MENU", Aid::Pf(3)) => Next::End,
            ("MENU", Aid::Pf(1)) => self.option("HELP").await,
            ("LOGON", _) => {
                let (user, password) =
                    (entered.value("user").to_owned(), entered.value("password").to_owned());
                self.log_on_as(user, password).await
            }
            (_, Aid::Pf(5)) => match self.shown.take() {
                Some(panel) => {
                    let lines = match &panel.body {
                        Body::Lines(lines) => lines.clone(),
                        Body::Form(_) => Vec::new(),
                    };
                    self.shown = Some(panel.clone());
                    Next::Print { lines, panel }
                }
                None => Self::show(self.menu()),
            },
            (_, Aid::Pf(3)) => Self::show(self.menu()),
            _ => {
                let typed = entered.command().to_owned();
                self.option(&typed).await
            }
        }
    }
}

impl<H: HostText, C: Clock> Dialog for Talk<H, C> {
    fn next<'a>(&'a mut self, entered: Entered) -> DialogFuture<'a, Next> {
        Box::pin(self.entered(entered))
    }
    fn files(&self) -> Option<Rc<dyn Storage>> {
        self.user.as_ref().and_then(|_| self.host.files())
    }
}

async fn names(files: Rc<dyn Storage>) -> StorageResult<Names> {
    let mut all = Names::new();
    let mut listing = files.list(&VirtualPath::root()).await?;
    while all.len() < FILES {
        let (next, names) = listing.next().await;
        let names = names?;
        if names.is_empty() {
            break;
        }
        all.extend(names);
        listing = next;
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(all)
}

fn listing(names: Names) -> String {
    let mut text = String::new();
    for (name, facts) in names {
        let name = Cleaner::line(name.as_bytes());
        match facts.kind {
            Kind::File => text += &format!("{:>14}  {name}\n", facts.size_bytes),
            Kind::Directory => text += &format!("{:>14}  {name}/\n", ""),
            _ => {}
        }
    }
    if text.is_empty() { "There are no files.\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests;
