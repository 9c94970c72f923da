//! The queue of IP's own packets for one link: neighbour requests, replies, errors, group reports.

use alloc::collections::VecDeque;
use inhost_base::IpAddr;
use inhost_buf::{Packet, Pool};

/// Most frames that wait for the device.
pub(crate) const READY_LIMIT: usize = 64;
/// Most packets that wait for a neighbour's address; they are given up when it does not answer.
pub(crate) const WAITING_LIMIT: usize = 16;

/// The queue of one link. Transports' packets are never in it, except the later fragments of a datagram whose first
/// fragments the device has taken.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ControlQueue {
    ready: VecDeque<Packet>,
    waiting: VecDeque<(IpAddr, Packet)>,
    /// A neighbour's state changed since the waiting packets were last looked at.
    recheck: bool,
}

impl ControlQueue {
    /// A whole frame for the device; false, and the packet is given back, when the queue is full.
    pub fn push_ready(&mut self, packet: Packet, pool: &mut Pool) -> bool {
        if self.ready.len() >= READY_LIMIT {
            pool.give(packet);
            return false;
        }
        self.ready.push_back(packet);
        true
    }
    /// An IP packet whose next hop is not resolved yet; false, and it is given back, when too many wait.
    // spec: RFC1122 2.3.2.2-1
    pub fn push_waiting(&mut self, next_hop: IpAddr, packet: Packet, pool: &mut Pool) -> bool {
        if self.waiting.len() >= WAITING_LIMIT {
            pool.give(packet);
            return false;
        }
        self.waiting.push_back((next_hop, packet));
        self.recheck = true;
        true
    }
    /// The oldest frame for the device.
    pub fn front(&self) -> Option<&Packet> {
        self.ready.front()
    }
    /// The oldest frame was taken by the device.
    pub fn pop(&mut self, pool: &mut Pool) {
        if let Some(packet) = self.ready.pop_front() {
            pool.give(packet);
        }
    }
    /// Takes all that waits, to be looked at anew, when there is reason to.
    pub fn take_waiting(&mut self) -> VecDeque<(IpAddr, Packet)> {
        match core::mem::take(&mut self.recheck) {
            true => core::mem::take(&mut self.waiting),
            false => VecDeque::new(),
        }
    }
    /// Puts one back that still waits.
    pub fn still_waiting(&mut self, next_hop: IpAddr, packet: Packet) {
        self.waiting.push_back((next_hop, packet));
    }
    /// A neighbour's state changed: what waits is looked at anew.
    pub fn recheck(&mut self) {
        self.recheck = true;
    }
    /// Whether the device should be offered something.
    pub fn wants_transmit(&self) -> bool {
        !self.ready.is_empty() || self.recheck && !self.waiting.is_empty()
    }
    /// Calls `act` with each packet of a thawed queue.
    #[cfg(feature = "freeze")]
    pub fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        let waiting = self.waiting.iter_mut().map(|(_, packet)| packet);
        self.ready.iter_mut().chain(waiting).try_for_each(act)
    }
    /// Gives all memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        for packet in self.ready.drain(..).chain(self.waiting.drain(..).map(|(_, packet)| packet)) {
            pool.give(packet);
        }
    }
}
