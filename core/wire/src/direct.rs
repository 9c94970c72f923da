//! A TCP segment in a packet without IP options, extension headers or fragments, with any flags and options: parsed and
//! written in one step. Connections open and close with these; [`crate::fast`] handles the segments between.

use crate::checksum::Sum;
use crate::fast::{FlowHeader, WrittenHeaders};
use crate::tcp::{Flags, PlainHeader, TcpHeader, TcpOptions};
use crate::{Ecn, ipv4, ipv6, protocol, tcp};
use inhost_base::{IpAddr, Ipv4Addr, Ipv6Addr, Sequence};

/// Such a packet, as it lies there. Its IP header is right, its TCP checksum not looked at.
#[derive(Clone, Copy, Debug)]
pub struct Direct<'a> {
    /// The sender's address and the receiver's, as they lie in front of the TCP header.
    addresses: &'a [u8],
    fixed: &'a [u8; tcp::LENGTH],
    options: &'a [u8],
    /// Differentiated services and ECN.
    dscp_ecn: u8,
    /// The hop limit, or time to live.
    pub hop_limit: u8,
    /// Bytes of the IP header.
    ip_bytes: u8,
    /// Bytes of the packet; what follows is the link's padding.
    total_bytes: u32,
}

impl<'a> Direct<'a> {
    /// Looks at a packet, from its IP header on.
    #[inline]
    pub fn of(packet: &'a [u8]) -> Option<Direct<'a>> {
        let found = match packet.first()? {
            0x45 => Found::v4(packet)?,
            0x60..0x70 => Found::v6(packet)?,
            _ => return None,
        };
        let Found { ip_bytes, address_bytes, total_bytes, dscp_ecn, hop_limit } = found;
        let (ip, segment) = packet.get(..total_bytes)?.split_at_checked(ip_bytes)?;
        let addresses = ip.get(ip_bytes - 2 * address_bytes..)?;
        let (fixed, rest) = segment.split_first_chunk::<{ tcp::LENGTH }>()?;
        let tcp_bytes = usize::from(fixed[12] >> 4) * 4;
        let options = rest.get(..tcp_bytes.checked_sub(tcp::LENGTH)?)?;
        let (ip_bytes, total_bytes) = (ip_bytes as u8, total_bytes as u32);
        Some(Direct { addresses, fixed, options, dscp_ecn, hop_limit, ip_bytes, total_bytes })
    }
    #[inline]
    fn u16_at(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.fixed[at], self.fixed[at + 1]])
    }
    #[inline]
    fn u32_at(&self, at: usize) -> u32 {
        let fixed = self.fixed;
        u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
    }
    /// The sender's port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        self.u16_at(0)
    }
    /// The receiver's port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        self.u16_at(2)
    }
    /// The control bits.
    #[inline]
    pub fn flags(&self) -> Flags {
        Flags::from_bits(self.u16_at(12))
    }
    /// The TCP header.
    #[inline]
    pub fn header(&self) -> TcpHeader {
        TcpHeader {
            source_port: self.source_port(),
            destination_port: self.destination_port(),
            sequence: Sequence(self.u32_at(4)),
            acknowledgment: Sequence(self.u32_at(8)),
            flags: self.flags(),
            window: self.u16_at(14),
            urgent_pointer: self.u16_at(18),
            options: if self.options.is_empty() { TcpOptions::NONE } else { TcpOptions::parse(self.options) },
        }
    }
    /// The mark that routers may have set.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::of(self.dscp_ecn)
    }
    /// Bytes of the IP header.
    #[inline]
    pub fn ip_bytes(&self) -> usize {
        usize::from(self.ip_bytes)
    }
    /// Bytes of both headers.
    #[inline]
    pub fn header_bytes(&self) -> usize {
        usize::from(self.ip_bytes) + tcp::LENGTH + self.options.len()
    }
    /// Bytes of the packet; what follows is the link's padding.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.total_bytes as usize
    }
    /// Who sent it, and whom it is for, if that is said in IPv4.
    #[inline]
    pub fn addresses_v4(&self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        let [source, destination] = *self.addresses.as_chunks::<4>().0 else { return None };
        Some((Ipv4Addr::from(source), Ipv4Addr::from(destination)))
    }
    /// Who sent it, and whom it is for.
    #[inline]
    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        if let Some((source, destination)) = self.addresses_v4() {
            return (source.into(), destination.into());
        }
        let address = |at: usize| self.addresses.get(at..).and_then(<[u8]>::first_chunk::<16>).copied();
        (
            Ipv6Addr::from(address(0).unwrap_or_default()).into(),
            Ipv6Addr::from(address(16).unwrap_or_default()).into(),
        )
    }
    /// Whether the TCP checksum of `packet`, which this was made of, is right. The addresses, which are under it too, lie
    /// in front of what it covers.
    // spec: RFC9293 MUST-3
    #[inline]
    pub fn checksum_ok(&self, packet: &[u8]) -> bool {
        let from = self.ip_bytes() - self.addresses.len();
        let Some(covered) = packet.get(from..self.total_bytes()) else { return false };
        let segment_bytes = self.total_bytes - u32::from(self.ip_bytes);
        Sum::of(covered).add_u32(segment_bytes + u32::from(protocol::TCP)).is_valid()
    }
}

/// What an IP header says.
struct Found {
    ip_bytes: usize,
    address_bytes: usize,
    total_bytes: usize,
    dscp_ecn: u8,
    hop_limit: u8,
}

impl Found {
    /// Of IPv4: right, TCP's, and no fragment.
    #[inline]
    fn v4(packet: &[u8]) -> Option<Found> {
        let ip = packet.first_chunk::<{ ipv4::LENGTH }>()?;
        let is_fragment_or_odd = u16::from_be_bytes([ip[6], ip[7]]) & 0xbfff != 0;
        if is_fragment_or_odd || ip[9] != protocol::TCP {
            return None;
        }
        let words = ip.as_chunks::<4>().0.iter().map(|word| u64::from(u32::from_ne_bytes(*word)));
        Sum::of_native(words.sum()).is_valid().then(|| Found {
            ip_bytes: ipv4::LENGTH,
            address_bytes: 4,
            total_bytes: usize::from(u16::from_be_bytes([ip[2], ip[3]])),
            dscp_ecn: ip[1],
            hop_limit: ip[8],
        })
    }
    /// Of IPv6: TCP follows it.
    #[inline]
    fn v6(packet: &[u8]) -> Option<Found> {
        let ip = packet.first_chunk::<{ ipv6::LENGTH }>()?;
        (ip[6] == protocol::TCP).then(|| Found {
            ip_bytes: ipv6::LENGTH,
            address_bytes: 16,
            total_bytes: ipv6::LENGTH + usize::from(u16::from_be_bytes([ip[4], ip[5]])),
            dscp_ecn: ip[0] << 4 | ip[1] >> 4,
            hop_limit: ip[7],
        })
    }
}

/// What [`FlowHeader::emit`] writes behind the ports, where timestamps do not stand.
const BARE: u16 = 0x5000 | Flags::ACK.bits();
/// The same where they do.
const STAMPED: u16 = 0x8000 | Flags::ACK.bits();

impl FlowHeader {
    /// As [`FlowHeader::emit`], for any header; its ports are not looked at.
    #[inline]
    pub fn emit_any(
        &self,
        header: &TcpHeader,
        payload_bytes: usize,
        into: &mut [u8],
    ) -> Option<WrittenHeaders> {
        let is_plain = header.options.is_plain();
        let options_bytes = if is_plain { 0 } else { header.options.length() };
        let plain = PlainHeader {
            sequence: header.sequence,
            acknowledgment: header.acknowledgment,
            window: header.window,
            push: false,
            timestamps: if is_plain { header.options.timestamps } else { None },
        };
        let mut written = self.emit(&plain, options_bytes + payload_bytes, into)?;
        let tcp = into.get_mut(written.ip_bytes..written.header_bytes + options_bytes)?;
        let before = if plain.timestamps.is_some() { STAMPED } else { BARE };
        let offset_and_flags = ((tcp.len() / 4) as u16) << 12 | header.flags.bits();
        let (fixed, options) = tcp.split_first_chunk_mut::<{ tcp::LENGTH }>()?;
        fixed[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
        fixed[18..20].copy_from_slice(&header.urgent_pointer.to_be_bytes());
        let changed = u64::from(!before) + u64::from(offset_and_flags) + u64::from(header.urgent_pointer);
        written.header_sum = written.header_sum.combine(Sum::of_words(changed), false);
        if options_bytes > 0 {
            header.options.emit(options);
            written.header_sum = written.header_sum.combine(Sum::of(options), false);
            written.header_bytes += options_bytes;
        }
        Some(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::Ipv4Header;
    use crate::ipv6::Ipv6Header;
    use crate::tcp::{SackBlocks, Segment, TcpView};

    fn ends(v6: bool) -> (IpAddr, IpAddr) {
        if v6 {
            (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(), Ipv6Addr::LOCALHOST.into())
        } else {
            (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(198, 51, 100, 7).into())
        }
    }
    fn packet(v6: bool, segment: &Segment<'_>) -> Vec<u8> {
        let mut bytes = vec![0; 300];
        let at = if v6 { ipv6::LENGTH } else { ipv4::LENGTH };
        let (a, b) = ends(v6);
        let length = segment.emit(a, b, &mut bytes[at..]);
        bytes.truncate(at + length);
        match (a, b) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let mut header = Ipv4Header::new(a, b, protocol::TCP, length as u16);
                header.dscp_ecn = 3;
                header.emit(&mut bytes)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let mut header = Ipv6Header::new(a, b, protocol::TCP, length as u16);
                header.dscp_ecn = 3;
                header.emit(&mut bytes)
            }
            _ => 0,
        };
        bytes
    }
    fn segments() -> Vec<Segment<'static>> {
        let base = Segment {
            source_port: 4711,
            destination_port: 80,
            sequence: Sequence(0xfedc_ba98),
            acknowledgment: Sequence(0x0123_4567),
            window: 0xabcd,
            ..Segment::default()
        };
        let syn = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((0xdead_beef, 0x0bad_cafe)),
            ..TcpOptions::NONE
        };
        let stamped = TcpOptions { timestamps: syn.timestamps, ..TcpOptions::NONE };
        let sack = SackBlocks::from_slice(&[(Sequence(5), Sequence(9))]).unwrap();
        let sacked = TcpOptions { sack, ..stamped };
        let bare = TcpOptions { sack_permitted: false, timestamps: None, ..syn };
        let mut all = Vec::new();
        for options in [TcpOptions::NONE, stamped, syn, sacked, bare] {
            for flags in
                [Flags::SYN, Flags::SYN | Flags::ACK, Flags::FIN | Flags::ACK, Flags::RST, Flags::ACK]
            {
                for payload in [&b""[..], b"odd"] {
                    all.push(Segment { flags, options, payload, ..base });
                }
            }
            let flags = Flags::ACK | Flags::URG | Flags::CWR | Flags::NS;
            all.push(Segment { flags, options, urgent_pointer: 9, ..base });
        }
        all
    }

    #[test]
    fn it_says_what_the_slow_path_says() {
        for (v6, segment) in
            [false, true].into_iter().flat_map(|v6| segments().into_iter().map(move |s| (v6, s)))
        {
            let mut bytes = packet(v6, &segment);
            let length = bytes.len();
            // The padding of a short Ethernet frame.
            bytes.extend_from_slice(&[0xee; 6]);
            let direct = Direct::of(&bytes).unwrap();
            let view = TcpView::new(&bytes[direct.ip_bytes()..length]).unwrap();
            assert_eq!(direct.header(), Segment::parse(&view).header());
            assert_eq!((direct.addresses(), direct.total_bytes()), (ends(v6), length));
            assert_eq!((direct.ecn(), direct.addresses_v4().is_some()), (Ecn::CongestionExperienced, !v6));
            assert_eq!(&bytes[direct.header_bytes()..direct.total_bytes()], segment.payload);
            assert!(direct.checksum_ok(&bytes));
            let mut corrupted = bytes.clone();
            corrupted[length - 1] ^= 0x10;
            assert!(!Direct::of(&corrupted).is_some_and(|direct| direct.checksum_ok(&corrupted)));
        }
    }

    #[test]
    fn what_is_written_is_what_the_slow_path_writes() {
        for (v6, segment) in
            [false, true].into_iter().flat_map(|v6| segments().into_iter().map(move |s| (v6, s)))
        {
            let (source, destination) = ends(v6);
            let ends = FlowHeader {
                source,
                destination,
                source_port: 4711,
                destination_port: 80,
                dscp_ecn: 0,
                hop_limit: 64,
            };
            let mut bytes = [0xcc; 200];
            let written = ends.emit_any(&segment.header(), segment.payload.len(), &mut bytes).unwrap();
            let mut expected = vec![0; 300];
            let length = segment.emit(source, destination, &mut expected);
            let sum = written
                .pseudo_sum
                .combine(written.header_sum, false)
                .combine(Sum::of(segment.payload), false);
            bytes[written.ip_bytes + 16..][..2].copy_from_slice(&sum.finish().to_be_bytes());
            let header_bytes = length - segment.payload.len();
            assert_eq!(written.header_bytes - written.ip_bytes, header_bytes);
            assert_eq!(
                bytes[written.ip_bytes..written.header_bytes],
                expected[..header_bytes],
                "{segment:?}"
            );
            bytes[written.header_bytes..][..segment.payload.len()].copy_from_slice(segment.payload);
            let read = Direct::of(&bytes).unwrap();
            assert_eq!((read.header(), read.hop_limit), (segment.header(), 64));
        }
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_left_alone() {
        let segment = segments()[0];
        for (v6, at, bits) in [
            (false, 0, 0x06), // Options.
            (false, 6, 0x20), // More fragments.
            (false, 7, 0x01), // A later fragment.
            (false, 9, 0x10), // UDP, nearly.
            (false, 2, 0xff), // Too long.
            (false, 10, 1),   // The header's checksum.
            (true, 6, 0x10),
            (true, 4, 0xff),
        ] {
            let mut bytes = packet(v6, &segment);
            bytes[at] ^= bits;
            assert!(Direct::of(&bytes).is_none(), "{at}");
        }
        let short = packet(false, &segment);
        for length in 0..short.len() {
            assert!(Direct::of(&short[..length]).is_none());
        }
    }
}
