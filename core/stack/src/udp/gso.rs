//! UDP GSO: several datagrams of one flow, queued and given to the device as one; segmented in software if the device
//! cannot.

use crate::output::Counting;
use crate::socket::Outgoing;
use inhost_buf::{Device, Frame, Full};
use inhost_ip::{HeaderHow, Ip, LinkHeader, SendDatagramError};
use inhost_wire::checksum::pseudo_header;
use inhost_wire::offload::{Segmenter, UDP_CHECKSUM_OFFSET};
use inhost_wire::{ethernet, ipv4, protocol, udp};

/// Most datagrams of one UDP GSO send: Linux's `UDP_MAX_SEGMENTS`, so that a kernel behind the device never refuses
/// one.
pub const MAX_GSO_DATAGRAMS: usize = 64;
/// Room for the largest headers: link, IPv4 with all options, which is more than IPv6, and UDP.
const HEADERS_BYTES: usize = ethernet::LENGTH + ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES + udp::LENGTH;

/// The headers of a GSO frame.
pub(crate) struct GsoHeaders {
    bytes: [u8; HEADERS_BYTES],
    length: usize,
    /// Where UDP's begins.
    transport: usize,
}

impl GsoHeaders {
    /// All headers, with the lengths of one datagram that carries all data, and the pseudo-header sum in the checksum
    /// field.
    pub(crate) fn new(
        ip: &mut Ip,
        run: &Outgoing,
        link_header: LinkHeader,
        how: &HeaderHow,
        payload_bytes: usize,
    ) -> Result<GsoHeaders, SendDatagramError> {
        let Outgoing { path, source_port, destination, .. } = run;
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
        Ok(GsoHeaders { bytes, length: transport + udp::LENGTH, transport })
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
    /// Where UDP's begins.
    pub(crate) fn transport_offset(&self) -> u16 {
        self.transport as u16
    }
}

/// Software segmentation: sends the first datagrams one by one, at most `most`. Returns how many the device took, at
/// least one.
pub(crate) fn cut(
    frame: &Frame<'_>,
    network_offset: usize,
    most: usize,
    device: &mut Counting<'_>,
) -> Result<usize, SendDatagramError> {
    let mut segmenter = Segmenter::new(frame, network_offset).ok_or(SendDatagramError::TooLong)?;
    let sums_there = device.offers().checksum;
    let wanted = segmenter.count().min(most.max(1));
    for index in 0..wanted {
        let piece = match sums_there {
            true => segmenter.frame_without_sum(index),
            false => segmenter.frame(index, None),
        };
        match device.transmit(&piece) {
            Ok(()) => {}
            Err(Full) if index > 0 => return Ok(index),
            Err(Full) => return Err(SendDatagramError::Full),
        }
    }
    Ok(wanted)
}
