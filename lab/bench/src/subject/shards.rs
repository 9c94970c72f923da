//! Two shards of a host against one, in memory: each on its own thread, with the callers at the other end of its queue.
//! Flows are mixed: streams, requests with answers, and connections that come and go. And over a TUN device with a
//! queue for each shard, with streams from the kernel or to it.

use crate::answer::Answer;
use crate::bulk::core_seconds;
use crate::host::SHIPPED;
use crate::link::{self, COMING_UP};
use crate::wire::{self, Two, WireConfig};
use inhost_base::{Cidr, Endpoint};
use inhost_event::Ignore;
use inhost_link::{Tunnel, TunnelConfig};
use inhost_runtime::{Shards, interface};
use inhost_socket::Host;
use inhost_stack::{
    ConnectOptions, DuplicateDetection, ListenerId, Local, Share, StackConfig, Steer, TcpSocketId,
};
use std::io;
use std::thread::park_timeout;
use std::time::Duration;

const WIRE: WireConfig = WireConfig { mtu_bytes: 1500, trusted: false };
/// Times that one shard and two are tried in turn.
const ROUNDS: u32 = 4;
/// The share of the time that goes by before anything is counted.
const WARM_UP: f64 = 0.2;
/// Streams, and flows of requests, in all.
const STREAMS: usize = 8;
const REQUESTS: usize = 32;
const REQUEST_BYTES: usize = 64;
const PIECE_BYTES: usize = 16 << 10;
/// Streams to each connection that comes and goes.
const STREAMS_A_CALL: usize = 4;
/// Passes that anything may take.
const MOST_PASSES: usize = 64;
const PORT: u16 = 80;
/// Not the same for two hosts; here it is only to be some.
const KEY: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

/// What was carried, and what it cost.
#[derive(Clone, Copy, Default)]
struct Load {
    segments: f64,
    core_seconds: f64,
    seconds: f64,
}

impl Load {
    fn add(self, other: Load) -> Load {
        Load {
            segments: self.segments + other.segments,
            core_seconds: self.core_seconds + other.core_seconds,
            seconds: self.seconds.max(other.seconds),
        }
    }
    fn cost_ns(self) -> f64 {
        self.core_seconds / self.segments * 1e9
    }
    fn rate(self) -> f64 {
        self.segments / self.seconds
    }
}

/// `shards`.
pub fn measure(length: Duration) -> Result<Answer, String> {
    let each = length / (2 * ROUNDS);
    let (mut costs, mut rates, mut ones) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (one, two) = (run(1, each)?, run(2, each)?);
        costs.push(two.cost_ns() / one.cost_ns());
        rates.push(two.rate() / one.rate());
        ones.push(one.cost_ns());
    }
    let settings = format!(
        "{SHIPPED}; {STREAMS} streams, {REQUESTS} flows of {REQUEST_BYTES}-byte requests, connections that come and go, \
         one port; by time of the cores, both ends of each flow; each frame is steered by its keyed hash"
    );
    Ok(Answer::new(settings)
        .with("cost", middle(&mut costs))
        .with("load", middle(&mut rates))
        .with("segment", middle(&mut ones)))
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// All shards of a host at once.
fn run(count: u16, length: Duration) -> Result<Load, String> {
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 1 << 28;
    let configs = config.shares(count, KEY);
    std::thread::scope(|scope| {
        let start = |config: StackConfig| {
            let share = (STREAMS / usize::from(count), REQUESTS / usize::from(count));
            scope.spawn(move || Shard::new(&config, share)?.carry(length))
        };
        let threads: Vec<_> = configs.into_iter().map(start).collect();
        threads.into_iter().try_fold(Load::default(), |sum, thread| {
            let load = thread.join().map_err(|_| "a shard's thread failed".to_owned())??;
            Ok(sum.add(load))
        })
    })
}

/// A shard, and those who call it.
struct Shard {
    two: Two,
    share: Option<Share>,
    listener: ListenerId,
    streams: Vec<(TcpSocketId, TcpSocketId)>,
    requests: Vec<(TcpSocketId, TcpSocketId)>,
    port: u16,
    place: Vec<u8>,
}

impl Shard {
    fn new(config: &StackConfig, (streams, requests): (usize, usize)) -> Result<Shard, String> {
        let mut changed = config.clone();
        changed.share = None;
        let mut two = Two::new(&changed, WIRE, 1)?;
        two.called = wire::host(config.clone(), WIRE, 2, 1, two.now)?;
        let listener = two.listen(PORT)?;
        let place = vec![0x5a; PIECE_BYTES];
        let mut shard = Shard {
            two,
            share: config.share,
            listener,
            streams: Vec::new(),
            requests: Vec::new(),
            port: 1_023,
            place,
        };
        shard.streams = (0..streams).map(|_| shard.call()).collect::<Result<_, _>>()?;
        shard.requests = (0..requests).map(|_| shard.call()).collect::<Result<_, _>>()?;
        Ok(shard)
    }
    /// Opens a connection from the next port whose flow belongs here: the device would bring no other.
    fn call(&mut self) -> Result<(TcpSocketId, TcpSocketId), String> {
        let called = Endpoint { address: wire::address(2, 1), port: PORT };
        loop {
            self.port = if self.port < 49_000 { self.port + 1 } else { 1_024 };
            let caller = Endpoint { address: wire::address(1, 1), port: self.port };
            if self.share.is_none_or(|share| share.has(called, caller)) {
                break;
            }
        }
        let local = Local { address: None, port: self.port };
        let mut options = ConnectOptions::default();
        options.local = local;
        let two = &mut self.two;
        let caller =
            two.caller.tcp(two.now, &mut Ignore).connect(called, options).map_err(|e| e.to_string())?;
        for _ in 0..MOST_PASSES {
            self.pass_there();
            self.two.pass_back();
            let accepted = self.two.called.tcp(self.two.now, &mut Ignore).accept(self.listener);
            if let Some(accepted) = accepted.map_err(|e| e.to_string())? {
                return Ok((caller, accepted.socket));
            }
        }
        Err("a connection was not accepted in time".into())
    }
    /// As `Two::pass_there`, with a look at whose each frame is.
    fn pass_there(&mut self) {
        self.two.send_there();
        let batch = &mut self.two.there.batch;
        for _ in 0..batch.len() {
            let Some(packet) = batch.pop() else { break };
            let here = self.share.is_none_or(|share| share.steer(false, packet.bytes()) == Steer::Here);
            assert!(here, "a flow of another shard's");
            let _ = batch.push(packet);
        }
        self.two.receive_there();
    }
    /// Carries what it can for a while.
    fn carry(&mut self, length: Duration) -> Result<Load, String> {
        self.until(length.mul_f64(WARM_UP))?;
        let (frames, began, core) = (self.frames(), self.two.now, core_seconds());
        self.until(length)?;
        let seconds = self.two.now.since(began).as_nanos() as f64 / 1e9;
        let segments = (self.frames() - frames) as f64;
        Ok(Load { segments, core_seconds: core_seconds() - core, seconds })
    }
    fn frames(&self) -> u64 {
        self.two.there.frames + self.two.back.frames
    }
    fn until(&mut self, length: Duration) -> Result<(), String> {
        self.two.tick();
        let until = self.two.now + length.into();
        while self.two.now < until {
            self.round()?;
        }
        Ok(())
    }
    /// Every stream carries a piece, every request is answered, and of connections there come as many as belong to so
    /// many streams: half the flows are half the work of each kind.
    fn round(&mut self) -> Result<(), String> {
        let Shard { two, streams, requests, place, .. } = self;
        for &(caller, _) in streams.iter() {
            let _ = two.caller.tcp(two.now, &mut Ignore).send(caller, place);
        }
        for &(caller, _) in requests.iter() {
            let _ = two.caller.tcp(two.now, &mut Ignore).send(caller, &place[..REQUEST_BYTES]);
        }
        for _ in 0..MOST_PASSES {
            let before = self.frames();
            self.pass();
            if self.frames() == before {
                break;
            }
        }
        self.two.tick();
        self.two.timers();
        (0..self.streams.len() / STREAMS_A_CALL).try_for_each(|_| self.come_and_go())
    }
    /// There, where it is read and requests are answered, and back.
    fn pass(&mut self) {
        self.pass_there();
        let Shard { two, streams, requests, place, .. } = self;
        for &(_, called) in streams.iter() {
            while let Ok(1..) = two.called.tcp(two.now, &mut Ignore).read(called, place) {}
        }
        for &(_, called) in requests.iter() {
            if let Ok(count @ 1..) = two.called.tcp(two.now, &mut Ignore).read(called, place) {
                let _ = two.called.tcp(two.now, &mut Ignore).send(called, &place[..count]);
            }
        }
        two.pass_back();
        for &(caller, _) in requests.iter() {
            let _ = two.caller.tcp(two.now, &mut Ignore).read(caller, place);
        }
    }
    /// A connection that is opened and closed.
    fn come_and_go(&mut self) -> Result<(), String> {
        let (caller, called) = self.call()?;
        let two = &mut self.two;
        two.caller.tcp(two.now, &mut Ignore).abort(caller).map_err(|e| e.to_string())?;
        self.pass_there();
        let two = &mut self.two;
        two.called.close(called, two.now, &mut Ignore).map_err(|e| e.to_string())
    }
}

/// `tun1-plain:receive` and similar subjects: so many shards with a queue each of the device `bench`, and all streams
/// divided among them.
pub fn over_tun(count: u16, load: &str, length: Duration) -> Result<Answer, String> {
    let sends = match load {
        "send" => true,
        "receive" => false,
        _ => return Err(format!("{load:?} is not a load of several shards")),
    };
    let life = move |mut shard: inhost_runtime::Shard| {
        let config = TunnelConfig { multi_queue: true, offload: false, ..TunnelConfig::new("bench", false) };
        let driver = Box::new(Tunnel::open(config).map_err(io::Error::other)?);
        let address = Cidr::new(link::OURS, 24).map_err(io::Error::other)?;
        let mut interface = interface("bench", &*driver).with_address(address);
        interface.duplicate_detection = DuplicateDetection::Off;
        park_timeout(COMING_UP);
        shard.add_link(interface, driver).map_err(io::Error::other)?;
        let host = shard.runtime().host().clone();
        for _ in 0..STREAMS / usize::from(count) {
            host.spawn(stream(host.clone(), sends)).detach();
        }
        shard.runtime().run(async { host.sleep(length.into()).await })
    };
    let shards = Shards::start(count, &StackConfig::default(), life).map_err(|e| e.to_string())?;
    shards.join().map_err(|e| e.to_string())?;
    Ok(Answer::new(format!(
        "{SHIPPED}; {count} shards of a TUN device without offload, {STREAMS} streams in all"
    )))
}

async fn stream(host: Host, sends: bool) {
    // The kernel's end is stopped when all is counted.
    let _ = if sends { link::send(&host).await } else { link::receive(&host).await };
}
