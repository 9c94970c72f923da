//! The truth of a run: whose fault each moment was, by the definitions of docs/explain-causes.md, from the emulator's log,
//! the notes of the programs and the kernel's `TCP_INFO`.
//!
//! Nothing is inferred that a capture must infer. Whether data was waiting is what the program noted; whether a queue
//! stood is what the bottleneck did; whether a segment was lost is what became of it.

mod flow;
mod repair;

use super::script::Note;
use super::situation::Situation;
use super::stacks::{Run, Sample};
use flow::{Came, Flow, Sent};
use inhost_base::{Duration, Instant};
use inhost_explain::Cause;
use repair::{Repair, repairs};
use std::collections::BTreeMap;

/// The bottleneck is used to its rate when it was busy for this part of a round trip.
const USED: f64 = 0.9;
/// Slow start: the flight of a round is larger than the one before by this factor.
const GROWTH: f64 = 1.25;
/// An acknowledgment so much later than the round trip was delayed.
const DELAYED: Duration = Duration::from_millis(15);
/// A pacer's pause; a shorter one is a host's work.
const SPACED: Duration = Duration::from_millis(1);
/// What leaves within this time of an acknowledgment was let go by it.
const RELEASED: Duration = Duration::from_micros(500);
/// Idle time after which a window may be reduced.
const IDLE: Duration = Duration::from_millis(200);

/// The account of one direction.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// What held when, by time.
    pub spans: Vec<(Instant, Instant, Cause)>,
}

impl Account {
    /// The causes between two instants, in per cent, the largest first.
    pub fn shares(&self, [since, until]: [Instant; 2]) -> Vec<(Cause, f64)> {
        let (mut ns, mut total_ns) = (BTreeMap::<Cause, u64>::new(), 0);
        for &(from, to, cause) in &self.spans {
            let part_ns = to.min(until).since(from.max(since)).as_nanos();
            *ns.entry(cause).or_default() += part_ns;
            total_ns += part_ns;
        }
        let mut shares: Vec<_> =
            ns.into_iter().map(|(cause, ns)| (cause, ns as f64 * 100.0 / total_ns.max(1) as f64)).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
    fn add(&mut self, from: Instant, to: Instant, cause: Cause) {
        if from >= to {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.2 == cause && last.1 == from => last.1 = to,
            _ => self.spans.push((from, to, cause)),
        }
    }
}

/// The account of the direction `way`.
pub fn account(run: &Run, situation: &Situation, way: usize) -> Account {
    let Some(mut flow) = Flow::of(&run.log, &situation.path, way) else { return Account::default() };
    if run.notes[1 - way].iter().any(|(_, note)| *note == Note::Vanished) {
        flow.receiver_vanished();
    }
    let other = Flow::of(&run.log, &situation.path, 1 - way);
    Sweep::new(run, situation, way, &flow, other.as_ref()).run()
}

/// What happens at the sender, in order.
#[derive(Clone, Copy)]
enum Event<'a> {
    Came(&'a Came),
    Note(Note),
    Sent(&'a Sent),
    /// The program at the receiver took bytes.
    Taken(u64),
    /// Bytes arrived at the receiver.
    Arrived(i64),
    /// A repair, or the peer's turn, begins or ends.
    Mark,
}

/// The peer's application has all that was sent and has not answered, as the sender sees it: its answer comes at the end.
struct Turn {
    from: Instant,
    to: Instant,
    /// Offset of the byte behind what was sent.
    newest: i64,
}

/// One pass over the events of a direction.
struct Sweep<'a> {
    situation: &'a Situation,
    way: usize,
    flow: &'a Flow,
    events: Vec<(Instant, Event<'a>)>,
    repairs: Vec<Repair>,
    turns: Vec<Turn>,
    opening: Vec<(Instant, Instant, Cause)>,
    samples: &'a [(Instant, Sample)],
    state: State,
}

/// What the sender has at a moment.
#[derive(Default)]
struct State {
    acknowledged: i64,
    edge: i64,
    newest: i64,
    /// Bytes that the program wrote, and that it is calling to write.
    wrote: i64,
    wanted: i64,
    shut: bool,
    fin: Option<i64>,
    reset: bool,
    last_is_partial: bool,
    last_sent: Option<Instant>,
    /// The peer's data has come since this side's last.
    peer_spoke: bool,
    /// At the receiver.
    arrived: i64,
    taken: i64,
    /// Windows of less than a segment that opened by less than a segment, in a row.
    silly: u32,
    rounds: Rounds,
    /// The last segment that is new was acknowledged then, and nothing new has left since.
    idle_since: Option<Instant>,
    /// The largest flight so far, and that before a window was reduced for idleness.
    largest_flight: i64,
    before_restart: Option<i64>,
    lost: bool,
}

/// Flights of rounds.
#[derive(Default)]
struct Rounds {
    until: i64,
    peak: i64,
    peaks: Vec<i64>,
}

impl Rounds {
    fn see(&mut self, acknowledged: i64, newest: i64) {
        self.peak = self.peak.max(newest - acknowledged);
        if acknowledged >= self.until {
            self.until = newest.max(acknowledged + 1);
            self.peaks.push(self.peak);
            self.peak = 0;
        }
    }
    /// The first flight.
    fn first(&self) -> i64 {
        self.peaks.first().copied().unwrap_or(self.peak)
    }
    /// Whether the flight grew in this round or one of the two before as it does in slow start.
    fn grow(&self) -> bool {
        let mut peaks: Vec<i64> = self.peaks.iter().rev().take(3).rev().copied().collect();
        peaks.push(self.peak);
        peaks.len() < 4 || peaks.windows(2).any(|two| two[1] as f64 > two[0] as f64 * GROWTH)
    }
}

impl<'a> Sweep<'a> {
    fn new(run: &'a Run, situation: &'a Situation, way: usize, flow: &'a Flow, other: Option<&Flow>) -> Self {
        let repairs = repairs(flow);
        let mut events: Vec<(Instant, Event<'a>)> = Vec::new();
        events.extend(flow.came.iter().map(|came| (came.at, Event::Came(came))));
        events.extend(run.notes[way].iter().map(|(at, note)| (*at, Event::Note(*note))));
        events.extend(flow.sent.iter().map(|sent| (sent.at, Event::Sent(sent))));
        events.extend(run.notes[1 - way].iter().filter_map(|(at, note)| match note {
            Note::Read(bytes) => Some((*at, Event::Taken(*bytes))),
            _ => None,
        }));
        events.extend(in_order(flow));
        events.extend(repairs.iter().flat_map(|repair| [repair.from, repair.to]).map(|at| (at, Event::Mark)));
        let turns = other.map_or_else(Vec::new, |other| turns(flow, other));
        events.extend(turns.iter().map(|turn| (turn.from, Event::Mark)));
        // Stable: what comes precedes what it lets leave.
        events.sort_by_key(|(at, _)| *at);
        let opening = opening(flow, other, way);
        let samples = &run.samples[way];
        Sweep { situation, way, flow, events, repairs, turns, opening, samples, state: State::default() }
    }
    fn run(mut self) -> Account {
        let [first, last] = self.flow.span;
        let mut account = Account::default();
        let events = std::mem::take(&mut self.events);
        let mut from = first;
        for (place, (at, event)) in events.iter().enumerate() {
            let to = (*at).clamp(first, last);
            if to > from {
                let cause = self.cause(from, to, &events[place..]);
                self.divided(&mut account, from, to, cause);
                from = to;
            }
            self.state.take(event, self.flow, self.situation, self.way);
        }
        account
    }
    /// Adds a time, of which the handshake's part has its own causes.
    fn divided(&self, account: &mut Account, from: Instant, to: Instant, cause: Cause) {
        let mut at = from;
        for &(begin, end, of) in &self.opening {
            let (begin, end) = (begin.max(at), end.min(to));
            if begin < end {
                account.add(at, begin, cause);
                account.add(begin, end, of);
                at = end;
            }
        }
        account.add(at, to, cause);
    }
    /// Why nothing more was sent between two events. `next` are the events that end this time and follow.
    fn cause(&self, from: Instant, to: Instant, next: &[(Instant, Event<'_>)]) -> Cause {
        let state = &self.state;
        let has_all_but_fin = state.acknowledged >= state.wrote && state.wanted == 0;
        if state.reset || state.fin.is_some_and(|fin| state.acknowledged > fin) {
            return Cause::Closed;
        }
        let repair = self.repairs.iter().find(|repair| repair.from <= from && to <= repair.to);
        if let Some(repair) = repair {
            return repair.cause;
        }
        if state.wrote + state.wanted > state.newest {
            return self.held_back(from, to, next);
        }
        if has_all_but_fin && (state.shut || state.fin.is_some()) {
            return Cause::Closing;
        }
        match state.newest > state.acknowledged {
            true if state.last_is_partial && self.more_before_acknowledged(next) => Cause::ApplicationIdle,
            true if self.is_peers_turn(from, to) => Cause::AwaitingPeer,
            true => Cause::AwaitingAcknowledgment,
            false => self.idle(next),
        }
    }
    fn is_peers_turn(&self, from: Instant, to: Instant) -> bool {
        let is_within = |turn: &Turn| turn.newest == self.state.newest && turn.from <= from && to <= turn.to;
        self.turns.iter().any(is_within)
    }
    /// There is data to send, and it is not sent.
    fn held_back(&self, from: Instant, to: Instant, next: &[(Instant, Event<'_>)]) -> Cause {
        let (state, settings) = (&self.state, &self.situation.sides[self.way].settings);
        let unsent = state.wrote + state.wanted - state.newest;
        let (room, window) = (state.edge - state.newest, state.edge - state.acknowledged);
        let middle = from + to.since(from).divided_by(2);
        let round_trip = self.flow.round_trip.max(Duration::from_millis(10));
        let is_used = self.flow.used(middle - round_trip, middle) >= USED;
        if room < self.flow.mss.min(unsent) || room < window / 8 {
            return match () {
                () if window <= 0 || state.arrived - state.taken > window => Cause::ZeroWindow,
                () if state.silly >= 2 => Cause::SillyWindow,
                () if is_used => Cause::BottleneckRate,
                () => Cause::ReceiverWindow,
            };
        }
        // The last segment of a stream is not held back (RFC 1122 §4.2.3.4).
        let is_nagled = settings.nagle && unsent < self.flow.mss && state.wanted == 0 && !state.shut;
        if is_nagled && state.newest > state.acknowledged {
            let acknowledged = next.iter().find(
                |(_, event)| matches!(event, Event::Came(came) if came.acknowledged > state.acknowledged),
            );
            let took = acknowledged.zip(state.last_sent).map(|((at, _), sent)| at.since(sent));
            let is_delayed = took.is_some_and(|took| took > self.flow.round_trip + DELAYED);
            return if is_delayed { Cause::NagleDelayedAck } else { Cause::Nagle };
        }
        // A pacer does not hold back what an acknowledgment lets go while the window still grows.
        if settings.pacing_bytes_per_second.is_some() && !(self.is_slow_start(from) && is_released(next)) {
            return Cause::Pacing;
        }
        let flight = state.newest - state.acknowledged;
        if settings.send_buffer_bytes.is_some_and(|bytes| state.wanted > 0 && flight * 2 > bytes as i64)
            && !is_used
        {
            return Cause::SendBuffer;
        }
        // There is data and room for it, and nothing but time passes until it leaves.
        let is_spaced = to.since(from) >= SPACED
            && next.first().is_some_and(|(_, event)| matches!(event, Event::Sent(sent) if sent.has_data()));
        match () {
            () if is_used => Cause::BottleneckRate,
            () if state.is_restart() && state.rounds.grow() => Cause::SlowStartRestart,
            () if self.is_slow_start(from) => Cause::SlowStart,
            () if is_spaced => Cause::Pacing,
            () => Cause::CongestionWindow,
        }
    }
    fn is_slow_start(&self, at: Instant) -> bool {
        let place = self.samples.partition_point(|(when, _)| *when <= at);
        match self.samples.get(place.saturating_sub(1)) {
            Some((_, sample)) => sample.congestion_window < sample.slow_start_threshold && !self.state.lost,
            None => !self.state.lost && self.state.rounds.grow(),
        }
    }
    fn more_before_acknowledged(&self, next: &[(Instant, Event<'_>)]) -> bool {
        let newest = self.state.newest;
        let first = next.iter().find_map(|(_, event)| match event {
            Event::Sent(sent) if sent.has_data() && sent.bytes[1] > newest => Some(true),
            Event::Came(came) if came.acknowledged >= newest => Some(false),
            _ => None,
        });
        first == Some(true)
    }
    /// Nothing is to be sent, and all is acknowledged.
    fn idle(&self, next: &[(Instant, Event<'_>)]) -> Cause {
        let newest = self.state.newest;
        let ends = next.iter().find_map(|(_, event)| match event {
            Event::Sent(sent) if sent.has_data() && sent.bytes[1] > newest || sent.fin => Some(true),
            Event::Came(came) if came.data => Some(false),
            _ => None,
        });
        match ends {
            Some(true) if self.state.peer_spoke => Cause::ThinkTime,
            Some(true) => Cause::ApplicationIdle,
            Some(false) | None => Cause::AwaitingPeer,
        }
    }
}

impl State {
    /// The window was reduced for idleness: the first flight behind it is at most half of the largest before.
    fn is_restart(&self) -> bool {
        !self.lost && self.before_restart.is_some_and(|before| self.rounds.first() * 2 <= before)
    }
    fn take(&mut self, event: &Event<'_>, flow: &Flow, situation: &Situation, way: usize) {
        match event {
            Event::Came(came) => self.hear(came, flow),
            Event::Sent(sent) => self.send(sent, flow, situation, way),
            Event::Note(Note::Wants(bytes)) => self.wanted = *bytes as i64,
            Event::Note(Note::Wrote(bytes)) => {
                self.wrote += *bytes as i64;
                self.wanted = (self.wanted - *bytes as i64).max(0);
            }
            Event::Note(Note::Shut | Note::Failed | Note::Reset | Note::Done) => {
                self.wanted = 0;
                self.shut = true;
            }
            Event::Note(_) | Event::Mark => {}
            Event::Taken(bytes) => self.taken += *bytes as i64,
            Event::Arrived(bytes) => self.arrived = *bytes,
        }
    }
    fn hear(&mut self, came: &Came, flow: &Flow) {
        self.reset |= came.reset;
        self.peer_spoke |= came.data;
        let opened = came.edge - self.edge;
        if opened > 0 {
            let is_small = opened < flow.mss && came.edge - came.acknowledged < flow.mss;
            self.silly = if is_small && !came.syn { self.silly + 1 } else { 0 };
        }
        self.edge = self.edge.max(came.edge);
        if came.acknowledged >= self.newest && self.acknowledged < self.newest {
            self.idle_since = Some(came.at);
        }
        self.acknowledged = self.acknowledged.max(came.acknowledged);
        self.rounds.see(self.acknowledged, self.newest);
    }
    fn send(&mut self, sent: &Sent, flow: &Flow, situation: &Situation, way: usize) {
        if sent.fin {
            self.fin = Some(sent.bytes[1]);
        }
        // What the window does not allow is sent to probe it.
        if !sent.has_data() || sent.bytes[1] > self.edge {
            return;
        }
        self.lost |= sent.bytes[0] < self.newest;
        if sent.bytes[1] <= self.newest {
            return;
        }
        let idle = self.idle_since.take().map(|since| sent.at.since(since));
        if idle.is_some_and(|idle| idle > IDLE.max(flow.round_trip)) {
            let restarts = situation.sides[way].settings.restart_after_idle;
            self.before_restart = restarts.then_some(self.largest_flight);
            self.rounds = Rounds::default();
        }
        self.newest = sent.bytes[1];
        self.largest_flight = self.largest_flight.max(self.newest - self.acknowledged);
        self.last_is_partial = sent.bytes[1] - sent.bytes[0] < flow.mss;
        self.last_sent = Some(sent.at);
        self.peer_spoke = false;
        self.rounds.see(self.acknowledged, self.newest);
    }
}

/// When the peer's application had all that was sent and its answer had not left, later by the way back.
fn turns(flow: &Flow, other: &Flow) -> Vec<Turn> {
    let mut arrivals: Vec<(Instant, i64)> = flow
        .sent
        .iter()
        .filter(|sent| sent.has_data())
        .filter_map(|of| Some((of.arrived?, of.bytes[1])))
        .collect();
    arrivals.sort();
    let mut answers: Vec<(Instant, Instant)> = other
        .sent
        .iter()
        .filter(|sent| sent.has_data())
        .filter_map(|of| Some((of.at, of.arrived?)))
        .collect();
    answers.sort();
    let mut last = Instant::default();
    let mut turns = Vec::new();
    for (left, came) in answers {
        let place = arrivals.partition_point(|(at, _)| *at <= left);
        let before = std::mem::replace(&mut last, left);
        let Some((at, _)) = place.checked_sub(1).map(|place| arrivals[place]).filter(|(at, _)| *at > before)
        else {
            continue;
        };
        let newest = arrivals[..place].iter().map(|(_, end)| *end).max().unwrap_or(0);
        turns.push(Turn { from: at + came.since(left), to: came, newest });
    }
    turns
}

/// Whether the next segment with data leaves behind an acknowledgment.
fn is_released(next: &[(Instant, Event<'_>)]) -> bool {
    let sends = |event: &Event<'_>| matches!(event, Event::Sent(sent) if sent.has_data());
    let Some(place) = next.iter().position(|(_, event)| sends(event)) else { return false };
    let at = next[place].0;
    let mut before = next[..place].iter().rev().take_while(|(when, _)| at.since(*when) <= RELEASED);
    before.any(|(_, event)| matches!(event, Event::Came(_)))
}

/// What the receiver has in order, at each time that it grew.
fn in_order(flow: &Flow) -> Vec<(Instant, Event<'static>)> {
    let mut arrivals: Vec<_> = flow
        .sent
        .iter()
        .filter_map(|sent| Some((sent.arrived?, sent.bytes)))
        .filter(|(_, of)| of[1] > of[0])
        .collect();
    arrivals.sort();
    let (mut end, mut ahead, mut grown) = (0, BTreeMap::new(), Vec::new());
    for (at, [from, to]) in arrivals {
        let longest: &mut i64 = ahead.entry(from).or_insert(to);
        *longest = to.max(*longest);
        let before = end;
        while let Some(first) = ahead.first_entry()
            && *first.key() <= end
        {
            end = end.max(first.remove());
        }
        if end > before {
            grown.push((at, Event::Arrived(end)));
        }
    }
    grown
}

/// The handshake, from the first packet to the sender's first segment that is not a SYN, with what delayed it.
fn opening(flow: &Flow, other: Option<&Flow>, way: usize) -> Vec<(Instant, Instant, Cause)> {
    let begin = flow.span[0];
    let end = flow.sent.iter().find(|sent| !sent.syn).map_or(flow.span[1], |sent| sent.at);
    let client = if way == 0 { Some(flow) } else { other };
    let server = if way == 0 { other } else { Some(flow) };
    let syns = |flow: Option<&Flow>| -> Vec<Sent> {
        flow.map(|flow| flow.sent.iter().filter(|sent| sent.syn).copied().collect()).unwrap_or_default()
    };
    let (calls, answers) = (syns(client), syns(server));
    let mut waits: Vec<(Instant, Instant, Cause)> = Vec::new();
    for two in calls.windows(2) {
        let is_answered = answers.iter().any(|answer| (two[0].at..two[1].at).contains(&answer.at));
        let is_ignored = two[0].arrived.is_some() && !is_answered;
        waits.push((two[0].at, two[1].at, if is_ignored { Cause::AcceptQueue } else { Cause::SynLoss }));
    }
    for two in answers.windows(2) {
        let took = |flow: &Flow| {
            flow.sent.iter().any(|sent| !sent.syn && sent.arrived.is_some_and(|at| at < two[1].at))
        };
        let is_ignored = client.is_some_and(took);
        if calls.len() < 2 {
            waits.push((two[0].at, two[1].at, if is_ignored { Cause::AcceptQueue } else { Cause::SynLoss }));
        }
    }
    let mut spans = Vec::new();
    let mut at = begin;
    for (from, to, cause) in waits {
        let (from, to) = (from.max(at), to.min(end));
        if from < to {
            spans.extend([(at, from, Cause::Opening), (from, to, cause)]);
            at = to;
        }
    }
    spans.push((at, end.max(at), Cause::Opening));
    spans
}
