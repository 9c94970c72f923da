//! VLAN tags, ARP, IPv4 and IPv6.

use inhost_explain::capture::Frame;
use inhost_wire::ipv4::Ipv4View;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Decoded, Layer, icmp, mac, number, transport};
use crate::flows::Flows;

/// Tags and extension headers that are stepped over.
const MAX_STEPS: usize = 8;

pub(super) fn decode(
    mut ethertype: u64,
    mut rest: &[u8],
    frame: &Frame<'_>,
    flows: &mut Flows,
    decoded: &mut Decoded,
) {
    for _ in 0..MAX_STEPS {
        match ethertype {
            0x8100 | 0x88a8 | 0x9100 => {
                let mut layer = Layer::new("vlan");
                let (Some(tag), Some(next)) = (number(rest, 0, 2), number(rest, 2, 2)) else { return };
                layer.field("id", tag & 0xfff);
                layer.field("priority", tag >> 13);
                layer.words = format!("VLAN {}", tag & 0xfff);
                decoded.layers.push(layer);
                (ethertype, rest) = (next, rest.get(4..).unwrap_or(&[]));
            }
            0x0800 => return ipv4(rest, frame, flows, decoded),
            0x86dd => return ipv6(rest, frame, flows, decoded),
            0x0806 => return arp(rest, decoded),
            other => {
                let mut layer = Layer::new("link");
                layer.field("type", format!("{other:#06x}"));
                layer.words = format!("type {other:#06x}, {} bytes", rest.len());
                decoded.layers.push(layer);
                return;
            }
        }
    }
}

fn arp(bytes: &[u8], decoded: &mut Decoded) {
    let mut layer = Layer::new("arp");
    let address = |at: usize| Some(Ipv4Addr::from_bits(number(bytes, at, 4)? as u32));
    let found = number(bytes, 6, 2).zip(address(14).zip(address(24)));
    if let (Some((operation, (sender, target))), Some(hardware)) = (found, mac(bytes, 8)) {
        layer.words = match operation {
            1 if sender == target => format!("{sender} announces itself at {hardware}"),
            1 => format!("who has {target}? tell {sender}"),
            2 => format!("{sender} is at {hardware}"),
            other => format!("operation {other}"),
        };
        layer.field("operation", operation);
        layer.field("sender", sender);
        layer.field("sender_hardware", hardware);
        layer.field("target", target);
        layer.fields.extend(mac(bytes, 18).map(|hardware| ("target_hardware", hardware)));
    }
    decoded.layers.push(layer);
}

fn ipv4(bytes: &[u8], frame: &Frame<'_>, flows: &mut Flows, decoded: &mut Decoded) {
    let mut layer = Layer::new("ipv4");
    let address = |at: usize| Some(Ipv4Addr::from_bits(number(bytes, at, 4)? as u32));
    let header = (
        number(bytes, 0, 1),
        number(bytes, 2, 2),
        number(bytes, 6, 2),
        number(bytes, 8, 1),
        number(bytes, 9, 1),
    );
    let (Some(first), Some(total), Some(fragment), Some(ttl), Some(protocol)) = header else {
        layer.words = "cut header".to_owned();
        return decoded.layers.push(layer);
    };
    let (Some(source), Some(destination)) = (address(12), address(16)) else {
        layer.words = "cut header".to_owned();
        return decoded.layers.push(layer);
    };
    let header_bytes = first as usize % 16 * 4;
    layer.field("source", source);
    layer.field("destination", destination);
    layer.field("ttl", ttl);
    traffic_class(number(bytes, 1, 1), &mut layer);
    layer.field("id", number(bytes, 4, 2).unwrap_or(0));
    layer.field("length", total);
    layer.field("protocol", protocol);
    if fragment & 0x4000 != 0 {
        layer.field("flags", "do not fragment");
    }
    if let Ok(view) = Ipv4View::of_front(bytes) {
        layer.field("checksum", if view.checksum_ok() { "right" } else { "wrong" });
        if header_bytes > 20 {
            layer.field("options", options(view.options()));
        }
    }
    layer.words = format!("{source} > {destination}");
    let (offset, is_part) = (fragment & 0x1fff, fragment & 0x3fff != 0);
    if is_part {
        let more = if fragment & 0x2000 != 0 { ", more follow" } else { "" };
        layer.field("fragment_offset", offset * 8);
        layer.words = format!(
            "{} fragment of {} at {}{more}",
            layer.words,
            number(bytes, 4, 2).unwrap_or(0),
            offset * 8
        );
    }
    decoded.layers.push(layer);
    decoded.ends = Some([SocketAddr::new(source.into(), 0), SocketAddr::new(destination.into(), 0)]);
    // A length of 0 is of a frame that the device cuts later.
    let wire = if total == 0 { bytes.len() } else { total as usize };
    let upper_bytes = wire.saturating_sub(header_bytes);
    let upper = bytes.get(header_bytes..).unwrap_or(&[]);
    let upper = &upper[..upper.len().min(upper_bytes)];
    if offset == 0 {
        above(protocol, upper, upper_bytes, frame, flows, decoded);
    }
}

/// Differentiated services and the congestion mark.
fn traffic_class(octet: Option<u64>, layer: &mut Layer) {
    let Some(octet) = octet.filter(|&octet| octet != 0) else { return };
    layer.field("dscp", octet >> 2);
    layer.field("ecn", ["not-ECT", "ECT(1)", "ECT(0)", "CE"][octet as usize % 4]);
}

/// Options of IPv4 by name, with the addresses of routes.
fn options(bytes: &[u8]) -> String {
    let (mut names, mut at) = (Vec::new(), 0);
    while let Some(&kind) = bytes.get(at).filter(|&&kind| kind != 0) {
        if kind == 1 {
            at += 1;
            continue;
        }
        let length = usize::from(*bytes.get(at + 1).unwrap_or(&0)).max(2);
        let name = match kind {
            7 => "record route",
            68 => "timestamp",
            130 => "security",
            131 => "loose source route",
            136 => "stream id",
            137 => "strict source route",
            148 => "router alert",
            _ => "",
        };
        let mut words = if name.is_empty() { format!("option {kind}") } else { name.to_owned() };
        if matches!(kind, 7 | 131 | 137) {
            let hops = bytes.get(at + 3..(at + length).min(bytes.len())).unwrap_or(&[]);
            hops.as_chunks::<4>()
                .0
                .iter()
                .for_each(|&hop| words.push_str(&format!(" {}", Ipv4Addr::from(hop))));
        }
        names.push(words);
        at += length;
    }
    names.join(", ")
}

fn ipv6(bytes: &[u8], frame: &Frame<'_>, flows: &mut Flows, decoded: &mut Decoded) {
    let mut layer = Layer::new("ipv6");
    let address = |at: usize| {
        let octets = <[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?;
        Some(Ipv6Addr::from(octets))
    };
    let header = (number(bytes, 4, 2), number(bytes, 6, 1), number(bytes, 7, 1), address(8), address(24));
    let (Some(length), Some(mut next), Some(hops), Some(source), Some(destination)) = header else {
        layer.words = "cut header".to_owned();
        return decoded.layers.push(layer);
    };
    layer.field("source", source);
    layer.field("destination", destination);
    layer.field("hop_limit", hops);
    traffic_class(number(bytes, 0, 2).map(|bits| bits >> 4 & 0xff), &mut layer);
    layer.field("flow_label", format!("{:#x}", number(bytes, 1, 3).unwrap_or(0) & 0xf_ffff));
    layer.field("length", length);
    layer.words = format!("{source} > {destination}");
    let (mut at, mut is_first) = (40, true);
    for _ in 0..MAX_STEPS {
        match next {
            0 | 43 | 60 => {
                let (Some(following), Some(units)) = (number(bytes, at, 1), number(bytes, at + 1, 1)) else {
                    break;
                };
                layer.field(
                    "extension",
                    match next {
                        0 => "hop-by-hop options",
                        43 => "routing",
                        _ => "destination options",
                    },
                );
                (next, at) = (following, at + 8 + units as usize * 8);
            }
            44 => {
                let (Some(following), Some(place)) = (number(bytes, at, 1), number(bytes, at + 2, 2)) else {
                    break;
                };
                let more = if place & 1 != 0 { ", more follow" } else { "" };
                layer.field("fragment_offset", place & !7);
                layer.field("id", number(bytes, at + 4, 4).unwrap_or(0));
                layer.words = format!("{} fragment at {}{more}", layer.words, place & !7);
                is_first = place & !7 == 0;
                (next, at) = (following, at + 8);
            }
            _ => break,
        }
    }
    layer.field("next_header", next);
    decoded.layers.push(layer);
    decoded.ends = Some([SocketAddr::new(source.into(), 0), SocketAddr::new(destination.into(), 0)]);
    let upper_bytes = (40 + length as usize).saturating_sub(at);
    let upper = bytes.get(at..).unwrap_or(&[]);
    let upper = &upper[..upper.len().min(upper_bytes)];
    if is_first {
        above(next, upper, upper_bytes, frame, flows, decoded);
    }
}

fn above(
    protocol: u64,
    bytes: &[u8],
    wire_bytes: usize,
    frame: &Frame<'_>,
    flows: &mut Flows,
    decoded: &mut Decoded,
) {
    match protocol {
        1 => icmp::v4(bytes, decoded),
        2 => icmp::igmp(bytes, decoded),
        58 => icmp::v6(bytes, decoded),
        6 => transport::tcp(bytes, wire_bytes, frame, flows, decoded),
        17 => transport::udp(bytes, wire_bytes, flows, decoded),
        other => {
            let mut layer = Layer::new("ip_protocol");
            layer.field("protocol", other);
            layer.words = format!("protocol {other}, {wire_bytes} bytes");
            decoded.layers.push(layer);
        }
    }
}
