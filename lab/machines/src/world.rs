//! The hosts of a setup, joined by its link.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant, Random};
use inhost_sim::{Charges, Network, Ran};
use inhost_socket::{Host, Stream, StreamError};
use inhost_stack::{SendHow, StackConfig};

use crate::load::Load;
use crate::models::{Costs, costs};
use crate::setup::{Machine, Parameters, Setup};
use crate::tally::Tally;
use crate::wiring::{self, Habits, habits};
use inhost_sim::setup::{SetupError, within};

/// Rounds after which a run has failed.
const ROUND_LIMIT: u64 = 200_000_000;
/// Retransmission timeout before the first round trip is known.
const FIRST_TIMEOUT: Duration = Duration::from_secs(30);
/// The port that peers serve.
pub(crate) const PORT: u16 = 7;
/// The host that is measured.
pub(crate) const MEASURED: usize = 0;
/// Its first peer.
pub(crate) const PEER: usize = 1;

/// The hosts of a run.
pub(crate) struct World {
    pub(crate) network: Network,
    machines: Vec<Machine>,
    charges: Vec<Charges>,
    /// What competes with the programs of each host.
    loads: Vec<Option<Rc<Load>>>,
    /// The link of each peer.
    links: Vec<usize>,
    pub(crate) random: Random,
    pub(crate) tally: Tally,
}

/// What a program on a host works with.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) host: Host,
    pub(crate) costs: Costs,
    pub(crate) charges: Charges,
    load: Option<Rc<Load>>,
    /// Its work takes no time.
    pub(crate) is_ideal: bool,
}

impl Node {
    /// Sends all of `bytes` in one write, and pays for it.
    pub(crate) async fn write(&self, stream: &Stream, bytes: &[u8]) -> Result<(), StreamError> {
        let mut left = bytes;
        while !left.is_empty() {
            let count = stream.send(left, SendHow::default()).await?;
            left = &left[count..];
            self.spend("write", self.costs.write.of(count)).await;
        }
        Ok(())
    }
    /// Works, and is done when the processor has done it and no competitor goes first.
    pub(crate) async fn spend(&self, kind: &'static str, cost: Duration) {
        self.charges.spend(kind, cost).await;
        self.give_way().await;
    }
    /// Lets competitors run, when it is their turn.
    async fn give_way(&self) {
        if let Some(load) = &self.load {
            let pause = load.pause(self.charges.busy(), self.host.now());
            if pause > Duration::ZERO {
                self.host.sleep(pause).await;
            }
        }
    }
    /// Receives some bytes and charges for them; 0 at the end of the stream. The work is done when the task is polled
    /// again.
    pub(crate) async fn read(&self, stream: &Stream, into: &mut [u8]) -> Result<usize, StreamError> {
        let count = stream.receive(into).await?;
        if count > 0 {
            self.charges.charge("read", self.costs.read.of(count));
            self.give_way().await;
        }
        Ok(count)
    }
    /// Writes characters on the screen, and is done when all work of the step is.
    pub(crate) async fn print(&self, characters: usize, scrolls: bool) {
        self.spend("print", self.costs.print(characters, scrolls)).await;
    }
}

impl World {
    /// The hosts of a setup, at rest.
    pub(crate) fn new(setup: &Setup, seed: u64) -> Result<World, SetupError> {
        let mut random = Random::from_number(seed);
        let mut network = Network::new(Instant::from_millis(1000), ROUND_LIMIT);
        within("load", setup.parameters.load, 0..=16)?;
        let config = stack_of_then(&setup.parameters, &habits(setup.link))?;
        let peer = setup.parameters.peer.unwrap_or(setup.machine);
        let mut machines = vec![setup.machine];
        machines.resize(1 + wiring::peers(setup.link), peer);
        for &machine in &machines {
            wiring::keeps_up(setup.link, costs(machine).octet_interrupt)?;
            network.add_host(config.clone(), random.public_u64());
        }
        let links = wiring::join(&mut network, setup.link, random.public_u64())?;
        let tally = Tally::default();
        network.watch(tally.clone());
        let charges = machines.iter().enumerate().map(|(host, &machine)| match machine {
            Machine::Ideal {} => Charges::default(),
            machine => {
                let answers_before_last = setup.parameters.early_answer;
                network.set_processor(host, Box::new(Costs { answers_before_last, ..costs(machine) }))
            }
        });
        let charges = charges.collect();
        let load = setup.parameters.load;
        let loads =
            machines.iter().map(|_| (load > 0).then(|| Rc::new(Load::new(load, network.now())))).collect();
        Ok(World { network, machines, charges, loads, links, random, tally })
    }
    /// A host as its program has it.
    pub(crate) fn node(&self, host: usize) -> Node {
        Node {
            host: self.network.host(host).clone(),
            costs: costs(self.machines[host]),
            charges: self.charges[host].clone(),
            load: self.loads[host].clone(),
            is_ideal: self.machines[host] == Machine::Ideal {},
        }
    }
    /// The hosts besides the one that is measured.
    pub(crate) fn peers(&self) -> std::ops::Range<usize> {
        PEER..self.machines.len()
    }
    /// Frames that found no room in the cards of peers.
    pub(crate) fn lost_in_cards(&self) -> u64 {
        self.links.iter().map(|&link| self.network.statistics(link, 1).overflowed).sum()
    }
    /// Where the first peer serves.
    pub(crate) fn peer(&self) -> Endpoint {
        wiring::address_of(PEER)
    }
    /// Starts a program on a host.
    pub(crate) fn spawn(
        &self,
        host: usize,
        program: impl Future<Output = Result<(), String>> + 'static,
    ) -> Outcome {
        let outcome = Outcome::default();
        let ends = outcome.clone();
        let task = async move { *ends.0.borrow_mut() = Some(program.await) };
        self.network.host(host).spawn(task).detach();
        outcome
    }
    /// Runs until a program has ended, but for at most `limit`.
    pub(crate) fn run(&mut self, limit: Duration, outcome: &Outcome) -> Result<(), SetupError> {
        self.run_until(limit, outcome, || false)
    }
    /// Runs until a program has ended, or `done`, but for at most `limit`.
    pub(crate) fn run_until(
        &mut self,
        limit: Duration,
        outcome: &Outcome,
        done: impl Fn() -> bool,
    ) -> Result<(), SetupError> {
        match self.run_for(limit, outcome, done)? {
            Ran::Done => Ok(()),
            _ => Err(SetupError::Failed { why: format!("it was not over after {limit}") }),
        }
    }
    /// Runs until a program has ended, or `done`, or for `limit`. Gives whether it was done or the time was over.
    pub(crate) fn run_for(
        &mut self,
        limit: Duration,
        outcome: &Outcome,
        done: impl Fn() -> bool,
    ) -> Result<Ran, SetupError> {
        let ran = self.network.run(limit, |_| outcome.0.borrow().is_some() || done());
        let why = match ran {
            Ran::Done => match outcome.0.borrow_mut().take() {
                Some(Err(why)) => why,
                _ => return Ok(ran),
            },
            Ran::TimeOver => return Ok(ran),
            Ran::Wrong => self.network.checker().violations().join("\n"),
            Ran::Failed => self.network.task_failure().map_or_else(String::new, |why| why.to_string()),
            Ran::Silent | Ran::Endless => format!("{ran:?}"),
        };
        Err(SetupError::Failed { why })
    }
}

/// How a program ended; none while it runs.
#[derive(Clone, Default)]
pub(crate) struct Outcome(Rc<RefCell<Option<Result<(), String>>>>);

impl Outcome {
    /// Whether the program has ended with an error.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(&*self.0.borrow(), Some(Err(_)))
    }
    /// The error with which it has ended, if it has.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        match &*self.0.borrow() {
            Some(Err(why)) => Err(SetupError::Failed { why: why.clone() }),
            _ => Ok(()),
        }
    }
}

/// TCP as hosts of then spoke it: headers without options once a connection is open, a window that does not grow, no
/// pacing.
fn stack_of_then(parameters: &Parameters, habits: &Habits) -> Result<StackConfig, SetupError> {
    let window_bytes = parameters.window_bytes.unwrap_or(habits.window_bytes);
    within("window_bytes", window_bytes, 1..=1 << 20)?;
    let window_bytes = window_bytes.next_multiple_of(habits.window_unit_bytes);
    let send_buffer_bytes =
        parameters.send_buffer_bytes.unwrap_or(habits.send_buffer_bytes.unwrap_or(window_bytes));
    within("send_buffer_bytes", send_buffer_bytes, 1..=1 << 24)?;
    let mss_bytes = parameters.segment_bytes.unwrap_or(habits.mss_bytes);
    within("segment_bytes", mss_bytes, 64..=habits.mss_bytes)?;
    let mut config = StackConfig::default();
    let tcp = &mut config.tcp;
    tcp.mss_limit_bytes = mss_bytes;
    tcp.timestamps = false;
    tcp.sack = false;
    tcp.ecn = inhost_tcp::EcnMode::Off;
    tcp.pacing = false;
    tcp.window_scaling = window_bytes > 65_535;
    // Nobody slowed down for a network before 1988, and links that lose nothing need no slow start. A window at 300 bit/s
    // takes minutes: no timer may take its acknowledgment for lost.
    tcp.initial_window_segments = u8::MAX;
    tcp.restart_after_idle = false;
    tcp.initial_retransmission_timeout = FIRST_TIMEOUT;
    tcp.min_retransmission_timeout = habits.timeout_margin;
    tcp.tail_loss_probe = false;
    if let Some(delay) = habits.acknowledgment_delay {
        tcp.acknowledgment_delay = delay;
    }
    if habits.fills_window {
        tcp.policy.pushes_writes_and_bursts = true;
        tcp.policy.fills_window_behind_full_segments = true;
        // A segment that the window cuts is never sent by itself, so a full one must fit the window.
        tcp.mss_limit_bytes = mss_bytes.min(u16::try_from(window_bytes).unwrap_or(u16::MAX));
    }
    // The window is at most half of the buffer.
    tcp.receive_buffer_limit_bytes = 2 * window_bytes as usize;
    tcp.receive_buffer_initial_bytes = 2 * window_bytes as usize;
    tcp.send_buffer_limit_bytes = send_buffer_bytes as usize;
    tcp.send_buffer_initial_bytes = send_buffer_bytes as usize;
    Ok(config)
}
