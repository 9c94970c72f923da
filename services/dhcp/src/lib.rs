//! DHCP client for broadcast links: addresses and configuration from the network.
//!
//! [`client::Client`] is the machine of RFC 2131 for IPv4, with the test for conflicts (RFC 5227), routes of any length
//! (RFC 3442), an identity that outlives the card (RFC 4361, 6842), and an address of the link's own where no server
//! answers (RFC 3927). [`stateless::Stateless`] asks for settings by DHCPv6 (RFC 8415 §6.1, RFC 3646), whose addresses
//! come from router advertisements. Both are pure: time and random words come in as arguments, datagrams and
//! [`client::Action`]s come out, and nothing that a server says makes them panic. [`driver`] carries them for a host, and
//! keeps leases across restarts.
//!
//! ```
//! use inhost_base::{HardwareAddress, Instant};
//! use inhost_dhcp::client::{Action, Client, Config, Remembered, Destination};
//! use inhost_dhcp::identity::{Duid, Identity};
//!
//! let card = HardwareAddress([2, 0, 0, 0, 0, 1]);
//! let identity = Identity::new(Duid::from_card(card), "in0");
//! let mut now = Instant::from_millis(1);
//! let mut client = Client::new(Config::new(card, &identity), Remembered::default(), now, 1);
//! now = client.deadline();
//! client.timeout(now, 2);
//! let Some(Action::Send(datagram)) = client.action() else { panic!("it asks") };
//! assert_eq!(datagram.destination, Destination::Unaddressed);
//! assert_eq!(client.status().state, "selecting");
//! ```
#![forbid(unsafe_code)]

pub mod client;
mod codec;
pub mod driver;
pub mod fuzz;
pub mod identity;
pub mod lease;
mod link_local;
pub mod saved;
pub mod stateless;

/// Server port (RFC 2131 §4.1).
pub const SERVER_PORT: u16 = 67;
/// Client port.
pub const CLIENT_PORT: u16 = 68;
/// DHCPv6 server port (RFC 8415 §7.2).
pub const SERVER_PORT_V6: u16 = 547;
/// DHCPv6 client port.
pub const CLIENT_PORT_V6: u16 = 546;

/// Limit of a reply's lists; further entries are ignored.
pub mod limits {
    /// The longest reply that is read, in bytes: an Ethernet's.
    pub const REPLY_BYTES: usize = 1500;
    /// Routes of a lease.
    pub const ROUTES: usize = 32;
    /// Name servers of a lease, or of DHCPv6.
    pub const NAME_SERVERS: usize = 3;
    /// Domains that names are searched in.
    pub const SEARCH_DOMAINS: usize = 6;
    /// The longest domain, in bytes.
    pub const DOMAIN_BYTES: usize = 253;
    /// The longest identifier of a server, in bytes (RFC 8415 §11.1: 2 and 128).
    pub const DUID_BYTES: usize = 130;
}
