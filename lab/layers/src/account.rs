//! The account: each nanosecond of a round belongs to one layer.

use crate::size::{Segment, Size};
use hdrhistogram::Histogram;
use inhost_event::Layer;
use inhost_runtime::Phase;

/// Layers, for arrays.
const LAYERS: usize = Layer::ALL.len();
/// Phases, for arrays.
const PHASES: usize = Phase::ALL.len();
/// Stacks of layers that are told apart; time of further ones counts for the layer above.
const MOST_STACKS: usize = 512;
/// No round has begun: in place of the time at which it did.
const NOT_BEGUN: u64 = u64::MAX;
/// The longest time that a quantile tells from longer ones, in nanoseconds.
const LONGEST_NS: u64 = 1_000_000_000;

/// A direction of segments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Direction {
    /// From the wire to the application.
    Received,
    /// From the application to the wire.
    Sent,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Received, Direction::Sent];

    /// The direction in a word.
    pub const fn text(self) -> &'static str {
        match self {
            Direction::Received => "received",
            Direction::Sent => "sent",
        }
    }
}

/// Time by layer, in nanoseconds.
pub type Times = [u64; LAYERS];

/// A layer within those around it.
#[derive(Clone, Debug)]
struct Stack {
    /// None of a phase by itself.
    layer: Option<Layer>,
    phase: Phase,
    /// The stack around it; its own number where there is none.
    around: usize,
    ns: u64,
    entered: u64,
}

/// What rounds cost in which segments of one direction and size were most frequent.
#[derive(Clone, Debug)]
pub struct Row {
    /// Time by layer.
    pub ns: Times,
    /// Segments.
    pub segments: u64,
    /// Bytes of their payload.
    pub bytes: u64,
    /// Rounds.
    pub rounds: u64,
    /// Nanoseconds a segment, one value a round.
    pub a_segment: Histogram<u64>,
}

impl Row {
    fn new() -> Row {
        // Two digits; it fails only for bounds that are none.
        let a_segment = Histogram::new_with_bounds(1, LONGEST_NS, 2).unwrap_or_else(|_| unreachable());
        Row { ns: [0; LAYERS], segments: 0, bytes: 0, rounds: 0, a_segment }
    }
    /// The sum of its time, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.ns.iter().sum()
    }
}

fn unreachable() -> ! {
    unreachable!("1, {LONGEST_NS} and 2 digits are bounds of a histogram")
}

/// Sums the time of rounds by layer.
///
/// Time is an argument: nanoseconds of any clock that does not go back. Of the time between two calls the cost of one
/// reading of the clock belongs to [`Layer::Instrument`], and the rest to the layer that was entered last and not left. So
/// the sum over layers is the time of the rounds, to the nanosecond.
///
/// ```
/// use inhost_event::Layer;
/// use inhost_layers::Account;
/// use inhost_runtime::Phase;
///
/// let mut account = Account::new(0);
/// account.begin(1_000);
/// account.enter(Layer::Tcp, 1_010);
/// account.enter(Layer::Checksum, 1_100);
/// account.leave(1_350);
/// account.leave(1_400);
/// account.enter_phase(Phase::Send, 1_500);
/// account.end(1_500);
/// let times = account.times();
/// assert_eq!((times[Layer::Tcp as usize], times[Layer::Checksum as usize]), (140, 250));
/// assert_eq!(times.iter().sum::<u64>(), account.total_ns());
/// ```
#[derive(Clone, Debug)]
pub struct Account {
    clock_cost_ns: u64,
    stacks: Vec<Stack>,
    /// The stack in force.
    at: usize,
    /// Spans entered beyond the stacks that are told apart.
    beyond: usize,
    phase: Phase,
    last_ns: u64,
    began_ns: u64,
    /// The round's time by phase and layer.
    round: [Times; PHASES],
    /// The round's segments, and the bytes of their payload, by direction and size.
    seen: [[(u64, u64); Size::ALL.len()]; 2],
    rows: Vec<Row>,
    phases: [Times; PHASES],
    rounds: u64,
    total_ns: u64,
}

impl Account {
    /// Nothing yet. Reading the clock, with what belongs to it, costs `clock_cost_ns`. A round that is under way already does
    /// not count.
    pub fn new(clock_cost_ns: u64) -> Account {
        let root = |phase| Stack { layer: None, phase, around: phase as usize, ns: 0, entered: 0 };
        Account {
            clock_cost_ns,
            stacks: Phase::ALL.map(root).to_vec(),
            at: 0,
            beyond: 0,
            phase: Phase::Receive,
            last_ns: NOT_BEGUN,
            began_ns: NOT_BEGUN,
            round: [[0; LAYERS]; PHASES],
            seen: Default::default(),
            rows: vec![Row::new(); 2 * Size::ALL.len()],
            phases: [[0; LAYERS]; PHASES],
            rounds: 0,
            total_ns: 0,
        }
    }

    /// A round begins, with its first phase.
    pub fn begin(&mut self, at_ns: u64) {
        (self.last_ns, self.began_ns) = (at_ns, at_ns);
        (self.at, self.beyond, self.phase) = (Phase::Receive as usize, 0, Phase::Receive);
        (self.round, self.seen) = Default::default();
    }
    /// The round enters another phase; spans that were not left are over.
    pub fn enter_phase(&mut self, phase: Phase, at_ns: u64) {
        self.advance(at_ns);
        (self.at, self.beyond, self.phase) = (phase as usize, 0, phase);
    }
    /// What follows is done for `layer`.
    pub fn enter(&mut self, layer: Layer, at_ns: u64) {
        self.advance(at_ns);
        let around = self.at;
        let known = self.stacks.iter().position(|stack| stack.around == around && stack.layer == Some(layer));
        match known {
            _ if self.beyond > 0 => self.beyond += 1,
            Some(place) => self.at = place,
            None if self.stacks.len() < MOST_STACKS => {
                self.at = self.stacks.len();
                let phase = self.phase;
                self.stacks.push(Stack { layer: Some(layer), phase, around, ns: 0, entered: 0 });
            }
            None => self.beyond = 1,
        }
        if self.beyond == 0 {
            self.stacks[self.at].entered += 1;
        }
    }
    /// The span that was entered last is over.
    pub fn leave(&mut self, at_ns: u64) {
        self.advance(at_ns);
        match self.beyond {
            0 => self.at = self.stacks[self.at].around,
            _ => self.beyond -= 1,
        }
    }
    /// A segment of this round.
    pub fn segment(&mut self, segment: &Segment) {
        let direction = if segment.is_sent { Direction::Sent } else { Direction::Received };
        let (count, bytes) =
            &mut self.seen[direction as usize][Size::of(segment.payload_bytes as usize) as usize];
        *count += 1;
        *bytes += u64::from(segment.payload_bytes);
    }
    /// The round is over.
    pub fn end(&mut self, at_ns: u64) {
        if self.began_ns == NOT_BEGUN {
            return;
        }
        self.advance(at_ns);
        self.rounds += 1;
        self.total_ns += self.last_ns - self.began_ns;
        for (sums, round) in self.phases.iter_mut().zip(&self.round) {
            add(sums, round);
        }
        for direction in Direction::ALL {
            let seen = self.seen[direction as usize];
            // Acknowledgments count where there is nothing else.
            let data = Size::ALL[1..].iter().copied().max_by_key(|size| seen[*size as usize].0);
            let data = data.filter(|size| seen[*size as usize].0 > 0);
            let size = data.unwrap_or(Size::Empty);
            let segments: u64 = seen.iter().map(|(count, _)| count).sum();
            if segments == 0 {
                continue;
            }
            let times = times_of(direction, &self.round);
            let row = &mut self.rows[place(direction, size)];
            add(&mut row.ns, &times);
            row.segments += segments;
            row.bytes += seen.iter().map(|(_, bytes)| bytes).sum::<u64>();
            row.rounds += 1;
            let work_ns = times.iter().sum::<u64>() - times[Layer::Instrument as usize];
            row.a_segment.saturating_record((work_ns / segments).max(1));
        }
    }
    /// The time since the last call belongs to the layer in force.
    #[inline]
    fn advance(&mut self, at_ns: u64) {
        let passed_ns = at_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(at_ns);
        let clock_ns = self.clock_cost_ns.min(passed_ns);
        let stack = &mut self.stacks[self.at];
        stack.ns += passed_ns - clock_ns;
        let layer = stack.layer.unwrap_or(Layer::Loop);
        let round = &mut self.round[self.phase as usize];
        round[layer as usize] += passed_ns - clock_ns;
        round[Layer::Instrument as usize] += clock_ns;
    }

    /// What a reading of the clock costs, in nanoseconds.
    pub fn clock_cost_ns(&self) -> u64 {
        self.clock_cost_ns
    }
    /// Rounds that are over.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }
    /// The time of these rounds, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }
    /// Their time by layer.
    pub fn times(&self) -> Times {
        let mut times = [0; LAYERS];
        self.phases.iter().for_each(|phase| add(&mut times, phase));
        times
    }
    /// Their time in one phase, by layer.
    pub fn phase(&self, phase: Phase) -> &Times {
        &self.phases[phase as usize]
    }
    /// The rounds in which segments of this direction and size were most frequent.
    pub fn row(&self, direction: Direction, size: Size) -> &Row {
        &self.rows[place(direction, size)]
    }
    /// Each stack of layers with its own time in nanoseconds and how often it was entered, the phase first. What the
    /// instrument took is in none.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<&'static str>, u64, u64)> + '_ {
        self.stacks.iter().map(|stack| {
            let mut words = Vec::new();
            let mut at = stack;
            while let Some(layer) = at.layer {
                words.push(layer.text());
                at = &self.stacks[at.around];
            }
            words.push(stack.phase.text());
            words.reverse();
            (words, stack.ns, stack.entered)
        })
    }
}

/// What a round spent on one direction. Calls of sockets for either direction are the application's round, and only their
/// copies can be told apart.
fn times_of(direction: Direction, round: &[Times; PHASES]) -> Times {
    let (phase, copies): (_, &[Layer]) = match direction {
        Direction::Received => (Phase::Receive, &[Layer::Read]),
        Direction::Sent => (Phase::Send, &[Layer::Write, Layer::WriteAndSum]),
    };
    let mut times = round[phase as usize];
    for layer in copies {
        times[*layer as usize] += round[Phase::Run as usize][*layer as usize];
    }
    times
}

fn add(sums: &mut Times, times: &Times) {
    for (sum, time) in sums.iter_mut().zip(times) {
        *sum += time;
    }
}

fn place(direction: Direction, size: Size) -> usize {
    direction as usize * Size::ALL.len() + size as usize
}
