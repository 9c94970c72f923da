//! TCP and UDP.

use inhost_explain::capture::Frame;
use inhost_wire::checksum::pseudo_header;
use inhost_wire::protocol;
use inhost_wire::tcp::TcpOptions;
use std::net::SocketAddr;

use super::application;
use super::{Decoded, Layer, number};
use crate::flows::{Flows, Numbers};

/// Names of flags, from the lowest bit on.
const FLAGS: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "NS"];

/// Both ports, put into the ends.
fn ports(bytes: &[u8], decoded: &mut Decoded) -> Option<[u16; 2]> {
    let ports = [number(bytes, 0, 2)? as u16, number(bytes, 2, 2)? as u16];
    if let Some(ends) = &mut decoded.ends {
        ends.iter_mut().zip(ports).for_each(|(end, port)| end.set_port(port));
    }
    Some(ports)
}

/// What the checksum says of a segment or datagram that is not a fragment.
fn checksum(bytes: &[u8], wire_bytes: usize, at: usize, protocol: u8, ends: [SocketAddr; 2]) -> &'static str {
    let Some(field) = number(bytes, at, 2) else { return "not captured" };
    let pseudo = pseudo_header(ends[0].ip(), ends[1].ip(), protocol, wire_bytes as u32);
    if field == 0 && protocol == protocol::UDP {
        "none"
    } else if field as u16 == !pseudo.finish() {
        "left to the device"
    } else if bytes.len() < wire_bytes {
        "not known, the frame is cut"
    } else if pseudo.add_bytes(bytes).finish() == 0 {
        "right"
    } else {
        "wrong"
    }
}

pub(super) fn udp(bytes: &[u8], wire_bytes: usize, flows: &mut Flows, decoded: &mut Decoded) {
    let mut layer = Layer::new("udp");
    let Some(ports) = ports(bytes, decoded) else { return };
    let length = number(bytes, 4, 2).map_or(wire_bytes, |length| length as usize).saturating_sub(8);
    layer.field("source_port", ports[0]);
    layer.field("destination_port", ports[1]);
    layer.field("payload_bytes", length);
    layer.words = format!("UDP {length} bytes");
    let Some(ends) = decoded.ends else { return };
    layer.field("checksum", checksum(bytes, wire_bytes, 6, protocol::UDP, ends));
    decoded.layers.push(layer);
    let payload = bytes.get(8..).unwrap_or(&[]);
    let payload = &payload[..payload.len().min(length)];
    decoded.layers.extend(application::of_udp(ends, payload, flows));
    decoded.payload = payload.to_vec();
}

pub(super) fn tcp(
    bytes: &[u8],
    wire_bytes: usize,
    frame: &Frame<'_>,
    flows: &mut Flows,
    decoded: &mut Decoded,
) {
    let mut layer = Layer::new("tcp");
    let Some(ports) = ports(bytes, decoded) else { return };
    let header = (number(bytes, 4, 4), number(bytes, 8, 4), number(bytes, 12, 2), number(bytes, 14, 2));
    let (Some(sequence), Some(acknowledgment), Some(bits), Some(window)) = header else {
        layer.words = "TCP, cut header".to_owned();
        return decoded.layers.push(layer);
    };
    let (sequence, acknowledgment) = (sequence as u32, acknowledgment as u32);
    let header_bytes = (bits >> 12) as usize * 4;
    let options = TcpOptions::parse(bytes.get(20..header_bytes).unwrap_or(&[]));
    let length = wire_bytes.saturating_sub(header_bytes);
    let set: Vec<&str> = (0..9).filter(|bit| bits >> bit & 1 != 0).map(|bit| FLAGS[bit]).collect();
    let (is_syn, has_ack) = (bits & 2 != 0, bits & 16 != 0);
    let Some(ends) = decoded.ends else { return };
    let acknowledged = has_ack.then_some(acknowledgment);
    let numbers = Numbers { sequence, acknowledgment: acknowledged, is_syn, scale: options.window_scale };
    let seen = flows.segment(frame.interface, ends, &numbers);

    layer.field("source_port", ports[0]);
    layer.field("destination_port", ports[1]);
    layer.field("flags", set.join(" "));
    layer.field("sequence", seen.sequence);
    layer.field("absolute_sequence", sequence);
    if has_ack {
        layer.field("acknowledgment", seen.acknowledgment);
        layer.field("absolute_acknowledgment", acknowledgment);
    }
    layer.field("window", seen.window(window as u16, is_syn));
    if bits & 0x20 != 0 {
        layer.field("urgent_pointer", number(bytes, 18, 2).unwrap_or(0));
    }
    layer.field("checksum", checksum(bytes, wire_bytes, 16, protocol::TCP, ends));
    layer.field("payload_bytes", length);
    if is_syn && let Some(mss) = options.mss {
        layer.field("mss", mss);
    }
    if let Some(scale) = options.window_scale {
        layer.field("window_scale", scale);
    }
    if options.sack_permitted {
        layer.field("sack_permitted", true);
    }
    if let Some((value, echo)) = options.timestamps {
        layer.field("timestamps", format!("{value} {echo}"));
    }
    if options.fast_open.is_some() {
        layer.field("fast_open", true);
    }
    let sack: Vec<String> = options
        .sack
        .iter()
        .map(|&(start, end)| format!("{}-{}", seen.near(start.0), seen.near(end.0)))
        .collect();
    if !sack.is_empty() {
        layer.field("sack", sack.join(" "));
    }
    let number = if length > 0 || is_syn || bits & 1 != 0 {
        format!(
            " seq {}{}",
            seen.sequence,
            if length > 0 { format!("-{}", seen.sequence + length as i64) } else { String::new() }
        )
    } else {
        String::new()
    };
    let acknowledged = if has_ack { format!(" ack {}", seen.acknowledgment) } else { String::new() };
    let holes = if sack.is_empty() { String::new() } else { format!(" sack {}", sack.join(" ")) };
    layer.words = format!(
        "{}{number}{acknowledged} win {}{holes}, {length} bytes",
        set.join("+"),
        seen.window(window as u16, is_syn)
    );
    decoded.layers.push(layer);
    let payload = bytes.get(header_bytes..).unwrap_or(&[]);
    let payload = &payload[..payload.len().min(length)];
    decoded.layers.extend(application::of_tcp(ports, payload));
    decoded.payload = payload.to_vec();
}
