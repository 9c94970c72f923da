//! A received packet with its parsed header fields, as the parts of IP pass it on.

use inhost_base::{IpAddr, LinkId};
use inhost_wire::ipv4::{OptionBytes, SourceRoute};

/// Whom a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// One of our addresses.
    Us,
    /// Somebody whose place we take.
    Anybody,
    /// A group or a broadcast address that we listen to.
    Many,
    /// Others, to whom we forward.
    Others,
}

/// A packet that passed the checks of its IP header, its window on the payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub link: LinkId,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    pub dscp_ecn: u8,
    pub hop_limit: u8,
    pub target: Target,
    pub header_bytes: usize,
    pub protocol_offset: usize,
    pub was_fragmented: bool,
    pub has_router_alert: bool,
}

/// Results of the options of the datagram received last.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Arrived {
    /// The reversed route.
    pub back: Option<SourceRoute>,
    /// Options of the request that its answer repeats.
    pub records: Option<OptionBytes>,
}
