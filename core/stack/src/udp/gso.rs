//! UDP GSO: several datagrams of one flow, queued and given to the device as one; segmented in software if the device
//! cannot.

use crate::output::Counting;
use crate::parts::ip_environment;
use crate::sockets::UdpSocketId;
use crate::udp::UdpSockets;
use inhost_base::Instant;
use inhost_buf::{Device, Frame, Full, GsoType, Offload, Slices};
use inhost_event::Sink;
use inhost_ip::{HeaderHow, LinkHeader, Path, Resolution, SendDatagramError};
use inhost_wire::checksum::pseudo_header;
use inhost_wire::offload::{Segmenter, UDP_CHECKSUM_OFFSET, segments, sum_of};
use inhost_wire::{ethernet, ipv4, protocol, udp};

/// Most datagrams of one UDP GSO send: Linux's `UDP_MAX_SEGMENTS`, so that a kernel behind the device never refuses
/// one.
pub const MAX_GSO_DATAGRAMS: usize = 64;
/// Room for the largest headers: link, IPv4 with all options, which is more than IPv6, and UDP.
const HEADERS_BYTES: usize = ethernet::LENGTH + ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES + udp::LENGTH;

/// The headers of a GSO frame.
struct Headers {
    bytes: [u8; HEADERS_BYTES],
    length: usize,
    /// Where UDP's begins.
    transport: usize,
}

impl UdpSockets<'_> {
    /// Sends the GSO datagram that is first in a socket's queue: as one frame if the device segments it, otherwise as
    /// many of its datagrams as the device takes, at most `most`; the rest stays first. Returns the number of frames.
    pub(super) fn gso_turn(
        &mut self,
        key: UdpSocketId,
        most: usize,
        now: Instant,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) -> Result<usize, SendDatagramError> {
        let Some(udp) = self.parts.sockets.udp_mut(key) else { return Ok(0) };
        let Some(run) = udp.first() else { return Ok(0) };
        let (path, segment_bytes, whole_bytes) = (run.path, run.segment_bytes, run.payload.len());
        let ecn = run.ecn;
        if udp::LENGTH + usize::from(segment_bytes) > path.payload_limit_bytes() {
            return Err(SendDatagramError::TooLong);
        }
        let mut how = HeaderHow::new(protocol::UDP);
        how.dscp_ecn = udp.options().differentiated_services << 2 | ecn.bits();
        how.hop_limit = udp.options().hop_limit;
        how.dont_fragment = true;
        let ports = (run.source_port, run.destination.port);
        let link_header =
            match self.parts.ip.paths_mut().resolve(&path, &mut ip_environment!(self.parts, now, sink)) {
                Resolution::Ready(link_header) => link_header,
                Resolution::Pending => return Err(SendDatagramError::Pending),
                Resolution::Failed => return Err(SendDatagramError::Unreachable),
            };
        let headers = self.gso_headers(&path, link_header, &how, ports, whole_bytes)?;
        let Some(udp) = self.parts.sockets.udp_mut(key) else { return Ok(0) };
        let Some((run, _)) = udp.first_mut() else { return Ok(0) };
        let frame = Frame {
            header: headers.bytes.get(..headers.length).unwrap_or(&[]),
            payload: Slices::one(run.payload.bytes()),
            offload: Offload::Segment {
                of: GsoType::Udp,
                segment_bytes,
                transport_offset: headers.transport as u16,
            },
        };
        let datagrams = segments(whole_bytes, usize::from(segment_bytes));
        let (frames, sent) = match device.offers().udp && datagrams > 1 {
            true => {
                device.transmit(&frame).map(|()| (1, datagrams)).map_err(|Full| SendDatagramError::Full)?
            }
            false => {
                let sent = cut(&frame, link_header.bytes().len(), most, device)?;
                (sent, sent)
            }
        };
        self.parts.counters.datagrams_sent += sent as u64;
        if sent == datagrams {
            self.sent(key, now);
        } else {
            run.payload.trim_front(sent * usize::from(segment_bytes));
        }
        Ok(frames)
    }

    /// Writes all headers of a GSO frame, with the lengths of one datagram that carries all data, and the pseudo-header
    /// sum in the checksum field.
    fn gso_headers(
        &mut self,
        path: &Path,
        link_header: LinkHeader,
        how: &HeaderHow,
        (source_port, destination_port): (u16, u16),
        payload_bytes: usize,
    ) -> Result<Headers, SendDatagramError> {
        let mut bytes = [0; HEADERS_BYTES];
        let length = udp::LENGTH + payload_bytes;
        let transport = self.parts.ip.header(path, link_header, how, length, &mut bytes);
        let place = bytes.get_mut(transport..).and_then(<[u8]>::first_chunk_mut::<{ udp::LENGTH }>);
        let (Some(place), Ok(length_field), 1..) = (place, u16::try_from(length), transport) else {
            return Err(SendDatagramError::TooLong);
        };
        let pseudo = pseudo_header(path.source, path.destination, protocol::UDP, u32::from(length_field));
        place[..2].copy_from_slice(&source_port.to_be_bytes());
        place[2..4].copy_from_slice(&destination_port.to_be_bytes());
        place[4..6].copy_from_slice(&length_field.to_be_bytes());
        place[usize::from(UDP_CHECKSUM_OFFSET)..].copy_from_slice(&pseudo.folded().to_be_bytes());
        Ok(Headers { bytes, length: transport + udp::LENGTH, transport })
    }
}

/// Software segmentation: sends the first datagrams one by one, at most `most`. Returns how many the device took, at
/// least one.
fn cut(
    frame: &Frame<'_>,
    network_offset: usize,
    most: usize,
    device: &mut Counting<'_>,
) -> Result<usize, SendDatagramError> {
    let mut segmenter = Segmenter::new(frame, network_offset).ok_or(SendDatagramError::TooLong)?;
    let sums_there = device.offers().checksum;
    let wanted = segmenter.count().min(most.max(1));
    for index in 0..wanted {
        let payload = segmenter.payload(index);
        let piece = match sums_there {
            true => segmenter.frame_without_sum(index, payload),
            false => segmenter.frame(index, payload, sum_of(&payload)),
        };
        match device.transmit(&piece) {
            Ok(()) => {}
            Err(Full) if index > 0 => return Ok(index),
            Err(Full) => return Err(SendDatagramError::Full),
        }
    }
    Ok(wanted)
}
