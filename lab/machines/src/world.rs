//! Two hosts of a setup, joined by its link.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant, Random};
use inhost_sim::{Charges, LlpLine, Network, Ran, address, interface};
use inhost_socket::Host;
use inhost_stack::{ConfigureError, InterfaceConfig, StackConfig};

use crate::error::SetupError;
use crate::models::ibm_pc::IbmPc;
use crate::setup::{Link, Machine, Setup};
use crate::tally::Tally;

/// Rounds after which a run has failed.
const ROUND_LIMIT: u64 = 200_000_000;
/// Retransmission timeout before the first round trip is known.
const FIRST_TIMEOUT: Duration = Duration::from_secs(30);
/// The port that peers serve.
pub(crate) const PORT: u16 = 7;
/// The host that is measured, and its peer.
pub(crate) const MEASURED: usize = 0;
/// The other one.
pub(crate) const PEER: usize = 1;

/// The hosts of a run.
pub(crate) struct World {
    pub(crate) network: Network,
    machines: [Machine; 2],
    charges: [Charges; 2],
    /// The shared medium between them.
    #[expect(dead_code, reason = "programs to come read its counters")]
    pub(crate) medium: Option<usize>,
    pub(crate) random: Random,
    pub(crate) tally: Tally,
}

/// What a program on a host works with.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) host: Host,
    pub(crate) machine: Machine,
    pub(crate) charges: Charges,
}

/// How hosts of a machine speak TCP, besides what a setup says.
struct Habits {
    window_bytes: u32,
    mss_bytes: u16,
    /// Least margin of the retransmission timeout above the round trip.
    timeout_margin: Duration,
}

impl World {
    /// The hosts of a setup, at rest.
    pub(crate) fn new(setup: &Setup, seed: u64) -> Result<World, SetupError> {
        let mut random = Random::from_number(seed);
        let mut network = Network::new(Instant::from_millis(1000), ROUND_LIMIT);
        let machines = [setup.machine, setup.parameters.peer.unwrap_or(setup.machine)];
        let habits = habits(setup.link);
        let window_bytes = setup.parameters.window_bytes.unwrap_or(habits.window_bytes);
        if !(1..=1 << 20).contains(&window_bytes) {
            let allowed = "1 to 1048576".to_owned();
            return Err(SetupError::OutOfRange { name: "window_bytes", allowed });
        }
        let config = stack_of_then(window_bytes, habits.timeout_margin);
        for _ in machines {
            network.add_host(config.clone(), random.public_u64());
        }
        let medium = match setup.link {
            Link::Llp { bits_per_second } => {
                if !(300..=1_000_000).contains(&bits_per_second) {
                    let allowed = "300 to 1000000".to_owned();
                    return Err(SetupError::OutOfRange { name: "bits_per_second", allowed });
                }
                let medium = network.add_medium(LlpLine::new(bits_per_second));
                for host in [MEASURED, PEER] {
                    let end = (host, interface_of_then(host, false, habits.mss_bytes + 40));
                    network.join_medium(end, medium, 1).map_err(cannot_configure)?;
                }
                Some(medium)
            }
        };
        let charges = [MEASURED, PEER].map(|host| match machines[host] {
            Machine::Ideal {} => Charges::default(),
            Machine::IbmPc {} => network.set_processor(host, Box::new(IbmPc)),
        });
        let tally = Tally::default();
        network.watch(tally.clone());
        Ok(World { network, machines, charges, medium, random, tally })
    }
    /// A host as its program has it.
    pub(crate) fn node(&self, host: usize) -> Node {
        Node {
            host: self.network.host(host).clone(),
            machine: self.machines[host],
            charges: self.charges[host].clone(),
        }
    }
    /// Where the peer serves.
    pub(crate) fn peer(&self) -> Endpoint {
        Endpoint::new(address(PEER, false), PORT)
    }
    /// Starts a program on a host.
    #[track_caller]
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

fn cannot_configure(why: ConfigureError) -> SetupError {
    SetupError::Unsupported { why: why.to_string() }
}

fn habits(link: Link) -> Habits {
    match link {
        // MIT §6.2.2: a window of 4,000 bytes, packets of 500, and more than six seconds for a window.
        Link::Llp { .. } => {
            Habits { window_bytes: 4000, mss_bytes: 500, timeout_margin: Duration::from_secs(10) }
        }
    }
}

/// TCP as hosts of then spoke it: headers without options once a connection is open, a window that does not grow, no
/// pacing.
fn stack_of_then(window_bytes: u32, timeout_margin: Duration) -> StackConfig {
    let mut config = StackConfig::default();
    let tcp = &mut config.tcp;
    tcp.timestamps = false;
    tcp.sack = false;
    tcp.ecn = inhost_tcp::EcnMode::Off;
    tcp.pacing = false;
    tcp.window_scaling = window_bytes > 65_535;
    // Nobody slowed down for a network before 1988, and a window at 300 bit/s takes minutes: no timer may take its
    // acknowledgment for lost.
    tcp.initial_window_segments = u8::MAX;
    tcp.restart_after_idle = false;
    tcp.initial_retransmission_timeout = FIRST_TIMEOUT;
    tcp.min_retransmission_timeout = timeout_margin;
    tcp.tail_loss_probe = false;
    // The window is at most half of the buffer.
    tcp.receive_buffer_limit_bytes = 2 * window_bytes as usize;
    tcp.receive_buffer_initial_bytes = 2 * window_bytes as usize;
    config
}

fn interface_of_then(host: usize, is_ethernet: bool, mtu_bytes: u16) -> InterfaceConfig {
    let mut config = interface(host, is_ethernet, mtu_bytes);
    config.ipv6 = mtu_bytes >= 1280;
    config.addresses.retain(|cidr| cidr.address().is_ipv4());
    (config.gso, config.gro) = (false, false);
    config
}
