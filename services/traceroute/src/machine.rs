//! The machine: which probe goes next, and what an answer means.

use crate::measure::{Measure, Step};
use crate::report::{Event, Hop, Mtu, Reply, TraceOutcome};
use inhost_base::{Duration, Instant, IpAddr};
use inhost_stack::{ErrorKind, Probe, ProbeAnswer, ProbeNews};
use std::collections::VecDeque;

/// The most probes that may be on their way at once.
pub const LARGEST_PARALLEL: u8 = 64;
/// The most probes for one hop.
pub const LARGEST_PROBES_PER_HOP: u8 = 10;
/// A probe is waited for as long as this many of its hop's round trips ...
const ROUND_TRIPS_HERE: u64 = 3;
/// ... or of a hop's behind it ...
const ROUND_TRIPS_BEYOND: u64 = 10;
/// ... but this long at least.
const LEAST_WAIT: Duration = Duration::from_millis(100);
/// Probes after which nothing is measured any more, however much a network asks for.
const MEASURED_UNTIL: usize = 5000;

/// Configuration of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The first hop that is probed; 1 is the first router. Default 1.
    pub first_hop: u8,
    /// The last. Default 30.
    pub last_hop: u8,
    /// Probes for each hop, up to [`LARGEST_PROBES_PER_HOP`]. Default 3.
    pub probes_per_hop: u8,
    /// Probes that may be on their way at once, up to [`LARGEST_PARALLEL`]. Default 16: a silent hop costs the time of
    /// one and not of all, and routers that answer few probes a second still answer these.
    pub parallel: u8,
    /// Longest wait for an answer; less where a hop there or behind it has answered faster. Default 5 s.
    pub wait: Duration,
    /// Length of a probe in bytes, IP header included. Default 60.
    pub packet_bytes: u16,
    /// Whether to find how large a packet may be up to each hop, and from which length on to try: the link's MTU.
    /// Default not.
    pub measure_from_bytes: Option<u16>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            first_hop: 1,
            last_hop: 30,
            probes_per_hop: 3,
            parallel: 16,
            wait: Duration::from_secs(5),
            packet_bytes: 60,
            measure_from_bytes: None,
        }
    }
}

/// One trace.
///
/// In: [`Trace::answer`], [`Trace::timeout`]. Out: [`Trace::poll_probe`] until it gives none,
/// [`Trace::poll_event`] until it gives none, and [`Trace::deadline`], when it wants to be called again. A call that
/// was not due changes nothing. After [`Event::Done`] there is nothing more.
#[derive(Debug)]
pub struct Trace {
    config: Config,
    to: IpAddr,
    /// All probes by their number.
    sent: Vec<Sent>,
    /// Numbers of those on their way.
    open: Vec<u16>,
    hops: Vec<Slots>,
    /// The hop and the try that go next; behind the last hop stands one that is never probed.
    next: (u16, u8),
    /// Hops behind this one are of no interest.
    last_hop: u8,
    ended: Option<TraceOutcome>,
    /// The hop that is reported next.
    unreported: u8,
    /// Path MTU behind the reported hops.
    measure: Option<Measure>,
    events: VecDeque<Event>,
    done: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    hop: u8,
    purpose: Purpose,
    at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// To see who answers, in this try.
    Ask(u8),
    /// To see whether its length gets there.
    Measure,
}

/// State of a hop.
#[derive(Clone, Debug, Default)]
struct Slots {
    tries: Vec<Slot>,
    /// The shortest round trip so far.
    round_trip: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Waiting,
    Silent,
    Answered(Reply),
}

impl Trace {
    /// A trace to `to`. Values of `config` out of range are brought into it.
    pub fn new(config: Config, to: IpAddr) -> Trace {
        let first_hop = config.first_hop.max(1);
        let config = Config {
            first_hop,
            last_hop: config.last_hop.max(first_hop),
            probes_per_hop: config.probes_per_hop.clamp(1, LARGEST_PROBES_PER_HOP),
            parallel: config.parallel.clamp(1, LARGEST_PARALLEL),
            ..config
        };
        Trace {
            config,
            to,
            sent: Vec::new(),
            open: Vec::new(),
            hops: vec![Slots::default(); usize::from(config.last_hop) + 1],
            next: (first_hop.into(), 0),
            last_hop: config.last_hop,
            ended: None,
            unreported: first_hop,
            measure: config.measure_from_bytes.map(|from| Measure::new(config.packet_bytes, from)),
            events: VecDeque::new(),
            done: false,
        }
    }
    /// Where it leads.
    pub fn destination(&self) -> IpAddr {
        self.to
    }
    /// The next probe to be sent now; it is taken as sent.
    pub fn poll_probe(&mut self, now: Instant) -> Option<Probe> {
        if self.done || self.open.len() >= usize::from(self.config.parallel) {
            return None;
        }
        if let Some(packet_bytes) = self.wanted_measure() {
            return Some(self.send(self.unreported, Purpose::Measure, packet_bytes, now));
        }
        let (next, turn) = self.next;
        let hop = u8::try_from(next).ok().filter(|&hop| hop <= self.last_hop)?;
        self.next = match turn + 1 < self.config.probes_per_hop {
            true => (next, turn + 1),
            false => (next + 1, 0),
        };
        self.hops.get_mut(usize::from(hop))?.tries.push(Slot::Waiting);
        Some(self.send(hop, Purpose::Ask(turn), self.config.packet_bytes, now))
    }
    fn send(&mut self, hop: u8, purpose: Purpose, packet_bytes: u16, now: Instant) -> Probe {
        // At most MEASURED_UNTIL and 255 hops of 10 tries: fewer than there are numbers, and ports to call from.
        let number = self.sent.len() as u16;
        self.sent.push(Sent { hop, purpose, at: now });
        self.open.push(number);
        Probe { to: self.to, number, hop_limit: hop, packet_bytes }
    }
    /// The length of the packet that is to be tried next, once the hop's own probes are settled.
    fn wanted_measure(&mut self) -> Option<u16> {
        if !self.is_settled(self.unreported) || self.sent.len() >= MEASURED_UNTIL {
            return None;
        }
        self.measure.as_mut()?.poll()
    }

    /// Takes an answer. One that nobody waits for, or no longer, changes nothing.
    pub fn answer(&mut self, answer: &ProbeAnswer, now: Instant) {
        let Some(place) = self.open.iter().position(|&number| number == answer.number) else { return };
        let Some(&Sent { hop, purpose, at }) = self.sent.get(usize::from(answer.number)) else { return };
        if answer.to != self.to {
            return;
        }
        self.open.swap_remove(place);
        let round_trip = now.since(at);
        if let Some(slots) = self.hops.get_mut(usize::from(hop)) {
            slots.round_trip = Some(slots.round_trip.map_or(round_trip, |least| least.min(round_trip)));
        }
        match purpose {
            Purpose::Measure => self.measured(answer),
            Purpose::Ask(turn) => self.asked(hop, turn, answer, round_trip),
        }
        self.settle();
    }
    fn measured(&mut self, answer: &ProbeAnswer) {
        let Some(measure) = &mut self.measure else { return };
        match answer.news {
            ProbeNews::Error { kind: ErrorKind::PacketTooBig, mtu_bytes } => {
                measure.too_big(answer.from, mtu_bytes);
            }
            _ => measure.arrived(),
        }
    }
    fn asked(&mut self, hop: u8, turn: u8, answer: &ProbeAnswer, round_trip: Duration) {
        let is_from_there = answer.from == self.to;
        let (error, end) = match answer.news {
            ProbeNews::Answered | ProbeNews::Refused => (None, Some(TraceOutcome::Reached { hop })),
            ProbeNews::Error { kind: ErrorKind::TimeExceeded, .. } => (None, None),
            ProbeNews::Error { kind: ErrorKind::PortUnreachable, .. } if is_from_there => {
                (None, Some(TraceOutcome::Reached { hop }))
            }
            ProbeNews::Error { kind, .. } => {
                (Some(kind), Some(TraceOutcome::Stopped { hop, by: answer.from, why: kind }))
            }
        };
        let reply = Reply { from: answer.from, round_trip, error };
        self.set(hop, turn, Slot::Answered(reply));
        let Some(end) = end else { return };
        // The first hop that ends the way is where it ends; that it was reached outweighs that somebody stopped it.
        let is_nearer = self.ended.is_none() || hop < self.last_hop;
        let is_better = hop == self.last_hop && matches!(end, TraceOutcome::Reached { .. });
        if is_nearer || is_better {
            self.ended = Some(end);
            self.last_hop = self.last_hop.min(hop);
        }
        self.forget_beyond();
    }
    /// Nobody waits any more for what was sent beyond the end of the way.
    fn forget_beyond(&mut self) {
        let Trace { open, sent, last_hop, .. } = self;
        open.retain(|&number| sent.get(usize::from(number)).is_some_and(|sent| sent.hop <= *last_hop));
    }
    fn set(&mut self, hop: u8, turn: u8, to: Slot) {
        let slots = self.hops.get_mut(usize::from(hop));
        if let Some(slot) = slots.and_then(|slots| slots.tries.get_mut(usize::from(turn))) {
            *slot = to;
        }
    }

    /// When it wants [`Trace::timeout`] to be called; `None` when it waits for nothing.
    pub fn deadline(&self) -> Option<Instant> {
        self.open.iter().filter_map(|&number| self.expires(number)).min()
    }
    /// Gives up the probes whose time is over.
    pub fn timeout(&mut self, now: Instant) {
        let late: Vec<u16> = self
            .open
            .iter()
            .copied()
            .filter(|&number| self.expires(number).is_some_and(|at| at <= now))
            .collect();
        for number in late {
            self.open.retain(|&open| open != number);
            let Some(&Sent { hop, purpose, .. }) = self.sent.get(usize::from(number)) else { continue };
            match (purpose, &mut self.measure) {
                (Purpose::Ask(turn), _) => self.set(hop, turn, Slot::Silent),
                (Purpose::Measure, Some(measure)) => measure.silent(),
                (Purpose::Measure, None) => {}
            }
        }
        self.settle();
    }
    /// When a probe is given up.
    fn expires(&self, number: u16) -> Option<Instant> {
        let sent = self.sent.get(usize::from(number))?;
        let here = self.hops.get(usize::from(sent.hop))?.round_trip.map(|time| (time, ROUND_TRIPS_HERE));
        let beyond = || {
            let behind = self.hops.get(usize::from(sent.hop) + 1..)?;
            behind.iter().find_map(|slots| slots.round_trip).map(|time| (time, ROUND_TRIPS_BEYOND))
        };
        let wait = match here.or_else(beyond) {
            Some((time, times)) => {
                Duration::from_nanos(time.as_nanos().saturating_mul(times)).max(LEAST_WAIT)
            }
            None => self.config.wait,
        };
        Some(sent.at + wait.min(self.config.wait))
    }

    /// The next news.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn is_settled(&self, hop: u8) -> bool {
        let Some(slots) = self.hops.get(usize::from(hop)) else { return false };
        slots.tries.len() == usize::from(self.config.probes_per_hop) && !slots.tries.contains(&Slot::Waiting)
    }
    /// Reports the hops of which all is known.
    fn settle(&mut self) {
        while !self.done && self.is_settled(self.unreported) {
            let hop = self.unreported;
            let is_silent = self.replies(hop).all(|reply| reply.is_none());
            let mtu: Option<Mtu> = match &mut self.measure {
                Some(_) if self.sent.len() >= MEASURED_UNTIL => None,
                None => None,
                Some(measure) => match measure.step(is_silent) {
                    Step::Busy => return,
                    Step::Known(mtu) => Some(mtu),
                    Step::Unknown => None,
                },
            };
            let replies = self.replies(hop).collect();
            self.events.push_back(Event::Hop(Hop { number: hop, replies, mtu }));
            if hop >= self.last_hop {
                self.done = true;
                self.open.clear();
                self.events.push_back(Event::Done(self.ended.unwrap_or(TraceOutcome::TooFar)));
            }
            self.unreported = hop.saturating_add(1);
        }
    }
    fn replies(&self, hop: u8) -> impl Iterator<Item = Option<Reply>> {
        let slots = self.hops.get(usize::from(hop)).map_or(&[][..], |slots| &slots.tries);
        slots.iter().map(|slot| match slot {
            Slot::Answered(reply) => Some(*reply),
            Slot::Waiting | Slot::Silent => None,
        })
    }
}
