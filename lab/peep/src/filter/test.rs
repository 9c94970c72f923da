//! Tests of a frame. What libpcap's programs read is read here, in the same order, so that a frame that is too short for
//! one is too short here.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use inhost_explain::capture::{Frame, LinkType};

use super::number::{Number, Relation};

const IPV4: u32 = 0x0800;
const ARP: u32 = 0x0806;
const RARP: u32 = 0x8035;
const IPV6: u32 = 0x86dd;
const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];
const TCP: u32 = 6;
const UDP: u32 = 17;
const SCTP: u32 = 132;
const ICMP: u32 = 1;
const ICMPV6: u32 = 58;
const FRAGMENT: u32 = 44;

/// A test needs bytes that the frame does not have: the frame is not chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Short;

/// Source, destination, or how both count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Side {
    Source,
    Destination,
    #[default]
    Either,
    Both,
}

/// A layer whose bytes are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layer {
    Link,
    Arp,
    Rarp,
    Ip,
    Ip6,
    Tcp,
    Udp,
    Icmp,
    Icmp6,
}

/// Which packets an address is looked for in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    /// IP, or ARP where it is an IPv4 address.
    Any,
    Ip,
    Arp,
    Rarp,
}

/// Transports with ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ports {
    Any,
    Tcp,
    Udp,
    Sctp,
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Not(Box<Test>),
    /// An EtherType: `ip`, `arp`, `ether proto`.
    Type(u32, Shift),
    /// A protocol of IPv4, of IPv6, or of both.
    Protocol {
        number: u32,
        ip: bool,
        ip6: bool,
        shift: Shift,
    },
    Net {
        family: Family,
        side: Side,
        net: IpAddr,
        mask: IpAddr,
        shift: Shift,
    },
    Mac(Side, [u8; 6]),
    Port {
        of: Ports,
        side: Side,
        least: u16,
        most: u16,
        shift: Shift,
    },
    /// Bits of a byte of a layer: `multicast`.
    Relation {
        relation: Relation,
        one: Number,
        other: Number,
        shift: Shift,
    },
    Tag {
        id: Option<u32>,
        shift: Shift,
    },
    Inbound(bool),
    Between(SocketAddr, SocketAddr, Shift),
}

/// Bytes of VLAN tags that the words before have stepped over.
pub(super) type Shift = usize;

/// A frame as tests see it.
pub(super) struct View<'a> {
    frame: &'a Frame<'a>,
    shift: Shift,
}

impl Test {
    pub(super) fn holds(&self, frame: &Frame<'_>) -> Result<bool, Short> {
        let view = |shift: Shift| View { frame, shift };
        Ok(match self {
            Test::And(one, other) => one.holds(frame)? && other.holds(frame)?,
            Test::Or(one, other) => one.holds(frame)? || other.holds(frame)?,
            Test::Not(of) => !of.holds(frame)?,
            Test::Type(number, shift) => view(*shift).is_type(*number)?,
            Test::Protocol { number, ip, ip6, shift } => view(*shift).is_protocol(*number, *ip, *ip6)?,
            Test::Net { family, side, net, mask, shift } => {
                view(*shift).is_in_net(*family, *side, *net, *mask)?
            }
            Test::Mac(side, address) => {
                let at =
                    |start: usize| frame.bytes.get(start..start + 6).ok_or(Short).map(|of| of == address);
                side.holds(|| at(6), || at(0))?
            }
            Test::Port { of, side, least, most, shift } => {
                view(*shift).is_port(*of, *side, *least..=*most)?
            }
            Test::Relation { relation, one, other, shift } => {
                let view = view(*shift);
                match (one.value(&view)?, other.value(&view)?) {
                    (Some(one), Some(other)) => relation.holds(one, other),
                    _ => false,
                }
            }
            Test::Tag { id, shift } => view(*shift).is_tagged(*id)?,
            Test::Inbound(wanted) => frame.is_inbound == Some(*wanted),
            Test::Between(one, other, shift) => {
                let ends = view(*shift).ends()?;
                ends == Some([*one, *other]) || ends == Some([*other, *one])
            }
        })
    }
}

impl Side {
    fn holds(
        self,
        source: impl FnOnce() -> Result<bool, Short>,
        destination: impl FnOnce() -> Result<bool, Short>,
    ) -> Result<bool, Short> {
        match self {
            Side::Source => source(),
            Side::Destination => destination(),
            Side::Either => Ok(source()? || destination()?),
            Side::Both => Ok(source()? && destination()?),
        }
    }
}

impl View<'_> {
    pub(super) fn original_bytes(&self) -> u32 {
        self.frame.original_bytes
    }
    /// A number of 1, 2 or 4 bytes, the first one the highest.
    pub(super) fn number(&self, at: usize, bytes: usize) -> Result<u32, Short> {
        let found = self.frame.bytes.get(at..at.saturating_add(bytes)).ok_or(Short)?;
        Ok(found.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }
    /// Where the EtherType is, and where what it names begins.
    fn places(&self) -> (Option<usize>, usize) {
        match self.frame.link {
            LinkType::Ethernet => (Some(12 + self.shift), 14 + self.shift),
            LinkType::Cooked => (Some(14 + self.shift), 16 + self.shift),
            LinkType::Cooked2 => (Some(self.shift), 20 + self.shift),
            LinkType::Loopback => (None, 4),
            _ => (None, 0),
        }
    }
    fn is_type(&self, number: u32) -> Result<bool, Short> {
        if let (Some(at), _) = self.places() {
            return Ok(self.number(at, 2)? == number);
        }
        let version = match number {
            IPV4 => 4,
            IPV6 => 6,
            _ => return Ok(false),
        };
        Ok(self.number(self.places().1, 1)? >> 4 == version)
    }
    /// Where a layer begins; none where the frame has none of it.
    pub(super) fn start(&self, layer: Layer) -> Result<Option<usize>, Short> {
        let network = self.places().1;
        let of_type = |number| Ok(self.is_type(number)?.then_some(network));
        let of_protocol = |number| -> Result<Option<usize>, Short> {
            let is_there = self.is_type(IPV4)? && self.number(network + 9, 1)? == number;
            if !is_there || self.number(network + 6, 2)? & 0x1fff != 0 {
                return Ok(None);
            }
            Ok(Some(network + self.header_bytes()?))
        };
        match layer {
            Layer::Link => Ok(Some(0)),
            Layer::Arp => of_type(ARP),
            Layer::Rarp => of_type(RARP),
            Layer::Ip => of_type(IPV4),
            Layer::Ip6 => of_type(IPV6),
            Layer::Tcp => of_protocol(TCP),
            Layer::Udp => of_protocol(UDP),
            Layer::Icmp => of_protocol(ICMP),
            // Behind an IPv6 header without extensions.
            Layer::Icmp6 => {
                let is_there = self.is_type(IPV6)? && self.number(network + 6, 1)? == ICMPV6;
                Ok(is_there.then_some(network + 40))
            }
        }
    }
    fn header_bytes(&self) -> Result<usize, Short> {
        Ok(self.number(self.places().1, 1)? as usize % 16 * 4)
    }
    fn is_protocol(&self, number: u32, ip: bool, ip6: bool) -> Result<bool, Short> {
        let network = self.places().1;
        if ip6 && self.is_type(IPV6)? {
            let next = self.number(network + 6, 1)?;
            let is_there = next == number || next == FRAGMENT && self.number(network + 40, 1)? == number;
            return Ok(is_there);
        }
        Ok(ip && self.is_type(IPV4)? && self.number(network + 9, 1)? == number)
    }
    fn is_in_net(&self, family: Family, side: Side, net: IpAddr, mask: IpAddr) -> Result<bool, Short> {
        let network = self.places().1;
        match (net, mask) {
            (IpAddr::V4(net), IpAddr::V4(mask)) => {
                let is_there =
                    |at: usize| Ok(self.number(network + at, 4)? & mask.to_bits() == net.to_bits());
                let is_wanted = |kind: Family| family == Family::Any || family == kind;
                if is_wanted(Family::Ip) && self.is_type(IPV4)? {
                    return side.holds(|| is_there(12), || is_there(16));
                }
                let is_arp = is_wanted(Family::Arp) && self.is_type(ARP)?;
                if is_arp || is_wanted(Family::Rarp) && self.is_type(RARP)? {
                    return side.holds(|| is_there(14), || is_there(24));
                }
                Ok(false)
            }
            (IpAddr::V6(net), IpAddr::V6(mask)) => {
                if !self.is_type(IPV6)? {
                    return Ok(false);
                }
                // All four words, those too that the mask does not reach.
                let is_there = |at: usize| {
                    for word in 0..4 {
                        let of = |address: Ipv6Addr| (address.to_bits() >> (96 - 32 * word)) as u32;
                        if self.number(network + at + word * 4, 4)? & of(mask) != of(net) {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                };
                side.holds(|| is_there(8), || is_there(24))
            }
            _ => Ok(false),
        }
    }
    fn is_port(&self, of: Ports, side: Side, ports: std::ops::RangeInclusive<u16>) -> Result<bool, Short> {
        let network = self.places().1;
        let is_of = |protocol: u32| match of {
            Ports::Any => matches!(protocol, TCP | UDP | SCTP),
            Ports::Tcp => protocol == TCP,
            Ports::Udp => protocol == UDP,
            Ports::Sctp => protocol == SCTP,
        };
        let is_there = |at: usize| Ok(ports.contains(&(self.number(at, 2)? as u16)));
        if self.is_type(IPV6)? {
            if !is_of(self.number(network + 6, 1)?) {
                return Ok(false);
            }
            return side.holds(|| is_there(network + 40), || is_there(network + 42));
        }
        if !self.is_type(IPV4)? || !is_of(self.number(network + 9, 1)?) {
            return Ok(false);
        }
        if self.number(network + 6, 2)? & 0x1fff != 0 {
            return Ok(false);
        }
        let transport = network + self.header_bytes()?;
        side.holds(|| is_there(transport), || is_there(transport + 2))
    }
    fn is_tagged(&self, id: Option<u32>) -> Result<bool, Short> {
        let (Some(at), _) = self.places() else { return Ok(false) };
        let is_tag = TAGS.contains(&self.number(at, 2)?);
        Ok(is_tag && id.map_or(Ok(true), |id| Ok(self.number(at + 2, 2)? & 0xfff == id))?)
    }
    /// Both ends of a TCP or UDP packet.
    fn ends(&self) -> Result<Option<[SocketAddr; 2]>, Short> {
        let network = self.places().1;
        let bytes = |at: usize, length: usize| self.frame.bytes.get(at..at + length).ok_or(Short);
        let (addresses, transport): ([IpAddr; 2], usize) = if self.is_type(IPV4)? {
            let is_port = matches!(self.number(network + 9, 1)?, TCP | UDP | SCTP);
            if !is_port || self.number(network + 6, 2)? & 0x1fff != 0 {
                return Ok(None);
            }
            let address = |at| Ok(IpAddr::from(self.number(network + at, 4)?.to_be_bytes()));
            ([address(12)?, address(16)?], network + self.header_bytes()?)
        } else if self.is_type(IPV6)? && matches!(self.number(network + 6, 1)?, TCP | UDP | SCTP) {
            let address = |at| {
                let octets = <[u8; 16]>::try_from(bytes(network + at, 16)?).map_err(|_| Short)?;
                Ok(IpAddr::from(octets))
            };
            ([address(8)?, address(24)?], network + 40)
        } else {
            return Ok(None);
        };
        let port = |at| Ok(self.number(transport + at, 2)? as u16);
        Ok(Some([SocketAddr::new(addresses[0], port(0)?), SocketAddr::new(addresses[1], port(2)?)]))
    }
}
