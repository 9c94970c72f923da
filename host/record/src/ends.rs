//! Who a frame is from and to, as far as its head tells.

use inhost_base::{Endpoint, IpAddr};

/// Bytes of an Ethernet header, and the types of what it carries.
const ETHERNET_BYTES: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;

/// Addresses and ports of a frame; ports are 0 where it has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ends {
    pub(crate) source: Endpoint,
    pub(crate) destination: Endpoint,
    /// A TCP segment with RST.
    pub(crate) is_reset: bool,
    /// A TCP segment whose window is 0, of an open connection.
    pub(crate) is_window_closed: bool,
}

impl Ends {
    /// Those of a frame that begins with an Ethernet header or with an IP header. Fragments behind the first, and IPv6
    /// packets with extension headers, have no ports.
    pub(crate) fn of(frame: &[u8], is_ethernet: bool) -> Option<Ends> {
        let packet = if is_ethernet {
            let kind = frame.get(12..ETHERNET_BYTES)?;
            (kind == IPV4 || kind == IPV6).then_some(&frame[ETHERNET_BYTES..])?
        } else {
            frame
        };
        let (source, destination, protocol, transport) = match packet.first()? >> 4 {
            4 => {
                let header_bytes = usize::from(packet[0] & 15) * 4;
                let is_first = packet.get(6..8)? == [packet[6] & 0xe0, 0];
                let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
                let transport = if is_first { packet.get(header_bytes..)? } else { &[] };
                (address(12)?, address(16)?, packet[9], transport)
            }
            6 => {
                let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
                (address(8)?, address(24)?, packet[6], packet.get(40..)?)
            }
            _ => return None,
        };
        let port = |at: usize| match (protocol, transport.get(at..at + 2)) {
            (TCP | UDP, Some(&[high, low])) => u16::from_be_bytes([high, low]),
            _ => 0,
        };
        let flags = if protocol == TCP { transport.get(13).copied() } else { None };
        let is_reset = flags.is_some_and(|flags| flags & RST != 0);
        let is_open = flags.is_some_and(|flags| flags & (RST | SYN) == 0);
        Some(Ends {
            source: Endpoint { address: source, port: port(0) },
            destination: Endpoint { address: destination, port: port(2) },
            is_reset,
            is_window_closed: is_open && transport.get(14..16) == Some(&[0, 0]),
        })
    }
}

/// Which frames and events are meant. Default: all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Those from or to this address.
    pub address: Option<IpAddr>,
    /// Those from or to this port.
    pub port: Option<u16>,
    /// Those of the connection between these two ends.
    pub connection: Option<[Endpoint; 2]>,
}

impl Selection {
    /// Those of one connection.
    pub fn of(connection: [Endpoint; 2]) -> Selection {
        Selection { connection: Some(connection), ..Selection::default() }
    }
    /// Whether all are meant.
    pub fn is_all(&self) -> bool {
        *self == Selection::default()
    }
    /// Whether what goes between `one` and `other` is meant.
    pub fn has(&self, one: Endpoint, other: Endpoint) -> bool {
        self.address.is_none_or(|address| address == one.address || address == other.address)
            && self.port.is_none_or(|port| port == one.port || port == other.port)
            && self.connection.is_none_or(|of| of == [one, other] || of == [other, one])
    }
    pub(crate) fn has_frame(&self, frame: &[u8], is_ethernet: bool) -> bool {
        self.is_all()
            || Ends::of(frame, is_ethernet).is_some_and(|ends| self.has(ends.source, ends.destination))
    }
}
