//! A host's processor: what its work costs in time.
//!
//! The frames of a host are those of the real stack. A [`Processor`] only says how long the work takes: a frame in, a
//! frame out, a poll of the application's tasks, and what the application itself charges by [`Charges`]. A host with a
//! processor does one [`Step`] at a time, and nothing else until the step's time is over. Frames that come meanwhile
//! wait in the buffers of its card.
//!
//! ```
//! use inhost_base::{Duration, Endpoint, Instant};
//! use inhost_sim::{LinkConfig, Network, Processor, Ran, Spent, Work, address, interface};
//! use inhost_stack::{StackConfig, UdpOptions};
//! use std::{cell::Cell, rc::Rc};
//!
//! /// A millisecond for each frame.
//! struct Slow;
//! impl Processor for Slow {
//!     fn cost(&mut self, work: &Work, spent: &mut Spent) {
//!         if let Work::Input(_) | Work::Output(_) = work {
//!             spent.add("frames", Duration::from_millis(1));
//!         }
//!     }
//! }
//!
//! let mut network = Network::new(Instant::ZERO, 100_000);
//! let (a, b) = (network.add_host(StackConfig::default(), 1), network.add_host(StackConfig::default(), 2));
//! let ends = [(a, interface(a, false, 1500)), (b, interface(b, false, 1500))];
//! network.join(ends, LinkConfig::default(), 3).unwrap();
//! let charges = network.set_processor(a, Box::new(Slow));
//!
//! let (host, is_sent) = (network.host(a).clone(), Rc::new(Cell::new(false)));
//! let sent = is_sent.clone();
//! network.host(a).spawn(async move {
//!     let socket = host.udp(Endpoint::new(address(a, false), 9), UdpOptions::default()).unwrap();
//!     socket.send_to(b"hello", Endpoint::new(address(b, false), 9)).await.unwrap();
//!     charges.spend("thought", Duration::from_millis(5)).await;
//!     sent.set(true);
//! }).detach();
//! assert_eq!(network.run(Duration::from_secs(1), |_| is_sent.get()), Ran::Done);
//! assert_eq!(network.used(a).of("thought"), Duration::from_millis(5));
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use inhost_base::{Duration, Instant};

/// A kind of work that a host does at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// One frame goes up from the card.
    Input,
    /// Timers run, and tasks are polled.
    Tasks,
    /// One frame goes down to the card.
    Output,
}

/// One step of a host, as its processor judges it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A frame went up. It is lost after its cost was paid when the socket has no room for it.
    Input(FrameWork),
    /// So many polls of tasks were made. What tasks charge themselves comes on top.
    Tasks {
        /// Polls, at least one.
        polls: usize,
        /// Whether timers were due.
        timers: bool,
    },
    /// A frame goes down. It departs when the step is over.
    Output(FrameWork),
}

/// A frame, as far as its cost depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameWork {
    /// The link's number in the network.
    pub link: usize,
    /// Length of the whole frame.
    pub bytes: usize,
    /// Data in its TCP segment or UDP datagram; of a fragment, the payload of IP.
    pub data_bytes: usize,
    /// The protocol above IP; 0 when the frame has no IP datagram.
    pub protocol: u8,
}

/// What work costs on a machine. Every figure that an implementation holds should say where it is from.
pub trait Processor {
    /// Adds what `work` costs to `spent`, by kind.
    fn cost(&mut self, work: &Work, spent: &mut Spent);
    /// What goes first when several steps are possible, with so many frames in the card. Default: input, tasks, output:
    /// nothing is sent before everything that came was worked on.
    fn order(&self, _waiting_frames: usize) -> [Step; 3] {
        [Step::Input, Step::Tasks, Step::Output]
    }
    /// Frames that a card holds while the host is busy; the rest is lost. Default: 32.
    fn card_frames(&self) -> usize {
        32
    }
    /// What each octet that arrives or leaves on a serial line takes from the work that runs meanwhile. Default: nothing.
    fn octet_interrupt(&self) -> Duration {
        Duration::ZERO
    }
    /// Whether the host waits after a frame until its medium has sent it. Default: no.
    fn waits_for_line(&self) -> bool {
        false
    }
}

/// Costs of a step, by kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spent(Vec<(&'static str, Duration)>);

impl Spent {
    /// Adds a cost of the kind `kind`.
    pub fn add(&mut self, kind: &'static str, cost: Duration) {
        self.0.push((kind, cost));
    }
    /// The sum.
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, &(_, cost)| sum + cost)
    }
    /// The costs in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Duration)> + '_ {
        self.0.iter().copied()
    }
}

/// How long a processor was busy, by kind of work.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Used {
    kinds: BTreeMap<&'static str, Duration>,
}

/// The kind of [`Used`] that has the time of interrupts for octets of a serial line.
pub const INTERRUPTS: &str = "interrupts";
/// The kind of [`Used`] that has the time in which the processor waited for its line to send.
pub const LINE_WAIT: &str = "line wait";

impl Used {
    /// Busy time of one kind; zero when there was none.
    pub fn of(&self, kind: &str) -> Duration {
        self.kinds.get(kind).copied().unwrap_or_default()
    }
    /// Busy time of all kinds.
    pub fn total(&self) -> Duration {
        self.kinds.values().fold(Duration::ZERO, |sum, &time| sum + time)
    }
    /// The kinds in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Duration)> + '_ {
        self.kinds.iter().map(|(&kind, &time)| (kind, time))
    }
    pub(crate) fn add(&mut self, kind: &'static str, time: Duration) {
        *self.kinds.entry(kind).or_default() += time;
    }
    pub(crate) fn add_all(&mut self, spent: &Spent) {
        spent.iter().for_each(|(kind, time)| self.add(kind, time));
    }
}

type WhenDone = Box<dyn FnOnce(Instant)>;

/// How an application charges its host's processor for its own work. Clones charge the same processor.
#[derive(Clone, Default)]
pub struct Charges(Rc<RefCell<Charged>>);

#[derive(Default)]
struct Charged {
    spent: Spent,
    /// Steps so far.
    busy: Duration,
    when_done: Vec<WhenDone>,
}

impl Charges {
    /// Adds work to the step in which the task is being polled. Frames that the task sends depart after it.
    pub fn charge(&self, kind: &'static str, cost: Duration) {
        self.0.borrow_mut().spent.add(kind, cost);
    }
    /// Adds work, and is done when the processor has done it and polls the task again.
    pub fn spend(&self, kind: &'static str, cost: Duration) -> Yield {
        self.charge(kind, cost);
        Yield { was_polled: false }
    }
    /// Calls `then` with the instant at which the work of the present step is done.
    pub fn when_done(&self, then: impl FnOnce(Instant) + 'static) {
        self.0.borrow_mut().when_done.push(Box::new(then));
    }
    /// How long the processor was busy with all work, interrupts for octets left out. A step counts from its beginning.
    pub fn busy(&self) -> Duration {
        self.0.borrow().busy
    }
    /// What was charged since the last step. A step begins that costs this and `work`.
    pub(crate) fn take(&self, work: &Spent) -> (Spent, Vec<WhenDone>) {
        let mut charged = self.0.borrow_mut();
        let spent = std::mem::take(&mut charged.spent);
        charged.busy = charged.busy + work.total() + spent.total();
        (spent, std::mem::take(&mut charged.when_done))
    }
}

/// Lets the processor finish its step: pending once.
#[derive(Debug)]
#[must_use = "it does nothing unless it is awaited"]
pub struct Yield {
    was_polled: bool,
}

impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.was_polled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A clock that advances in whole ticks, as an application of then read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoarseClock {
    /// Time between two ticks; more than zero.
    pub tick: Duration,
    /// When the first tick was; less than a tick.
    pub phase: Duration,
}

impl CoarseClock {
    /// Ticks until `now`, the one at `now` included.
    pub fn ticks(&self, now: Instant) -> u64 {
        let tick_ns = self.tick.as_nanos().max(1);
        now.as_nanos().saturating_sub(self.phase.as_nanos()) / tick_ns
    }
    /// The time between two instants as this clock measures it: a whole number of ticks.
    pub fn measures(&self, from: Instant, to: Instant) -> Duration {
        self.tick.times(self.ticks(to).saturating_sub(self.ticks(from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_shorter_than_a_tick_measures_as_none_or_as_one() {
        let tick = Duration::from_millis(55);
        let clock = CoarseClock { tick, phase: Duration::from_millis(20) };
        // Three quarters of a tick (MIT §6.1): a quarter of the beginnings see no tick.
        let event = Duration::from_micros(41_250);
        let measured = |from_us: u64| {
            let from = Instant::from_nanos(from_us * 1000);
            clock.measures(from, from + event)
        };
        let all: Vec<Duration> = (100_000..155_000).map(measured).collect();
        assert!(all.iter().all(|&time| time == Duration::ZERO || time == tick));
        let ones = all.iter().filter(|&&time| time == tick).count();
        assert_eq!(ones, 41_250);
    }
}
