//! The emulator: one thread that carries packets between pairs of TUN devices as their wires say.

use super::capture::Capture;
use super::wire::{Wire, WireConfig, WireCount};
use crate::figures::{machine, statistics::Histogram};
use inhost_buf::{Batch, Pool};
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
    wires: [WireConfig; 2],
    count: Arc<Mutex<PathCount>>,
    capture: Option<Capture>,
}

/// The running emulator.
pub struct Emulator {
    orders: Sender<Order>,
    bell: Arc<OwnedFd>,
    next_id: Mutex<u64>,
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
        let works = Works {
            epoll,
            clock: Clock::start(),
            bell: bell.clone(),
            incoming,
            paths: BTreeMap::new(),
            pool: Pool::new(MEMORY_BYTES),
            batch: Batch::new(),
        };
        let thread = std::thread::Builder::new().name("emulator".into()).spawn(move || works.run())?;
        Ok(Emulator { orders, bell, next_id: Mutex::new(0), thread: Some(thread) })
    }
    /// Carries packets between two devices: `wires[0]` what comes from the first, `wires[1]` what comes from the
    /// second. What enters is written to `capture`.
    pub fn join(&self, ends: [Tunnel; 2], wires: [WireConfig; 2], capture: Option<Capture>) -> Path<'_> {
        let id = {
            let mut next = self.next_id.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 2;
            *next
        };
        let count = Arc::default();
        self.order(Order::Join(Box::new(Joining { id, ends, wires, count: Arc::clone(&count), capture })));
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

/// A path: `wires[i]` carries from `ends[i]` to the other.
struct Joined {
    ends: [Tunnel; 2],
    wires: [Wire; 2],
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
                    let Joining { id, ends, wires, count, capture } = *joining;
                    for (end, token) in ends.iter().zip(id..) {
                        let descriptor = end.descriptor().ok_or(io::ErrorKind::NotFound)?;
                        let data = epoll::EventData::new_u64(token);
                        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)?;
                    }
                    let now = self.clock.now();
                    let wires = wires.map(|config| Wire::new(config, now));
                    self.paths.insert(id, Joined { ends, wires, count, capture });
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
                if let Err(lost) = path.wires[end].offer(packet, now) {
                    self.pool.give(lost);
                }
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
        let wires = self.paths.values().flat_map(|path| &path.wires);
        let wait = wires.filter_map(Wire::next_arrival).min()?.since(self.clock.now());
        Some(Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: (wait.as_nanos() % 1_000_000_000) as _ })
    }
}

impl Joined {
    fn deliver(&mut self, clock: &Clock, pool: &mut Pool) {
        let now = clock.now();
        if self.wires.iter().filter_map(Wire::next_arrival).all(|next| next > now) {
            return;
        }
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        for from in 0..2 {
            while let Some((due, packet)) = self.wires[from].arrived(now) {
                count.late.add(now.since(due).as_nanos());
                let to = self.ends[1 - from].descriptor();
                if to.is_none_or(|to| rustix::io::write(to, packet.bytes()).is_err()) {
                    count.refused += 1;
                }
                pool.give(packet);
            }
        }
        count.wires = [self.wires[0].count, self.wires[1].count];
    }
}
