//! Named applications (UCLA §2.6.1): programs, menus and other hosts to which `LOGON name` or a port of their own leads.

use std::fmt::Write as _;
use std::rc::Rc;

use crate::translation::Translation;
use inhost_base::Endpoint;

/// Something that a visitor can be led to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Application {
    /// What is typed after LOGON; no user is logged in by that name.
    pub name: String,
    /// What it is, for HELP and menus.
    pub about: String,
    /// Where it leads.
    pub target: Target,
    /// Whether a user's password is asked for first.
    pub needs_password: bool,
    /// How its text is translated; `None` leaves it as it is.
    pub translation: Option<Rc<Translation>>,
}

/// Where an application leads.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Target {
    /// A program with its arguments, in a terminal of its own.
    Program(Vec<String>),
    /// Telnet at another host.
    Host(Endpoint),
    /// A choice among other applications, by their names.
    Menu(Vec<String>),
}

impl Application {
    /// One that needs a password, as programs should.
    pub fn new(name: &str, target: Target) -> Application {
        Application {
            name: name.to_owned(),
            about: String::new(),
            target,
            needs_password: true,
            translation: None,
        }
    }
}

/// The applications of a host, in the order in which they are listed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Applications {
    all: Vec<Application>,
}

impl Applications {
    /// These.
    pub fn new(all: Vec<Application>) -> Applications {
        Applications { all }
    }
    /// The one of this name, in any case of letters.
    pub fn find(&self, name: &str) -> Option<&Application> {
        self.all.iter().find(|of| of.name.eq_ignore_ascii_case(name))
    }
    /// The lines of HELP; empty without applications.
    pub(super) fn help(&self) -> String {
        let mut text = String::new();
        for of in &self.all {
            let _ = writeln!(text, "LOGON {:<10} {}", of.name, of.about);
        }
        text
    }
    /// The lines of a menu.
    pub(super) fn menu(&self, of: &Application) -> String {
        let mut text = format!("\n{}\n", if of.about.is_empty() { &of.name } else { &of.about });
        for (place, entry) in entries(of).iter().enumerate() {
            let about = self.find(entry).map_or("", |of| &of.about);
            let _ = writeln!(text, "{:>3}  {entry:<12} {about}", place + 1);
        }
        text
    }
    /// What a line at a menu chooses: a number, or a name.
    pub(super) fn chosen(&self, of: &Application, line: &str) -> Option<&Application> {
        let entries = entries(of);
        let by_number = line.parse::<usize>().ok().and_then(|number| entries.get(number.checked_sub(1)?));
        let name = by_number.or_else(|| entries.iter().find(|entry| entry.eq_ignore_ascii_case(line)))?;
        self.find(name)
    }
}

fn entries(of: &Application) -> &[String] {
    match &of.target {
        Target::Menu(entries) => entries,
        _ => &[],
    }
}
