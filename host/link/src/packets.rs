//! A link whose other end is the program: it puts packets in and takes packets out.

use crate::{Discard, Driver, FrameFormat, Statistics, offload};
use inhost_base::Instant;
use inhost_buf::{Batch, Device, Frame, Full, Pool};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Configuration of [`link`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The longest IP packet. Default: 1500 bytes.
    pub mtu_bytes: usize,
    /// Packets that wait in each direction. Default: 512.
    pub queue_packets: usize,
    /// Memory of the packets that wait in each direction. Default: 4 MiB.
    pub queue_bytes: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config { mtu_bytes: 1500, queue_packets: 512, queue_bytes: 4 << 20 }
    }
}

/// Makes a link: the program's end, and the driver for the host.
///
/// ```
/// use inhost_buf::{Batch, Device, Frame, Offload, Pool, Slices};
/// use inhost_link::{Driver, packets};
///
/// let (program, mut driver) = packets::link(packets::Config::default())?;
/// assert!(program.try_send(b"an IP packet"));
/// let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
/// assert_eq!(driver.receive(&mut pool, &mut batch)?, 1);
/// assert_eq!(batch.pop().unwrap().bytes(), b"an IP packet");
///
/// let frame = Frame { header: b"another", payload: Slices::EMPTY, offload: Offload::None };
/// driver.transmit(&frame).unwrap();
/// assert_eq!(program.try_receive().unwrap(), b"another");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When the system has no descriptor left for the host's wake-up.
pub fn link(config: Config) -> io::Result<(Packets, PacketDriver)> {
    use rustix::event::{EventfdFlags, eventfd};
    let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
    let shared = Arc::new(Shared { config, bell, state: Mutex::default() });
    let driver = PacketDriver { shared: shared.clone(), statistics: Statistics::default() };
    Ok((Packets { program: Arc::new(Program(shared)) }, driver))
}

/// The program's end of a link. Clones are the same end.
#[derive(Clone, Debug)]
pub struct Packets {
    program: Arc<Program>,
}

/// The host's end of a link.
#[derive(Debug)]
pub struct PacketDriver {
    shared: Arc<Shared>,
    statistics: Statistics,
}

/// Tells the host when the last handle of the program's end is gone.
#[derive(Debug)]
struct Program(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: Config,
    /// Wakes the host.
    bell: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    /// To the host.
    inward: Queue,
    /// To the program.
    outward: Queue,
    /// The host found no room; it is to be woken when there is some.
    host_waits: bool,
    is_host_gone: bool,
    is_program_gone: bool,
    receivers: Vec<Waker>,
    senders: Vec<Waker>,
    /// Packets for the host that were dropped.
    discarded: Statistics,
}

#[derive(Default, Debug)]
struct Queue {
    packets: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Queue {
    fn has_room(&self, config: &Config) -> bool {
        self.packets.len() < config.queue_packets && self.bytes < config.queue_bytes
    }
    fn push(&mut self, packet: Vec<u8>) {
        self.bytes += packet.capacity();
        self.packets.push_back(packet);
    }
    fn pop(&mut self) -> Option<Vec<u8>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.capacity();
        Some(packet)
    }
}

impl State {
    /// Whether the host takes a packet now; `None` when it may later.
    fn takes(&self, config: &Config) -> Option<Result<(), HostGone>> {
        match () {
            () if self.is_host_gone => Some(Err(HostGone)),
            () if self.inward.has_room(config) => Some(Ok(())),
            () => None,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn ring(&self) {
        // It fails only at the limit of its count, when it is readable anyway.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

impl Packets {
    /// The longest packet.
    pub fn mtu_bytes(&self) -> usize {
        self.program.0.config.mtu_bytes
    }
    /// Hands a packet to the host; false when the queue is full or the host is gone.
    ///
    /// A packet that is empty, or longer than [`Packets::mtu_bytes`], is taken and dropped, as a network does with it:
    /// a tunnel goes on when its peer sends such. [`Packets::discarded`] counts them.
    pub fn try_send(&self, packet: &[u8]) -> bool {
        self.poll_send(&mut Context::from_waker(Waker::noop()), packet) == Poll::Ready(Ok(()))
    }
    /// Hands a packet to the host; waits while the queue is full. One that is empty or too long is dropped and counted, as by
    /// [`Packets::try_send`].
    ///
    /// # Errors
    /// When the host is gone.
    pub async fn send(&self, packet: &[u8]) -> Result<(), HostGone> {
        poll_fn(|context| self.poll_send(context, packet)).await
    }
    /// One step of [`Packets::send`].
    pub fn poll_send(&self, context: &mut Context<'_>, packet: &[u8]) -> Poll<Result<(), HostGone>> {
        let shared = &self.program.0;
        let mut state = shared.lock();
        match state.takes(&shared.config) {
            Some(Ok(())) => {}
            Some(Err(gone)) => return Poll::Ready(Err(gone)),
            None => return wait(state, |state| &mut state.senders, context),
        }
        let why = match packet.len() {
            0 => Some(Discard::Framing),
            length => (length > shared.config.mtu_bytes).then_some(Discard::TooLong),
        };
        if let Some(why) = why {
            state.discarded = state.discarded.with_discarded(why);
            return Poll::Ready(Ok(()));
        }
        let was_empty = state.inward.packets.is_empty();
        state.inward.push(packet.to_vec());
        drop(state);
        if was_empty {
            shared.ring();
        }
        Poll::Ready(Ok(()))
    }
    /// Waits until the host would take a packet.
    pub fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<Result<(), HostGone>> {
        let shared = &self.program.0;
        let state = shared.lock();
        match state.takes(&shared.config) {
            Some(ready) => Poll::Ready(ready),
            None => wait(state, |state| &mut state.senders, context),
        }
    }
    /// Packets for the host that were dropped for `why`: [`Discard::TooLong`] counts those longer than the MTU,
    /// [`Discard::Framing`] empty ones, and [`Discard::NoMemory`] those for which the host had no memory. The last are known
    /// once the host has looked. The driver's [`Statistics`] have them, too, together with those that the host sent.
    ///
    /// ```
    /// use inhost_link::{Discard, packets};
    ///
    /// let (program, driver) = packets::link(packets::Config::default())?;
    /// assert!(program.try_send(b""));
    /// assert!(program.try_send(&[0x45; 1501]));
    /// assert_eq!((program.discarded(Discard::Framing), program.discarded(Discard::TooLong)), (1, 1));
    /// # drop(driver);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn discarded(&self, why: Discard) -> u64 {
        self.program.0.lock().discarded.discarded(why)
    }
    /// A packet that the host sent, if there is one.
    pub fn try_receive(&self) -> Option<Vec<u8>> {
        match self.poll_receive(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(packet) => packet,
            Poll::Pending => None,
        }
    }
    /// The next packet that the host sends; `None` when the host is gone.
    pub async fn receive(&self) -> Option<Vec<u8>> {
        poll_fn(|context| self.poll_receive(context)).await
    }
    /// One step of [`Packets::receive`].
    pub fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let shared = &self.program.0;
        let mut state = shared.lock();
        let Some(packet) = state.outward.pop() else {
            if state.is_host_gone {
                return Poll::Ready(None);
            }
            return wait(state, |state| &mut state.receivers, context);
        };
        let host_waits = std::mem::take(&mut state.host_waits);
        drop(state);
        if host_waits {
            shared.ring();
        }
        Poll::Ready(Some(packet))
    }
}

/// The host of a link was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostGone;

impl core::fmt::Display for HostGone {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the host of the link was stopped")
    }
}
impl core::error::Error for HostGone {}

impl From<HostGone> for io::Error {
    fn from(gone: HostGone) -> io::Error {
        io::Error::new(io::ErrorKind::BrokenPipe, gone)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.lock().is_program_gone = true;
        self.0.ring();
    }
}

impl Drop for PacketDriver {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_host_gone = true;
        let woken = [std::mem::take(&mut state.receivers), std::mem::take(&mut state.senders)];
        drop(state);
        woken.into_iter().flatten().for_each(Waker::wake);
    }
}

/// Tasks that wait for one direction; when more come, the oldest looks again.
const WAITERS: usize = 32;

/// Has a task woken at the next change. One that waits twice is woken once.
fn wait<T>(
    mut state: MutexGuard<'_, State>,
    waiting: fn(&mut State) -> &mut Vec<Waker>,
    context: &Context<'_>,
) -> Poll<T> {
    let waiting = waiting(&mut state);
    let mut oldest = None;
    if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
        oldest = (waiting.len() >= WAITERS).then(|| waiting.remove(0));
        waiting.push(context.waker().clone());
    }
    drop(state);
    oldest.into_iter().for_each(Waker::wake);
    Poll::Pending
}

impl Device for PacketDriver {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let length = frame.len();
        let mut state = self.shared.lock();
        let why = match () {
            () if state.is_program_gone => Some(Discard::NoPeer),
            () if length > self.shared.config.mtu_bytes => Some(Discard::TooLong),
            () => None,
        };
        if let Some(why) = why {
            self.statistics = self.statistics.with_discarded(why);
            return Ok(());
        }
        if !state.outward.has_room(&self.shared.config) {
            state.host_waits = true;
            self.statistics.full += 1;
            return Err(Full);
        }
        let mut packet = vec![0; length];
        if offload::complete(frame, &mut packet).is_none() {
            self.statistics = self.statistics.with_discarded(Discard::Framing);
            return Ok(());
        }
        state.outward.push(packet);
        let woken = std::mem::take(&mut state.receivers);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.statistics = self.statistics.with_transmitted(length);
        Ok(())
    }
}

impl Driver for PacketDriver {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        // Cleared before the queue is read, so that later packets ring again.
        let _ = rustix::io::read(&self.shared.bell, &mut [0; 8]);
        let mut state = self.shared.lock();
        let mut count = 0;
        while batch.has_room() {
            let Some(bytes) = state.inward.pop() else { break };
            let Some(mut packet) = pool.take(bytes.len()) else {
                state.discarded = state.discarded.with_discarded(Discard::NoMemory);
                continue;
            };
            packet.append(&bytes);
            self.statistics = self.statistics.with_received(bytes.len());
            count += 1;
            if let Err(packet) = batch.push(packet) {
                pool.give(packet);
            }
        }
        let more = !state.inward.packets.is_empty();
        let woken = std::mem::take(&mut state.senders);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        if more {
            self.shared.ring();
        }
        Ok(count)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.bell.as_fd())
    }
    fn wants_write(&self) -> bool {
        false
    }
    fn has_received(&self) -> bool {
        !self.shared.lock().inward.packets.is_empty()
    }
    fn can_transmit(&self) -> bool {
        !self.shared.lock().host_waits
    }
    fn deadline(&self, _: Instant) -> Option<Instant> {
        None
    }
    fn advance(&mut self, _: Instant) {}
    fn frame_format(&self) -> FrameFormat {
        FrameFormat::Ip
    }
    fn mtu_bytes(&self) -> usize {
        self.shared.config.mtu_bytes
    }
    fn describe(&self) -> String {
        format!("packets of the program, MTU {}", self.shared.config.mtu_bytes)
    }
    fn statistics(&self) -> Statistics {
        let inward = self.shared.lock().discarded;
        let mut all = self.statistics;
        all.discarded.iter_mut().zip(inward.discarded).for_each(|(count, more)| *count += more);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_buf::{Offload, Slices};

    fn frame(bytes: &[u8]) -> Frame<'_> {
        Frame { header: bytes, payload: Slices::EMPTY, offload: Offload::None }
    }

    #[test]
    fn both_queues_are_bounded_and_wake_who_waits() {
        let config = Config { queue_packets: 2, ..Config::default() };
        let (program, mut driver) = link(config).unwrap();
        assert!(program.try_send(b"1") && program.try_send(b"2") && !program.try_send(b"3"));
        assert!(driver.has_received());
        let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
        assert_eq!(driver.receive(&mut pool, &mut batch).unwrap(), 2);
        assert!(program.try_send(b"3"));
        assert_eq!((driver.transmit(&frame(b"a")), driver.transmit(&frame(b"b"))), (Ok(()), Ok(())));
        assert_eq!(driver.transmit(&frame(b"c")), Err(Full));
        assert!(!driver.can_transmit());
        assert_eq!(program.try_receive().as_deref(), Some(&b"a"[..]));
        assert!(driver.can_transmit());
        assert_eq!(driver.transmit(&frame(b"c")), Ok(()));
    }

    #[test]
    fn what_is_too_long_is_counted_and_an_end_learns_that_the_other_is_gone() {
        let config = Config { mtu_bytes: 20, ..Config::default() };
        let (program, mut driver) = link(config).unwrap();
        assert!(program.try_send(&[0; 21]) && program.try_send(&[]));
        let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
        assert_eq!(driver.receive(&mut pool, &mut batch).unwrap(), 0);
        assert_eq!((program.discarded(Discard::TooLong), program.discarded(Discard::Framing)), (1, 1));
        assert!(program.try_send(&[0; 20]));
        assert_eq!(driver.receive(&mut Pool::new(0), &mut batch).unwrap(), 0);
        assert_eq!(program.discarded(Discard::NoMemory), 1);
        assert_eq!(driver.transmit(&frame(&[0; 21])), Ok(()));
        assert_eq!(driver.statistics().discarded(Discard::TooLong), 2);
        assert_eq!(driver.statistics().discarded(Discard::Framing), 1);
        let other = program.clone();
        drop(program);
        assert!(other.try_send(b"x"));
        drop(other);
        assert_eq!(driver.transmit(&frame(b"x")), Ok(()));
        assert_eq!(driver.statistics().discarded(Discard::NoPeer), 1);
        let (program, driver) = link(Config::default()).unwrap();
        drop(driver);
        assert!(!program.try_send(b"x"));
        assert_eq!(program.poll_receive(&mut Context::from_waker(Waker::noop())), Poll::Ready(None));
    }
}
