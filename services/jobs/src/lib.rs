//! Remote batch.
#![forbid(unsafe_code)]

pub mod backend;
pub mod codec;
pub mod deliver;
pub mod machine;
pub mod queue;
pub mod runner;
pub mod store;
