//! What every service needs beside its protocol: who is admitted, who called from outside, and text of strangers made
//! fit for a terminal.
#![forbid(unsafe_code)]

pub mod admission;
pub mod callers;
pub mod denials;
pub mod text;

pub use admission::{Admission, AdmissionLimits, Permit, Refusal, network};
pub use callers::{Callers, Forwarded, Transport};
pub use denials::{Attempt, DenialLimits, Denials};
pub use text::Cleaner;
