//! The Telnet machine: octets and time in; events and octets out. It does no I/O and knows no clock.
//!
//! ```
//! use inhost_telnet::machine::{Config, Event, Telnet};
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

mod charset;
mod config;
mod event;
mod limits;
mod line_mode;
mod negotiation;
mod option_state;
mod output;
mod replies;
mod tabs;
mod telnet;

#[cfg(test)]
mod charset_tests;
#[cfg(test)]
mod line_mode_tests;
#[cfg(test)]
mod tests;

pub use config::{Config, LineEnd};
pub use event::{Counters, Event, Violation};
pub use limits::{
    OUTPUT_BYTES, REPLY_BURST_BYTES, REPLY_BYTES_PER_SECOND, SUBNEGOTIATION_BYTES, TIMING_MARKS,
};
pub use negotiation::{Input, Phase, Transition, Verb};
pub use tabs::TabExpansion;
pub use telnet::Telnet;
