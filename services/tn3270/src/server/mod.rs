//! The server: panels, sessions, printers and the host's part of IND$FILE.
//!
//! The application implements [`Panels`]. It gives each session a [`Dialog`], which takes what was
//! [`Entered`] and says what is [`Next`]. [`Session`] is the machine between the dialog and the connection; it is pure.
//! [`Devices`] gives terminals and printers their names, and takes prints from one to the other.
//!
//! ```
//! use inhost_tn3270::codec::Aid;
//! use inhost_tn3270::screen::{Screen, ScreenConfig};
//! use inhost_tn3270::server::{Input, Layout, Panel};
//! let panel = Panel::new("LOGON", "Welcome")
//!     .text(1, 2, "User")
//!     .input(Input::new("user", 1, 12, 8).required())
//!     .key(Aid::Pf(3), "End");
//! let mut screen = Screen::new(ScreenConfig::default());
//! screen.receive(&panel.render(&Layout::default(), 0)).unwrap();
//! assert!(screen.line(0).contains("Welcome"));
//! assert_eq!(screen.position(screen.cursor()).column, 12);
//! ```

mod cut;
mod devices;
mod dialog;
mod layout;
mod panel;
mod session;
mod signal;
mod transfer;

#[cfg(test)]
mod tests;

pub use devices::{Device, Devices, JOB_LINES, JOBS, Origin, PrintError};
pub use dialog::{Dialog, DialogFuture, Entered, Next, Panels, Visitor};
pub use layout::Layout;
pub use panel::{BODY_LINES, Body, Element, INPUTS, Input, InputKind, Message, Panel, Rule, Style};
pub use session::{Action, Closing, Session, SessionConfig};
pub use transfer::{FileAction, FileAnswer};
