//! Link layers: where the IP packet of a frame begins.

/// Link types of captures (the tcpdump group's registry).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LinkType {
    /// Null and loopback: an address family of four bytes in either order (0 and 108).
    Loopback,
    /// Ethernet (1).
    Ethernet,
    /// IP without a link header (12, 14, 101, 228, 229).
    Ip,
    /// Linux cooked capture, version 1 (113).
    Cooked,
    /// Linux cooked capture, version 2 (276).
    Cooked2,
    /// Another type, which is not read.
    Other(u32),
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// VLAN tags (IEEE 802.1Q, 802.1ad, and the older stacked tag).
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// PPPoE session, and IP in PPP.
const ETHERTYPE_PPPOE: u16 = 0x8864;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// The most tags of one frame.
const MAX_TAGS: usize = 8;

impl LinkType {
    /// By its number in the registry.
    pub const fn from_number(number: u32) -> LinkType {
        match number {
            0 | 108 => LinkType::Loopback,
            1 => LinkType::Ethernet,
            12 | 14 | 101 | 228 | 229 => LinkType::Ip,
            113 => LinkType::Cooked,
            276 => LinkType::Cooked2,
            other => LinkType::Other(other),
        }
    }
    /// The IP packet of a frame and the interface that the link header names; `None` where there is no IP.
    pub(super) fn ip_packet(self, frame: &[u8]) -> Option<(&[u8], u32)> {
        match self {
            LinkType::Ip => Some((frame, 0)),
            LinkType::Loopback => Some((frame.get(4..)?, 0)),
            LinkType::Ethernet => Some((behind_type(frame.get(12..)?)?, 0)),
            LinkType::Cooked => Some((behind_type(frame.get(14..)?)?, 0)),
            LinkType::Cooked2 => {
                let interface = u32::from_be_bytes(*frame.get(4..)?.first_chunk::<4>()?);
                // The protocol comes first, and the packet behind 20 bytes.
                let protocol = u16_at(frame, 0)?;
                Some((behind_tags(protocol, frame.get(20..)?)?, interface))
            }
            LinkType::Other(_) => None,
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|pair| u16::from_be_bytes(*pair))
}
/// What follows an EtherType and its tags.
fn behind_type(bytes: &[u8]) -> Option<&[u8]> {
    behind_tags(u16_at(bytes, 0)?, bytes.get(2..)?)
}
fn behind_tags(mut ethertype: u16, mut rest: &[u8]) -> Option<&[u8]> {
    for _ in 0..MAX_TAGS {
        match ethertype {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Some(rest),
            ETHERTYPE_PPPOE => {
                let protocol = u16_at(rest, 6)?;
                return (protocol == PPP_IPV4 || protocol == PPP_IPV6).then(|| rest.get(8..))?;
            }
            tag if VLAN_TAGS.contains(&tag) => {
                ethertype = u16_at(rest, 2)?;
                rest = rest.get(4..)?;
            }
            _ => return None,
        }
    }
    None
}
