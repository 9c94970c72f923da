//! The two bits by which a router says that it is congested (RFC 3168 §5), where they lie in a frame.

use inhost_wire::ethernet::{EtherType, EthernetView, LENGTH as ETHERNET_BYTES};

/// ECN field of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// The transport does not understand marks.
    NotCapable,
    /// It does: ECT(1).
    Capable1,
    /// It does: ECT(0).
    Capable0,
    /// Marked: congestion experienced.
    Congested,
}

impl Ecn {
    /// The field of the IP packet in a frame, `None` where there is no IP packet.
    pub fn of(frame: &[u8], is_ethernet: bool) -> Option<Ecn> {
        let packet = &frame[packet_at(frame, is_ethernet)?..];
        let (&first, &second) = (packet.first()?, packet.get(1)?);
        Some(Ecn::from_bits(if first >> 4 == 4 { second } else { second >> 4 }))
    }
    /// The last two bits.
    pub(crate) fn from_bits(bits: u8) -> Ecn {
        [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(bits & 3)]
    }
}

/// Marks the packet in a frame when its transport understands that; whether it is marked now.
pub(crate) fn mark(frame: &mut [u8], is_ethernet: bool) -> bool {
    match Ecn::of(frame, is_ethernet) {
        Some(Ecn::Congested) => true,
        Some(Ecn::Capable0 | Ecn::Capable1) => {
            let Some(at) = packet_at(frame, is_ethernet) else { return false };
            set_congested(&mut frame[at..]);
            true
        }
        Some(Ecn::NotCapable) | None => false,
    }
}

fn set_congested(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[1] |= 0x30;
        return;
    }
    let Some(header) = packet.first_chunk_mut::<20>() else { return };
    let before = u16::from_be_bytes([header[0], header[1]]);
    header[1] |= 3;
    let after = u16::from_be_bytes([header[0], header[1]]);
    // RFC 1624 §3: the checksum follows from what changed.
    let sum = u16::from_be_bytes([header[10], header[11]]);
    let mut new = u32::from(!sum) + u32::from(!before) + u32::from(after);
    new = (new & 0xffff) + (new >> 16);
    new = (new & 0xffff) + (new >> 16);
    header[10..12].copy_from_slice(&(!(new as u16)).to_be_bytes());
}

/// Offset of the IP packet in a frame.
pub(crate) fn packet_at(frame: &[u8], is_ethernet: bool) -> Option<usize> {
    if !is_ethernet {
        return frame.first().filter(|&byte| matches!(byte >> 4, 4 | 6)).map(|_| 0);
    }
    let kind = EthernetView::new(frame).ok()?.ethertype();
    (matches!(kind, EtherType::IPV4 | EtherType::IPV6) && frame.len() > ETHERNET_BYTES)
        .then_some(ETHERNET_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Ipv4Addr;
    use inhost_wire::ipv4::{Ipv4Header, Ipv4View};

    #[test]
    fn a_mark_keeps_the_checksum_right_and_asks_for_capability() {
        for (bits, is_marked) in [(0u8, false), (1, true), (2, true), (3, true)] {
            for service in [0, 0xb8] {
                let mut header =
                    Ipv4Header::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 9, 8, 7), 6, 0);
                header.dscp_ecn = service | bits;
                let mut packet = [0; 20];
                header.emit(&mut packet);
                assert_eq!(mark(&mut packet, false), is_marked);
                let view = Ipv4View::new(&packet).unwrap();
                assert!(view.checksum_ok());
                assert_eq!(view.dscp_ecn(), service | if is_marked { 3 } else { bits });
            }
        }
    }

    #[test]
    fn ipv6_and_frames_without_ip_are_told_apart() {
        let mut packet = [0; 54];
        packet[12..16].copy_from_slice(&[0x86, 0xdd, 0x60, 0x20]);
        assert_eq!(Ecn::of(&packet, true), Some(Ecn::Capable0));
        assert!(mark(&mut packet, true));
        assert_eq!(packet[15], 0x30);
        packet[13] = 6;
        assert!(!mark(&mut packet, true));
    }
}
