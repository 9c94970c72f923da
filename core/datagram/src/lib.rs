//! The sockets of datagrams: UDP ([`UdpSocket`]), echo requests ([`EchoSocket`]) and probes ([`ProbeSocket`]).
//!
//! A socket says how what it is given leaves (`prepare`), keeps it in its queue ([`Datagrams`]), gives it to a device
//! (`send_first`), takes what came for it, and says whether there is news for its application. It remembers where it sent to of
//! late, since anyone can send an ICMP error (RFC 5927 §4). It does not know who a datagram is for, nor any other socket: that is
//! the stack's.
//!
//! ```
//! use inhost_base::{Endpoint, Instant, Ipv4Addr};
//! use inhost_datagram::{UdpOptions, UdpSocket};
//! use inhost_event::Readiness;
//! let local = Endpoint::new(Ipv4Addr::LOCALHOST, 53);
//! let socket = UdpSocket::new(local, UdpOptions::default(), false, Instant::ZERO);
//! assert_eq!(socket.readiness(), Readiness::WRITABLE);
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod echo;
mod error;
mod gso;
mod options;
mod probe;
mod queues;
mod recent;
mod udp;

pub use echo::EchoSocket;
pub use error::{DatagramError, SocketError};
pub use gso::MAX_GSO_DATAGRAMS;
pub use options::{DatagramInfo, EchoInfo, SendDatagrams, UdpOptions};
pub use probe::{CALL_PORTS, Probe, ProbeAnswer, ProbeMethod, ProbeNews, ProbeSocket};
pub use queues::{Datagrams, Departure, Outgoing};
pub use recent::RecentlySent;
pub use udp::{LEAST_BYTES, UdpSocket};
