//! What every service needs beside its protocol: who is admitted, who called from outside, and text of strangers made
//! fit for a terminal.
#![forbid(unsafe_code)]

pub mod admission;
pub mod callers;
pub mod text;

pub use admission::{Admission, AdmissionLimits, Attempt, Permit, Refusal, network};
pub use callers::{Callers, Forwarded, Transport};
pub use text::Cleaner;
