//! A picture of one connection: time and sequence, what is in flight, round trips, and what was waited for.
//!
//! ```no_run
//! use inhost_explain::draw::Trace;
//! let file = || std::fs::File::open("transfer.pcap");
//! let report = inhost_explain::explain(file()?, &Default::default())?;
//! if let Some(verdict) = report.conversations.first() {
//!     std::fs::write("transfer.svg", Trace::read(file()?, verdict)?.svg())?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod colours;
mod picture;
mod trace;

pub use colours::of_send_cause;
pub use trace::Trace;
