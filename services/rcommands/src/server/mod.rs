//! Servers of rlogin and rsh, for closed nets: who may come is a table of the host's configuration, and no `.rhosts`.
//!
//! [`Session`] is an rlogin session, and [`Request`] reads what a client of rsh asks for; both are pure. The drivers carry
//! them: [`serve_rlogin`] with the shells of [`inhost_telnet::driver::Services`], [`serve_rsh`] with programs on pipes.

mod fields;
mod output;
mod process;
mod request;
mod rlogin;
mod rlogin_driver;
mod rsh_driver;
mod table;

pub use fields::{Fields, InvalidText};
pub use process::{Command, Program};
pub use request::{Request, RequestError};
pub use rlogin::{Action, Closing, Session, SessionConfig};
pub use rlogin_driver::{Decide, serve_rlogin};
pub use rsh_driver::{CallBack, Reception, RshEnd, drain, serve_rsh};
pub use table::{Rule, Table, is_reserved};

#[cfg(test)]
mod tests;
