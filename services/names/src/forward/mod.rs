//! A caching forwarder: it answers the questions of others by what it knows at home, by what it has kept, and by
//! asking servers.
//!
//! [`Forwarder`] is the machine that decides, without sockets; [`serve()`] runs one on a host's UDP and TCP.

mod clients;
mod connection;
mod exchange;
mod machine;
mod owed;
mod reply;
mod server;

pub use clients::ClientLimits;
pub use machine::{Counters, Decision, ForwardConfig, Forwarder, Settled, Visitor};
pub use server::{Forwarding, Home, serve};

#[cfg(test)]
mod tests;
