//! Thin drivers that carry octets between the machines and the host's streams.

mod client;
mod server;
mod tls;

pub use client::{Connection, ConnectionError};
pub use server::{Answer, Mailroom, Server, serve};
pub use tls::{TlsClient, TlsError, TlsServer};
