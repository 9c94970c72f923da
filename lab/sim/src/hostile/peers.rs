//! Hostile peers: callers that keep to the protocol, and make the host hold as much as it will.
//!
//! Half of them send one-byte pieces out of order, as many as the window has room for, and never the one that is due.
//! The other half call a service that talks without end, acknowledge all that comes, and never open their window.
//! A host of 16 MiB stays within its memory, four transfers go on, and short calls of an honest caller are answered.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant, IpAddr, Ipv4Addr, Ipv6Addr, Random, Sequence};
use inhost_buf::Pool;
use inhost_socket::{Host, Stream};
use inhost_stack::{ConnectOptions, ListenOptions, SendHow, StackConfig};
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, TcpHeader, TcpOptions};

use super::forge::{Forger, segment_between};
use super::world::{PEER, TRANSFERS, VICTIM, World, address};
use super::{FRAMES_A_LOOK, FRAMES_A_ROUND, LONGEST_SILENCE, MOST_BETWEEN_VOLLEYS, Report};
use crate::network::{Network, Ran, Seen, Watcher};
use crate::segment::SeenSegment;

/// Memory of the host under attack.
pub const MEMORY_BYTES: usize = 16 << 20;
/// Discard port of the victim.
const DISCARD_PORT: u16 = 9;
/// Chargen port of the victim.
const CHARGEN_PORT: u16 = 19;
/// Echo port of the victim.
const ECHO_PORT: u16 = 7;
/// Callers of each kind.
const CALLERS: usize = 400;
/// The link that the attackers are on: the one without neighbours to ask for.
const LINK: usize = 1;
/// The first port of an attacker.
const FIRST_PORT: u16 = 30_000;
/// Bytes that an honest caller has echoed.
const ECHO_BYTES: usize = 1000;
/// An honest call takes no longer than this, and each of the four transfers is never longer without a byte.
const HONEST_LIMIT: Duration = Duration::from_secs(20);

/// Behaviour of a connected attacker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Habit {
    OneBytePieces,
    ClosedWindow,
}

impl Habit {
    const ALL: [Habit; 2] = [Habit::OneBytePieces, Habit::ClosedWindow];
    fn name(self) -> &'static str {
        match self {
            Habit::OneBytePieces => "one-byte pieces out of order",
            Habit::ClosedWindow => "acknowledgments that never open the window",
        }
    }
    fn port(self) -> u16 {
        match self {
            Habit::OneBytePieces => DISCARD_PORT,
            Habit::ClosedWindow => CHARGEN_PORT,
        }
    }
}

/// The victim's last segment to one attacker.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// The next number that it will use.
    next: Sequence,
    /// The next that it waits for, and how much it takes.
    acknowledgment: Sequence,
    window_bytes: u32,
    scale: u8,
    is_over: bool,
}

/// The victim's replies to the attackers.
#[derive(Debug, Default)]
struct VictimReplies(BTreeMap<Endpoint, Said>);

impl Watcher for Rc<RefCell<VictimReplies>> {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        if host != VICTIM || frame.link != LINK {
            return;
        }
        let Some(SeenSegment { to, segment, .. }) = SeenSegment::of(frame) else { return };
        if is_honest(to.address) {
            return;
        }
        let replies = &mut self.borrow_mut().0;
        if segment.flags.rst() {
            replies.remove(&to);
            return;
        }
        let next = segment.sequence + segment.sequence_length();
        let scale = match segment.flags.syn() {
            true => segment.options.window_scale.unwrap_or(0),
            false => replies.get(&to).map_or(0, |said| said.scale),
        };
        let shift = if segment.flags.syn() { 0 } else { scale };
        let said = Said {
            next: replies
                .get(&to)
                .filter(|_| !segment.flags.syn())
                .map_or(next, |said| said.next.later(next)),
            acknowledgment: segment.acknowledgment,
            window_bytes: u32::from(segment.window) << shift,
            scale,
            is_over: segment.flags.fin(),
        };
        replies.insert(to, said);
    }
    fn delivered(&mut self, _: usize, _: &Seen<'_>) {}
}

fn is_honest(peer: IpAddr) -> bool {
    [false, true].iter().any(|&is_ipv6| address(LINK, PEER, is_ipv6) == peer)
}

/// One attacker's end, and the victim's.
fn ends(habit: Habit, number: usize) -> (Endpoint, Endpoint) {
    let is_ipv6 = number % 2 == 1;
    let last = 10 + (number % 200) as u16;
    let own: IpAddr = match is_ipv6 {
        true => Ipv6Addr::new(0xfd00, LINK as u16, 0, 0, 0, 0, 0, last).into(),
        false => Ipv4Addr::new(10, 0, LINK as u8, last as u8).into(),
    };
    let port = FIRST_PORT + (number + habit as usize * CALLERS) as u16;
    (Endpoint::new(own, port), Endpoint::new(address(LINK, VICTIM, is_ipv6), habit.port()))
}

/// Results of the honest caller.
#[derive(Debug, Default)]
struct Calls {
    answered: Cell<u64>,
    answered_at: Cell<Instant>,
    failed: Cell<u64>,
    last_failure: RefCell<String>,
    stops: Cell<bool>,
}

struct Siege {
    world: World,
    forger: Forger,
    replies: Rc<RefCell<VictimReplies>>,
    calls: Rc<Calls>,
    report: Report,
    /// Last progress of each transfer: bytes at both ends, and time.
    progress: Vec<(u64, Instant)>,
}

/// Throws `frames` frames of hostile peers, as `seed` draws them. `progress` gets the number of frames now and then.
pub fn run(seed: u64, frames: u64, progress: &mut dyn FnMut(u64)) -> Result<Report, String> {
    run_watched(seed, frames, progress, |_| {})
}
pub(super) fn run_watched(
    seed: u64,
    frames: u64,
    progress: &mut dyn FnMut(u64),
    watch: impl FnOnce(&mut Network),
) -> Result<Report, String> {
    let mut siege = Siege::new(seed)?;
    watch(&mut siege.world.network);
    let began = siege.world.network.now();
    let mut thrown = 0;
    while thrown < frames {
        let volley = (1 + u64::from(siege.forger.below(FRAMES_A_ROUND as u32))).min(frames - thrown);
        for _ in 0..volley {
            siege.throw();
            thrown += 1;
            if thrown % FRAMES_A_LOOK == 0 {
                siege.look().map_err(|why| format!("seed {seed}, frame {thrown}: {why}"))?;
                progress(thrown);
            }
        }
        let time = MOST_BETWEEN_VOLLEYS.times(u64::from(siege.forger.below(1000))).divided_by(1000);
        siege.world.network.pass(time);
        if let Some(why) = siege.world.fault() {
            return Err(format!("seed {seed}, frame {thrown}: {why}"));
        }
    }
    siege.report.virtual_time = siege.world.network.now().since(began);
    siege.end().map_err(|why| format!("seed {seed}, after {thrown} frames: {why}"))
}

impl Siege {
    fn new(seed: u64) -> Result<Siege, String> {
        let mut config = StackConfig::default();
        config.memory_limit_bytes = MEMORY_BYTES;
        let mut world = World::with_victim(seed, true, config)?;
        let replies = Rc::new(RefCell::new(VictimReplies::default()));
        world.network.watch(replies.clone());
        serve(world.victim())?;
        let calls = Rc::new(Calls::default());
        calls.answered_at.set(world.network.now());
        let peer = world.network.host(PEER).clone();
        peer.spawn(call(peer.clone(), calls.clone())).detach();
        let now = world.network.now();
        Ok(Siege {
            world,
            forger: Forger { random: Random::from_number(seed ^ 0x51e6e), link: LINK },
            replies,
            calls,
            report: Report::default(),
            progress: vec![(0, now); TRANSFERS],
        })
    }
    /// One segment of one attacker, whatever it is about to do.
    fn throw(&mut self) {
        let habit = self.forger.of(Habit::ALL);
        let (own, victim) = ends(habit, self.forger.below(CALLERS as u32) as usize);
        let said = self.replies.borrow().0.get(&own).copied();
        let (header, payload) = match said {
            None => (self.opening(), &[][..]),
            Some(said) => self.speak(habit, said),
        };
        let header = TcpHeader { source_port: own.port, destination_port: victim.port, ..header };
        let body = segment_between(own.address, victim.address, &header, payload);
        let packet = self.forger.packet(own.address, victim.address, protocol::TCP, &body);
        self.world.network.inject(LINK, VICTIM, &packet);
        *self.report.thrown.entry(habit.name()).or_default() += 1;
    }
    fn opening(&mut self) -> TcpHeader {
        let random = self.forger.random.public_u64() as u32;
        TcpHeader {
            sequence: Sequence(random),
            flags: Flags::SYN,
            window: self.forger.of([0, 1, 1000, 65_535]),
            options: TcpOptions {
                mss: Some(self.forger.of([88, 536, 1460])),
                window_scale: Some(7),
                sack_permitted: self.forger.one_in(2),
                ..TcpOptions::NONE
            },
            ..TcpHeader::default()
        }
    }
    fn speak(&mut self, habit: Habit, said: Said) -> (TcpHeader, &'static [u8]) {
        let mut header = TcpHeader {
            sequence: said.acknowledgment,
            acknowledgment: said.next,
            flags: Flags::ACK,
            window: u16::MAX,
            ..TcpHeader::default()
        };
        if said.is_over {
            // The victim has given up: this attacker ends too, and will call again.
            header.flags = Flags::RST;
            return (header, &[]);
        }
        match habit {
            Habit::ClosedWindow => {
                header.window = 0;
                (header, &[])
            }
            Habit::OneBytePieces => {
                // Every other byte, but never the one that is due: no piece touches another.
                let places = said.window_bytes.saturating_sub(2) / 2;
                if places == 0 {
                    return (header, &[]);
                }
                header.sequence = header.sequence + 1 + 2 * self.forger.below(places);
                (header, b"x")
            }
        }
    }
    /// Whether memory is kept to, and honest work goes on.
    fn look(&mut self) -> Result<(), String> {
        let in_use = self.world.victim().with_stack(|stack, _| {
            let (pool, limit): (&Pool, usize) = (stack.memory(), stack.memory().limit_bytes());
            if pool.outstanding_bytes() > limit {
                return Err(format!("{} bytes in use, with a limit of {limit}", pool.outstanding_bytes()));
            }
            let sockets = (
                stack.instruments().socket_count(),
                16 + 2 * CALLERS + 4 * ListenOptions::default().syn_queue,
            );
            if sockets.0 > sockets.1 {
                return Err(format!("{} sockets, with a limit of {}", sockets.0, sockets.1));
            }
            Ok(pool.outstanding_bytes())
        })?;
        self.report.most_memory_bytes = self.report.most_memory_bytes.max(in_use);
        let now = self.world.network.now();
        for (number, received) in self.world.received().enumerate() {
            let (before, since) = &mut self.progress[number];
            if received > *before {
                (*before, *since) = (received, now);
            } else if now.since(*since) > HONEST_LIMIT {
                let states = self.world.stalled(LONGEST_SILENCE);
                return Err(format!("transfer {number} has got nothing since {since:?}: {states:?}"));
            }
        }
        if now.since(self.calls.answered_at.get()) > HONEST_LIMIT {
            let (calls, refused) =
                (&self.calls, self.world.victim().with_stack(|stack, _| stack.memory().refused()));
            return Err(format!(
                "an honest caller is not answered for {HONEST_LIMIT}: {calls:?}; {in_use} bytes in use, and {refused} \
                 buffers refused"
            ));
        }
        Ok(())
    }
    /// The attackers are gone: the transfers end well, and nothing is left.
    fn end(mut self) -> Result<Report, String> {
        self.calls.stops.set(true);
        let attackers: Vec<(Endpoint, Endpoint, Said)> = {
            let replies = self.replies.borrow();
            let all = Habit::ALL.into_iter().flat_map(|habit| (0..CALLERS).map(move |n| ends(habit, n)));
            all.filter_map(|(own, victim)| Some((own, victim, *replies.0.get(&own)?))).collect()
        };
        for (own, victim, said) in attackers {
            let header = TcpHeader {
                source_port: own.port,
                destination_port: victim.port,
                sequence: said.acknowledgment,
                flags: Flags::RST,
                ..TcpHeader::default()
            };
            let body = segment_between(own.address, victim.address, &header, &[]);
            let packet = self.forger.packet(own.address, victim.address, protocol::TCP, &body);
            self.world.network.inject(LINK, VICTIM, &packet);
        }
        self.world.finish()?;
        self.report.stream_bytes = self.world.received_bytes();
        self.report.sent = self.world.recent.borrow().sent;
        if self.world.network.pass(Duration::from_secs(1800)) == Ran::Endless {
            return Err("endless after the attack".to_owned());
        }
        let left = self.world.victim().with_stack(|stack, _| stack.memory().outstanding_bytes());
        match left {
            0 => Ok(self.report),
            left => Err(format!("{left} bytes are left in use")),
        }
    }
}

/// The services that the attackers call.
fn serve(victim: &Host) -> Result<(), String> {
    for any in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        for port in [DISCARD_PORT, CHARGEN_PORT, ECHO_PORT] {
            let listener = victim
                .listen(Endpoint::new(any, port), ListenOptions::default())
                .map_err(|why| why.to_string())?;
            let host = victim.clone();
            victim
                .spawn(async move {
                    while let Ok(stream) = listener.accept().await {
                        host.spawn(async move {
                            match port {
                                DISCARD_PORT => discard(stream).await,
                                CHARGEN_PORT => chargen(stream).await,
                                _ => echo(stream).await,
                            }
                        })
                        .detach();
                    }
                })
                .detach();
        }
    }
    Ok(())
}

async fn discard(stream: Stream) {
    let mut place = [0; 4096];
    while stream.receive(&mut place).await.is_ok_and(|count| count > 0) {}
}

async fn chargen(stream: Stream) {
    while stream.send(&[b'#'; 4096], SendHow::default()).await.is_ok() {}
}

async fn echo(stream: Stream) {
    let mut place = [0; 4096];
    while let Ok(count) = stream.receive(&mut place).await
        && count > 0
    {
        let mut sent = 0;
        while sent < count {
            match stream.send(&place[sent..count], SendHow::default()).await {
                Ok(more) => sent += more,
                Err(_) => return,
            }
        }
    }
}

/// Honest calls, one after the other, on the link that the attackers are not on.
async fn call(host: Host, calls: Rc<Calls>) {
    let mut is_ipv6 = false;
    while !calls.stops.get() {
        is_ipv6 = !is_ipv6;
        let remote = Endpoint::new(address(1 - LINK, VICTIM, is_ipv6), ECHO_PORT);
        match host.timeout(HONEST_LIMIT, call_once(&host, remote)).await {
            Ok(Ok(())) => {
                calls.answered.set(calls.answered.get() + 1);
                calls.answered_at.set(host.now());
            }
            Ok(Err(why)) => fails(&calls, why),
            Err(why) => fails(&calls, why.to_string()),
        }
        host.sleep(Duration::from_millis(100)).await;
    }
}

fn fails(calls: &Calls, why: String) {
    calls.failed.set(calls.failed.get() + 1);
    *calls.last_failure.borrow_mut() = why;
}

async fn call_once(host: &Host, remote: Endpoint) -> Result<(), String> {
    let stream = host.connect_with(remote, ConnectOptions::default()).await.map_err(|why| why.to_string())?;
    let (said, mut replies) = ([0x5a; ECHO_BYTES], [0; ECHO_BYTES]);
    let mut sent = 0;
    while sent < said.len() {
        sent += stream.send(&said[sent..], SendHow::default()).await.map_err(|why| why.to_string())?;
    }
    let mut count = 0;
    while count < replies.len() {
        match stream.receive(&mut replies[count..]).await.map_err(|why| why.to_string())? {
            0 => return Err("the echo ended early".to_owned()),
            more => count += more,
        }
    }
    if replies == said { Ok(()) } else { Err("an echo of other bytes".to_owned()) }
}
