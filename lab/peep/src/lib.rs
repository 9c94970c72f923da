//! Packet trace: filters in tcpdump's words.
#![forbid(unsafe_code)]

pub mod filter;
pub mod fuzz;
