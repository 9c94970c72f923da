//! An in-process link: a pair of connected drivers.

use crate::{Discard, Driver, FrameFormat, Statistics, offload};
use inhost_base::{HardwareAddress, Instant};
use inhost_buf::{Batch, Device, Frame, Full, Offers, Packet, Pool, Shareable};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Configuration of a pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Name of the link in descriptions. Default `memory`.
    pub name: String,
    /// Whether frames carry Ethernet headers. The ends' addresses then differ and are locally administered.
    /// Default false: frames begin with the IP header.
    pub ethernet: bool,
    /// The longest IP datagram. Default 65535; cost: buffers of that size while such datagrams wait.
    pub mtu_bytes: usize,
    /// Most frames that wait in each direction. Default 256.
    pub queue_frames: usize,
    /// Most memory that the frames waiting in each direction hold, counted by capacity. Default 4 MiB.
    pub queue_bytes: usize,
    /// Whether received packets are marked as having good checksums, since memory does not corrupt. Default false, so
    /// that the receiver detects frames corrupted by tests or faults.
    pub trusted: bool,
    /// Whether the ends have descriptors that become readable when there is something to do, for ends that live on
    /// different threads. Default false. Cost: a system call when a queue stops being empty or full.
    pub doorbell: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            name: "memory".into(),
            ethernet: false,
            mtu_bytes: 65535,
            queue_frames: 256,
            queue_bytes: 4 << 20,
            trusted: false,
            doorbell: false,
        }
    }
}

/// Makes the two ends of a link. Fails only where descriptors are asked for and the system has none left.
pub fn pair(config: &Config) -> io::Result<(Memory, Memory)> {
    let lanes = [lane(config), lane(config)];
    let bells = if config.doorbell { [Some(bell()?), Some(bell()?)] } else { [None, None] };
    let [forth, back] = lanes;
    let [near, far] = bells;
    let a = Memory::new(config, 1, [&forth, &back], [&near, &far]);
    let b = Memory::new(config, 2, [&back, &forth], [&far, &near]);
    Ok((a, b))
}

/// One end of a link inside the process.
///
/// ```
/// use inhost_buf::{Batch, Device, Frame, Offload, Pool, Slices};
/// use inhost_link::{Driver, memory};
///
/// let (mut near, mut far) = memory::pair(&memory::Config::default())?;
/// let frame = Frame { header: b"header, ", payload: Slices::one(b"payload"), offload: Offload::None };
/// near.transmit(&frame).unwrap();
///
/// let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
/// assert_eq!(far.receive(&mut pool, &mut batch)?, 1);
/// assert_eq!(batch.pop().unwrap().bytes(), b"header, payload");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    name: String,
    format: FrameFormat,
    mtu_bytes: usize,
    queue_frames: usize,
    trusted: bool,
    outward: Arc<Mutex<Lane>>,
    inward: Arc<Mutex<Lane>>,
    own_bell: Option<Arc<OwnedFd>>,
    peer_bell: Option<Arc<OwnedFd>>,
    statistics: Statistics,
}

/// One direction. Its buffers come from a pool of its own: the receiver trades an empty buffer of the same size for
/// each full one, so that both pools' accounts stay right and the bytes are copied once.
#[derive(Debug)]
struct Lane {
    waiting: VecDeque<Packet>,
    pool: Pool,
    /// The sender was told that the lane is full and has not been woken since.
    sender_waits: bool,
}

fn lane(config: &Config) -> Arc<Mutex<Lane>> {
    let pool = Pool::new(config.queue_bytes);
    Arc::new(Mutex::new(Lane { waiting: VecDeque::new(), pool, sender_waits: false }))
}

fn bell() -> io::Result<Arc<OwnedFd>> {
    use rustix::event::{EventfdFlags, eventfd};
    Ok(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
}

fn ring(bell: &Option<Arc<OwnedFd>>) {
    if let Some(bell) = bell {
        // It fails only at the limit of its count, when it is readable anyway.
        let _ = rustix::io::write(bell.as_ref(), &1u64.to_ne_bytes());
    }
}

/// A lane is consistent between any two statements, so a panic elsewhere while it was held spoils nothing.
fn hold(lane: &Mutex<Lane>) -> MutexGuard<'_, Lane> {
    lane.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    fn new(
        config: &Config,
        end: u8,
        [outward, inward]: [&Arc<Mutex<Lane>>; 2],
        [own_bell, peer_bell]: [&Option<Arc<OwnedFd>>; 2],
    ) -> Self {
        let address = HardwareAddress([0x02, 0x69, 0x6e, 0x68, 0x00, end]);
        Memory {
            name: config.name.clone(),
            format: if config.ethernet { FrameFormat::Ethernet(address) } else { FrameFormat::Ip },
            mtu_bytes: config.mtu_bytes,
            queue_frames: config.queue_frames.max(1),
            trusted: config.trusted,
            outward: outward.clone(),
            inward: inward.clone(),
            own_bell: own_bell.clone(),
            peer_bell: peer_bell.clone(),
            statistics: Statistics::default(),
        }
    }

    fn has_peer(&self) -> bool {
        Arc::strong_count(&self.outward) > 1
    }
    /// Whether a frame of `length` bytes goes nowhere.
    fn discards(&mut self, length: usize) -> bool {
        let why = match () {
            () if !self.has_peer() => Discard::NoPeer,
            () if length > self.mtu_bytes + self.format.header_bytes() => Discard::TooLong,
            () => return false,
        };
        self.statistics = self.statistics.with_discarded(why);
        true
    }
    /// A frame of `length` bytes waits for the other end.
    fn took(&mut self, length: usize, was_empty: bool) {
        if was_empty {
            ring(&self.peer_bell);
        }
        self.statistics = self.statistics.with_transmitted(length);
    }
}

impl Device for Memory {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let length = frame.len();
        if self.discards(length) {
            return Ok(());
        }
        let mut lane = hold(&self.outward);
        let packet = if lane.waiting.len() < self.queue_frames { lane.pool.take(length) } else { None };
        let Some(mut packet) = packet else {
            if lane.waiting.is_empty() {
                // A frame this long would never fit.
                self.statistics = self.statistics.with_discarded(Discard::TooLong);
                return Ok(());
            }
            lane.sender_waits = true;
            self.statistics.full += 1;
            return Err(Full);
        };
        let written = packet.extend(length).and_then(|into| match self.trusted {
            true => frame.write_to(into),
            false => offload::complete(frame, into),
        });
        if written != Some(length) {
            lane.pool.give(packet);
            self.statistics = self.statistics.with_discarded(Discard::Framing);
            return Ok(());
        }
        if self.trusted {
            packet.set_checksum(frame.verified_checksum());
        }
        let was_empty = lane.waiting.is_empty();
        lane.waiting.push_back(packet);
        drop(lane);
        self.took(length, was_empty);
        Ok(())
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let length = frame.len();
        if self.discards(length) {
            return Ok(());
        }
        let mut guard = hold(&self.outward);
        let lane = &mut *guard;
        let was_empty = lane.waiting.is_empty();
        let has_room = lane.waiting.len() < self.queue_frames;
        let Some(mut head) = lane.pool.take(frame.header.len()).filter(|_| has_room) else {
            drop(guard);
            // The copying path reports that the queue is full, or copies the frame.
            return self.transmit(frame);
        };
        head.set_checksum(frame.verified_checksum());
        // Every buffer has room for headers.
        if let Err(head) = frame.share(payload, head, |packet| lane.waiting.push_back(packet)) {
            lane.pool.give(head);
        }
        drop(guard);
        self.took(length, was_empty);
        Ok(())
    }
    fn offers(&self) -> Offers {
        // On a trusted link checksums are not verified; frames that leave the process get them there.
        Offers { checksum: self.trusted, sharing: self.trusted, ..Offers::NONE }
    }
}

impl Driver for Memory {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        if let Some(bell) = &self.own_bell {
            // Cleared before the queue is read, so that later frames signal again.
            let _ = rustix::io::read(bell.as_ref(), &mut [0u8; 8]);
        }
        let mut lane = hold(&self.inward);
        let mut count = 0;
        while batch.has_room() {
            let Some(packet) = lane.waiting.pop_front() else { break };
            let pieces = packet.pieces().min(lane.waiting.len());
            let length = packet.len() + lane.waiting.range(..pieces).map(Packet::len).sum::<usize>();
            let Some(spare) = pool.take(packet.len()) else {
                lane.pool.give(packet);
                lane.waiting.drain(..pieces);
                self.statistics = self.statistics.with_discarded(Discard::NoMemory);
                continue;
            };
            lane.pool.give(spare);
            // There is room for all of it. Pieces are in their sender's memory, and no pool's.
            let frame = core::iter::once(packet).chain(lane.waiting.drain(..pieces));
            frame.for_each(|packet| drop(batch.push(packet)));
            self.statistics = self.statistics.with_received(length);
            count += 1;
        }
        let wake_sender = core::mem::take(&mut lane.sender_waits);
        let more = !lane.waiting.is_empty();
        drop(lane);
        if wake_sender {
            ring(&self.peer_bell);
        }
        if more {
            ring(&self.own_bell);
        }
        Ok(count)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.own_bell.as_ref().map(|bell| bell.as_fd())
    }
    fn wants_write(&self) -> bool {
        false
    }
    fn has_received(&self) -> bool {
        !hold(&self.inward).waiting.is_empty()
    }
    fn can_transmit(&self) -> bool {
        !hold(&self.outward).sender_waits
    }
    fn deadline(&self, _now: Instant) -> Option<Instant> {
        None
    }
    fn advance(&mut self, _now: Instant) {}
    fn frame_format(&self) -> FrameFormat {
        self.format
    }
    fn mtu_bytes(&self) -> usize {
        self.mtu_bytes
    }
    fn describe(&self) -> String {
        let kind = match self.format {
            FrameFormat::Ethernet(address) => format!("Ethernet, address {address}, "),
            FrameFormat::Ip => String::new(),
        };
        format!("{}, in-process, {kind}MTU {}", self.name, self.mtu_bytes)
    }
    fn statistics(&self) -> Statistics {
        self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_buf::{Offload, Slices};

    fn send(driver: &mut Memory, bytes: &[u8]) -> Result<(), Full> {
        let (header, payload) = bytes.split_at(bytes.len() / 2);
        driver.transmit(&Frame { header, payload: Slices::one(payload), offload: Offload::None })
    }

    #[test]
    fn frames_cross_both_ways_in_order_and_the_accounts_of_memory_stay_right() {
        let (mut a, mut b) = pair(&Config { mtu_bytes: 9000, ..Config::default() }).unwrap();
        let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
        for length in [1, 20, 400, 1500, 9000] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            send(&mut a, &bytes).unwrap();
            send(&mut b, &bytes).unwrap();
            for end in [&mut a, &mut b] {
                assert!(end.has_received());
                assert_eq!(end.receive(&mut pool, &mut batch).unwrap(), 1);
                let packet = batch.pop().unwrap();
                assert_eq!(packet.bytes(), bytes);
                pool.give(packet);
            }
        }
        assert_eq!(pool.outstanding_bytes(), 0);
        assert_eq!(hold(&a.outward).pool.outstanding_bytes(), 0);
        send(&mut a, &[0; 9001]).unwrap();
        assert_eq!((b.has_received(), a.statistics().discarded(Discard::TooLong)), (false, 1));
        assert_eq!((a.statistics().transmitted_frames, a.statistics().received_frames), (5, 5));
    }

    #[test]
    fn a_full_queue_pushes_back_until_the_other_end_reads() {
        let (mut a, mut b) = pair(&Config { queue_frames: 3, doorbell: true, ..Config::default() }).unwrap();
        let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
        for _ in 0..3 {
            send(&mut a, b"some").unwrap();
        }
        assert_eq!(send(&mut a, b"more"), Err(Full));
        assert!(!a.can_transmit() && is_readable(&b) && !is_readable(&a));
        assert_eq!(b.receive(&mut pool, &mut batch).unwrap(), 3);
        assert!(a.can_transmit() && is_readable(&a) && !is_readable(&b));
        send(&mut a, b"more").unwrap();
        assert!(is_readable(&b));
        drop(b);
        send(&mut a, b"lost").unwrap();
        assert_eq!((a.statistics().full, a.statistics().discarded(Discard::NoPeer)), (1, 1));
    }

    #[test]
    fn a_receiver_without_memory_discards_and_counts() {
        let (mut a, mut b) = pair(&Config::default()).unwrap();
        let (mut pool, mut batch) = (Pool::new(600), Batch::new());
        send(&mut a, &[1; 300]).unwrap();
        send(&mut a, &[2; 300]).unwrap();
        assert_eq!(b.receive(&mut pool, &mut batch).unwrap(), 1);
        assert_eq!(b.statistics().discarded(Discard::NoMemory), 1);
        assert_eq!(hold(&a.outward).pool.outstanding_bytes(), 0);
    }

    fn is_readable(driver: &Memory) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut wait = [PollFd::from_borrowed_fd(driver.descriptor().unwrap(), PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut wait, Some(&now)).unwrap() == 1
    }
}
