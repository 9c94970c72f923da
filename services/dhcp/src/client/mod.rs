//! The client of DHCPv4 on one link, as a machine: time, datagrams and news of addresses in; datagrams and changes of the
//! host's configuration out.
//!
//! ```text
//!             ┌──────────── nothing kept ─────────────┐
//!  start ─ a lease is kept ─▶ rebooting ── silence ──▶ checking (what is kept, while it lasts)
//!                                │  └───── NAK ─────▶ init ─▶ selecting ─▶ requesting
//!                                └──── ACK ──▶ checking ◀────────────── ACK ──┘
//!                                                 │ nobody else has the address
//!                                                 ▼
//!               rebinding ◀── T2 ── renewing ◀── T1 ── bound
//! ```
//!
//! A conflict, a NAK and the end of the lease lead back to init; a conflict with ten seconds of rest. A server that
//! commits rapidly leads from selecting to checking (RFC 4039). A lease that is given back leads to init for good.

mod action;
mod machine;
mod status;
mod timing;

pub use crate::codec::reply::Refused;
pub use action::{Action, Datagram, Destination, News};
pub use machine::Client;
pub use status::{Remembered, Status};

use crate::identity::Identity;
use inhost_base::{Duration, HardwareAddress};

/// Configuration of a client. Begin with [`Config::new`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The link's card.
    pub card: HardwareAddress,
    /// Client identifier of the link (RFC 4361 §6.1).
    pub identifier: Vec<u8>,
    /// Host name sent to servers. Default: none.
    pub host_name: Option<String>,
    /// The longest IP datagram of the link, in bytes. Default: 1500.
    pub longest_bytes: u16,
    /// The first question waits for a random part of this, so that hosts that start together do not ask together. Default:
    /// one second. RFC 2131 §4.4.1 proposes one to ten, from when power cuts ended for a whole building at once. Cost:
    /// users who wait for the host.
    pub start_spread: Duration,
    /// Whether an address of the link's own is taken where no server answers (RFC 3927). Default: yes.
    pub link_local: bool,
}

impl Config {
    /// The client of the card `card`, known as `identity`, with the defaults above.
    pub fn new(card: HardwareAddress, identity: &Identity) -> Config {
        Config {
            card,
            identifier: identity.client_identifier(),
            host_name: None,
            longest_bytes: 1500,
            start_spread: Duration::from_secs(1),
            link_local: true,
        }
    }
}

#[cfg(test)]
mod tests;
