//! Every format that crosses a wire, twice: as a checked *view* over bytes, and as a *plain value* that
//! carries the meaning.
//!
//! A view (`Ipv4View`, `TcpView` …) borrows the bytes, checks every length once, in its constructor, and then reads
//! fields in place. A plain value (`Ipv4Header`, `Segment`, `Icmpv4Message` …) is used by the protocols; it is parsed
//! from a view and written by `emit`.
//!
//! Rules of the whole crate:
//!
//! - No input can cause a panic, and no input costs more than time proportional to its length.
//! - `emit` writes to the front of the buffer and returns the number of bytes written. When the value does
//!   not fit (the buffer is too short, or a length field cannot hold its length) it returns 0 and what the
//!   buffer then holds is unspecified.
//! - `parse(emit(x)) == x` for every value that `parse` can return.
//! - A checksum is never part of a plain value: views verify it, `emit` computes it.
//!
//! Nothing here decides what to do about a packet, keeps state between packets, or knows an interface;
//! the framings of the serial line, which are machines by nature, keep only the state of their line.
//!
//! ```
//! use inhost_base::{IpAddr, Ipv4Addr};
//! use inhost_wire::{ipv4::{Ipv4Header, Ipv4View}, protocol, udp::{UdpHeader, UdpView}};
//!
//! let (source, destination) = (Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2));
//! let udp = UdpHeader { source_port: 2007, destination_port: 7 };
//! let mut packet = [0; 64];
//! let datagram_bytes = udp.emit_datagram(source.into(), destination.into(), b"hello", &mut packet[20..]);
//! let ip = Ipv4Header::new(source, destination, protocol::UDP, datagram_bytes as u16);
//! let total_bytes = ip.emit(&mut packet) + datagram_bytes;
//!
//! let ip = Ipv4View::new(&packet[..total_bytes])?;
//! assert!(ip.checksum_ok());
//! let udp = UdpView::new(ip.payload())?;
//! assert!(udp.checksum_ok(IpAddr::V4(ip.source()), IpAddr::V4(ip.destination())));
//! assert_eq!(udp.payload(), b"hello");
//! # Ok::<(), inhost_wire::Malformed>(())
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod arp;
pub mod checksum;
mod cursor;
pub mod ethernet;
pub mod icmpv4;
pub mod icmpv6;
pub mod igmp;
pub mod ipv4;
pub mod ipv6;
pub mod llp;
pub mod mld;
pub mod ndp;
pub mod offload;
pub mod packet;
pub mod quoted;
pub mod slip;
pub mod tcp;
pub mod udp;

pub use inhost_base::Bounded;

use core::fmt;

/// Why bytes are not a packet of the format they were taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Fewer bytes than the fixed part of the header, or than a length field promises.
    Truncated,
    /// The version field names another protocol.
    Version,
    /// The header's own length is below its minimum or beyond the packet.
    HeaderLength,
    /// A length field contradicts the header or the bytes that are there.
    Length,
    /// A field has a value that the format does not allow.
    Value,
    /// The checksum does not match.
    Checksum,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Truncated => "truncated",
            Malformed::Version => "wrong version",
            Malformed::HeaderLength => "bad header length",
            Malformed::Length => "bad length",
            Malformed::Value => "bad value",
            Malformed::Checksum => "bad checksum",
        })
    }
}
impl core::error::Error for Malformed {}

/// Protocol numbers, as in IPv4's protocol field and IPv6's next-header fields.
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP for IPv4.
    pub const ICMPV4: u8 = 1;
    /// Internet Group Management Protocol.
    pub const IGMP: u8 = 2;
    /// Transmission Control Protocol.
    pub const TCP: u8 = 6;
    /// User Datagram Protocol.
    pub const UDP: u8 = 17;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// Nothing follows.
    pub const NO_NEXT_HEADER: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: u8 = 60;
}

/// The two bits by which routers mark congestion (RFC 3168 §5), the low bits of `dscp_ecn`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum Ecn {
    /// The sender does not take part.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0), set by a classic sender.
    Capable0,
    /// CE: a router saw congestion.
    CongestionExperienced,
}

impl Ecn {
    /// The mark in an IPv4 or IPv6 `dscp_ecn` octet.
    pub const fn of(dscp_ecn: u8) -> Ecn {
        match dscp_ecn & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::CongestionExperienced,
        }
    }
    /// The two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}
