//! Hosts and the links between them, and the rounds that drive them.

use inhost_base::{Duration, Instant, LinkId, Random};
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_socket::Host;
use inhost_stack::{ConfigureError, InterfaceConfig, Medium, Stack, StackConfig};

use crate::link::{Direction, LinkConfig, LinkStatistics};

/// Batches taken from one link in a round.
const BATCHES_A_ROUND: usize = 4;
/// Frames sent on one link in a round.
const FRAMES_A_ROUND: usize = 256;
/// Polls of tasks in a round, for each host.
const POLLS_A_ROUND: usize = 256;
/// What a round takes when there is more to do at once.
const ROUND_TIME: Duration = Duration::from_micros(1);

/// Sees every frame of a network.
pub trait Watcher {
    /// `host` sent `frame`, whatever the link does to it.
    fn sent(&mut self, host: usize, frame: &Seen<'_>);
    /// `frame` arrived at `host`.
    fn delivered(&mut self, host: usize, frame: &Seen<'_>);
}

/// A frame as a [`Watcher`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// When.
    pub at: Instant,
    /// The whole frame.
    pub bytes: &'a [u8],
    /// Whether it begins with an Ethernet header.
    pub is_ethernet: bool,
    /// Whether it is as it was sent.
    pub is_intact: bool,
}

/// Hosts on virtual time. They are driven by the same rounds as under the real clock: frames up, timers and tasks,
/// frames down; then time jumps to when something happens next. The same calls with the same seeds give the same
/// frames at the same instants.
pub struct Network {
    now: Instant,
    hosts: Vec<Host>,
    links: Vec<Link>,
    watcher: Option<Box<dyn Watcher>>,
    batch: Batch,
    rounds: u64,
    round_limit: u64,
}

/// A link between two hosts; `directions[i]` carries what `ends[i]` sends.
struct Link {
    ends: [End; 2],
    directions: [Direction; 2],
}

struct End {
    host: usize,
    id: LinkId,
    is_ethernet: bool,
    /// There was more to receive or to send than a round allows.
    busy: bool,
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
}

impl Network {
    /// A network without hosts, at the time `now`, that makes at most `round_limit` rounds.
    pub fn new(now: Instant, round_limit: u64) -> Network {
        Network {
            now,
            hosts: Vec::new(),
            links: Vec::new(),
            watcher: None,
            batch: Batch::new(),
            rounds: 0,
            round_limit,
        }
    }
    /// Adds a host, whose randomness follows from `seed`; gives its number.
    pub fn add_host(&mut self, config: StackConfig, seed: u64) -> usize {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        self.hosts.push(Host::new(Stack::new(config, bytes, self.now), self.now));
        self.hosts.len() - 1
    }
    /// Joins two hosts by a link, each with its interface; `configs[i]` is how it carries what `ends[i]` sends.
    /// Gives the link's number in the network and its name at both hosts.
    pub fn join(
        &mut self,
        ends: [(usize, InterfaceConfig); 2],
        configs: [LinkConfig; 2],
        seed: u64,
    ) -> Result<(usize, [LinkId; 2]), ConfigureError> {
        let now = self.now;
        let is_ethernet = ends.each_ref().map(|(_, config)| matches!(config.medium, Medium::Ethernet(_)));
        let mut random = Random::from_number(seed);
        let mut direction = |i: usize| {
            let own = Random::from_number(random.public_u64());
            Direction::new(configs[i], is_ethernet[i], own)
        };
        let directions = [direction(0), direction(1)];
        let [a, b] = ends;
        let end = |(host, config): (usize, InterfaceConfig), is_ethernet| {
            let id = self.hosts[host].with_stack(|stack, _| stack.add_link(config, now))?;
            Ok(End { host, id, is_ethernet, busy: true })
        };
        let ends = [end(a, is_ethernet[0])?, end(b, is_ethernet[1])?];
        let names = [ends[0].id, ends[1].id];
        self.links.push(Link { ends, directions });
        Ok((self.links.len() - 1, names))
    }
    /// Shows every frame to `watcher` from now on.
    pub fn watch(&mut self, watcher: impl Watcher + 'static) {
        self.watcher = Some(Box::new(watcher));
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
        &self.hosts[host]
    }
    /// All hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }
    /// Changes how a link carries what its end `end` sends.
    pub fn set_link(&mut self, link: usize, end: usize, config: LinkConfig) {
        self.links[link].directions[end].config = config;
    }
    /// What happened to the frames that end `end` of a link sent.
    pub fn statistics(&self, link: usize, end: usize) -> LinkStatistics {
        self.links[link].directions[end].statistics
    }
    /// Gives a host a frame that no other sent, out of the ordinary round: it is taken at once.
    pub fn inject(&mut self, link: usize, end: usize, bytes: &[u8]) {
        let End { host, id, .. } = self.links[link].ends[end];
        let host = &self.hosts[host];
        if let Some(mut packet) = host.with_stack(|stack, _| stack.pool().take(bytes.len())) {
            packet.append(bytes);
            let _ = self.batch.push(packet);
            host.receive(id, &mut self.batch, self.now);
        }
    }

    /// Makes one round of every host; when something happens next, and `None` when nothing ever will. Time stays.
    fn round(&mut self) -> Option<Instant> {
        self.rounds += 1;
        for link in &mut self.links {
            for end in 0..2 {
                let (hosts, batch) = (&self.hosts, &mut self.batch);
                link.receive(end, hosts, batch, self.now, &mut self.watcher);
            }
        }
        for host in &self.hosts {
            host.run(self.now, POLLS_A_ROUND);
        }
        for link in &mut self.links {
            for end in 0..2 {
                link.transmit(end, &self.hosts, self.now, &mut self.watcher);
            }
        }
        self.next()
    }
    /// Makes rounds, and lets time pass between them to when something happens next, until `done`, but for at most
    /// `limit` of time.
    pub fn run(&mut self, limit: Duration, mut done: impl FnMut(&Network) -> bool) -> Ran {
        let end = self.now + limit;
        loop {
            let next = self.round();
            let is_done = done(self);
            match next {
                Some(next) => self.now = next.min(end),
                None if is_done => {}
                None => return Ran::Silent,
            }
            if is_done {
                return Ran::Done;
            }
            if next.is_some_and(|next| next > end) {
                return Ran::TimeOver;
            }
            if self.rounds >= self.round_limit {
                return Ran::Endless;
            }
        }
    }
    /// Lets `time` pass.
    pub fn pass(&mut self, time: Duration) -> Ran {
        let end = self.now + time;
        let ran = self.run(time, |_| false);
        if ran == Ran::Silent {
            self.now = end;
        }
        ran
    }
    /// When something happens next, later than now.
    fn next(&self) -> Option<Instant> {
        let soon = self.now + ROUND_TIME;
        if self.hosts.iter().any(Host::has_runnable) || self.links.iter().any(Link::is_busy) {
            return Some(soon);
        }
        let links = self.links.iter().flat_map(|link| &link.directions);
        let links = links.flat_map(|d| d.next_arrival().into_iter().chain(d.room_at()));
        let hosts = self.hosts.iter().filter_map(Host::deadline);
        Some(links.chain(hosts).min()?.max(soon))
    }
}

impl std::ops::Drop for Network {
    fn drop(&mut self) {
        // Tasks hold their host; without this both would live on.
        self.hosts.iter().for_each(Host::stop);
    }
}

impl Link {
    fn is_busy(&self) -> bool {
        self.ends.iter().any(|end| end.busy)
    }
    fn receive(
        &mut self,
        end: usize,
        hosts: &[Host],
        batch: &mut Batch,
        now: Instant,
        watcher: &mut Option<Box<dyn Watcher>>,
    ) {
        let from = &mut self.directions[1 - end];
        let end = &mut self.ends[end];
        let host = &hosts[end.host];
        end.busy = false;
        for _ in 0..BATCHES_A_ROUND {
            while !batch.is_full()
                && let Some(carried) = from.arrived(now)
            {
                if let Some(watcher) = watcher {
                    watcher.delivered(end.host, &end.seen(&carried.bytes, carried.is_intact, now));
                }
                // A host without memory loses what comes.
                if let Some(mut packet) = host.with_stack(|stack, _| stack.pool().take(carried.bytes.len())) {
                    packet.append(&carried.bytes);
                    let _ = batch.push(packet);
                }
            }
            let is_full = batch.is_full();
            host.receive(end.id, batch, now);
            end.busy = is_full;
            if !is_full {
                return;
            }
        }
    }
    fn transmit(&mut self, end: usize, hosts: &[Host], now: Instant, watcher: &mut Option<Box<dyn Watcher>>) {
        let direction = &mut self.directions[end];
        let end = &mut self.ends[end];
        direction.advance(now);
        if !hosts[end.host].wants_transmit(end.id) {
            return;
        }
        let mut sending = Sending { direction, end, watcher, now };
        let sent = hosts[sending.end.host].transmit(sending.end.id, now, FRAMES_A_ROUND, &mut sending);
        // A full queue is looked at again when it has room.
        end.busy |= sent.more && !sent.device_full;
    }
}

impl End {
    fn seen<'a>(&self, bytes: &'a [u8], is_intact: bool, at: Instant) -> Seen<'a> {
        Seen { at, bytes, is_ethernet: self.is_ethernet, is_intact }
    }
}

/// One end of a link as the device that a host sends to.
struct Sending<'a> {
    direction: &'a mut Direction,
    end: &'a End,
    watcher: &'a mut Option<Box<dyn Watcher>>,
    now: Instant,
}

impl Device for Sending<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let bytes = self.direction.send(frame, self.now)?;
        if let Some(watcher) = &mut self.watcher {
            watcher.sent(self.end.host, &self.end.seen(&bytes, true, self.now));
        }
        Ok(())
    }
}
