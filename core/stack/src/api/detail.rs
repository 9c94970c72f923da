//! What a debugger reads: the host's timers and queues.

use crate::network::Network;
use crate::resources::Resources;
use crate::sockets::Sockets;
use alloc::vec::Vec;
use inhost_base::{Instant, LinkId};

/// What the sockets of a host wait for, and when; from [`crate::Instruments::queues`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
pub struct HostQueues {
    /// When the host wants its next round, on its clock; none while it waits for nothing.
    pub deadline_ns: Option<u64>,
    /// The soonest timer of a socket. It may turn out to have moved on, because timers are armed lazily.
    pub socket_timer_ns: Option<u64>,
    /// The soonest timer of IP: neighbours, fragments, addresses, routers.
    pub ip_timer_ns: Option<u64>,
    /// When those that found no memory try again.
    pub memory_retry_ns: Option<u64>,
    /// Connections without a socket that have not ended.
    pub orphans: usize,
    /// Memory of the packet pool that is in use.
    pub memory_bytes: usize,
    /// Memory outside of the pool that counts within its limit: queues of applications.
    pub memory_outside_bytes: usize,
    /// Memory of the pool that is kept for reuse.
    pub memory_idle_bytes: usize,
    /// The most memory that may be in use.
    pub memory_limit_bytes: usize,
    /// How often there was none.
    pub memory_refused: u64,
    /// Datagrams that are being put together from fragments.
    pub reassembling: usize,
    /// The most that may be.
    pub reassembling_limit: usize,
    /// Memory that they hold.
    pub reassembling_bytes: usize,
    /// The most that they may.
    pub reassembling_limit_bytes: usize,
    /// By link.
    pub links: Vec<LinkQueues>,
}

/// What waits at a link.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
pub struct LinkQueues {
    /// The link's number; 0 is the loopback.
    pub link: u16,
    /// Sockets whose turn to send is to come.
    pub senders: usize,
}

impl HostQueues {
    pub(super) fn of(sockets: &Sockets, network: &Network, resources: &Resources) -> HostQueues {
        let (schedule, ip) = (sockets.schedule(), network.ip());
        let at = |instant: Instant| (instant != Instant::FAR_FUTURE).then(|| instant.as_nanos());
        let retry = schedule.memory_retry_at();
        let (sockets_at, ip_at) = (schedule.deadline(), ip.deadline());
        let queues = |link: LinkId| LinkQueues { link: link.0, senders: schedule.sender_count(link) };
        let (reassembling, reassembling_bytes) = ip.reassemblies();
        let pool = resources.memory().pool();
        HostQueues {
            deadline_ns: at(sockets_at.min(ip_at).min(retry)),
            socket_timer_ns: at(sockets_at),
            ip_timer_ns: at(ip_at),
            memory_retry_ns: at(retry),
            orphans: schedule.orphans(),
            memory_bytes: pool.outstanding_bytes(),
            memory_outside_bytes: pool.outside_bytes(),
            memory_idle_bytes: pool.idle_bytes(),
            memory_limit_bytes: pool.limit_bytes(),
            memory_refused: pool.refused(),
            reassembling,
            reassembling_limit: inhost_ip::limits::REASSEMBLIES,
            reassembling_bytes,
            reassembling_limit_bytes: inhost_ip::limits::REASSEMBLY_BYTES,
            links: network.links().ids().map(queues).collect(),
        }
    }
}
