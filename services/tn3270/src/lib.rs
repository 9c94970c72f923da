//! The IBM 3270 terminal over TCP: its data stream, TN3270 (RFC 1576) and TN3270E (RFC 2355), server and client.
//!
//! Every part that decides is pure: octets and time in, octets, events and actions out.
//!
//! - [`codec`]: the data stream, structured fields, code pages, and the subnegotiations of TN3270E;
//! - [`screen`]: the buffer of a terminal, its keys and its reads;
//! - [`machine`]: a connection of either end, over the machine of [`inhost_telnet`];
//! - [`client`]: a terminal that keys and scripts drive, and a printer;
//! - [`server`]: panels, sessions, devices;
//! - [`transfer`]: IND$FILE, which both ends have;
//! - [`driver`]: sessions on streams; [`service`]: the server as a service of a host.
//!
//! Double-byte character sets, programmed symbols, graphics, the light pen and partitions but the first are not supported.
//! Validation, outlining and transparency are kept and reported by reads, and change nothing else.
//!
//! A server that shows a panel, and a terminal that fills it in:
//!
//! ```
//! use inhost_base::Instant;
//! use inhost_tn3270::client::{Terminal, TerminalConfig};
//! use inhost_tn3270::codec::Aid;
//! use inhost_tn3270::screen::{Key, Keyboard};
//! use inhost_tn3270::server::{Action, Input, Next, Panel, Session, SessionConfig};
//! let mut session = Session::new(SessionConfig::default());
//! let mut terminal = Terminal::new(TerminalConfig::default());
//! let mut names = Vec::new();
//! session.start(Instant::ZERO);
//! while names.is_empty() {
//!     match session.action() {
//!         Some(Action::Device { .. }) => session.device(Ok("LU001")),
//!         Some(Action::Ask(entered)) if entered.aid == Aid::Enter => names.push(entered.value("name").to_owned()),
//!         Some(Action::Ask(_)) => {
//!             let panel = Panel::new("HELLO", "Who are you?").input(Input::new("name", 1, 10, 20).required());
//!             session.next(Next::Show(Box::new(panel)), Instant::ZERO);
//!         }
//!         _ => {}
//!     }
//!     terminal.receive(&mut session.pending());
//!     session.sent(usize::MAX);
//!     let has_panel = terminal.screen().line(0).contains("Who are you?");
//!     if has_panel && terminal.screen().keyboard() == Keyboard::Unlocked {
//!         terminal.type_text("Ada").and_then(|()| terminal.press(Key::Enter)).unwrap();
//!     }
//!     session.receive(&mut terminal.pending(), Instant::ZERO);
//!     terminal.sent(usize::MAX);
//! }
//! assert_eq!(names, ["Ada"]);
//! ```
#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod driver;
#[doc(hidden)]
pub mod fuzz;
pub mod machine;
pub mod screen;
pub mod server;
pub mod service;
pub mod transfer;
