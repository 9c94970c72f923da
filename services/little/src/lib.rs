//! The little services of an Internet host: echo (RFC 862), discard (RFC 863), character generator (RFC 864) and
//! daytime (RFC 867), each over TCP and UDP.
//!
//! Over UDP these services once drowned networks: two of them answering each other never stop, and a forged source
//! reflects them at a victim. Here an [`inhost_common::Guard`] answers no service's port, limits answers to each
//! address and in all, and no answer is much longer than its question.
//!
//! ```
//! use inhost_little::{Daytime, Pattern};
//! let mut line = [0; 8];
//! Pattern::new().fill(&mut line);
//! assert_eq!(&line, br##" !"#$%&'"##);
//! assert_eq!(Daytime::new(0).to_string(), "Thursday, January 1, 1970 00:00:00-UTC");
//! ```
#![forbid(unsafe_code)]

mod codec;
mod driver;
mod server;
pub mod service;

pub use codec::{Daytime, LINE_BYTES, LINE_CHARACTERS, Pattern};
pub use server::{Counters, Little, LittleConfig, Service, serve};
