//! Addresses as people write them in a configuration.

use std::net::SocketAddr;

use inhost_base::{Endpoint, IpAddr};

/// ADDRESS with `port`, ADDRESS:PORT or `[ADDRESS]:PORT`.
pub fn endpoint(text: &str, port: u16) -> Option<Endpoint> {
    if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Some(Endpoint::new(address, port));
    }
    text.parse::<SocketAddr>().ok().map(Endpoint::from)
}
