//! Packets that are gone, made again for an ICMP error to quote.

use alloc::vec;
use alloc::vec::Vec;
use inhost_base::IpAddr;
use inhost_wire::ipv4::{self, Ipv4Header};
use inhost_wire::ipv6::{self, Ipv6Header};

/// The packet of `protocol` from `source` to `destination` that holds a transport's header and no data.
pub(crate) fn packet(source: IpAddr, destination: IpAddr, protocol: u8, header: &[u8]) -> Vec<u8> {
    let length = header.len() as u16;
    let mut packet = match (source, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut bytes = vec![0; ipv6::LENGTH];
            Ipv6Header::new(source, destination, protocol, length).emit(&mut bytes);
            bytes
        }
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut bytes = vec![0; ipv4::LENGTH];
            Ipv4Header::new(source, destination, protocol, length).emit(&mut bytes);
            bytes
        }
        // Two ends are of one family.
        _ => Vec::new(),
    };
    packet.extend_from_slice(header);
    packet
}
