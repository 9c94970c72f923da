//! The emulator: one thread that carries packets between pairs of TUN devices as their wires say.

use super::capture::Capture;
use super::wire::{Wire, WireCount};
use crate::figures::{machine, statistics::Histogram};
use inhost_base::Instant;
use inhost_buf::{Batch, Packet, Pool};
use inhost_link::{Driver, Tunnel};
use inhost_runtime::Clock;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Memory for the packets on all wires.
const MEMORY_BYTES: usize = 1 << 30;
/// Batches read from one device before the others have their turn.
const BATCHES_A_TURN: usize = 4;
/// The token of the eventfd that tells of orders.
const ORDERS: u64 = u64::MAX;
/// The real-time priority of the emulator, above those of sender and receiver.
const PRIORITY: u32 = 20;

/// What carries packets between the two ends of a path. It reads no clock.
pub trait Carrier: Send {
    /// Takes a packet that left `end`.
    fn offer(&mut self, end: usize, packet: Packet, now: Instant, pool: &mut Pool);
    /// When something is due next.
    fn next(&self) -> Option<Instant>;
    /// Gives `hand` what has arrived by `now`: at which end, when it was due, and the packet.
    fn deliver(&mut self, now: Instant, pool: &mut Pool, hand: &mut dyn FnMut(usize, Instant, &[u8]));
    /// What each way has done so far.
    fn counts(&self) -> [WireCount; 2];
}

/// From the first end to the second, and back.
impl Carrier for [Wire; 2] {
    fn offer(&mut self, end: usize, packet: Packet, now: Instant, pool: &mut Pool) {
        if let Err(lost) = self[end].offer(packet, now) {
            pool.give(lost);
        }
    }
    fn next(&self) -> Option<Instant> {
        self.iter().filter_map(Wire::next_arrival).min()
    }
    fn deliver(&mut self, now: Instant, pool: &mut Pool, hand: &mut dyn FnMut(usize, Instant, &[u8])) {
        for (from, wire) in self.iter_mut().enumerate() {
            while let Some((due, packet)) = wire.arrived(now) {
                hand(1 - from, due, packet.bytes());
                pool.give(packet);
            }
        }
    }
    fn counts(&self) -> [WireCount; 2] {
        [self[0].count, self[1].count]
    }
}

/// What the wires of a path have done, and how late the emulator itself was.
#[derive(Clone, Default, Debug)]
pub struct PathCount {
    /// From the sender to the receiver, and back.
    pub wires: [WireCount; 2],
    /// How much later than it should have packets were handed over.
    pub late: Histogram,
    /// Packets that a device did not take.
    pub refused: u64,
}

/// What can be asked of the emulator's thread.
enum Order {
    Join(Box<Joining>),
    Cut(u64),
    End,
}

/// A path that is to be.
struct Joining {
    id: u64,
    ends: [Tunnel; 2],
    carrier: Box<dyn Carrier>,
    count: Arc<Mutex<PathCount>>,
    capture: Option<Capture>,
}

/// The running emulator.
pub struct Emulator {
    orders: Sender<Order>,
    bell: Arc<OwnedFd>,
    next_id: Mutex<u64>,
    clock: Clock,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// A path through the emulator; it is cut when this is dropped.
pub struct Path<'a> {
    emulator: &'a Emulator,
    id: u64,
    count: Arc<Mutex<PathCount>>,
}

impl Emulator {
    /// Starts the thread.
    pub fn start() -> io::Result<Emulator> {
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let (orders, incoming) = channel();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, bell.as_fd(), epoll::EventData::new_u64(ORDERS), epoll::EventFlags::IN)?;
        let clock = Clock::start();
        let works = Works {
            epoll,
            clock,
            bell: bell.clone(),
            incoming,
            paths: BTreeMap::new(),
            pool: Pool::new(MEMORY_BYTES),
            batch: Batch::new(),
        };
        let thread = std::thread::Builder::new().name("emulator".into()).spawn(move || works.run())?;
        Ok(Emulator { orders, bell, next_id: Mutex::new(0), clock, thread: Some(thread) })
    }
    /// The clock by which it carries.
    pub fn clock(&self) -> Clock {
        self.clock
    }
    /// Carries packets between two devices as `carrier` does. What enters is written to `capture`.
    pub fn join(&self, ends: [Tunnel; 2], carrier: Box<dyn Carrier>, capture: Option<Capture>) -> Path<'_> {
        let id = {
            let mut next = self.next_id.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 2;
            *next
        };
        let count = Arc::default();
        let joining = Joining { id, ends, carrier, count: Arc::clone(&count), capture };
        self.order(Order::Join(Box::new(joining)));
        Path { emulator: self, id, count }
    }
    fn order(&self, order: Order) {
        // A thread that has ended has told why, and drops everything.
        let _ = self.orders.send(order);
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.order(Order::End);
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("inhost-bench: the emulator ended early: {error}");
        }
    }
}

impl Path<'_> {
    /// What has happened so far.
    pub fn count(&self) -> PathCount {
        self.count.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Path<'_> {
    fn drop(&mut self) {
        self.emulator.order(Order::Cut(self.id));
    }
}

/// What the thread owns.
struct Works {
    epoll: OwnedFd,
    clock: Clock,
    bell: Arc<OwnedFd>,
    incoming: Receiver<Order>,
    paths: BTreeMap<u64, Joined>,
    pool: Pool,
    batch: Batch,
}

/// A path between two devices.
struct Joined {
    ends: [Tunnel; 2],
    carrier: Box<dyn Carrier>,
    count: Arc<Mutex<PathCount>>,
    capture: Option<Capture>,
}

impl Works {
    fn run(mut self) -> io::Result<()> {
        machine::run_in_real_time(rustix::thread::gettid(), PRIORITY);
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        loop {
            self.deliver();
            let timeout = self.until_next();
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    ORDERS => {
                        if !self.obey()? {
                            return Ok(());
                        }
                    }
                    token => self.read(token),
                }
            }
        }
    }
    fn obey(&mut self) -> io::Result<bool> {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        while let Ok(order) = self.incoming.try_recv() {
            match order {
                Order::Join(joining) => {
                    let Joining { id, ends, carrier, count, capture } = *joining;
                    for (end, token) in ends.iter().zip(id..) {
                        let descriptor = end.descriptor().ok_or(io::ErrorKind::NotFound)?;
                        let data = epoll::EventData::new_u64(token);
                        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)?;
                    }
                    self.paths.insert(id, Joined { ends, carrier, count, capture });
                }
                Order::Cut(id) => self.cut(id)?,
                Order::End => return Ok(false),
            }
        }
        Ok(true)
    }
    /// Lets go of a path. The kernel takes tens of milliseconds to close a device, which the packets of the other
    /// paths cannot wait for: another thread closes them.
    fn cut(&mut self, id: u64) -> io::Result<()> {
        let Some(path) = self.paths.remove(&id) else { return Ok(()) };
        for end in &path.ends {
            let descriptor = end.descriptor().ok_or(io::ErrorKind::NotFound)?;
            epoll::delete(&self.epoll, descriptor)?;
        }
        std::thread::Builder::new().name("closing".into()).spawn(move || drop(path)).map(drop)
    }
    /// Takes what a device has, within a turn.
    fn read(&mut self, token: u64) {
        let (id, end) = (token & !1, (token & 1) as usize);
        let Some(path) = self.paths.get_mut(&id) else { return };
        for _ in 0..BATCHES_A_TURN {
            if path.ends[end].receive(&mut self.pool, &mut self.batch).is_err() {
                return;
            }
            let (now, full) = (self.clock.now(), self.batch.is_full());
            while let Some(packet) = self.batch.pop() {
                if let Some(capture) = &mut path.capture {
                    capture.add(packet.bytes(), now);
                }
                path.carrier.offer(end, packet, now, &mut self.pool);
            }
            if !full {
                return;
            }
        }
    }
    /// Hands over what has arrived.
    fn deliver(&mut self) {
        for path in self.paths.values_mut() {
            path.deliver(&self.clock, &mut self.pool);
        }
    }
    fn until_next(&self) -> Option<Timespec> {
        let next = self.paths.values().filter_map(|path| path.carrier.next()).min();
        let wait = next?.since(self.clock.now());
        Some(Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: (wait.as_nanos() % 1_000_000_000) as _ })
    }
}

impl Joined {
    fn deliver(&mut self, clock: &Clock, pool: &mut Pool) {
        let now = clock.now();
        if self.carrier.next().is_none_or(|next| next > now) {
            return;
        }
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        self.carrier.deliver(now, pool, &mut |end, due, packet| {
            count.late.add(now.since(due).as_nanos());
            let to = self.ends[end].descriptor();
            if to.is_none_or(|to| rustix::io::write(to, packet).is_err()) {
                count.refused += 1;
            }
        });
        count.wires = self.carrier.counts();
    }
}
