//! The IBM 3270 terminal over TCP: data stream, screen, TN3270 and TN3270E.
#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod driver;
pub mod machine;
pub mod screen;
pub mod server;
pub mod service;
pub mod transfer;
