//! The `user` network: a gateway with a stack of its own at the other end of a memory link, which ends the guest's
//! TCP, UDP and echo and carries them onto sockets of the operating system. It needs no privilege and no device.
//!
//! - A connection's SYN is held until the system has connected; so the guest gets a refusal when the system does, and
//!   silence when the system gets none.
//! - Nothing is buffered in between: the system is read only into free room of the guest's connection, and the
//!   guest's connection only as fast as the system takes it.
//! - One method decides what the guest may reach, [`GatewayConfig::route`]: by default neither the system's loopback
//!   nor link-local addresses, where clouds keep their secrets.
//! - Echo requests to the gateway are always answered; others go through the system's unprivileged echo sockets, and
//!   where they are not permitted, the guest gets an ICMP error "administratively prohibited".
//! - Questions for names go to 10.0.2.3 or to the gateway, and from there to the system's name servers.
//!
//! ```
//! use inhost_gateway::{Closed, GatewayConfig, RouteDecision};
//! use std::net::SocketAddr;
//! let config = GatewayConfig::default();
//! let to = |text: &str| config.route(text.parse::<SocketAddr>().unwrap().into());
//! assert!(matches!(to("192.0.2.1:80"), RouteDecision::Outside(_)));
//! assert_eq!(to("127.0.0.1:80"), RouteDecision::Closed(Closed::Policy));
//! assert_eq!(to("169.254.169.254:80"), RouteDecision::Closed(Closed::Policy));
//! ```
#![forbid(unsafe_code)]

mod aside;
mod codec;
mod config;
mod driver;
mod machine;
mod server;
mod state;

pub use config::{
    Closed, Forward, GatewayConfig, LoopbackPorts, NAMES_PORT, Network, RESOLVERS_LIMIT, RouteDecision,
};
pub use driver::link::UserDriver;
pub use inhost_common::Transport;
pub use server::{Gateway, Running, StartError, UserLink, guest_interface, name_servers, user_link};
pub use state::Counters;
