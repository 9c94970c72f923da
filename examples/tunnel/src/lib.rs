//! Tunnels on inhost.

pub mod ported;
pub mod tun2socks;
pub mod wireguard;
