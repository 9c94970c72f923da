//! The emulated path between client and server: it reads no clock, logs what becomes of each packet, and captures at the
//! client, in the middle and at the server.
//!
//! The middle is a place between two halves. The half at the client is a delay alone. The devices and the bottleneck of
//! each way are in the half at the server: what goes to the server passes the middle before them, what comes from the server
//! behind them.

pub mod head;
pub mod middlebox;

use crate::figures::kernel::emulator::Carrier;
use crate::figures::kernel::wire::WireCount;
use head::Head;
use inhost_base::{Duration, Instant, Random};
use inhost_buf::{Packet, Pool};
use inhost_sim::{Capture, Seen, Watcher};
use middlebox::{Action, Device, Outcome, Why};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a path is.
#[derive(Clone, Debug)]
pub struct Plan {
    /// From the client to the middle, and back.
    pub near: Duration,
    /// From the middle to the server, and back.
    pub ways: [Way; 2],
}

/// One direction of the half at the server.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Propagation.
    pub delay: Duration,
    /// The bottleneck; none for a path without.
    pub rate_bits_per_second: Option<u64>,
    /// Another rate of the bottleneck, from so long after its first packet on.
    pub changes: Option<(Duration, u64)>,
    /// Bytes that its queue holds; 0 for any number.
    pub queue_bytes: u64,
    /// What else stands there, before the queue.
    pub boxes: Vec<Action>,
}

impl Plan {
    /// A path of a round trip without a bottleneck.
    pub fn of(round_trip: Duration) -> Plan {
        let quarter = round_trip.divided_by(4);
        let way = Way { delay: quarter, ..Way::default() };
        Plan { near: quarter, ways: [way.clone(), way] }
    }
    /// With a bottleneck towards one side, whose queue holds so many bytes.
    pub fn bottleneck(mut self, way: usize, rate_bits_per_second: u64, queue_bytes: u64) -> Plan {
        self.ways[way].rate_bits_per_second = Some(rate_bits_per_second);
        self.ways[way].queue_bytes = queue_bytes;
        self
    }
    /// With another rate of that bottleneck, from so long after its first packet on.
    pub fn changes(mut self, way: usize, after: Duration, rate_bits_per_second: u64) -> Plan {
        self.ways[way].changes = Some((after, rate_bits_per_second));
        self
    }
    /// With a device on one way.
    pub fn with(mut self, way: usize, action: Action) -> Plan {
        self.ways[way].boxes.push(action);
        self
    }
    /// The least round trip, without the time to send a packet.
    pub fn round_trip(&self) -> Duration {
        self.near.times(2) + self.ways[0].delay + self.ways[1].delay
    }
}

/// What became of one packet.
#[derive(Clone, Debug)]
pub struct Passed {
    /// 0 to the server, 1 to the client.
    pub way: usize,
    /// Its headers as it left its sender.
    pub head: Head,
    /// Its headers behind the devices of the path.
    pub came: Head,
    /// When it left its sender; where a device made it, when that did.
    pub left: Instant,
    /// Why it did not arrive.
    pub lost: Option<Why>,
    /// It arrived damaged.
    pub damaged: bool,
    /// Made by a device, or a second copy.
    pub is_made: bool,
    /// When the bottleneck began to send it, and when that was done.
    pub sent: Option<(Instant, Instant)>,
    /// How long it waited in the queue.
    pub queued: Duration,
    /// When it arrived.
    pub arrived: Option<Instant>,
}

/// A packet that is due somewhere.
struct Due {
    packet: Vec<u8>,
    /// Its place in the log.
    number: usize,
    way: usize,
    at: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It passes the middle towards the server: devices and queue come next.
    MiddleUp,
    /// It passes the middle towards the client.
    MiddleDown,
    /// It arrives.
    End,
}

/// One direction at work.
struct Running {
    boxes: Vec<Device>,
    /// When the first packet came to the bottleneck.
    began: Option<Instant>,
    idle_at: Instant,
    /// The acknowledgment that is held.
    held: Option<(Instant, u64)>,
}

/// The path at work.
pub struct Path {
    plan: Plan,
    running: [Running; 2],
    random: Random,
    due: BTreeMap<(Instant, u64), Due>,
    count: u64,
    /// What became of every TCP segment.
    pub log: Vec<Passed>,
    captures: [Capture<Vec<u8>>; 3],
    gone: [Arc<AtomicBool>; 2],
    counts: [WireCount; 2],
    /// Added to times in captures: nanoseconds since 1970 at the clock's zero.
    epoch_ns: u64,
}

impl Path {
    /// An idle path. What is picked follows from `seed`; an end whose flag in `gone` is set has vanished.
    pub fn new(plan: Plan, seed: u64, epoch_ns: u64, gone: [Arc<AtomicBool>; 2]) -> Result<Path, String> {
        let running = plan.ways.clone().map(|way| Running {
            boxes: way.boxes.into_iter().map(Device::new).collect(),
            began: None,
            idle_at: Instant::ZERO,
            held: None,
        });
        let capture = || Capture::new(Vec::new()).map_err(|e| e.to_string());
        Ok(Path {
            plan,
            running,
            random: Random::from_number(seed),
            due: BTreeMap::new(),
            count: 0,
            log: Vec::new(),
            captures: [capture()?, capture()?, capture()?],
            gone,
            counts: Default::default(),
            epoch_ns,
        })
    }
    /// Takes a packet that leaves an end: 0 the client, 1 the server.
    pub fn offer(&mut self, end: usize, packet: Vec<u8>, now: Instant) {
        if self.gone[end].load(Ordering::Relaxed) {
            return;
        }
        let number = self.note(end, &packet, now, false);
        self.capture(2 * end, &packet, now, true);
        self.enter(end, number, packet, now);
    }
    /// When something is due next.
    pub fn next(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }
    /// Moves packets on as far as is due by `now`, and hands over those that arrive: the end, when it was due, the bytes.
    pub fn advance(&mut self, now: Instant, mut hand: impl FnMut(usize, Instant, &[u8])) {
        while let Some(first) = self.due.first_entry()
            && first.key().0 <= now
        {
            let at = first.key().0;
            let Due { packet, number, way, at: stage } = first.remove();
            match stage {
                Stage::MiddleUp => {
                    self.capture(1, &packet, at, false);
                    self.devices(way, number, packet, at);
                }
                Stage::MiddleDown => {
                    self.capture(1, &packet, at, true);
                    self.later(at + self.plan.near, Due { packet, number, way, at: Stage::End });
                }
                Stage::End => {
                    let end = 1 - way;
                    if self.gone[end].load(Ordering::Relaxed) {
                        self.lose(number, Why::Vanished);
                        continue;
                    }
                    // A packet is there when it is handed over, which under a real clock is a little later than due.
                    self.capture(2 * end, &packet, now, false);
                    if let Some(passed) = self.log.get_mut(number) {
                        passed.arrived = Some(now);
                    }
                    self.counts[way].carried += 1;
                    self.counts[way].carried_bytes += packet.len() as u64;
                    hand(end, at, &packet);
                }
            }
        }
    }
    /// The log, and the captures at client, middle and server.
    pub fn finish(self) -> Result<(Vec<Passed>, [Vec<u8>; 3]), String> {
        let [client, middle, server] =
            self.captures.map(|capture| capture.finish().map_err(|e| e.to_string()));
        Ok((self.log, [client?, middle?, server?]))
    }
    /// The first place of the log that is not there stands for packets that are not TCP.
    fn note(&mut self, way: usize, packet: &[u8], now: Instant, is_made: bool) -> usize {
        let Some(head) = Head::of(packet) else { return usize::MAX };
        self.log.push(Passed {
            way,
            head,
            came: head,
            left: now,
            lost: None,
            damaged: false,
            is_made,
            sent: None,
            queued: Duration::ZERO,
            arrived: None,
        });
        self.log.len() - 1
    }
    fn lose(&mut self, number: usize, why: Why) {
        if let Some(passed) = self.log.get_mut(number) {
            passed.lost = Some(why);
            self.counts[passed.way].lost += 1;
        }
    }
    fn later(&mut self, at: Instant, due: Due) {
        self.count += 1;
        self.due.insert((at, self.count), due);
    }
    fn enter(&mut self, way: usize, number: usize, packet: Vec<u8>, now: Instant) {
        match way {
            0 => self.later(now + self.plan.near, Due { packet, number, way, at: Stage::MiddleUp }),
            _ => self.devices(way, number, packet, now),
        }
    }
    fn devices(&mut self, way: usize, number: usize, mut packet: Vec<u8>, now: Instant) {
        let mut out = Outcome::default();
        for device in &mut self.running[way].boxes {
            device.pass(&mut packet, now, &mut self.random, &mut out);
            if out.lost.is_some() {
                break;
            }
        }
        if let Some(passed) = self.log.get_mut(number) {
            passed.damaged = out.damaged;
            passed.came = Head::of(&packet).unwrap_or(passed.came);
        }
        if let Some(why) = out.lost {
            self.lose(number, why);
        } else {
            let again = out.twice.then(|| packet.clone());
            let at = self.queue(way, number, packet, now, out.held);
            if out.thins {
                self.thin(way, at);
            }
            if let Some(again) = again {
                let number = self.note(way, &again, now, true);
                self.queue(way, number, again, now, out.held);
            }
        }
        for (made, way) in out.made.into_iter().zip([way, 1 - way]) {
            if let Some(made) = made {
                let number = self.note(way, &made, now, true);
                self.queue(way, number, made, now, Duration::ZERO);
            }
        }
    }
    /// Drops the acknowledgment that is held until the same time.
    fn thin(&mut self, way: usize, at: Option<Instant>) {
        let newer = at.map(|at| (at, self.count));
        let held = std::mem::replace(&mut self.running[way].held, newer);
        if let Some(key) = held.filter(|(until, _)| Some(*until) == at)
            && let Some(due) = self.due.remove(&key)
        {
            self.lose(due.number, Why::Thinned);
        }
    }
    /// Lets a packet through the bottleneck; when it has passed the half at the server, or none when it is lost.
    fn queue(
        &mut self,
        way: usize,
        number: usize,
        packet: Vec<u8>,
        now: Instant,
        held: Duration,
    ) -> Option<Instant> {
        let plan = &self.plan.ways[way];
        let mut done = now;
        if let Some(first_rate) = plan.rate_bits_per_second {
            let time = now.since(*self.running[way].began.get_or_insert(now));
            let rate = plan.changes.filter(|(after, _)| time >= *after).map_or(first_rate, |(_, rate)| rate);
            let begin = self.running[way].idle_at.max(now);
            let waiting = begin.since(now);
            let waiting_bytes = (u128::from(waiting.as_nanos()) * u128::from(rate) / 8_000_000_000) as u64;
            if plan.queue_bytes > 0 && waiting_bytes + packet.len() as u64 > plan.queue_bytes {
                self.counts[way].overflowed += 1;
                self.lose(number, Why::Queue);
                return None;
            }
            done = begin + Duration::from_nanos(packet.len() as u64 * 8_000_000_000 / rate);
            self.running[way].idle_at = done;
            if let Some(passed) = self.log.get_mut(number) {
                (passed.sent, passed.queued) = (Some((begin, done)), waiting);
            }
        }
        let at = done + plan.delay + held;
        let stage = if way == 0 { Stage::End } else { Stage::MiddleDown };
        self.later(at, Due { packet, number, way, at: stage });
        Some(at)
    }
    /// Writes a packet to the capture at a place; `out` says whether it comes from the server's side there.
    fn capture(&mut self, place: usize, packet: &[u8], at: Instant, out: bool) {
        let at = at + Duration::from_nanos(self.epoch_ns);
        let seen = Seen { at, link: 0, end: 0, bytes: packet, is_ethernet: false, is_intact: true };
        match out {
            true => self.captures[place].sent(place, &seen),
            false => self.captures[place].delivered(place, &seen),
        }
    }
}

/// A path that the emulator carries, and that its owner gets back.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Option<Path>>>);

impl Shared {
    /// Of a path.
    pub fn new(path: Path) -> Shared {
        Shared(Arc::new(Mutex::new(Some(path))))
    }
    /// Takes the path away from the emulator.
    pub fn take(&self) -> Option<Path> {
        self.lock().take()
    }
    fn lock(&self) -> MutexGuard<'_, Option<Path>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carrier for Shared {
    fn offer(&mut self, end: usize, packet: Packet, now: Instant, pool: &mut Pool) {
        if let Some(path) = &mut *self.lock() {
            path.offer(end, packet.bytes().to_vec(), now);
        }
        pool.give(packet);
    }
    fn next(&self) -> Option<Instant> {
        self.lock().as_ref()?.next()
    }
    fn deliver(&mut self, now: Instant, _: &mut Pool, hand: &mut dyn FnMut(usize, Instant, &[u8])) {
        if let Some(path) = &mut *self.lock() {
            path.advance(now, hand);
        }
    }
    fn counts(&self) -> [WireCount; 2] {
        self.lock().as_ref().map(|path| path.counts).unwrap_or_default()
    }
}
