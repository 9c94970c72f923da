//! The application behind a server: panels, one after the other.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use inhost_base::IpAddr;
use inhost_common::storage::Storage;

use super::panel::{COMMAND, Panel};
use crate::codec::Aid;

/// An answer in its own time.
pub type DialogFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Who has come.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Visitor {
    /// The outer caller's address.
    pub peer: IpAddr,
    /// The terminal's type.
    pub device_type: String,
    /// The terminal's name.
    pub device: String,
}

impl Visitor {
    /// A visitor.
    pub fn new(peer: IpAddr, device_type: &str, device: &str) -> Visitor {
        Visitor { peer, device_type: device_type.to_owned(), device: device.to_owned() }
    }
}

/// What was entered.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Entered {
    /// The name of the panel; empty at the beginning.
    pub panel: String,
    /// The key: Enter, or one that the panel has. [`Aid::None`] at the beginning.
    pub aid: Aid,
    /// The values of the fields by their names. For Enter they obey the fields' rules.
    pub values: BTreeMap<String, String>,
}

impl Entered {
    /// The beginning of a session.
    pub fn start() -> Entered {
        Entered { panel: String::new(), aid: Aid::None, values: BTreeMap::new() }
    }
    /// A field's value; empty where there is none.
    pub fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }
    /// What was typed in the command line.
    pub fn command(&self) -> &str {
        self.value(COMMAND)
    }
}

/// What comes next.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Next {
    /// A panel.
    Show(Box<Panel>),
    /// A print on the printer of this terminal, and a panel, whose message says what became of the print.
    Print {
        /// The lines.
        lines: Vec<String>,
        /// The panel.
        panel: Box<Panel>,
    },
    /// The end of the session.
    End,
}

/// The panels of one session, one after the other.
pub trait Dialog {
    /// What comes after what was entered. The first time it is [`Entered::start`].
    fn next<'a>(&'a mut self, entered: Entered) -> DialogFuture<'a, Next>;
    /// The files that IND$FILE may transfer in this session now; `None` while there are none.
    fn files(&self) -> Option<Rc<dyn Storage>> {
        None
    }
}

/// The source of panels.
pub trait Panels {
    /// The dialog with a visitor.
    fn open(&self, visitor: &Visitor) -> Box<dyn Dialog>;
}
