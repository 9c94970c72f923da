//! Frames that came by another shard's queue.

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

/// Frames that may wait for a shard on one link; beyond it they are lost, as in any queue.
const LETTERS: usize = 256;

/// A frame on its way to another shard: its bytes in memory of no shard's pool.
struct Letter {
    bytes: Vec<u8>,
    checksum: Checksum,
    segment_bytes: u16,
}

/// Where one shard's letters for one link wait.
#[derive(Default)]
struct Letterbox {
    letters: Mutex<VecDeque<Letter>>,
    /// How many, to look at without the lock.
    waiting: AtomicUsize,
}

/// The letterboxes of all shards for one link.
pub(super) struct LinkPost {
    boxes: Vec<Letterbox>,
    post: Arc<Common>,
}

/// What all links have in common: who is to be woken, and what has passed.
#[derive(Default)]
struct Common {
    bells: Vec<OnceLock<Doorbell>>,
    handed_over: AtomicU64,
    lost: AtomicU64,
}

/// The letterboxes of all links, made as the shards add them.
pub(super) struct Post {
    common: Arc<Common>,
    links: Mutex<Vec<Arc<LinkPost>>>,
}

impl core::fmt::Debug for Post {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Post").field("shards", &self.common.bells.len()).finish_non_exhaustive()
    }
}

impl Post {
    pub(super) fn new(shards: usize) -> Post {
        let bells = (0..shards).map(|_| OnceLock::new()).collect();
        Post { common: Arc::new(Common { bells, ..Common::default() }), links: Mutex::default() }
    }
    /// The shard `index` is there, and is woken by `bell`.
    pub(super) fn moves_in(&self, index: u16, bell: Doorbell) {
        if let Some(place) = self.common.bells.get(usize::from(index)) {
            let _ = place.set(bell);
        }
    }
    /// The letterboxes of the link that each shard adds as its `number`th.
    pub(super) fn link(&self, number: usize) -> Arc<LinkPost> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        while links.len() <= number {
            let boxes = self.common.bells.iter().map(|_| Letterbox::default()).collect();
            links.push(Arc::new(LinkPost { boxes, post: self.common.clone() }));
        }
        links[number].clone()
    }
    pub(super) fn counts(&self) -> (u64, u64) {
        let Common { handed_over, lost, .. } = &*self.common;
        (handed_over.load(Ordering::Relaxed), lost.load(Ordering::Relaxed))
    }
}

impl LinkPost {
    fn hand_over(&self, to: u16, packet: &Packet) {
        let Some(letterbox) = self.boxes.get(usize::from(to)) else { return };
        let letter = Letter {
            bytes: packet.bytes().to_vec(),
            checksum: packet.checksum,
            segment_bytes: packet.segment_bytes,
        };
        let mut letters = letterbox.letters.lock().unwrap_or_else(PoisonError::into_inner);
        if letters.len() >= LETTERS {
            self.post.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        letters.push_back(letter);
        letterbox.waiting.store(letters.len(), Ordering::Release);
        drop(letters);
        self.post.handed_over.fetch_add(1, Ordering::Relaxed);
        if let Some(bell) = self.post.bells.get(usize::from(to)).and_then(OnceLock::get) {
            bell.ring();
        }
    }
    /// Takes what waits for a shard, as far as `batch` has room; the number.
    fn collect(&self, shard: u16, pool: &mut Pool, batch: &mut Batch) -> usize {
        let Some(letterbox) = self.boxes.get(usize::from(shard)) else { return 0 };
        if letterbox.waiting.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let mut letters = letterbox.letters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = 0;
        while !batch.is_full()
            && let Some(letter) = letters.pop_front()
        {
            let Some(mut packet) = pool.take(letter.bytes.len()) else { continue };
            packet.append(&letter.bytes);
            (packet.checksum, packet.segment_bytes) = (letter.checksum, letter.segment_bytes);
            let _ = batch.push(packet);
            taken += 1;
        }
        letterbox.waiting.store(letters.len(), Ordering::Release);
        taken
    }
    fn waits_for(&self, shard: u16) -> bool {
        self.boxes.get(usize::from(shard)).is_some_and(|b| b.waiting.load(Ordering::Acquire) > 0)
    }
}

/// A shard's queue of a link: what comes by it and belongs to another is handed over.
pub(super) struct Steered {
    queue: Box<dyn Driver>,
    share: Share,
    post: Arc<LinkPost>,
    /// What came by the queue and found no room in the host's batch.
    arrived: Batch,
}

impl Steered {
    pub(super) fn new(queue: Box<dyn Driver>, share: Share, post: Arc<LinkPost>) -> Steered {
        Steered { queue, share, post, arrived: Batch::new() }
    }
    /// Whether a packet stays here; it goes where else it belongs.
    fn stays(&self, ethernet: bool, packet: &Packet) -> bool {
        match self.share.steer(ethernet, packet.bytes()) {
            Steer::Here => true,
            Steer::Nobody => false,
            Steer::To(shard) => {
                self.post.hand_over(shard, packet);
                false
            }
            Steer::All => {
                let others = (0..self.share.count()).filter(|&shard| shard != self.share.index());
                others.for_each(|shard| self.post.hand_over(shard, packet));
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
        let mut taken = self.post.collect(self.share.index(), pool, batch);
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
        !self.arrived.is_empty() || self.post.waits_for(self.share.index()) || self.queue.has_received()
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
