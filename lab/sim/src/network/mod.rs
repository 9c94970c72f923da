//! Hosts, switches and the links between them, and the rounds that drive them.

mod crash;
mod flying;
mod media;
mod notes;
mod processing;
mod round;
mod stepping;
mod tasks;
mod watch;

pub use flying::{Flying, Tamper};
pub use tasks::{TaskFailure, TaskFault};
pub use watch::{Seen, Watcher};

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use inhost_base::{Duration, Instant, LinkId, Random};
use inhost_buf::Batch;
use inhost_socket::Host;
use inhost_stack::{ConfigureError, InterfaceConfig, Medium, Stack, StackConfig, TcpSocketId};

use crate::agenda::Agenda;
use crate::buffers::Buffers;
use crate::check::Checker;
use crate::clock::Clock;
use crate::jump::{JumpPlan, Jumper, PacketDirection};
use crate::link::{Direction, LinkConfig, LinkStatistics};
use crate::switch::Switch;
use crate::watchdog::Pulse;

/// Something that is to be done to a network later.
type Change = Box<dyn FnOnce(&mut Network)>;

/// Hosts on virtual time, and what joins them. Hosts are driven by the same rounds as under the real clock: frames up,
/// timers and tasks, frames down; then time jumps to when something happens next. The same calls with the same seeds
/// give the same frames at the same instants.
///
/// A [`Checker`] watches every frame; what it finds wrong ends [`Network::run`].
pub struct Network {
    now: Instant,
    hosts: Vec<HostPlace>,
    switches: Vec<Switch>,
    links: Vec<Link>,
    /// When the next frame of each direction arrives: link times two, and the end that sends.
    arrivals: Agenda,
    /// When each host wants its next round.
    wakes: Agenda,
    changes: BTreeMap<(Instant, u64), Change>,
    change_count: u64,
    watch: watch::Watch,
    tasks: Rc<tasks::Tasks>,
    /// By host.
    jumpers: Vec<Jumper>,
    /// Sequence numbers that hosts keep are looked at in every round.
    batch: Batch,
    buffers: Buffers,
    rounds: u64,
    round_limit: u64,
    media: Vec<media::MediumPlace>,
    /// Media do nothing after this instant: the end of the run.
    horizon: Instant,
    /// Frames that a host takes from a link in its round: any number, unless the network is stepped.
    frames_a_round: usize,
    #[cfg(feature = "freeze")]
    freezer: Option<crate::Freezer>,
}

struct HostPlace {
    host: Host,
    /// For messages and captures.
    name: Option<String>,
    /// What the machine begins with, each time.
    machine: Machine,
    is_down: bool,
    clock: Clock,
    /// The host's links, each with the end that is here.
    ports: Vec<(usize, usize)>,
    /// It does nothing before this instant.
    paused_until: Option<Instant>,
    observer: Rc<tasks::Observer>,
    /// When its last round was.
    round_at: Instant,
    /// Its next round is for its tasks' sake only: no frame and no timer asked for it.
    is_restless: bool,
    /// What its work costs; nothing without.
    cpu: Option<Box<processing::Cpu>>,
}

/// What a machine is when its power comes.
struct Machine {
    config: StackConfig,
    seed: u64,
    /// How often it has begun.
    boots: u64,
    /// In the order in which they were added.
    interfaces: Vec<(LinkId, InterfaceConfig)>,
}

impl Machine {
    /// A host without links that begins now.
    fn boot(&mut self, now: Instant) -> Host {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&self.boots.to_le_bytes());
        self.boots += 1;
        Host::new(Stack::new(self.config.clone(), seed, now), now)
    }
}

/// A link; `directions[i]` carries what `ends[i]` sends.
struct Link {
    ends: [End; 2],
    directions: [Direction; 2],
    is_ethernet: bool,
}

#[derive(Clone, Copy)]
enum End {
    Host { host: usize, id: LinkId },
    Switch { switch: usize, port: usize },
    Medium { medium: usize, station: usize },
}

/// How [`Network::run`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ran {
    /// What was waited for has happened.
    Done,
    /// The time is over.
    TimeOver,
    /// Nothing will ever happen again.
    Silent,
    /// The limit on rounds was reached: the hosts are busy with nothing.
    Endless,
    /// The checker found something wrong: see [`Checker::violations`].
    Wrong,
    /// A task of a host panicked or spins: see [`Network::task_failure`].
    Failed,
}

impl Network {
    /// A network without hosts, at the time `now`, that makes at most `round_limit` rounds.
    pub fn new(now: Instant, round_limit: u64) -> Network {
        Network {
            now,
            hosts: Vec::new(),
            switches: Vec::new(),
            links: Vec::new(),
            arrivals: Agenda::default(),
            wakes: Agenda::default(),
            changes: BTreeMap::new(),
            change_count: 0,
            watch: watch::Watch::new(),
            tasks: Rc::default(),
            jumpers: Vec::new(),
            batch: Batch::new(),
            buffers: Buffers::default(),
            rounds: 0,
            round_limit,
            media: Vec::new(),
            horizon: Instant::FAR_FUTURE,
            frames_a_round: usize::MAX,
            #[cfg(feature = "freeze")]
            freezer: None,
        }
    }
    /// Freezes and thaws hosts at random moments from now on.
    #[cfg(feature = "freeze")]
    pub fn freeze_hosts(&mut self, freezer: crate::Freezer) {
        self.freezer = Some(freezer);
    }
    /// Adds a host, whose randomness follows from `seed`; gives its number.
    pub fn add_host(&mut self, config: StackConfig, seed: u64) -> usize {
        self.add_host_with_clock(config, seed, Clock::default())
    }
    /// Adds a host with its own clock.
    pub fn add_host_with_clock(&mut self, config: StackConfig, seed: u64, clock: Clock) -> usize {
        let mut machine = Machine { config, seed, boots: 0, interfaces: Vec::new() };
        let host = machine.boot(clock.shows(self.now));
        let observer = Rc::new(tasks::Observer::new(self.hosts.len(), self.tasks.clone()));
        host.observe_tasks(observer.clone());
        self.hosts.push(HostPlace {
            host,
            name: None,
            machine,
            is_down: false,
            clock,
            ports: Vec::new(),
            paused_until: None,
            observer,
            round_at: self.now,
            is_restless: false,
            cpu: None,
        });
        self.wakes.add();
        self.jumpers.push(Jumper::default());
        self.hosts.len() - 1
    }
    /// Adds a switch for Ethernets; gives its number. Join switches as a tree: they do not look for loops.
    pub fn add_switch(&mut self) -> usize {
        self.switches.push(Switch::default());
        self.switches.len() - 1
    }
    /// Joins two hosts by a link, each with its interface; `configs[i]` is how it carries what `ends[i]` sends, and one
    /// config serves both. Gives the link's number in the network and its name at both hosts.
    pub fn join(
        &mut self,
        ends: [(usize, InterfaceConfig); 2],
        configs: impl Into<[LinkConfig; 2]>,
        seed: u64,
    ) -> Result<(usize, [LinkId; 2]), ConfigureError> {
        let is_ethernet = ends.each_ref().map(|(_, config)| matches!(config.medium, Medium::Ethernet(_)));
        let [a, b] = ends;
        let ends = [self.end(a)?, self.end(b)?];
        let names = ends.map(|end| match end {
            End::Host { id, .. } => id,
            End::Switch { .. } | End::Medium { .. } => LinkId(0),
        });
        Ok((self.add_link(ends, is_ethernet[0] && is_ethernet[1], configs.into(), seed), names))
    }
    /// Joins a host to a switch; `configs[0]` is how the link carries what the host sends. Gives the link's number and
    /// its name at the host.
    pub fn join_switch(
        &mut self,
        (host, interface): (usize, InterfaceConfig),
        switch: usize,
        configs: impl Into<[LinkConfig; 2]>,
        seed: u64,
    ) -> Result<(usize, LinkId), ConfigureError> {
        let end = self.end((host, interface))?;
        let id = if let End::Host { id, .. } = end { id } else { LinkId(0) };
        let port = self.switch_end(switch);
        Ok((self.add_link([end, port], true, configs.into(), seed), id))
    }
    /// Joins two switches; gives the link's number.
    pub fn join_switches(
        &mut self,
        switches: [usize; 2],
        configs: impl Into<[LinkConfig; 2]>,
        seed: u64,
    ) -> usize {
        let ends = switches.map(|switch| self.switch_end(switch));
        self.add_link(ends, true, configs.into(), seed)
    }
    fn end(&mut self, (host, config): (usize, InterfaceConfig)) -> Result<End, ConfigureError> {
        let place = &mut self.hosts[host];
        let is_router = place.host.with_stack(|stack, _| stack.config().ip.forwarding.is_some());
        self.watch.checker.knows(host, is_router, config.addresses.iter().map(|cidr| cidr.address()));
        let shown = place.clock.shows(self.now);
        let id = place.host.with_stack(|stack, _| stack.add_link(config.clone(), shown))?;
        place.machine.interfaces.push((id, config));
        Ok(End::Host { host, id })
    }
    fn switch_end(&mut self, switch: usize) -> End {
        // Its place among the switch's ports, once it is added.
        let port = self.switches[switch].ports.len();
        self.switches[switch].ports.push((self.links.len(), 0));
        End::Switch { switch, port }
    }
    fn add_link(&mut self, ends: [End; 2], is_ethernet: bool, configs: [LinkConfig; 2], seed: u64) -> usize {
        let number = self.links.len();
        let mut random = Random::from_number(seed);
        let directions = configs.map(|config| {
            self.watch.hears_of(&config);
            let own = Random::from_number(random.public_u64());
            let mut direction = Direction::new(config, is_ethernet, own);
            if self.watch.wants_losses {
                direction.losses.keep();
            }
            direction
        });
        for (i, end) in ends.iter().enumerate() {
            match *end {
                End::Host { host, .. } => self.hosts[host].ports.push((number, i)),
                End::Switch { switch, port } => self.switches[switch].ports[port] = (number, i),
                End::Medium { medium, .. } => self.media[medium].links.push(number),
            }
            self.arrivals.add();
        }
        self.links.push(Link { ends, directions, is_ethernet });
        number
    }

    /// Shows every frame to `watcher`, too, from now on.
    pub fn watch(&mut self, mut watcher: impl Watcher + 'static) {
        self.show_names(&mut watcher);
        if watcher.wants_losses() {
            self.watch.wants_losses = true;
            let directions = self.links.iter_mut().flat_map(|link| &mut link.directions);
            directions.for_each(|direction| direction.losses.keep());
        }
        self.watch.others.push(Box::new(watcher));
    }
    /// The checker of this network.
    pub fn checker(&self) -> &Checker {
        &self.watch.checker
    }
    /// Turns the checker off, for a network in which somebody forges frames.
    pub fn check_nothing(&mut self) {
        self.watch.checks = false;
    }
    /// The first panic in a task of any host, detached or not, or the first task that never rested.
    pub fn task_failure(&self) -> Option<TaskFailure> {
        self.tasks.failure()
    }
    /// What a watchdog reads.
    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        self.tasks.pulse()
    }
    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// Rounds made so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }
    /// A host by its number.
    pub fn host(&self, host: usize) -> &Host {
        &self.hosts[host].host
    }
    /// All hosts.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = &Host> {
        self.hosts.iter().map(|place| &place.host)
    }
    /// Links so far; their numbers are below.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }
    /// How a link carries what its end `end` sends.
    pub fn link(&self, link: usize, end: usize) -> &LinkConfig {
        self.links[link].directions[end].config()
    }
    /// What happened to the frames that end `end` of a link sent.
    pub fn statistics(&self, link: usize, end: usize) -> LinkStatistics {
        self.links[link].directions[end].statistics
    }
}

/// What may be done to a network while it runs.
impl Network {
    /// Does something after `time`, between two rounds: to change a link, to cut and to heal, to pause a host.
    pub fn after(&mut self, time: Duration, change: impl FnOnce(&mut Network) + 'static) {
        self.change_count += 1;
        self.changes.insert((self.now + time, self.change_count), Box::new(change));
    }
    /// Changes how a link carries what its end `end` sends. What is under way stays so.
    pub fn set_link(&mut self, link: usize, end: usize, config: LinkConfig) {
        self.watch.hears_of(&config);
        let now = self.now;
        self.links[link].directions[end].set_config(config, now, &mut self.buffers);
        self.look_again(link, end);
    }
    /// Lets packets of more than `mtu_bytes` that end `end` of a link sends be dropped without an ICMP error; none when
    /// `None`.
    pub fn set_black_hole(&mut self, link: usize, end: usize, mtu_bytes: Option<u32>) {
        let config = LinkConfig { mtu_bytes, ..self.link(link, end).clone() };
        self.set_link(link, end, config);
    }
    /// The largest packet that the host at each end of a link gives it; a switch takes any.
    pub fn mtu_bytes(&self, link: usize) -> [u16; 2] {
        self.links[link].ends.map(|end| match end {
            End::Host { host, id } => self.hosts[host].host.with_stack(|stack, _| {
                stack.ip().interface(id).map_or(u16::MAX, |link| link.config().mtu_bytes)
            }),
            End::Switch { .. } | End::Medium { .. } => u16::MAX,
        })
    }
    /// Changes the largest packet that the host at each end of a link gives it. No host that speaks IPv6 takes less than
    /// 1280: its interface stays as it is then.
    pub fn set_mtu(&mut self, link: usize, mtu_bytes: [u16; 2]) {
        for (end, mtu_bytes) in self.links[link].ends.into_iter().zip(mtu_bytes) {
            if let End::Host { host, id } = end {
                let place = &mut self.hosts[host];
                if place.host.with_stack(|stack, _| stack.ip_mut().set_mtu(id, mtu_bytes)).is_ok() {
                    let own = place.machine.interfaces.iter_mut().find(|(own, _)| *own == id);
                    own.expect("each interface is kept").1.mtu_bytes = mtu_bytes;
                }
            }
        }
    }
    /// Cuts a link: what is sent from now on is lost. What has left already arrives.
    pub fn cut(&mut self, link: usize) {
        self.links[link].directions.iter_mut().for_each(|direction| direction.is_cut = true);
        self.note_link(link, "cut");
    }
    /// Cuts one direction of a link: what `end` sends.
    pub fn cut_direction(&mut self, link: usize, end: usize) {
        self.links[link].directions[end].is_cut = true;
        self.note_link(link, "cut in one direction");
    }
    /// Mends a link.
    pub fn heal(&mut self, link: usize) {
        let mut was_cut = false;
        for direction in &mut self.links[link].directions {
            was_cut |= std::mem::take(&mut direction.is_cut);
        }
        if was_cut {
            self.note_link(link, "mended");
        }
    }
    /// Cuts every link between one of `hosts` and anything else.
    pub fn partition(&mut self, hosts: &[usize]) {
        let is_in = |end: &End| matches!(end, End::Host { host, .. } if hosts.contains(host));
        for link in &mut self.links {
            if is_in(&link.ends[0]) != is_in(&link.ends[1]) {
                link.directions.iter_mut().for_each(|direction| direction.is_cut = true);
            }
        }
        self.note_partition(hosts);
    }
    /// Mends every link.
    pub fn heal_all(&mut self) {
        (0..self.links.len()).for_each(|link| self.heal(link));
    }
    /// Stops a host for a time, as a machine that sleeps or is stopped by its owner. Its clock goes on. Of the frames
    /// that come meanwhile it finds the first few hundred on each link when it goes on.
    pub fn pause(&mut self, host: usize, time: Duration) {
        let place = &mut self.hosts[host];
        let until = place.paused_until.unwrap_or(Instant::ZERO).max(self.now + time);
        place.paused_until = Some(until);
        self.watch.checker.excuse(host, until);
        self.wakes.set(host, until);
        self.note_host(host, format_args!("paused for {time}"));
    }
    /// Changes a host's memory limit.
    pub fn set_memory_limit(&mut self, host: usize, limit_bytes: usize) {
        let out_bytes = self.hosts[host].host.with_stack(|stack, _| {
            stack.set_memory_limit(limit_bytes);
            stack.memory().outstanding_bytes()
        });
        self.watch.checker.becomes_scarce(host, out_bytes);
    }
    /// Moves the sequence numbers of a host's connection on, as though gigabytes had been sent and received: no byte
    /// moves, and neither the peer nor anybody who sees frames notices. Whether the connection could be moved: it is
    /// open, and not with the host itself.
    pub fn jump_sequence(&mut self, host: usize, socket: TcpSocketId, send_by: u32, receive_by: u32) -> bool {
        self.jumpers[host].jump(&self.hosts[host].host, socket, send_by, receive_by)
    }
    /// Moves the numbers of all connections that a host has at some time to come.
    pub fn plan_jump(&mut self, host: usize, plan: JumpPlan) {
        self.jumpers[host].plan(plan);
    }
    /// How often a connection's numbers were moved.
    pub fn jumps(&self) -> u64 {
        self.jumpers.iter().map(Jumper::count).sum()
    }
    /// Gives a host a frame that no other sent, out of the ordinary round: it is taken at once.
    pub fn inject(&mut self, link: usize, end: usize, bytes: &[u8]) {
        let End::Host { host, id } = self.links[link].ends[end] else { return };
        let is_ethernet = self.links[link].is_ethernet;
        let place = &self.hosts[host];
        if let Some(mut packet) = place.host.with_stack(|stack, _| stack.pool().take(bytes.len())) {
            packet.append(bytes);
            self.jumpers[host].translate(packet.bytes_mut(), is_ethernet, PacketDirection::In);
            let _ = self.batch.push(packet);
            place.host.receive(id, &mut self.batch, place.clock.shows(self.now));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Tasks hold their host; without this both would live on.
        self.hosts().for_each(Host::stop);
    }
}
