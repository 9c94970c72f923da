//! Mail server to test against.
#![forbid(unsafe_code)]
pub mod rules;
