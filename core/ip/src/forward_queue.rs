//! The queue of forwarded packets for one link.

use crate::path::LinkHeader;
use alloc::collections::VecDeque;
use inhost_base::{IpAddr, LinkId};
use inhost_buf::{Device, Frame, Full, Offload, Packet, Pool, Slices};

/// Most packets that wait for neighbours of one link.
pub(crate) const WAITING_LIMIT: usize = 64;
/// Most of them for one neighbour; the newest are kept (RFC 1122 §2.3.2.2).
pub(crate) const WAITING_FOR_ONE_LIMIT: usize = 8;

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Ready {
    header: LinkHeader,
    packet: Packet,
}

/// A packet whose next hop is being asked for.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Waiting {
    /// Where it came in.
    pub from: LinkId,
    pub next_hop: IpAddr,
    pub packet: Packet,
}

/// The queue of one link. Packets are moved through it and never copied.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ForwardQueue {
    ready: VecDeque<Ready>,
    waiting: VecDeque<Waiting>,
    /// A neighbour's state changed since the waiting packets were last looked at.
    recheck: bool,
}

impl ForwardQueue {
    /// Adds a packet for the device; false, and the packet is given back, when there are `limit` already.
    pub fn push_ready(&mut self, header: LinkHeader, packet: Packet, limit: usize, pool: &mut Pool) -> bool {
        if self.ready.len() >= limit {
            pool.give(packet);
            return false;
        }
        self.ready.push_back(Ready { header, packet });
        true
    }
    /// Adds a packet whose next hop is not resolved yet; the oldest for the same neighbour makes room. False, and the
    /// packet is given back, when too many wait.
    // spec: RFC1122 2.3.2.2-1
    pub fn push_waiting(&mut self, newest: Waiting, pool: &mut Pool) -> bool {
        let of_same = |waiting: &Waiting| waiting.next_hop == newest.next_hop;
        let count = self.waiting.iter().filter(|waiting| of_same(waiting)).count();
        if count >= WAITING_FOR_ONE_LIMIT
            && let Some(oldest) = self.waiting.iter().position(of_same).and_then(|at| self.waiting.remove(at))
        {
            pool.give(oldest.packet);
        }
        if self.waiting.len() >= WAITING_LIMIT {
            pool.give(newest.packet);
            return false;
        }
        self.waiting.push_back(newest);
        self.recheck = true;
        true
    }
    /// Takes all that waits, to be looked at anew, when there is reason to.
    pub fn take_waiting(&mut self) -> VecDeque<Waiting> {
        match core::mem::take(&mut self.recheck) {
            true => core::mem::take(&mut self.waiting),
            false => VecDeque::new(),
        }
    }
    /// Puts one back that still waits.
    pub fn still_waiting(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }
    /// A neighbour's state changed: what waits is looked at anew.
    pub fn recheck(&mut self) {
        self.recheck = true;
    }
    /// Whether the device should be offered something.
    pub fn wants_transmit(&self) -> bool {
        !self.ready.is_empty() || self.recheck && !self.waiting.is_empty()
    }
    /// Sends at most `budget` packets; a packet that the device refuses stays first.
    pub fn transmit(&mut self, budget: usize, device: &mut dyn Device, pool: &mut Pool) -> Result<(), Full> {
        for _ in 0..budget {
            let Some(Ready { header, packet }) = self.ready.front() else { return Ok(()) };
            let payload = Slices::one(packet.bytes());
            device.transmit(&Frame { header: header.bytes(), payload, offload: Offload::None })?;
            if let Some(sent) = self.ready.pop_front() {
                pool.give(sent.packet);
            }
        }
        Ok(())
    }
    /// Calls `act` with each packet of a thawed queue.
    #[cfg(feature = "freeze")]
    pub fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        let waiting = self.waiting.iter_mut().map(|waiting| &mut waiting.packet);
        self.ready.iter_mut().map(|ready| &mut ready.packet).chain(waiting).try_for_each(act)
    }
    /// Gives all memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.ready.drain(..).for_each(|ready| pool.give(ready.packet));
        self.waiting.drain(..).for_each(|waiting| pool.give(waiting.packet));
    }
}
