//! IP headers, and fragmentation of datagrams to the path MTU.

use crate::SendDatagramError;
use crate::options::HeaderOptions;
use crate::path::{HeaderHow, Path};
use inhost_base::IpAddr;
use inhost_buf::{Full, Slices};
use inhost_wire::{ipv4, ipv6, protocol};

/// Bytes of a fragment header (RFC 8200 §4.5).
const FRAGMENT_HEADER_BYTES: usize = 8;
/// The longest header made here: IPv4 with all options.
const HEADER_LIMIT_BYTES: usize = ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES;
const _: () = assert!(HEADER_LIMIT_BYTES >= ipv6::LENGTH + FRAGMENT_HEADER_BYTES);
/// The longest datagram: of IPv4 with its header, of IPv6 without (jumbograms are not spoken).
const DATAGRAM_LIMIT_BYTES: usize = u16::MAX as usize;

/// Where finished IP packets go.
pub(crate) trait PacketSink {
    /// Takes a packet whole, or nothing of it.
    fn packet(&mut self, header: &[u8], payload: Slices<'_>) -> Result<(), Full>;
}

/// Where in its datagram a fragment belongs.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    offset_bytes: u16,
    more_fragments: bool,
}

/// Writes the IP header of a datagram, or of the fragment at `place`; 0 when it does not fit.
// spec: RFC1122 3.2.1.6-1
pub(crate) fn write_header(
    path: &Path,
    how: &HeaderHow,
    options: Option<&HeaderOptions>,
    identification: u32,
    payload_bytes: usize,
    place: Option<Place>,
    into: &mut [u8],
) -> usize {
    // spec: RFC1122 3.2.1.7-1, 3.2.1.7-3
    let hops = how.hop_limit.unwrap_or(path.hop_limit).max(1);
    match (path.source, path.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let Ok(payload_length) = u16::try_from(payload_bytes) else { return 0 };
            let destination = options.and_then(HeaderOptions::first_hop).unwrap_or(destination);
            ipv4::Ipv4Header {
                dscp_ecn: how.dscp_ecn,
                identification: identification as u16,
                dont_fragment: how.dont_fragment,
                more_fragments: place.is_some_and(|place| place.more_fragments),
                fragment_offset_bytes: place.map_or(0, |place| place.offset_bytes),
                time_to_live: hops,
                ..ipv4::Ipv4Header::new(source, destination, how.protocol, payload_length)
            }
            .emit_with_options(options.map_or(&[], HeaderOptions::as_bytes), into)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let (next_header, extra) = match place {
                Some(_) => (protocol::FRAGMENT, FRAGMENT_HEADER_BYTES),
                None => (how.protocol, 0),
            };
            let Ok(payload_length) = u16::try_from(payload_bytes + extra) else { return 0 };
            let header = ipv6::Ipv6Header {
                dscp_ecn: how.dscp_ecn,
                flow_label: how.flow_label,
                hop_limit: hops,
                ..ipv6::Ipv6Header::new(source, destination, next_header, payload_length)
            };
            let written = header.emit(into);
            let (Some(place), Some(rest)) = (place, into.get_mut(written..)) else { return written };
            let added = ipv6::emit_fragment_header(
                how.protocol,
                place.offset_bytes,
                place.more_fragments,
                identification,
                rest,
            );
            if written == 0 || added == 0 { 0 } else { written + added }
        }
        _ => 0,
    }
}

/// Whether a datagram on `path` takes so much behind a header of `header_bytes`, which IPv6 does not count.
pub(crate) fn fits(path: &Path, header_bytes: usize, length: usize) -> Result<(), SendDatagramError> {
    let counted_bytes = if path.destination.is_ipv6() { 0 } else { header_bytes };
    if counted_bytes + length <= DATAGRAM_LIMIT_BYTES { Ok(()) } else { Err(SendDatagramError::TooLong) }
}

/// Hands `payload` to `output` as one packet, or in fragments when it is too long for the path. Gives how many
/// fragments it took, 0 for a whole datagram. An error means that nothing was sent; what `output` refuses after it
/// took a first fragment is lost, as fragments may be.
// spec: RFC1122 3.3.3-1; RFC8200 4.5
pub(crate) fn send(
    path: &Path,
    how: &HeaderHow,
    options: Option<&HeaderOptions>,
    identification: u32,
    payload: &Slices<'_>,
    output: &mut dyn PacketSink,
) -> Result<u32, SendDatagramError> {
    let length = payload.len();
    let option_bytes = options.map_or(0, HeaderOptions::length);
    let header_bytes = path.ip_header_bytes() - usize::from(path.option_bytes) + option_bytes;
    fits(path, header_bytes, length)?;
    let mut header = [0; HEADER_LIMIT_BYTES];
    if header_bytes + length <= usize::from(path.mtu_bytes) {
        let written = write_header(path, how, options, identification, length, None, &mut header);
        let header = header.get(..written).filter(|h| !h.is_empty()).ok_or(SendDatagramError::TooLong)?;
        return output.packet(header, *payload).map(|()| 0).map_err(|Full| SendDatagramError::Full);
    }
    if how.dont_fragment {
        return Err(SendDatagramError::WouldFragment { mtu_bytes: path.mtu_bytes });
    }
    let extra = if path.destination.is_ipv6() { FRAGMENT_HEADER_BYTES } else { 0 };
    let piece = usize::from(path.mtu_bytes).saturating_sub(header_bytes + extra) & !7;
    if piece == 0 {
        return Err(SendDatagramError::TooLong);
    }
    let later = options.map(HeaderOptions::of_later_fragments);
    let (mut offset, mut count) = (0, 0);
    while offset < length {
        let bytes = piece.min(length - offset);
        let place = Place { offset_bytes: offset as u16, more_fragments: offset + bytes < length };
        // spec: RFC791 3.2
        let of_this = if offset == 0 { options } else { later.as_ref() };
        let written = write_header(path, how, of_this, identification, bytes, Some(place), &mut header);
        let Some(header) = header.get(..written).filter(|h| !h.is_empty()) else { break };
        match output.packet(header, payload.part(offset, bytes)) {
            Ok(()) => count += 1,
            Err(Full) if count == 0 => return Err(SendDatagramError::Full),
            Err(Full) => break,
        }
        offset += bytes;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::LinkId;

    struct Taken {
        packets: Vec<(Vec<u8>, Vec<u8>)>,
        room: usize,
    }
    impl PacketSink for Taken {
        fn packet(&mut self, header: &[u8], payload: Slices<'_>) -> Result<(), Full> {
            if self.packets.len() >= self.room {
                return Err(Full);
            }
            self.packets.push((header.to_vec(), payload.iter().flatten().copied().collect()));
            Ok(())
        }
    }

    fn path(source: &str, destination: &str, mtu_bytes: u16) -> Path {
        Path {
            link: LinkId(1),
            next_hop: destination.parse().unwrap(),
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            mtu_bytes,
            hop_limit: 64,
            option_bytes: 0,
            generation: 0,
        }
    }

    // spec: RFC791 3.2
    #[test]
    fn ipv4_fragments_cover_the_datagram_once() {
        let data: Vec<u8> = (0..4000u32).map(|i| i as u8).collect();
        let mut pieces = Slices::EMPTY;
        for piece in data.chunks(1100) {
            pieces = pieces.with(piece).unwrap();
        }
        let mut taken = Taken { packets: Vec::new(), room: 99 };
        let path = path("10.0.0.1", "10.0.0.2", 1500);
        let how = HeaderHow::new(protocol::UDP);
        assert_eq!(send(&path, &how, None, 7, &pieces, &mut taken), Ok(3));
        let mut whole = Vec::new();
        for (index, (header, payload)) in taken.packets.iter().enumerate() {
            let packet = [&header[..], payload].concat();
            let view = ipv4::Ipv4View::new(&packet).unwrap();
            assert!(view.checksum_ok() && view.total_length() <= 1500 && view.identification() == 7);
            assert_eq!(usize::from(view.fragment_offset_bytes()), whole.len());
            assert_eq!(view.more_fragments(), index < 2);
            whole.extend_from_slice(view.payload());
        }
        assert_eq!(whole, data);
        let whole_only = HeaderHow { dont_fragment: true, ..how };
        let refused = send(&path, &whole_only, None, 7, &pieces, &mut taken);
        assert_eq!(refused, Err(SendDatagramError::WouldFragment { mtu_bytes: 1500 }));
    }

    // spec: RFC8200 4.5
    #[test]
    fn ipv6_fragments_cover_the_datagram_once() {
        let data: Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
        let mut taken = Taken { packets: Vec::new(), room: 99 };
        let how = HeaderHow::new(protocol::UDP);
        assert_eq!(
            send(&path("fd00::1", "fd00::2", 1280), &how, None, 9, &Slices::one(&data), &mut taken),
            Ok(3)
        );
        let mut whole = Vec::new();
        for (header, payload) in &taken.packets {
            let packet = [&header[..], payload].concat();
            assert!(packet.len() <= 1280);
            let upper = ipv6::walk(&ipv6::Ipv6View::new(&packet).unwrap()).unwrap();
            let fragment = upper.fragment.unwrap();
            assert_eq!((usize::from(fragment.offset_bytes), fragment.identification), (whole.len(), 9));
            whole.extend_from_slice(upper.payload);
        }
        assert_eq!(whole, data);
    }

    #[test]
    fn nothing_or_something_is_sent_never_an_empty_promise() {
        let data = [0; 4000];
        let how = HeaderHow::new(protocol::UDP);
        let path = path("10.0.0.1", "10.0.0.2", 1500);
        let mut full = Taken { packets: Vec::new(), room: 0 };
        assert_eq!(send(&path, &how, None, 1, &Slices::one(&data), &mut full), Err(SendDatagramError::Full));
        full.room = 2;
        assert_eq!(send(&path, &how, None, 1, &Slices::one(&data), &mut full), Ok(2));
        let long = vec![0; 65_516];
        assert_eq!(
            send(&path, &how, None, 1, &Slices::one(&long), &mut full),
            Err(SendDatagramError::TooLong)
        );
    }
}
