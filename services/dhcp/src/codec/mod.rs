//! Messages of DHCPv4: requests that are written, replies that are read.

pub(crate) mod reply;
pub(crate) mod request;
