//! The client: one connection of the sending side, pure; SMTP and LMTP (RFC 2033).

mod extensions;
mod machine;
#[cfg(test)]
mod tests;

pub use extensions::Extensions;
pub use machine::{Action, ClientConfig, Dialogue, Failure, Impossible, Outcome, Step, TlsWish, Transaction};
