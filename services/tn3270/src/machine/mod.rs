//! TN3270 and TN3270E over Telnet, for either end: octets in; records and events out.
//!
//! Options of Telnet are negotiated by [`inhost_telnet::machine::Telnet`]. It does not know the option TN3270E, so a
//! filter before it takes the octets of that option, and those of records, out of the stream.
//!
//! ```
//! use inhost_tn3270::machine::{ClientConfig, Event, ServerConfig, Tn3270};
//! let mut server = Tn3270::server(ServerConfig::default());
//! let mut client = Tn3270::client(ClientConfig::new("IBM-3279-2-E", "IBM-3278-2-E"));
//! server.start();
//! for _ in 0..6 {
//!     for turn in 0..2 {
//!         let (from, to) = if turn == 0 { (&mut server, &mut client) } else { (&mut client, &mut server) };
//!         let octets = from.pending().to_vec();
//!         from.sent(octets.len());
//!         let mut input = &octets[..];
//!         while let Some(event) = to.receive(&mut input) {
//!             if let Event::DeviceRequested { .. } = event {
//!                 to.accept_device("LU001");
//!             }
//!         }
//!     }
//! }
//! assert!(server.is_ready() && client.is_ready());
//! assert_eq!(client.name(), Some("LU001"));
//! ```

mod config;
mod event;
mod session;
mod tap;

#[cfg(test)]
mod tests;

pub use config::{ClientConfig, ServerConfig};
pub use event::{Event, Protocol, Violation};
pub use session::{DEVICE_ATTEMPTS, FUNCTION_ROUNDS, OUTPUT_BYTES, RECORD_BYTES, Tn3270};
