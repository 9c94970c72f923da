//! User programs on simulated hosts: an interface like tokio's.

mod node;

pub use node::{DialError, Node, ProgramResult};

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;

use inhost_base::{Duration, Instant, IpAddr, Random};
use inhost_socket::{AddressFuture, Host, Resolve};
use inhost_stack::StackConfig;

use crate::capture::Capture;
use crate::clock::Clock;
use crate::link::LinkConfig;
use crate::network::{Network, Ran};
use crate::provenance;
use crate::scenario::{address, interface};
use crate::watchdog::Watchdog;

/// Rounds after which a run is called endless.
const ROUND_LIMIT: u64 = 50_000_000;
/// Most hosts: addresses are 10.0.0.1 to 10.0.0.250.
const HOST_LIMIT: usize = 250;
/// The largest packet.
const MTU_BYTES: u16 = 1500;

/// Named hosts on one switch, each on its own link, and the programs that run on them.
///
/// [`Simulation::host`] adds a host with a program that may run for ever, such as a server; [`Simulation::client`] one
/// whose end is waited for. [`Simulation::run`] is over when every client is. It fails when a program returns an error,
/// when any task of any host panics or spins, when the network falls silent while a client still waits, or when the
/// [`Checker`](crate::Checker) finds something wrong. The same seed gives the same run, to the bit, as long as programs take time, randomness and company from
/// their [`Node`] alone.
///
/// ```
/// use inhost_sim::{LinkConfig, Loss, Simulation};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let mut simulation = Simulation::new(7);
/// simulation.set_link(LinkConfig { loss: Loss::per_mille(50), ..LinkConfig::default() });
/// simulation.host("server", async |node| {
///     let listener = node.bind(7)?;
///     loop {
///         let mut stream = listener.accept().await?;
///         let mut place = [0; 5];
///         stream.read_exact(&mut place).await?;
///         stream.write_all(&place).await?;
///     }
/// });
/// simulation.client("client", async |node| {
///     let mut stream = node.dial("server", 7).await?;
///     stream.write_all(b"hello").await?;
///     let mut place = [0; 5];
///     stream.read_exact(&mut place).await?;
///     assert_eq!(&place, b"hello");
///     Ok(())
/// });
/// simulation.run().unwrap();
/// ```
pub struct Simulation {
    seed: u64,
    network: Network,
    switch: usize,
    link: LinkConfig,
    random: Random,
    config: StackConfig,
    names: Names,
    programs: Vec<Rc<Program>>,
    time_limit: Duration,
    poll_limit: Duration,
    capture_failed: Option<String>,
}

/// The program of one host; its place among the programs is the host's number.
struct Program {
    name: String,
    given_at: &'static Location<'static>,
    /// A run of it; none when it can run only once and did.
    run: Box<dyn Fn(Node) -> Option<Running>>,
    runs_once: bool,
    /// Its end is waited for.
    is_awaited: Cell<bool>,
    ended: RefCell<Option<Ended>>,
    names: Names,
    random: Rc<RefCell<Random>>,
}

type Running = Pin<Box<dyn Future<Output = ProgramResult>>>;
type Names = Rc<RefCell<BTreeMap<String, IpAddr>>>;

impl Program {
    /// Begins a run on `host`, which has just begun itself.
    fn start(self: &Rc<Program>, host: &Host) {
        host.set_resolver(HostTable(self.names.clone()));
        let node = Node::new(host.clone(), self.names.clone(), self.random.clone());
        let Some(running) = (self.run)(node.clone()) else { return };
        let program = self.clone();
        let task = async move {
            let result = running.await.map_err(|why| why.to_string());
            *program.ended.borrow_mut() = Some(Ended { at: node.now(), result });
        };
        host.spawn_at(self.given_at, task).detach();
    }
}

/// Result of a program.
struct Ended {
    at: Instant,
    result: Result<(), String>,
}

/// Statistics of a successful run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Elapsed virtual time.
    pub virtual_time: Duration,
    /// TCP segments that hosts sent.
    pub segments: u64,
    /// Bytes of data in them, repeats included.
    pub payload_bytes: u64,
    /// Rounds.
    pub rounds: u64,
}

/// Why a run failed, and how to see it again.
#[derive(Clone, Debug)]
pub struct RunError {
    /// The seed.
    pub seed: u64,
    /// Violations found so far, as text.
    pub why: String,
    /// The commit of the working directory.
    pub commit: String,
    /// Command that repeats the run with a capture.
    pub command: String,
}

impl core::fmt::Display for RunError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let RunError { seed, why, commit, command } = self;
        write!(f, "{why}\nseed {seed}, commit {commit}\nagain, with a capture: {command}")
    }
}
impl core::error::Error for RunError {}

impl Simulation {
    /// An empty world. The environment's `INHOST_SIM_SEED` goes before `seed`, and `INHOST_SIM_PCAPNG` names a file for
    /// what crosses the links.
    pub fn new(seed: u64) -> Simulation {
        let seed = provenance::asked_seed().unwrap_or(seed);
        let mut network = Network::new(Instant::from_millis(1000), ROUND_LIMIT);
        let switch = network.add_switch();
        let mut capture_failed = None;
        if let Some(path) = provenance::asked_capture() {
            match Capture::create(&path) {
                Ok(capture) => network.watch(capture),
                Err(why) => capture_failed = Some(format!("cannot write {}: {why}", path.display())),
            }
        }
        Simulation {
            seed,
            network,
            switch,
            link: LinkConfig::default(),
            random: Random::from_number(seed),
            config: StackConfig::default(),
            names: Rc::default(),
            programs: Vec::new(),
            time_limit: Duration::from_secs(3600),
            poll_limit: Duration::from_millis(800),
            capture_failed,
        }
    }
    /// The seed in force.
    pub fn seed(&self) -> u64 {
        self.seed
    }
    /// Link configuration, both ways, of hosts added from now on. Default: 1 ms and no faults.
    pub fn set_link(&mut self, link: LinkConfig) {
        self.link = link;
    }
    /// Stack configuration of hosts added from now on.
    pub fn set_config(&mut self, config: StackConfig) {
        self.config = config;
    }
    /// After how long the run has failed. Default: an hour of virtual time.
    pub fn set_time_limit(&mut self, limit: impl Into<Duration>) {
        self.time_limit = limit.into();
    }
    /// Processor time limit of one poll. A task that loops without using its host can only be ended with the process,
    /// so after this time the process says which task it was, and aborts. Default: 800 ms.
    pub fn set_poll_limit(&mut self, limit: impl Into<Duration>) {
        self.poll_limit = limit.into();
    }
    /// The network, for what has no method here: [`Network::after`], [`Network::cut`], [`Network::pause`] ...
    /// Host and link numbers are those that [`Simulation::host`] gave.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }
    /// The number of a host by its name, and of its link.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn number(&self, name: &str) -> usize {
        let found = self.programs.iter().position(|program| program.name == name);
        found.unwrap_or_else(|| panic!("{}", DialError::UnknownName(name.to_owned())))
    }
    /// Cuts hosts off from all others, for a time that is counted from now. What is under way at its beginning still arrives.
    /// A neighbour that does not answer for three seconds is unreachable, and who dials it is told so.
    ///
    /// ```
    /// use inhost_sim::Simulation;
    /// use std::time::Duration;
    ///
    /// let mut simulation = Simulation::new(1);
    /// simulation.host("server", async |node| {
    ///     let listener = node.bind(7)?;
    ///     loop {
    ///         listener.accept().await?;
    ///     }
    /// });
    /// simulation.client("client", async |node| {
    ///     node.dial("server", 7).await?;
    ///     assert!(node.now().as_nanos() > 2_000_000_000);
    ///     Ok(())
    /// });
    /// simulation.partition(&["server"], Duration::ZERO..Duration::from_secs(2));
    /// simulation.run().unwrap();
    /// ```
    ///
    /// # Panics
    /// When a name is that of no host.
    #[track_caller]
    pub fn partition<D: Into<Duration>>(&mut self, names: &[&str], during: Range<D>) {
        let hosts: Vec<usize> = names.iter().map(|name| self.number(name)).collect();
        let (from, to) = (during.start.into(), during.end.into());
        let cut = hosts.clone();
        self.network.after(from, move |network| network.partition(&cut));
        self.network.after(to, move |network| hosts.iter().for_each(|&host| network.heal(host)));
    }
    /// Stops a host for a time that is counted from now, as a machine that sleeps; see [`Network::pause`].
    ///
    /// # Panics
    /// When no host has this name.
    #[track_caller]
    pub fn pause<D: Into<Duration>>(&mut self, name: &str, during: Range<D>) {
        let host = self.number(name);
        let (from, to) = (during.start.into(), during.end.into());
        self.network.after(from, move |network| network.pause(host, to - from));
    }
    /// Lets a host crash, as a machine that loses its power, at a time that is counted from now: its tasks are dropped, its
    /// peers are told nothing, and what they send is lost until it is [restarted](Simulation::restart). A client that crashes is
    /// not waited for any more.
    ///
    /// What the program keeps in its own variables is gone; what it was given from outside, behind an `Rc`, is its disk.
    ///
    /// ```
    /// use inhost_sim::Simulation;
    /// use std::time::Duration;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// let mut simulation = Simulation::new(1);
    /// simulation.host("server", async |node| {
    ///     let listener = node.bind(7)?;
    ///     loop {
    ///         let mut stream = listener.accept().await?;
    ///         node.spawn(async move { while stream.read_u8().await.is_ok() {} }).detach();
    ///     }
    /// });
    /// simulation.client("client", async |node| {
    ///     let mut stream = node.dial("server", 7).await?;
    ///     node.sleep(inhost_sim::Duration::from_secs(3)).await;
    ///     // The server that is back knows nothing of the connection, and says so.
    ///     stream.write_u8(1).await?;
    ///     assert_eq!(stream.read_u8().await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    ///     node.dial("server", 7).await?;
    ///     Ok(())
    /// });
    /// simulation.crash("server", Duration::from_secs(1));
    /// simulation.restart("server", Duration::from_secs(2));
    /// simulation.run().unwrap();
    /// ```
    ///
    /// # Panics
    /// When no host has this name.
    #[track_caller]
    pub fn crash<D: Into<Duration>>(&mut self, name: &str, after: D) {
        let host = self.number(name);
        let program = self.programs[host].clone();
        self.network.after(after.into(), move |network| {
            network.crash(host);
            program.is_awaited.set(false);
        });
    }
    /// Starts a host anew at a time that is counted from now, and its program from the beginning. One that has not crashed
    /// crashes then.
    ///
    /// # Panics
    /// When no host has this name, or when it is that of a client, whose program runs once.
    #[track_caller]
    pub fn restart<D: Into<Duration>>(&mut self, name: &str, after: D) {
        let host = self.number(name);
        let program = self.programs[host].clone();
        assert!(
            !program.runs_once,
            "the program of {name} runs once: add it by Simulation::host to start it again"
        );
        self.network.after(after.into(), move |network| {
            network.restart(host);
            *program.ended.borrow_mut() = None;
            program.start(network.host(host));
        });
    }
    /// Adds a host that runs `program`, which may never end, and which is called again when the host
    /// [restarts](Simulation::restart); gives its number, which is also that of its link.
    #[track_caller]
    pub fn host<F>(&mut self, name: &str, program: F) -> usize
    where
        F: AsyncFn(Node) -> ProgramResult + 'static,
    {
        let program = Rc::new(program);
        let run = move |node| -> Option<Running> {
            let program = program.clone();
            Some(Box::pin(async move { program(node).await }))
        };
        self.add(name, Box::new(run), false)
    }
    /// Adds a host that runs `program`, whose end is waited for; gives its number, which is also that of its link.
    #[track_caller]
    pub fn client<F>(&mut self, name: &str, program: F) -> usize
    where
        F: AsyncFnOnce(Node) -> ProgramResult + 'static,
    {
        let program = Cell::new(Some(program));
        let run = move |node| -> Option<Running> {
            let program = program.take()?;
            Some(Box::pin(async move { program(node).await }))
        };
        self.add(name, Box::new(run), true)
    }
    #[track_caller]
    fn add(&mut self, name: &str, run: Box<dyn Fn(Node) -> Option<Running>>, is_client: bool) -> usize {
        let seed = self.random.public_u64();
        let number = self.network.add_host_with_clock(self.config.clone(), seed, Clock::default());
        assert!(number < HOST_LIMIT, "a simulation has at most {HOST_LIMIT} hosts");
        let end = (number, interface(number, true, MTU_BYTES));
        let link_seed = self.random.public_u64();
        if let Err(why) = self.network.join_switch(end, self.switch, self.link.clone(), link_seed) {
            // The interface is our own, and there is one a host.
            unreachable!("{why}");
        }
        self.network.name_host(number, name);
        self.names.borrow_mut().insert(name.to_owned(), address(number, false));
        let program = Rc::new(Program {
            name: name.to_owned(),
            given_at: Location::caller(),
            run,
            runs_once: is_client,
            is_awaited: Cell::new(is_client),
            ended: RefCell::default(),
            names: self.names.clone(),
            random: Rc::new(RefCell::new(Random::from_number(self.random.public_u64()))),
        });
        program.start(self.network.host(number));
        self.programs.push(program);
        number
    }
    /// Runs until every client has ended.
    pub fn run(&mut self) -> Result<Report, RunError> {
        let began = self.network.now();
        let watchdog = self.watch();
        let programs = &self.programs;
        let failed = Cell::new(false);
        let ran = self.network.run(self.time_limit, |_| {
            let mut all = true;
            for program in programs {
                match &*program.ended.borrow() {
                    Some(ended) => failed.set(failed.get() | ended.result.is_err()),
                    None => all &= !program.is_awaited.get(),
                }
            }
            all || failed.get()
        });
        drop(watchdog);
        match self.wrong(ran) {
            Some(why) => {
                self.network.note(None, &format!("the run failed: {why}"));
                Err(RunError { seed: self.seed, why, commit: provenance::commit(), command: self.command() })
            }
            None => Ok(Report {
                seed: self.seed,
                virtual_time: self.network.now().since(began),
                segments: self.network.checker().segments(),
                payload_bytes: self.network.checker().payload_bytes(),
                rounds: self.network.rounds(),
            }),
        }
    }
    /// Command that repeats the seed.
    fn command(&self) -> String {
        provenance::command(self.seed, &format!("seed-{}.pcapng", self.seed))
    }
    fn watch(&self) -> Watchdog {
        let names = self.programs.iter().map(|program| program.name.clone()).collect();
        let again = format!("seed {}\nagain: {}", self.seed, self.command());
        Watchdog::start(self.network.pulse(), self.poll_limit, names, again)
    }
    fn wrong(&self, ran: Ran) -> Option<String> {
        if let Some(why) = &self.capture_failed {
            return Some(why.clone());
        }
        if let Some(failure) = self.network.task_failure() {
            let name = self.programs.get(failure.host).map_or("a host", |program| &program.name);
            return Some(format!("{name}: {failure}"));
        }
        for program in &self.programs {
            if let Some(Ended { at, result: Err(why) }) = &*program.ended.borrow() {
                let name = &program.name;
                let at = at.since(Instant::ZERO);
                return Some(format!("{name}: its program ended at {at} with an error: {why}"));
            }
        }
        let waiting = || {
            let clients = self.programs.iter().filter(|p| p.is_awaited.get() && p.ended.borrow().is_none());
            clients.map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let at = self.network.now().since(Instant::ZERO);
        match ran {
            Ran::Done => None,
            Ran::Wrong => Some(self.network.checker().violations().join("\n")),
            Ran::Silent => {
                Some(format!("deadlock at {at}: nothing will happen any more, and {} waits", waiting()))
            }
            Ran::TimeOver => Some(format!(
                "the run's time limit of {} was reached at {at}, and {} had not ended",
                self.time_limit,
                waiting()
            )),
            Ran::Endless | Ran::Failed => {
                Some(format!("endless at {at}: {} waits, and hosts are busy with nothing", waiting()))
            }
        }
    }
}

/// The hosts of a simulation by name, as each of them looks them up.
struct HostTable(Names);

impl Resolve for HostTable {
    fn resolve<'a>(&'a self, name: &'a str) -> AddressFuture<'a> {
        let found = self.0.borrow().get(name).copied();
        Box::pin(async move {
            let unknown = || io::Error::new(io::ErrorKind::NotFound, DialError::UnknownName(name.to_owned()));
            found.map(|address| vec![address]).ok_or_else(unknown)
        })
    }
}

/// Runs what `build` makes under each of `seeds`, or only under the one that `INHOST_SIM_SEED` names. Panics at the
/// first run that fails, with its seed, the commit and the command that runs it again.
pub fn explore(seeds: std::ops::Range<u64>, build: impl Fn(&mut Simulation)) {
    let seeds = provenance::asked_seed().map_or(seeds, |seed| seed..seed + 1);
    for seed in seeds {
        let mut simulation = Simulation::new(seed);
        build(&mut simulation);
        if let Err(why) = simulation.run() {
            panic!("{why}");
        }
    }
}
