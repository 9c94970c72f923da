//! The meter: a watch of a runtime's rounds with a clock.

use crate::account::Account;
use crate::report::Report;
use crate::ring::{Ring, Transition};
use crate::size::Segment;
use inhost_base::Random;
use inhost_event::Layer;
use inhost_runtime::{FrameHead, LayerWatch, Phase};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;

/// Transitions that are kept in [`Mode::Full`], and so the longest time-line. They take 24 bytes each.
pub const MOST_TRANSITIONS: usize = 65_536;
/// One round in so many is measured by default.
pub const ONE_ROUND_IN: u32 = 64;
/// Spans of which a trial consists that measures the cost of the clock.
const SPANS_A_TRIAL: u64 = 2_000;
/// Such trials; the shortest counts.
const TRIALS: u32 = 9;
/// Layers that are around each other at most; those within count for these.
const MOST_DEPTH: usize = 32;

/// Which rounds are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Mode {
    /// None.
    #[default]
    Off,
    /// One in many, chosen at random.
    Sampled,
    /// Every one, and the latest transitions are kept.
    Full,
}

struct State {
    mode: Mode,
    one_in: u32,
    /// Rounds to let pass before the next that is measured.
    skip: u32,
    random: Random,
    account: Account,
    ring: Ring,
    /// The layers in force, for the ring.
    layers: Vec<Layer>,
    /// Layers beyond those.
    beyond: usize,
}

impl State {
    /// Uniform from 0 to twice the mean: no rhythm of rounds can follow it.
    fn next_skip(&mut self) -> u32 {
        self.random.public_below(2 * self.one_in - 1)
    }
    fn note(&mut self, at_ns: u64) {
        if self.mode == Mode::Full {
            self.ring.push(at_ns, Transition::Layer(self.layers.last().copied().unwrap_or(Layer::Loop)));
        }
    }
}

/// Measures the rounds of a runtime. Clones are the same meter.
///
/// ```
/// use inhost_layers::{Meter, Mode};
/// use inhost_runtime::Runtime;
/// use inhost_stack::StackConfig;
/// use std::rc::Rc;
///
/// let mut runtime = Runtime::new(StackConfig::default())?;
/// let clock = runtime.clock();
/// let meter = Meter::new(move || clock.now().as_nanos());
/// runtime.watch_layers(Rc::new(meter.clone()));
/// meter.set_mode(Mode::Full);
/// let host = runtime.host().clone();
/// runtime.run(async { host.sleep(inhost_base::Duration::from_millis(1)).await })?;
/// let report = meter.report();
/// assert!(report.rounds > 0);
/// assert_eq!(report.layers.iter().map(|layer| layer.ns).sum::<u64>(), report.total_ns);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Meter {
    clock: Rc<dyn Fn() -> u64>,
    state: Rc<RefCell<State>>,
}

impl Meter {
    /// A meter that is off, with a clock in nanoseconds. What a reading costs is measured here, in about a millisecond.
    pub fn new(clock: impl Fn() -> u64 + 'static) -> Meter {
        let clock: Rc<dyn Fn() -> u64> = Rc::new(clock);
        let seed = clock();
        let state = State {
            mode: Mode::Off,
            one_in: ONE_ROUND_IN,
            skip: 0,
            random: Random::from_number(seed),
            account: Account::new(0),
            ring: Ring::default(),
            layers: Vec::with_capacity(MOST_DEPTH),
            beyond: 0,
        };
        let meter = Meter { clock, state: Rc::new(RefCell::new(state)) };
        let cost_ns = (0..TRIALS).map(|_| meter.trial_ns()).min().unwrap_or(0);
        meter.state.borrow_mut().account = Account::new(cost_ns);
        meter
    }
    /// The time of a transition between two layers, rounded down.
    fn trial_ns(&self) -> u64 {
        let watch: &dyn LayerWatch = self;
        self.state.borrow_mut().account = Account::new(0);
        let began = (self.clock)();
        for _ in 0..SPANS_A_TRIAL {
            watch.enters(Layer::Tcp);
            watch.leaves();
        }
        (self.clock)().saturating_sub(began) / (2 * SPANS_A_TRIAL)
    }
    /// Which rounds are measured from the next on. What was measured stays.
    pub fn set_mode(&self, mode: Mode) {
        let mut state = self.state.borrow_mut();
        state.mode = mode;
        state.skip = 0;
        if mode == Mode::Full && state.ring.is_empty() {
            state.ring = Ring::new(MOST_TRANSITIONS);
        }
    }
    /// Which rounds are measured.
    pub fn mode(&self) -> Mode {
        self.state.borrow().mode
    }
    /// With [`Mode::Sampled`], one round in `rounds` is measured, at least one in a million.
    pub fn set_one_in(&self, rounds: u32) {
        self.state.borrow_mut().one_in = rounds.clamp(1, 1_000_000);
    }
    /// Forgets what was measured.
    pub fn reset(&self) {
        let mut state = self.state.borrow_mut();
        state.account = Account::new(state.account.clock_cost_ns());
        state.ring.clear();
    }
    /// What was measured.
    pub fn report(&self) -> Report {
        let state = self.state.borrow();
        Report::of(state.mode, state.one_in, &state.account)
    }
    /// What was measured, as it is.
    pub fn account(&self) -> Account {
        self.state.borrow().account.clone()
    }
    /// The latest transitions.
    pub fn transitions(&self) -> Ring {
        self.state.borrow().ring.clone()
    }
}

impl LayerWatch for Meter {
    fn begins_round(&self) -> bool {
        let mut state = self.state.borrow_mut();
        match state.mode {
            Mode::Off => return false,
            Mode::Sampled if state.skip > 0 => {
                state.skip -= 1;
                return false;
            }
            Mode::Sampled => state.skip = state.next_skip(),
            Mode::Full => {}
        }
        state.layers.clear();
        state.beyond = 0;
        let at = (self.clock)();
        state.account.begin(at);
        state.note(at);
        true
    }
    fn ends_round(&self) {
        let at = (self.clock)();
        self.state.borrow_mut().account.end(at);
    }
    fn enters_phase(&self, phase: Phase) {
        let at = (self.clock)();
        let mut state = self.state.borrow_mut();
        state.account.enter_phase(phase, at);
        state.layers.clear();
        state.beyond = 0;
        state.note(at);
    }
    fn enters(&self, layer: Layer) {
        let at = (self.clock)();
        let mut state = self.state.borrow_mut();
        state.account.enter(layer, at);
        if state.layers.len() < MOST_DEPTH {
            state.layers.push(layer)
        } else {
            state.beyond += 1
        }
        state.note(at);
    }
    fn leaves(&self) {
        let at = (self.clock)();
        let mut state = self.state.borrow_mut();
        state.account.leave(at);
        if state.beyond == 0 {
            let _ = state.layers.pop();
        } else {
            state.beyond -= 1;
        }
        state.note(at);
    }
    fn frame(&self, frame: FrameHead<'_>) {
        let at = (self.clock)();
        let mut state = self.state.borrow_mut();
        state.account.enter(Layer::Instrument, at);
        if let Some(segment) = Segment::of(&frame) {
            state.account.segment(&segment);
            if state.mode == Mode::Full {
                state.ring.push(at, Transition::Segment(segment));
            }
        }
        state.account.leave((self.clock)());
    }
}
