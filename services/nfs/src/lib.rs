//! NFS version 3.
#![forbid(unsafe_code)]

pub mod codec;
pub mod server;
