//! ICMP of both families, IGMP.

use inhost_wire::icmpv4::{Icmpv4Message, Icmpv4View, UnreachableCode};
use inhost_wire::icmpv6::{Icmpv6Message, Icmpv6View};
use inhost_wire::igmp::{IgmpMessage, IgmpView};
use inhost_wire::mld::MldMessage;
use inhost_wire::ndp::{NdpMessage, NdpOptions};
use inhost_wire::protocol;
use inhost_wire::quoted::Quoted;
use std::net::SocketAddr;

use super::{Decoded, Layer, number};

/// Type and code of a message, which are there even if it is cut.
fn front(name: &'static str, bytes: &[u8], decoded: &mut Decoded) -> Option<Layer> {
    let mut layer = Layer::new(name);
    let (Some(kind), Some(code)) = (number(bytes, 0, 1), number(bytes, 1, 1)) else {
        layer.words = "cut header".to_owned();
        decoded.layers.push(layer);
        return None;
    };
    layer.field("type", kind);
    layer.field("code", code);
    layer.words = format!("type {kind}, code {code}");
    Some(layer)
}
fn echo(layer: &mut Layer, what: &str, identifier: u16, sequence: u16, data: &[u8]) -> String {
    layer.field("id", identifier);
    layer.field("sequence", sequence);
    format!("echo {what}, id {identifier}, sequence {sequence}, {} bytes", data.len())
}
/// The packet that an error is about.
fn about(layer: &mut Layer, quoted: Option<Quoted>) -> String {
    let Some(of) = quoted else { return String::new() };
    let name = match of.protocol {
        protocol::TCP => "TCP",
        protocol::UDP => "UDP",
        protocol::ICMPV4 | protocol::ICMPV6 => "ICMP",
        _ => "IP",
    };
    let ends = match of.protocol {
        protocol::TCP | protocol::UDP => format!(
            "{} > {}",
            SocketAddr::new(of.source, of.source_port),
            SocketAddr::new(of.destination, of.destination_port)
        ),
        _ => format!("{} > {}", of.source, of.destination),
    };
    layer.field("of", format!("{name} {ends}"));
    format!(", of {name} {ends}")
}

pub(super) fn v4(bytes: &[u8], decoded: &mut Decoded) {
    let Some(mut layer) = front("icmp", bytes, decoded) else { return };
    if let Ok(view) = Icmpv4View::new(bytes) {
        let message = Icmpv4Message::parse(&view);
        let of = message.quoted();
        let words = match message {
            Icmpv4Message::EchoRequest { identifier, sequence, data } => {
                echo(&mut layer, "request", identifier, sequence, data)
            }
            Icmpv4Message::EchoReply { identifier, sequence, data } => {
                echo(&mut layer, "reply", identifier, sequence, data)
            }
            Icmpv4Message::DestinationUnreachable { code, next_hop_mtu, .. } => {
                let mtu = match code {
                    UnreachableCode::FragmentationNeeded => format!(", MTU {next_hop_mtu}"),
                    _ => String::new(),
                };
                format!("unreachable: {}{mtu}{}", spaced(code), about(&mut layer, of))
            }
            Icmpv4Message::Redirect { gateway, .. } => {
                format!("redirect to {gateway}{}", about(&mut layer, of))
            }
            Icmpv4Message::TimeExceeded { code, .. } => {
                format!("time exceeded: {}{}", spaced(code), about(&mut layer, of))
            }
            Icmpv4Message::ParameterProblem { pointer, .. } => {
                format!("parameter problem at byte {pointer}{}", about(&mut layer, of))
            }
            Icmpv4Message::TimestampRequest(_) => "timestamp request".to_owned(),
            Icmpv4Message::TimestampReply(_) => "timestamp reply".to_owned(),
            Icmpv4Message::Other { kind, code, .. } => format!("type {kind}, code {code}"),
        };
        layer.words = words;
    }
    layer.words.insert_str(0, "ICMP ");
    decoded.layers.push(layer);
}

pub(super) fn v6(bytes: &[u8], decoded: &mut Decoded) {
    let Some(mut layer) = front("icmpv6", bytes, decoded) else { return };
    let message = Icmpv6View::new(bytes).and_then(|view| Icmpv6Message::parse(&view));
    if let Ok(message) = message {
        let of = message.quoted();
        let words = match message {
            Icmpv6Message::DestinationUnreachable { code, .. } => {
                format!("unreachable: {}{}", spaced(code), about(&mut layer, of))
            }
            Icmpv6Message::PacketTooBig { mtu, .. } => {
                format!("packet too big, MTU {mtu}{}", about(&mut layer, of))
            }
            Icmpv6Message::TimeExceeded { code, .. } => {
                format!("time exceeded: {}{}", spaced(code), about(&mut layer, of))
            }
            Icmpv6Message::ParameterProblem { pointer, .. } => {
                format!("parameter problem at byte {pointer}{}", about(&mut layer, of))
            }
            Icmpv6Message::EchoRequest { identifier, sequence, data } => {
                echo(&mut layer, "request", identifier, sequence, data)
            }
            Icmpv6Message::EchoReply { identifier, sequence, data } => {
                echo(&mut layer, "reply", identifier, sequence, data)
            }
            Icmpv6Message::Ndp(message) => neighbour(&message, &mut layer),
            Icmpv6Message::Mld(message) => match message {
                MldMessage::Query { group, .. } if group.is_unspecified() => {
                    "who listens to groups?".to_owned()
                }
                MldMessage::Query { group, .. } => format!("who listens to group {group}?"),
                MldMessage::Report { group } => format!("listens to group {group}"),
                MldMessage::Done { group } => format!("listens no more to group {group}"),
            },
            Icmpv6Message::Other { kind: 143, .. } => "report of groups (MLDv2)".to_owned(),
            Icmpv6Message::Other { kind, code, .. } => format!("type {kind}, code {code}"),
        };
        layer.words = words;
    }
    layer.words.insert_str(0, "ICMPv6 ");
    decoded.layers.push(layer);
}

/// Neighbour discovery.
fn neighbour(message: &NdpMessage<'_>, layer: &mut Layer) -> String {
    let NdpOptions { source_link_layer, target_link_layer, mtu, prefixes, dns_servers, .. } =
        message.options();
    layer.fields.extend(source_link_layer.map(|of| ("source_hardware", of.to_string())));
    layer.fields.extend(target_link_layer.map(|of| ("target_hardware", of.to_string())));
    layer.fields.extend(mtu.map(|mtu| ("mtu", mtu.to_string())));
    for prefix in prefixes.iter() {
        layer.field(
            "prefix",
            format!("{}/{} for {} s", prefix.prefix, prefix.prefix_bits, prefix.valid_lifetime_s),
        );
    }
    layer.fields.extend(dns_servers.iter().map(|server| ("dns_server", server.address.to_string())));
    match message {
        NdpMessage::RouterSolicitation { .. } => "asks for routers".to_owned(),
        NdpMessage::RouterAdvertisement { hop_limit, router_lifetime_s, managed, .. } => {
            layer.field("hop_limit", hop_limit);
            layer.field("managed", managed);
            let prefixes: Vec<String> =
                prefixes.iter().map(|of| format!(", prefix {}/{}", of.prefix, of.prefix_bits)).collect();
            format!("a router for {router_lifetime_s} s{}", prefixes.concat())
        }
        NdpMessage::NeighbourSolicitation { target, .. } => format!("who has {target}?"),
        NdpMessage::NeighbourAdvertisement { target, router, .. } => {
            let hardware = target_link_layer.map_or(String::new(), |of| format!(" at {of}"));
            format!("{target} is here{hardware}{}", if *router { ", a router" } else { "" })
        }
        NdpMessage::Redirect { target, destination, .. } => format!("redirect of {destination} to {target}"),
    }
}

pub(super) fn igmp(bytes: &[u8], decoded: &mut Decoded) {
    let mut layer = Layer::new("igmp");
    let message = IgmpView::new(bytes).and_then(|view| IgmpMessage::parse(&view));
    layer.words = match message {
        Ok(IgmpMessage::Query { group, .. }) if group.is_unspecified() => "IGMP who is in groups?".to_owned(),
        Ok(IgmpMessage::Query { group, .. }) => format!("IGMP who is in group {group}?"),
        Ok(IgmpMessage::ReportV1 { group } | IgmpMessage::Report { group }) => {
            format!("IGMP in group {group}")
        }
        Ok(IgmpMessage::Leave { group }) => format!("IGMP leaves group {group}"),
        Err(_) => match number(bytes, 0, 1) {
            Some(0x22) => "IGMP report of groups (version 3)".to_owned(),
            kind => format!("IGMP type {}", kind.unwrap_or(0)),
        },
    };
    layer.fields.extend(number(bytes, 0, 1).map(|kind| ("type", kind.to_string())));
    decoded.layers.push(layer);
}

/// The name of a code with spaces between its words, in lower case.
fn spaced(code: impl std::fmt::Debug) -> String {
    let mut words = String::new();
    for character in format!("{code:?}").chars() {
        if character.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(character.to_ascii_lowercase());
    }
    words
}
