//! The netstat of a host as JSON.

use std::cell::RefCell;

use inhost_base::{Duration, Instant, LinkId};
use inhost_event::NeighbourState;
use inhost_ip::{AddressState, InterfaceCounters, InterfaceView, Medium, Route, RouteOrigin};
use inhost_link::Discard;
use inhost_socket::Host;
use inhost_stack::{SocketInfo, SocketKind, Stack};
use serde_json::{Map, Value, json};

use super::names::name;
use crate::link::{LinkReport, LinkState, Links};

/// Sockets that one piece of an answer describes.
const SOCKETS_A_PIECE: usize = 16;
/// Places of the table, free ones included, that are looked at for one piece.
const PLACES_A_PIECE: usize = 4096;
/// How long a summary is shown again before the sockets are counted anew.
const SUMMARY_LASTS: Duration = Duration::from_secs(1);

/// Interfaces, routes, sockets with every figure of each connection, counters, memory, timers and queues. Times are in nanoseconds. It
/// takes time proportional to the number of sockets, without a pause: for a host without other work.
pub fn netstat(host: &Host) -> Value {
    netstat_with_links(host, None)
}

/// The same, with the account that each interface's driver gives of itself.
pub fn netstat_with_links(host: &Host, links: Option<&Links>) -> Value {
    let mut members = overview(host, links);
    let sockets =
        host.with_stack(|stack, now| stack.instruments().sockets(now).map(|info| socket(&info)).collect());
    members.insert("sockets".to_owned(), Value::Array(sockets));
    Value::Object(members)
}

/// All of [`netstat_with_links`] but the sockets.
pub fn overview(host: &Host, links: Option<&Links>) -> Map<String, Value> {
    host.with_stack(|stack, now| {
        Map::from_iter([
            ("now_ns".to_owned(), now.as_nanos().into()),
            ("interfaces".to_owned(), interfaces(stack, now, |link| links?.report(host, link)).into()),
            ("routes".to_owned(), routes(stack).into()),
            ("counters".to_owned(), host_counters(stack)),
            ("memory".to_owned(), memory(stack)),
            ("queues".to_owned(), stack.instruments().queues()),
        ])
    })
}

/// The text of [`netstat_with_links`] as the members of an object, in pieces that are bounded whatever the host holds.
/// Each socket is shown as it is when its piece is made.
pub(super) struct Pieces {
    /// The place at which the next piece begins; none before the first piece.
    next: Option<usize>,
    /// Whether a socket was shown.
    any: bool,
}

impl Pieces {
    pub(super) fn new() -> Pieces {
        Pieces { next: None, any: false }
    }
    /// The next piece; none after the last.
    pub(super) fn piece(&mut self, host: &Host, links: Option<&Links>) -> Option<String> {
        let Some(first) = self.next else {
            self.next = Some(0);
            let members = overview(host, links).into_iter();
            let members: String = members.map(|(name, value)| format!("\"{name}\":{value},")).collect();
            return Some(members + "\"sockets\":[");
        };
        host.with_stack(|stack, now| {
            let places = stack.instruments().socket_places();
            if first > places {
                return None;
            }
            let mut text = String::new();
            let (mut place, mut shown) = (first, 0);
            while place < places && shown < SOCKETS_A_PIECE && place - first < PLACES_A_PIECE {
                if let Some(info) = stack.instruments().socket_at(place, now) {
                    text.push_str(if self.any { "," } else { "" });
                    text.push_str(&socket(&info).to_string());
                    (self.any, shown) = (true, shown + 1);
                }
                place += 1;
            }
            if place >= places {
                text.push(']');
                place = usize::MAX;
            }
            self.next = Some(place);
            Some(text)
        })
    }
}

/// A host in a few figures, for unauthenticated clients: computed at most once a second, however many ask.
pub struct Summary {
    host: Host,
    last: RefCell<Option<(Instant, Value)>>,
}

impl Summary {
    /// The summary of `host`; nothing is computed before the first request.
    pub fn new(host: &Host) -> Summary {
        Summary { host: host.clone(), last: RefCell::default() }
    }
    /// `"interfaces"` with their counts, `"sockets"` with the number of each kind, and `"memory"`.
    pub fn state(&self) -> Value {
        let mut last = self.last.borrow_mut();
        match &*last {
            Some((made, state)) if self.host.now().since(*made) < SUMMARY_LASTS => state.clone(),
            _ => {
                let state = self.host.with_stack(|stack, _| summary(stack));
                *last = Some((self.host.now(), state.clone()));
                state
            }
        }
    }
}

fn summary(stack: &Stack) -> Value {
    let mut counts = [0u64; 5];
    stack.instruments().socket_states().for_each(|(_, kind, _)| counts[kind as usize] += 1);
    let count = |kind: SocketKind| counts[kind as usize];
    json!({
        "interfaces": stack.links().map(|link| Value::Object(traffic(stack, link))).collect::<Vec<_>>(),
        "sockets": {
            "connections": count(SocketKind::Connection),
            "listeners": count(SocketKind::Listener),
            "udp": count(SocketKind::Udp),
            "echo": count(SocketKind::Echo),
            "probes": count(SocketKind::Probe),
        },
        "memory": memory(stack),
    })
}

/// An interface and its counters.
fn traffic(stack: &Stack, link: LinkId) -> Map<String, Value> {
    let counters = stack.instruments().link_counters(link).copied().unwrap_or_default();
    let drops = counters.drops().filter(|&(_, count)| count > 0);
    let drops: Map<String, Value> = drops.map(|(why, count)| (why.text().to_owned(), count.into())).collect();
    let config = stack.ip().interface(link).map(InterfaceView::config);
    let (medium, hardware) = match config.map(|config| config.medium) {
        Some(Medium::Ethernet(address)) => ("ethernet", Some(address.to_string())),
        Some(Medium::Ip) => ("ip", None),
        Some(Medium::Loopback) => ("loopback", None),
        None => ("unknown", None),
    };
    Map::from_iter([
        ("link".to_owned(), link.0.into()),
        ("name".to_owned(), config.map(|config| config.name.as_str()).into()),
        ("medium".to_owned(), medium.into()),
        ("hardware".to_owned(), hardware.into()),
        ("mtu_bytes".to_owned(), config.map(|config| config.mtu_bytes).into()),
        ("received_frames".to_owned(), counters.received_frames.into()),
        ("received_bytes".to_owned(), counters.received_bytes.into()),
        ("sent_frames".to_owned(), counters.sent_frames.into()),
        ("sent_bytes".to_owned(), counters.sent_bytes.into()),
        ("dropped".to_owned(), drops.into()),
    ])
}

/// One socket, as [`netstat`] has it.
pub fn socket(info: &SocketInfo) -> Value {
    let SocketInfo {
        socket,
        kind,
        local,
        remote,
        link,
        state,
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
        "state": state.map(|state| state.text()),
        "is_held": is_held,
        "age_ns": age.as_nanos(),
        "receive_queue": receive_queue,
        "send_queue": send_queue,
        "tcp": tcp.as_ref().map(super::figures::connection),
    })
}

fn interfaces(stack: &Stack, now: Instant, report: impl Fn(LinkId) -> Option<LinkReport>) -> Vec<Value> {
    stack.links().map(|link| interface(stack, link, report(link), now)).collect()
}

fn driver(report: &LinkReport, now: Instant) -> Value {
    let statistics = &report.statistics;
    let down = match &report.state {
        LinkState::Up => None,
        LinkState::Down { why, since, tries, returns } => Some(json!({
            "error": why,
            "for_ns": now.since(*since).as_nanos(),
            "tries": tries,
            "returns": returns,
        })),
    };
    let discarded = Discard::ALL.iter().zip(statistics.discarded).filter(|&(_, count)| count > 0);
    let discarded: Map<String, Value> =
        discarded.map(|(why, count)| (why.text().to_owned(), count.into())).collect();
    json!({
        "description": report.description,
        "state": if down.is_none() { "up" } else { "down" },
        "down": down,
        "lost_frames": report.lost_frames,
        "received_frames": statistics.received_frames,
        "received_bytes": statistics.received_bytes,
        "transmitted_frames": statistics.transmitted_frames,
        "transmitted_bytes": statistics.transmitted_bytes,
        "full": statistics.full,
        "discarded": discarded,
    })
}

fn interface(stack: &Stack, link: LinkId, report: Option<LinkReport>, now: Instant) -> Value {
    let interface = stack.ip().interface(link);
    let addresses = interface.into_iter().flat_map(InterfaceView::addresses).map(|assigned| {
        let state = match assigned.state() {
            AddressState::Tentative => "tentative",
            AddressState::Preferred => "preferred",
            AddressState::Deprecated => "deprecated",
            AddressState::Duplicate => "duplicate",
        };
        json!({"address": assigned.cidr().to_string(), "state": state})
    });
    let neighbours = interface.into_iter().flat_map(InterfaceView::neighbours).map(|neighbour| {
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
    let groups = interface.into_iter().flat_map(InterfaceView::groups);
    let mut members = traffic(stack, link);
    members.extend([
        ("addresses".to_owned(), addresses.collect()),
        ("neighbours".to_owned(), neighbours.collect()),
        ("groups".to_owned(), groups.map(|group| group.to_string()).collect()),
        ("ip".to_owned(), interface.map(InterfaceView::counters).map(ip_counters).into()),
        ("driver".to_owned(), report.as_ref().map(|report| driver(report, now)).into()),
    ]);
    Value::Object(members)
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
    stack.ip().paths().routes().iter().map(describe).collect()
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
        closed_windows_reset,
        time_waits_cut_short,
        time_wait_reused,
        resets_sent,
        resets_limited,
        datagrams_received,
        datagrams_sent,
        loopback_full,
    } = *stack.instruments().counters();
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
        "closed_windows_reset": closed_windows_reset,
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
