//! Carries octets between the machines and streams, with the time that it is given.
//!
//! [`serve`] is a session of the server. [`TlsServer`] and [`TlsClient`] let TLS come first. [`Connection`] is a terminal on a stream, and
//! [`run_script`] takes one through a script. All run on any executor, that of a simulation included.

mod client;
mod files;
mod server;
mod tls;

pub use client::{Connection, ScriptError, ScriptFiles, run_script};
pub use server::{DeviceEvent, Ended, Server, serve};
pub use tls::{TlsClient, TlsServer};
