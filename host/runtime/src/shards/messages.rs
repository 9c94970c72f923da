//! Cross-shard messages: frames that arrived on another shard's queue.

use inhost_base::Instant;
use inhost_buf::{Batch, Checksum, Device, Frame, Full, Offers, Packet, Pool, Shareable};
use inhost_link::{AddressOffer, Driver, FrameFormat, NotBack, Statistics};
use inhost_socket::Doorbell;
use inhost_stack::{Share, Steer};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Most frames that wait for a shard on one link. More are dropped.
const QUEUE_FRAMES: usize = 256;

/// A frame for another shard. Its bytes belong to no shard's pool.
struct Message {
    bytes: Vec<u8>,
    checksum: Checksum,
    segment_bytes: u16,
}

/// The messages for one shard on one link.
#[derive(Default)]
struct Inbox {
    messages: Mutex<VecDeque<Message>>,
    /// Number of messages, readable without the lock.
    waiting: AtomicUsize,
}

/// The inboxes of all shards for one link.
pub(super) struct LinkExchange {
    inboxes: Vec<Inbox>,
    exchange: Arc<Common>,
}

/// What all links share: the shards' doorbells and the counters.
#[derive(Default)]
struct Common {
    doorbells: Vec<OnceLock<Doorbell>>,
    handed_over: AtomicU64,
    lost: AtomicU64,
}

/// The inboxes of all links, made as the shards add them.
pub(super) struct Exchange {
    common: Arc<Common>,
    links: Mutex<Vec<Arc<LinkExchange>>>,
}

impl core::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Exchange").field("shards", &self.common.doorbells.len()).finish_non_exhaustive()
    }
}

impl Exchange {
    pub(super) fn new(shards: usize) -> Exchange {
        let doorbells = (0..shards).map(|_| OnceLock::new()).collect();
        Exchange { common: Arc::new(Common { doorbells, ..Common::default() }), links: Mutex::default() }
    }
    /// Registers the doorbell of the shard `index`.
    pub(super) fn register(&self, index: u16, doorbell: Doorbell) {
        if let Some(place) = self.common.doorbells.get(usize::from(index)) {
            let _ = place.set(doorbell);
        }
    }
    /// The inboxes of the link that each shard adds as its `number`th.
    pub(super) fn link(&self, number: usize) -> Arc<LinkExchange> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        while links.len() <= number {
            let inboxes = self.common.doorbells.iter().map(|_| Inbox::default()).collect();
            links.push(Arc::new(LinkExchange { inboxes, exchange: self.common.clone() }));
        }
        links[number].clone()
    }
    pub(super) fn counts(&self) -> (u64, u64) {
        let Common { handed_over, lost, .. } = &*self.common;
        (handed_over.load(Ordering::Relaxed), lost.load(Ordering::Relaxed))
    }
}

impl LinkExchange {
    fn hand_over(&self, to: u16, packet: &Packet) {
        let Some(inbox) = self.inboxes.get(usize::from(to)) else { return };
        let message = Message {
            bytes: packet.bytes().to_vec(),
            checksum: packet.checksum(),
            segment_bytes: packet.segment_bytes(),
        };
        let mut messages = inbox.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() >= QUEUE_FRAMES {
            self.exchange.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        messages.push_back(message);
        inbox.waiting.store(messages.len(), Ordering::Release);
        drop(messages);
        self.exchange.handed_over.fetch_add(1, Ordering::Relaxed);
        if let Some(doorbell) = self.exchange.doorbells.get(usize::from(to)).and_then(OnceLock::get) {
            doorbell.ring();
        }
    }
    /// Moves a shard's messages to `batch` while it has room. Returns their number.
    fn collect(&self, shard: u16, pool: &mut Pool, batch: &mut Batch) -> usize {
        let Some(inbox) = self.inboxes.get(usize::from(shard)) else { return 0 };
        if inbox.waiting.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let mut messages = inbox.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = 0;
        while !batch.is_full()
            && let Some(message) = messages.pop_front()
        {
            let Some(mut packet) = pool.take(message.bytes.len()) else { continue };
            packet.append(&message.bytes);
            packet.set_checksum(message.checksum);
            packet.set_segment_bytes(message.segment_bytes);
            let _ = batch.push(packet);
            taken += 1;
        }
        inbox.waiting.store(messages.len(), Ordering::Release);
        taken
    }
    fn waits_for(&self, shard: u16) -> bool {
        self.inboxes.get(usize::from(shard)).is_some_and(|b| b.waiting.load(Ordering::Acquire) > 0)
    }
}

/// A shard's queue of a link. Frames of other shards are handed over.
pub(super) struct Steered {
    queue: Box<dyn Driver>,
    share: Share,
    exchange: Arc<LinkExchange>,
    /// Frames of the queue for which the host's batch had no room.
    arrived: Batch,
}

impl Steered {
    pub(super) fn new(queue: Box<dyn Driver>, share: Share, exchange: Arc<LinkExchange>) -> Steered {
        Steered { queue, share, exchange, arrived: Batch::new() }
    }
    /// Hands a packet to the shards that it is for. True if this shard is one of them.
    fn stays(&self, ethernet: bool, packet: &Packet) -> bool {
        match self.share.steer(ethernet, packet.bytes()) {
            Steer::Here => true,
            Steer::Nobody => false,
            Steer::To(shard) => {
                self.exchange.hand_over(shard, packet);
                false
            }
            Steer::All => {
                let others = (0..self.share.count()).filter(|&shard| shard != self.share.index());
                others.for_each(|shard| self.exchange.hand_over(shard, packet));
                true
            }
        }
    }
}

impl Device for Steered {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        self.queue.transmit(frame)
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        self.queue.transmit_shared(frame, payload)
    }
    fn offers(&self) -> Offers {
        self.queue.offers()
    }
}

impl Driver for Steered {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        let mut taken = self.exchange.collect(self.share.index(), pool, batch);
        let received =
            if self.arrived.is_empty() { self.queue.receive(pool, &mut self.arrived) } else { Ok(0) };
        let ethernet = matches!(self.queue.frame_format(), FrameFormat::Ethernet(_));
        while !batch.is_full()
            && let Some(packet) = self.arrived.pop_whole(pool)
        {
            if !self.stays(ethernet, &packet) {
                pool.give(packet);
            } else if let Err(packet) = batch.push(packet) {
                pool.give(packet);
            } else {
                taken += 1;
            }
        }
        received.map(|_| taken)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.queue.descriptor()
    }
    fn wants_write(&self) -> bool {
        self.queue.wants_write()
    }
    fn has_received(&self) -> bool {
        !self.arrived.is_empty() || self.exchange.waits_for(self.share.index()) || self.queue.has_received()
    }
    fn can_transmit(&self) -> bool {
        self.queue.can_transmit()
    }
    fn deadline(&self, now: Instant) -> Option<Instant> {
        self.queue.deadline(now)
    }
    fn advance(&mut self, now: Instant) {
        self.queue.advance(now);
    }
    fn set_clock(&mut self, clock: Box<dyn Fn() -> Instant + Send>) {
        self.queue.set_clock(clock);
    }
    fn frame_format(&self) -> FrameFormat {
        self.queue.frame_format()
    }
    fn mtu_bytes(&self) -> usize {
        self.queue.mtu_bytes()
    }
    fn describe(&self) -> String {
        format!("{}, shard {} of {}", self.queue.describe(), self.share.index() + 1, self.share.count())
    }
    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }
    fn take_offer(&mut self) -> Option<AddressOffer> {
        self.queue.take_offer()
    }
    fn reopen(&mut self) -> Result<(), NotBack> {
        self.queue.reopen()
    }
}
