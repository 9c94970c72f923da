//! The client: what a person types and sees. All of it is pure; [`crate::driver::run_client`] carries it.
//!
//! [`Console`] is the whole of it: sessions, the command level behind the escape key, and the screen.

mod commands;
mod connection;
mod console;
mod heath;
mod settings;
mod status;

pub use commands::{CommandError, HELP, Order, Sending, parse};
pub use connection::Connection;
pub use console::{ClientAction, Console, SessionId, Start};
pub use heath::{HeathKeys, HeathScreen};
pub use settings::{Emulation, KeyName, Mode, Settings, Toggle, Transmit};

#[cfg(test)]
mod tests;
