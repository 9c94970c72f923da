//! UDP GSO: several datagrams of one flow, queued and given to the device as one.

use crate::socket::Outgoing;
use inhost_ip::{HeaderHow, Ip, LinkHeader, SendDatagramError};
use inhost_wire::checksum::pseudo_header;
use inhost_wire::offload::UDP_CHECKSUM_OFFSET;
use inhost_wire::{ethernet, ipv4, protocol, udp};

/// Most datagrams of one UDP GSO send: Linux's `UDP_MAX_SEGMENTS`, so that a kernel behind the device never refuses
/// one.
pub const MAX_GSO_DATAGRAMS: usize = 64;
/// Room for the largest headers: link, IPv4 with all options, which is more than IPv6, and UDP.
pub(crate) const HEADERS_BYTES: usize =
    ethernet::LENGTH + ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES + udp::LENGTH;

/// Writes all headers of a GSO frame, with the lengths of one datagram that carries all data, and the pseudo-header sum in
/// the checksum field. Returns where UDP's begins.
pub(crate) fn write_gso_headers(
    ip: &mut Ip,
    run: &Outgoing,
    link_header: LinkHeader,
    how: &HeaderHow,
    payload_bytes: usize,
    into: &mut [u8; HEADERS_BYTES],
) -> Result<usize, SendDatagramError> {
    let Outgoing { path, source_port, destination, .. } = run;
    let length = udp::LENGTH + payload_bytes;
    let transport = ip.header(path, link_header, how, length, into);
    let place = into.get_mut(transport..).and_then(<[u8]>::first_chunk_mut::<{ udp::LENGTH }>);
    let (Some(place), Ok(length_field), 1..) = (place, u16::try_from(length), transport) else {
        return Err(SendDatagramError::TooLong);
    };
    let pseudo = pseudo_header(path.source, path.destination, protocol::UDP, u32::from(length_field));
    place[..2].copy_from_slice(&source_port.to_be_bytes());
    place[2..4].copy_from_slice(&destination.port.to_be_bytes());
    place[4..6].copy_from_slice(&length_field.to_be_bytes());
    place[usize::from(UDP_CHECKSUM_OFFSET)..].copy_from_slice(&pseudo.folded().to_be_bytes());
    Ok(transport)
}
