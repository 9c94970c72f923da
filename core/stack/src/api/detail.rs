//! What a debugger reads: what the sockets of a host wait for, and when, as JSON.

use crate::network::Network;
use crate::resources::Resources;
use crate::sockets::Sockets;
use alloc::vec::Vec;
use inhost_base::{Instant, LinkId};
use inhost_ip::limits;
use serde_json::{Value, json};

/// See [`crate::Instruments::queues`].
pub(super) fn queues(sockets: &Sockets, network: &Network, resources: &Resources) -> Value {
    let (schedule, ip, pool) = (sockets.schedule(), network.ip(), resources.memory().pool());
    let at = |instant: Instant| (instant != Instant::FAR_FUTURE).then(|| instant.as_nanos());
    let (sockets_at, ip_at, retry) = (schedule.deadline(), ip.deadline(), schedule.memory_retry_at());
    let waiting = |link: LinkId| json!({"link": link.0, "senders": schedule.sender_count(link)});
    let (reassembling, reassembling_bytes) = ip.reassemblies();
    json!({
        "deadline_ns": at(sockets_at.min(ip_at).min(retry)),
        // It may turn out to have moved on, because timers are armed lazily.
        "socket_timer_ns": at(sockets_at),
        "ip_timer_ns": at(ip_at),
        "memory_retry_ns": at(retry),
        "orphans": schedule.orphans(),
        "memory_bytes": pool.outstanding_bytes(),
        "memory_outside_bytes": pool.outside_bytes(),
        "memory_idle_bytes": pool.idle_bytes(),
        "memory_limit_bytes": pool.limit_bytes(),
        "memory_refused": pool.refused(),
        "reassembling": reassembling,
        "reassembling_limit": limits::REASSEMBLIES,
        "reassembling_bytes": reassembling_bytes,
        "reassembling_limit_bytes": limits::REASSEMBLY_BYTES,
        "links": network.links().ids().map(waiting).collect::<Vec<_>>(),
    })
}
