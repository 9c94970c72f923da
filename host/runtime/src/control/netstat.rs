//! A host as JSON, for instruments.

use inhost_base::LinkId;
use inhost_event::NeighbourState;
use inhost_ip::{AddressState, InterfaceCounters, Medium, Route, RouteOrigin};
use inhost_link::Discard;
use inhost_socket::Host;
use inhost_stack::{SocketInfo, SocketKind, Stack};
use serde_json::{Map, Value, json};

use super::server::name;
use crate::runtime::{LinkReport, Links};

/// Interfaces, routes, sockets with every figure of each connection, counters and memory. Times are in nanoseconds.
pub fn netstat(host: &Host) -> Value {
    netstat_with_links(host, None)
}

/// The same, with the account that each interface's driver gives of itself.
pub fn netstat_with_links(host: &Host, links: Option<&Links>) -> Value {
    host.with_stack(|stack, now| {
        let sockets: Vec<Value> = stack.sockets(now).map(|info| socket(&info)).collect();
        json!({
            "now_ns": now.as_nanos(),
            "interfaces": interfaces(stack, |link| links?.report(host, link)),
            "routes": routes(stack),
            "sockets": sockets,
            "counters": host_counters(stack),
            "memory": memory(stack),
        })
    })
}

/// Interfaces with what was counted on each, the host's counters, and its memory.
pub(super) fn counters(host: &Host, links: Option<&Links>) -> Value {
    host.with_stack(|stack, _| {
        json!({
            "interfaces": interfaces(stack, |link| links?.report(host, link)),
            "counters": host_counters(stack),
            "memory": memory(stack),
        })
    })
}

/// One socket.
pub(super) fn socket(info: &SocketInfo) -> Value {
    let SocketInfo {
        socket,
        kind,
        local,
        remote,
        link,
        phase,
        is_held,
        age,
        receive_queue,
        send_queue,
        ref tcp,
    } = *info;
    json!({
        "socket": name(socket),
        "kind": match kind {
            SocketKind::Connection => "connection",
            SocketKind::Listener => "listener",
            SocketKind::Udp => "udp",
            SocketKind::Echo => "echo",
            SocketKind::Probe => "probe",
        },
        "local": local.to_string(),
        "remote": remote.map(|remote| remote.to_string()),
        "link": link.map(|link| link.0),
        "phase": phase.map(|phase| phase.text()),
        "is_held": is_held,
        "age_ns": age.as_nanos(),
        "receive_queue": receive_queue,
        "send_queue": send_queue,
        "tcp": tcp.as_ref().map(super::figures::connection),
    })
}

fn interfaces(stack: &Stack, report: impl Fn(LinkId) -> Option<LinkReport>) -> Vec<Value> {
    stack.links().map(|link| interface(stack, link, report(link))).collect()
}

fn driver(report: &LinkReport) -> Value {
    let statistics = &report.statistics;
    let discarded = Discard::ALL.iter().zip(statistics.discarded).filter(|&(_, count)| count > 0);
    let discarded: Map<String, Value> =
        discarded.map(|(why, count)| (why.text().to_owned(), count.into())).collect();
    json!({
        "description": report.description,
        "received_frames": statistics.received_frames,
        "received_bytes": statistics.received_bytes,
        "transmitted_frames": statistics.transmitted_frames,
        "transmitted_bytes": statistics.transmitted_bytes,
        "full": statistics.full,
        "discarded": discarded,
    })
}

fn interface(stack: &Stack, link: LinkId, report: Option<LinkReport>) -> Value {
    let counters = stack.link_counters(link).copied().unwrap_or_default();
    let drops = counters.drops().filter(|&(_, count)| count > 0);
    let drops: Map<String, Value> = drops.map(|(why, count)| (why.text().to_owned(), count.into())).collect();
    let ip = stack.ip();
    let config = ip.config(link);
    let (medium, hardware) = match config.map(|config| config.medium) {
        Some(Medium::Ethernet(address)) => ("ethernet", Some(address.to_string())),
        Some(Medium::Ip) => ("ip", None),
        Some(Medium::Loopback) => ("loopback", None),
        None => ("unknown", None),
    };
    let addresses = ip.addresses(link).iter().map(|assigned| {
        let state = match assigned.state() {
            AddressState::Tentative => "tentative",
            AddressState::Preferred => "preferred",
            AddressState::Deprecated => "deprecated",
            AddressState::Duplicate => "duplicate",
        };
        json!({"address": assigned.cidr.to_string(), "state": state})
    });
    let neighbours = ip.neighbours(link).into_iter().map(|neighbour| {
        let state = match neighbour.state {
            NeighbourState::Incomplete => "incomplete",
            NeighbourState::Reachable => "reachable",
            NeighbourState::Stale => "stale",
            NeighbourState::Delay => "delay",
            NeighbourState::Probe => "probe",
            NeighbourState::Failed => "failed",
        };
        json!({
            "address": neighbour.address.to_string(),
            "hardware": neighbour.hardware.map(|hardware| hardware.to_string()),
            "state": state,
            "is_router": neighbour.is_router,
        })
    });
    json!({
        "link": link.0,
        "name": config.map(|config| config.name.as_str()),
        "medium": medium,
        "hardware": hardware,
        "mtu_bytes": config.map(|config| config.mtu_bytes),
        "addresses": addresses.collect::<Vec<_>>(),
        "neighbours": neighbours.collect::<Vec<_>>(),
        "groups": ip.groups(link).iter().map(|group| group.to_string()).collect::<Vec<_>>(),
        "received_frames": counters.received_frames,
        "received_bytes": counters.received_bytes,
        "sent_frames": counters.sent_frames,
        "sent_bytes": counters.sent_bytes,
        "dropped": drops,
        "ip": ip.counters(link).map(ip_counters),
        "driver": report.as_ref().map(driver),
    })
}

fn ip_counters(counters: &InterfaceCounters) -> Value {
    json!({
        "delivered_datagrams": counters.delivered_datagrams,
        "received_fragments": counters.received_fragments,
        "reassembled_datagrams": counters.reassembled_datagrams,
        "sent_fragments": counters.sent_fragments,
        "received_errors": counters.received_errors,
        "sent_errors": counters.sent_errors,
        "suppressed_errors": counters.suppressed_errors,
        "answered_echoes": counters.answered_echoes,
        "lost_control_frames": counters.lost_control_frames,
        "address_conflicts": counters.address_conflicts,
        "accepted_redirects": counters.accepted_redirects,
    })
}

fn routes(stack: &Stack) -> Vec<Value> {
    let describe = |route: &Route| {
        json!({
            "destination": route.destination.to_string(),
            "link": route.link.0,
            "gateway": route.gateway.map(|gateway| gateway.to_string()),
            "preference": route.preference,
            "origin": match route.origin {
                RouteOrigin::Connected => "connected",
                RouteOrigin::Configured => "configured",
                RouteOrigin::Leased => "leased",
                RouteOrigin::Advertised(_) => "advertised",
            },
        })
    };
    stack.ip().routes().iter().map(describe).collect()
}

fn host_counters(stack: &Stack) -> Value {
    let inhost_stack::Counters {
        connections_opened,
        connections_accepted,
        connections_failed,
        listen_overflows,
        cookies_sent,
        cookies_accepted,
        cookies_refused,
        fast_open_cookies_granted,
        fast_opens_accepted,
        fast_opens_over_limit,
        fast_opens_acknowledged,
        fast_opens_refused,
        fast_open_pauses,
        orphans_aborted,
        connections_shrunk,
        time_waits_cut_short,
        time_wait_reused,
        resets_sent,
        resets_limited,
        datagrams_received,
        datagrams_sent,
        loopback_full,
    } = *stack.counters();
    json!({
        "connections_opened": connections_opened,
        "connections_accepted": connections_accepted,
        "connections_failed": connections_failed,
        "listen_overflows": listen_overflows,
        "cookies_sent": cookies_sent,
        "cookies_accepted": cookies_accepted,
        "cookies_refused": cookies_refused,
        "fast_open_cookies_granted": fast_open_cookies_granted,
        "fast_opens_accepted": fast_opens_accepted,
        "fast_opens_over_limit": fast_opens_over_limit,
        "fast_opens_acknowledged": fast_opens_acknowledged,
        "fast_opens_refused": fast_opens_refused,
        "fast_open_pauses": fast_open_pauses,
        "orphans_aborted": orphans_aborted,
        "connections_shrunk": connections_shrunk,
        "time_waits_cut_short": time_waits_cut_short,
        "time_wait_reused": time_wait_reused,
        "resets_sent": resets_sent,
        "resets_limited": resets_limited,
        "datagrams_received": datagrams_received,
        "datagrams_sent": datagrams_sent,
        "loopback_full": loopback_full,
    })
}

fn memory(stack: &Stack) -> Value {
    let pool = stack.memory();
    json!({
        "used_bytes": pool.outstanding_bytes(),
        "limit_bytes": pool.limit_bytes(),
        "refused": pool.refused(),
    })
}
