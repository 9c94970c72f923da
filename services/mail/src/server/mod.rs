//! The server: one session of the receiving side, pure.

mod auth;
mod config;
mod machine;
#[cfg(test)]
mod tests;

pub use config::{Client, Envelope, ServerConfig, Stage, TlsOffer};
pub use machine::{Action, Closing, Decision, Session, Verdict};
