//! What the emulator reads of a packet, and how it changes one.

use inhost_base::IpAddr;
use inhost_wire::checksum::{Sum, pseudo_header};
use inhost_wire::ipv4::{self, Ipv4View};
use inhost_wire::protocol;
use inhost_wire::tcp::{self, Flags, TcpHeader, TcpOptions, TcpView};

/// The headers of a TCP segment over IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Ports of source and destination.
    pub ports: [u16; 2],
    /// Flags.
    pub flags: Flags,
    /// Number of the first byte.
    pub sequence: u32,
    /// Number expected next.
    pub acknowledgment: u32,
    /// The window, not scaled.
    pub window: u16,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// Options.
    pub options: TcpOptions,
}

impl Head {
    /// Of a packet, if it has a TCP segment.
    pub fn of(packet: &[u8]) -> Option<Head> {
        let ip = Ipv4View::new(packet).ok().filter(|ip| ip.protocol() == protocol::TCP)?;
        let view = TcpView::new(ip.payload()).ok()?;
        Some(Head {
            ports: [view.source_port(), view.destination_port()],
            flags: view.flags(),
            sequence: view.sequence().0,
            acknowledgment: view.acknowledgment().0,
            window: view.window(),
            payload_bytes: view.payload().len() as u32,
            options: TcpOptions::parse(view.options()),
        })
    }
    /// Number after the payload.
    pub fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.payload_bytes)
    }
}

/// Lets `change` change the TCP header of a packet, and gives the packet that results, with both checksums right.
pub fn rewritten(packet: &[u8], change: impl FnOnce(&mut TcpHeader)) -> Option<Vec<u8>> {
    let ip = Ipv4View::new(packet).ok()?;
    let view = TcpView::new(ip.payload()).ok()?;
    let mut header = view.header();
    change(&mut header);
    Some(built(
        packet.get(..ip.header_length())?,
        &header,
        view.payload(),
        [ip.source().into(), ip.destination().into()],
    ))
}

/// A packet without payload, made after one that passed, for its way or for the other.
pub fn forged(
    packet: &[u8],
    is_back: bool,
    hops: u8,
    header: impl FnOnce(&TcpHeader) -> TcpHeader,
) -> Option<Vec<u8>> {
    let ip = Ipv4View::new(packet).ok()?;
    let view = TcpView::new(ip.payload()).ok()?;
    let mut front = packet.get(..ip.header_length())?.to_vec();
    let mut ends = [ip.source(), ip.destination()];
    if is_back {
        ends.reverse();
    }
    front[12..16].copy_from_slice(&ends[0].octets());
    front[16..20].copy_from_slice(&ends[1].octets());
    front[8] = hops;
    Some(built(&front, &header(&view.header()), &[], ends.map(Into::into)))
}

fn built(front: &[u8], header: &TcpHeader, payload: &[u8], ends: [IpAddr; 2]) -> Vec<u8> {
    let mut segment = vec![0; tcp::MAX_LENGTH];
    let length = header.emit(&mut segment);
    segment.truncate(length);
    let whole = (length + payload.len()) as u32;
    tcp::fill_checksum(&mut segment, pseudo_header(ends[0], ends[1], protocol::TCP, whole), Sum::of(payload));
    let mut packet = front.to_vec();
    let total = (front.len() + segment.len() + payload.len()) as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    ipv4::renew_checksum(&mut packet);
    packet.extend(segment);
    packet.extend(payload);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::{Ipv4Addr, Sequence};
    use inhost_wire::ipv4::Ipv4Header;

    #[test]
    fn a_rewritten_packet_has_right_checksums() {
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let options = TcpOptions { mss: Some(1460), sack_permitted: true, ..TcpOptions::NONE };
        let syn = TcpHeader { sequence: Sequence(9), flags: Flags::SYN, options, ..TcpHeader::default() };
        let mut front = [0; 20];
        Ipv4Header::new(from, to, protocol::TCP, 0).emit(&mut front);
        let packet = built(&front, &syn, b"data", [from.into(), to.into()]);
        let packet = rewritten(&packet, |header| header.options.sack_permitted = false).unwrap();
        let ip = Ipv4View::new(&packet).unwrap();
        let view = TcpView::new(ip.payload()).unwrap();
        assert!(ip.checksum_ok() && view.checksum_ok(from.into(), to.into()));
        let head = Head::of(&packet).unwrap();
        assert_eq!(
            (head.options.mss, head.options.sack_permitted, head.payload_bytes),
            (Some(1460), false, 4)
        );
    }
}
