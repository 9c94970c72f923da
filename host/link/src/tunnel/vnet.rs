//! The virtio-net header (`<linux/virtio_net.h>`) before each frame of a TUN or TAP device: checksum offload, GSO and
//! GRO between the kernel and the host.

use inhost_buf::{Checksum, Frame, GsoType, Offload, Packet};

/// Its length, in its first form.
pub(super) const LENGTH: usize = 10;

const FLAG_NEEDS_CHECKSUM: u8 = 1;
const FLAG_DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// The first segment bears CWR, and no other does.
const GSO_ECN: u8 = 0x80;
/// Where TCP keeps its flags, and what CWR is among them.
const TCP_FLAGS_OFFSET: usize = 13;
const TCP_CWR: u8 = 0x80;

/// The header for a frame that we send.
pub(super) fn of(frame: &Frame<'_>) -> [u8; LENGTH] {
    let mut header = [0; LENGTH];
    let mut word = |at: usize, value: u16| {
        if let Some(place) = header.get_mut(at..at + 2) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    };
    let (flags, large) = match frame.offload {
        Offload::None => (0, GSO_NONE),
        Offload::Checksum { transport_offset, checksum_offset } => {
            word(6, transport_offset);
            word(8, checksum_offset);
            (FLAG_NEEDS_CHECKSUM, GSO_NONE)
        }
        Offload::Segment { of, segment_bytes, transport_offset } => {
            word(2, frame.header.len() as u16);
            word(4, segment_bytes);
            word(6, transport_offset);
            let (large, checksum_offset) = match of {
                GsoType::Udp => (GSO_UDP_L4, inhost_wire::offload::UDP_CHECKSUM_OFFSET),
                GsoType::TcpV4 => (GSO_TCPV4, inhost_wire::offload::TCP_CHECKSUM_OFFSET),
                GsoType::TcpV6 => (GSO_TCPV6, inhost_wire::offload::TCP_CHECKSUM_OFFSET),
            };
            word(8, checksum_offset);
            let flags = frame.header.get(usize::from(transport_offset) + TCP_FLAGS_OFFSET);
            let reduced = of != GsoType::Udp && flags.is_some_and(|flags| flags & TCP_CWR != 0);
            (FLAG_NEEDS_CHECKSUM, if reduced { large | GSO_ECN } else { large })
        }
    };
    header[0] = flags;
    header[1] = large;
    header
}

/// Applies the kernel's header to `packet`.
pub(super) fn describe(header: &[u8; LENGTH], packet: &mut Packet) {
    let [flags, large, _, _, low, high, ..] = *header;
    packet.set_checksum(match flags {
        _ if flags & FLAG_NEEDS_CHECKSUM != 0 => Checksum::Partial,
        _ if flags & FLAG_DATA_VALID != 0 => Checksum::Verified,
        _ => Checksum::Unknown,
    });
    packet.set_segment_bytes(if large == GSO_NONE { 0 } else { u16::from_ne_bytes([low, high]) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_buf::{Pool, Slices};

    #[test]
    fn a_large_frame_says_where_it_is_to_be_cut() {
        let mut bytes = [0; 40];
        bytes[20 + TCP_FLAGS_OFFSET] = TCP_CWR;
        let offload = Offload::Segment { of: GsoType::TcpV4, segment_bytes: 1448, transport_offset: 20 };
        let frame = Frame { header: &bytes, payload: Slices::EMPTY, offload };
        let header = of(&frame);
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        assert_eq!((header[0], header[1]), (FLAG_NEEDS_CHECKSUM, GSO_TCPV4 | GSO_ECN));
        assert_eq!((word(2), word(4), word(6), word(8)), (40, 1448, 20, 16));
        let mut packet = Pool::new(1 << 16).take(100).unwrap();
        describe(&header, &mut packet);
        assert_eq!((packet.checksum(), packet.segment_bytes()), (Checksum::Partial, 1448));
        assert_eq!(of(&Frame { offload: Offload::None, ..frame }), [0; LENGTH]);
    }
}
