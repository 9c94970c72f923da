//! Hosts on a switch, and what happened between them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant, Random};
use inhost_sim::{LinkConfig, LinkStatistics, Network, Ran, Seen, SeenSegment, Watcher, address, interface};
use inhost_socket::{Host, Stream};
use inhost_stack::{ListenOptions, SendHow, StackConfig, TcpConfig};
use inhost_tcp::Info;

use crate::common::MTU_BYTES;
use inhost_sim::setup::{SetupError, failed};

/// Rounds after which a run has failed.
const ROUND_LIMIT: u64 = 50_000_000;
/// The port of every program.
const PORT: u16 = 9;
/// Bytes of a write and of a read of a bulk transfer.
const PIECE_BYTES: usize = 32 << 10;

/// A star of hosts: each has a link to the switch, whose port to a host may be a bottleneck.
pub(crate) struct Star {
    pub(crate) network: Network,
    switch: usize,
    random: Random,
    failure: Rc<RefCell<Option<String>>>,
    received: Received,
    tally: Tally,
}

/// Bytes that programs have received, by the number of the host that sent them.
#[derive(Clone, Default)]
pub(crate) struct Received(Rc<RefCell<BTreeMap<usize, u64>>>);

impl Received {
    pub(crate) fn from(&self, host: usize) -> u64 {
        self.0.borrow().get(&host).copied().unwrap_or(0)
    }
    pub(crate) fn total(&self) -> u64 {
        self.0.borrow().values().sum()
    }
}

impl Star {
    pub(crate) fn new(seed: u64) -> Star {
        let mut network = Network::new(Instant::from_millis(1000), ROUND_LIMIT);
        let switch = network.add_switch();
        let tally = Tally::default();
        network.watch(tally.clone());
        Star {
            network,
            switch,
            random: Random::from_number(seed),
            failure: Rc::default(),
            received: Received::default(),
            tally,
        }
    }
    /// Adds a host; `up` carries what it sends, `down` what the switch's port sends to it. Gives its number, which is that
    /// of its link, too.
    pub(crate) fn add(
        &mut self,
        tcp: TcpConfig,
        up: LinkConfig,
        down: LinkConfig,
    ) -> Result<usize, SetupError> {
        let mut config = StackConfig::default();
        config.tcp = tcp;
        let host = self.network.add_host(config, self.random.public_u64());
        let end = (host, interface(host, true, MTU_BYTES));
        self.network.join_switch(end, self.switch, [up, down], self.random.public_u64()).map_err(failed)?;
        Ok(host)
    }
    /// A time below `limit`, by chance.
    pub(crate) fn some_time(&mut self, limit: Duration) -> Duration {
        let micros = limit.as_micros().clamp(1, u64::from(u32::MAX)) as u32;
        Duration::from_micros(u64::from(self.random.public_below(micros)))
    }
    pub(crate) fn host(&self, host: usize) -> Host {
        self.network.host(host).clone()
    }
    /// Where a host serves.
    pub(crate) fn at(&self, host: usize) -> Endpoint {
        Endpoint::new(address(host, false), PORT)
    }
    pub(crate) fn received(&self) -> &Received {
        &self.received
    }
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
    /// What happened to the frames for a host at the switch's port.
    pub(crate) fn port(&self, host: usize) -> LinkStatistics {
        self.network.statistics(host, 1)
    }
    /// The figures of a host's connections that are open.
    pub(crate) fn connections(&self, host: usize) -> Vec<Info> {
        let all = |stack: &mut inhost_stack::Stack, now| {
            stack.instruments().sockets(now).filter_map(|info| info.tcp).collect()
        };
        self.network.host(host).with_stack(all)
    }

    /// Starts a program, whose error ends the run.
    pub(crate) fn spawn(&self, host: usize, program: impl Future<Output = Result<(), String>> + 'static) {
        let failure = self.failure.clone();
        let task = async move {
            if let Err(why) = program.await {
                failure.borrow_mut().get_or_insert(why);
            }
        };
        self.network.host(host).spawn(task).detach();
    }
    /// Lets a host take whatever comes, and count it.
    pub(crate) fn serve_sink(&self, host: usize) -> Result<(), SetupError> {
        let listener = self.host(host).listen(self.at(host), ListenOptions::default()).map_err(failed)?;
        let (host_of_it, received) = (self.host(host), self.received.clone());
        self.spawn(host, async move {
            loop {
                let stream = listener.accept().await.map_err(text)?;
                let received = received.clone();
                host_of_it.spawn(async move { count(&stream, &received).await }).detach();
            }
        });
        Ok(())
    }
    /// Lets a host send without end to another's sink, after a time.
    pub(crate) fn start_bulk(&self, host: usize, to: usize, after: Duration) {
        let (sender, to) = (self.host(host), self.at(to));
        self.spawn(host, async move {
            sender.sleep(after).await;
            let stream = sender.connect(to).await.map_err(text)?;
            let piece = vec![7; PIECE_BYTES];
            loop {
                stream.send(&piece, SendHow::default()).await.map_err(text)?;
            }
        });
    }
    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) -> Result<(), SetupError> {
        self.run_until(time, |_| false).map(|_| ())
    }
    /// Lets time pass until `done`, but at most `limit`. Whether it was done.
    pub(crate) fn run_until(
        &mut self,
        limit: Duration,
        done: impl Fn(&Network) -> bool,
    ) -> Result<bool, SetupError> {
        let failure = self.failure.clone();
        let ran = self.network.run(limit, |network| failure.borrow().is_some() || done(network));
        if let Some(why) = self.failure.borrow_mut().take() {
            return Err(failed(why));
        }
        match ran {
            Ran::Done => Ok(true),
            Ran::TimeOver => Ok(false),
            Ran::Wrong => Err(failed(self.network.checker().violations().join("\n"))),
            Ran::Failed => {
                Err(failed(self.network.task_failure().map_or_else(String::new, |why| why.to_string())))
            }
            Ran::Silent | Ran::Endless => Err(failed(format!("{ran:?}"))),
        }
    }
}

/// The number of the host at an address of the star.
fn number_of(remote: Endpoint) -> usize {
    (0..usize::from(u8::MAX)).find(|&host| address(host, false) == remote.address).unwrap_or(usize::MAX)
}

async fn count(stream: &Stream, received: &Received) {
    let from = number_of(stream.remote());
    let mut place = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = stream.receive(&mut place).await {
        *received.0.borrow_mut().entry(from).or_default() += count as u64;
    }
}

/// An error in words, for [`Star::spawn`].
pub(crate) fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}

/// Reads `bytes`; an error at the end of the stream.
pub(crate) async fn read_all(stream: &Stream, bytes: usize) -> Result<(), String> {
    let mut place = vec![0; bytes.clamp(1, PIECE_BYTES)];
    let mut left = bytes;
    while left > 0 {
        let most = left.min(place.len());
        match stream.receive(&mut place[..most]).await.map_err(text)? {
            0 => return Err("the peer closed early".to_owned()),
            count => left -= count,
        }
    }
    Ok(())
}

/// Writes all of `bytes`.
pub(crate) async fn write_all(stream: &Stream, bytes: &[u8]) -> Result<(), String> {
    let mut left = bytes;
    while !left.is_empty() {
        let count = stream.send(left, SendHow::default()).await.map_err(text)?;
        left = &left[count..];
    }
    Ok(())
}

/// Segments with data, by host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostTally {
    pub(crate) sent_segments: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) delivered_bytes: u64,
}

/// The counts of all hosts. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Tally(Rc<RefCell<Vec<HostTally>>>);

impl Tally {
    pub(crate) fn of(&self, host: usize) -> HostTally {
        self.0.borrow().get(host).copied().unwrap_or_default()
    }
    fn change(&self, host: usize, change: impl FnOnce(&mut HostTally)) {
        let mut hosts = self.0.borrow_mut();
        let count = hosts.len().max(host + 1);
        hosts.resize(count, HostTally::default());
        change(&mut hosts[host]);
    }
}

impl Watcher for Tally {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        let bytes = payload_bytes(frame);
        self.change(host, |tally| {
            tally.sent_segments += u64::from(bytes > 0);
            tally.sent_bytes += bytes;
        });
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        let bytes = payload_bytes(frame);
        self.change(host, |tally| tally.delivered_bytes += bytes);
    }
}

fn payload_bytes(frame: &Seen<'_>) -> u64 {
    SeenSegment::of(frame).map_or(0, |seen| seen.segment.payload.len() as u64)
}
