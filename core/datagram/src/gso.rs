//! UDP GSO: several datagrams of one flow, queued and given to the device as one.

use crate::queues::{Departure, Outgoing};
use inhost_buf::{Device, Frame, Full, GsoType, Offload, Packet, Slices};
use inhost_ip::{HeaderHow, Ip, IpEnvironment, Resolution, SendDatagramError};
use inhost_wire::checksum::pseudo_header;
use inhost_wire::offload::{Segmenter, UDP_CHECKSUM_OFFSET, segments};
use inhost_wire::{ethernet, ipv4, protocol, udp};

/// Most datagrams of one UDP GSO send: Linux's `UDP_MAX_SEGMENTS`, so that a kernel behind the device never refuses
/// one.
pub const MAX_GSO_DATAGRAMS: usize = 64;
/// Room for the largest headers: link, IPv4 with all options, which is more than IPv6, and UDP.
const HEADERS_BYTES: usize = ethernet::LENGTH + ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES + udp::LENGTH;

/// All headers of a GSO frame, with the lengths of one datagram that carries all data, and the pseudo-header sum in the checksum
/// field.
pub(crate) struct RunHeaders {
    bytes: [u8; HEADERS_BYTES],
    /// Length of the link's.
    link_bytes: usize,
    /// Where UDP's begins.
    transport: usize,
}

impl RunHeaders {
    /// Those of `run`, with so much data in all.
    pub fn of(
        run: &Outgoing,
        payload_bytes: usize,
        how: &HeaderHow,
        ip: &mut Ip,
        env: &mut IpEnvironment<'_>,
    ) -> Result<RunHeaders, SendDatagramError> {
        let Outgoing { path, source_port, destination, segment_bytes, .. } = run;
        if udp::LENGTH + usize::from(*segment_bytes) > path.payload_limit_bytes() {
            return Err(SendDatagramError::TooLong);
        }
        let link_header = match ip.paths_mut().resolve(path, env) {
            Resolution::Ready(link_header) => link_header,
            Resolution::Pending => return Err(SendDatagramError::Pending),
            Resolution::Failed => return Err(SendDatagramError::Unreachable),
        };
        let mut bytes = [0; HEADERS_BYTES];
        let length = udp::LENGTH + payload_bytes;
        let transport = ip.header(path, link_header, how, length, &mut bytes);
        let place = bytes.get_mut(transport..).and_then(<[u8]>::first_chunk_mut::<{ udp::LENGTH }>);
        let (Some(place), Ok(length_field), 1..) = (place, u16::try_from(length), transport) else {
            return Err(SendDatagramError::TooLong);
        };
        let pseudo = pseudo_header(path.source, path.destination, protocol::UDP, u32::from(length_field));
        place[..2].copy_from_slice(&source_port.to_be_bytes());
        place[2..4].copy_from_slice(&destination.port.to_be_bytes());
        place[4..6].copy_from_slice(&length_field.to_be_bytes());
        place[usize::from(UDP_CHECKSUM_OFFSET)..].copy_from_slice(&pseudo.folded().to_be_bytes());
        Ok(RunHeaders { bytes, link_bytes: link_header.bytes().len(), transport })
    }
    /// Sends `payload` as datagrams of `segment_bytes`: as one frame if the device cuts it, otherwise as many of them as the
    /// device takes, at most `most`; the rest stays in `payload`.
    pub fn send(
        &self,
        payload: &mut Packet,
        segment_bytes: u16,
        device: &mut dyn Device,
        most: usize,
    ) -> Result<Departure, SendDatagramError> {
        let transport_offset = self.transport as u16;
        let offload = Offload::Segment { of: GsoType::Udp, segment_bytes, transport_offset };
        let header = self.bytes.get(..self.transport + udp::LENGTH).unwrap_or(&[]);
        let frame = Frame { header, payload: Slices::one(payload.bytes()), offload };
        let all = segments(payload.len(), usize::from(segment_bytes));
        let (frames, datagrams) = if device.offers().udp && all > 1 {
            device.transmit(&frame).map_err(|Full| SendDatagramError::Full)?;
            (1, all)
        } else {
            let segmenter = Segmenter::new(&frame, self.link_bytes).ok_or(SendDatagramError::TooLong)?;
            let sent = segmenter.transmit(&[], most.max(1), device);
            let sent = sent.map_err(|Full| SendDatagramError::Full)?;
            (sent, sent)
        };
        if datagrams < all {
            payload.trim_front(datagrams * usize::from(segment_bytes));
        }
        Ok(Departure { frames, datagrams, is_all: datagrams == all })
    }
}
