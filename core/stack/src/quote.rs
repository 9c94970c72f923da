//! Packets that are gone, made again for an ICMP error to quote.

use alloc::vec;
use alloc::vec::Vec;
use inhost_base::IpAddr;
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::ipv6::{self, Ipv6Header};

/// The packet of `protocol` from `source` to `destination` that holds a transport's header and no data.
pub(crate) fn packet(source: IpAddr, destination: IpAddr, protocol: u8, header: &[u8]) -> Vec<u8> {
    let length = header.len() as u16;
    let mut packet = vec![0; ipv6::LENGTH];
    let header_bytes = match (source, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            Ipv6Header::new(source, destination, protocol, length).emit(&mut packet)
        }
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            Ipv4Header::new(source, destination, protocol, length).emit(&mut packet)
        }
        // Two ends are of one family.
        _ => 0,
    };
    packet.truncate(header_bytes);
    packet.extend_from_slice(header);
    packet
}
