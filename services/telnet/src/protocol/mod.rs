//! The Telnet machine: octets and time in; events and octets out. It does no I/O and knows no clock.
//!
//! ```
//! use inhost_telnet::protocol::{Config, Event, Telnet};
//! let mut server = Telnet::new(Config::server());
//! let mut input = &b"ls\r\n\xff\xf6"[..];
//! let mut text = Vec::new();
//! let mut commands = Vec::new();
//! while let Some(event) = server.receive(&mut input) {
//!     match event {
//!         Event::Data(data) => text.extend_from_slice(data),
//!         Event::Command(command) => commands.push(command.name()),
//!         _ => {}
//!     }
//! }
//! assert_eq!((&text[..], &commands[..]), (&b"ls\r"[..], &["ayt"][..]));
//! ```

mod command;
mod config;
mod event;
mod limits;
mod machine;
mod negotiation;
mod option;
mod output;
mod replies;
mod subnegotiation;
mod tabs;

#[cfg(test)]
mod tests;

pub use command::{Command, DO, DONT, IAC, SB, SE, WILL, WONT};
pub use config::{Config, LineEnd};
pub use event::{Counters, Event, Violation};
pub use limits::{
    ENVIRONMENT_VARIABLES, OUTPUT_BYTES, REPLY_BURST_BYTES, REPLY_BYTES_PER_SECOND, SUBNEGOTIATION_BYTES,
    TERMINAL_NAME_BYTES, TIMING_MARKS, VARIABLE_BYTES,
};
pub use machine::Telnet;
pub use negotiation::{Input, Phase, Transition, Verb};
pub use option::{OptionSet, Side, TelnetOption};
pub use subnegotiation::{FlowControl, StatusEntry, Variable, VariableKind};
pub use tabs::TabExpansion;
