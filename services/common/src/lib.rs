//! Parts that services share: doors, admission and limits for each outer caller, users, storage, the clock,
//! and cleaning of untrusted text for terminals.
//!
//! - [`admission`], [`callers`], [`denials`], [`guard`]: who is served, and how much;
//! - [`clock`], [`urgent`], [`future`], [`LogOn`]: what drivers ask of a host;
//! - [`ask`](mod@ask): a line to a server, and its text;
//! - [`codepage`](mod@codepage): EBCDIC code pages;
//! - [`service`]: a service as a host runs it: configuration, start, reload, description, sessions; its doors, which accept callers;
//! - [`SessionEvent`], [`session_log!`]: what services log in the same words;
//! - [`trust`], [`replace`](mod@replace): which files are believed, and how one is replaced;
//! - [`text`]: untrusted text for terminals and logs;
//! - `Pattern` (feature `pattern`, with glob): shell patterns;
//! - `tls` (feature `tls`, with rustls): certificates and keys from files;
//! - `users` (feature `users`, with Argon2): who may log in;
//! - `storage` (feature `storage`, with cap-std): files below one directory.
#![forbid(unsafe_code)]

pub mod admission;
pub mod ask;
pub mod callers;
pub mod clock;
pub mod codepage;
pub mod denials;
pub mod future;
pub mod guard;
mod log_on;
mod network;
#[cfg(feature = "pattern")]
mod pattern;
pub mod replace;
pub mod service;
mod session_event;
mod state;
#[cfg(feature = "storage")]
pub mod storage;
pub mod text;
#[cfg(feature = "tls")]
pub mod tls;
pub mod trust;
pub mod urgent;
#[cfg(feature = "users")]
pub mod users;

pub use admission::{Admission, AdmissionLimits, Over, Permit, Refusal};
pub use callers::{Callers, Forwarded, Transport};
pub use clock::{Alarm, Clock, within};
pub use codepage::CodePage;
pub use denials::{Attempt, DenialLimits, Denials};
pub use future::LocalFuture;
pub use guard::{Guard, Rate};
pub use log_on::LogOn;
pub use network::network;
#[cfg(feature = "pattern")]
pub use pattern::Pattern;
pub use replace::replace;
pub use session_event::SessionEvent;
pub use state::state_folder;
pub use text::Cleaner;
#[doc(hidden)]
pub use tracing;
pub use urgent::Urgent;
