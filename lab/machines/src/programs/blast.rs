//! Datagrams as fast as the machine can send them (VPI table 4, DEC table 1 and figure 4).

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr};
use inhost_sim::Step;
use inhost_stack::UdpOptions;

use super::{LIMIT, within, wrong};
use crate::measured::Measured;
use crate::setup::Setup;
use crate::wiring::address_of;
use crate::world::{MEASURED, Node, Outcome, PORT, World};
use inhost_sim::setup::SetupError;

/// What a socket's buffer holds of datagrams that were not read.
const SOCKET_BUFFER_BYTES: usize = 64 << 10;
/// What is sent in the beginning only fills buffers, and is not counted.
const HEAD_START: Duration = Duration::from_millis(500);

/// A transfer of so many bytes is over when nothing more has come for so long.
const SILENCE: Duration = Duration::from_secs(5);

/// What is sent.
pub(super) struct Blast {
    pub(super) message_bytes: u32,
    pub(super) duration_ms: Option<u32>,
    pub(super) total_bytes: Option<u32>,
}

/// Counts of one receiver.
#[derive(Clone, Default)]
struct Counts {
    sent: Rc<Cell<u64>>,
    received: Rc<Cell<u64>>,
    /// Received, with the work on them done; and when the last one was.
    read: Rc<Cell<u64>>,
    read_at: Rc<Cell<Instant>>,
}

/// The programs of a run.
struct Running {
    world: World,
    counts: Vec<Counts>,
    programs: Vec<Outcome>,
}

/// A sender for each peer, of so many messages.
fn start(setup: &Setup, seed: u64, message_bytes: u32, messages: u64) -> Result<Running, SetupError> {
    within("message_bytes", message_bytes, 1..=60_000)?;
    let world = World::new(setup, seed)?;
    let counts: Vec<Counts> = world.peers().map(|_| Counts::default()).collect();
    let mut programs = Vec::new();
    for (peer, counts) in world.peers().zip(&counts) {
        let buffer_bytes = setup.parameters.window_bytes.map_or(SOCKET_BUFFER_BYTES, |bytes| bytes as usize);
        programs.push(world.spawn(peer, receive(world.node(peer), counts.clone(), buffer_bytes)));
        let to = (address_of(peer), counts.sent.clone());
        programs.push(world.spawn(MEASURED, send(world.node(MEASURED), to, message_bytes, messages)));
    }
    Ok(Running { world, counts, programs })
}

pub(super) fn run(setup: &Setup, seed: u64, blast: Blast) -> Result<Measured, SetupError> {
    match (blast.duration_ms, blast.total_bytes) {
        (Some(duration_ms), None) => stream(setup, seed, blast.message_bytes, duration_ms),
        (None, Some(total_bytes)) => transfer(setup, seed, blast.message_bytes, total_bytes),
        _ => {
            let why = "a blast has either total_bytes or duration_ms".to_owned();
            Err(SetupError::Unsupported { why })
        }
    }
}

/// A number of bytes (VPI §3.2).
fn transfer(setup: &Setup, seed: u64, message_bytes: u32, total_bytes: u32) -> Result<Measured, SetupError> {
    within("total_bytes", total_bytes, 1..=1 << 30)?;
    let messages = u64::from(total_bytes.div_ceil(message_bytes.max(1)));
    let Running { mut world, counts, programs } = start(setup, seed, message_bytes, messages)?;
    let began_at = world.network.now();
    let fails = || programs.iter().any(Outcome::has_failed);
    let is_silent = |now: Instant| {
        let is_sent = counts.iter().all(|of| of.sent.get() == messages);
        let last_at = counts.iter().map(|of| of.read_at.get()).fold(began_at, Instant::max);
        counts.iter().all(|of| of.read.get() == messages) || (is_sent && now.since(last_at) > SILENCE)
    };
    let host = world.node(MEASURED).host;
    world.run_until(LIMIT, &Outcome::default(), || is_silent(host.now()) || fails())?;
    programs.iter().try_for_each(Outcome::check)?;
    let last_at = counts.iter().map(|of| of.read_at.get()).fold(began_at, Instant::max);
    let duration_s = last_at.since(began_at).as_secs_f64();
    let busy_s = world.network.used(MEASURED).total().as_secs_f64();
    let [sent, received] = sums(&counts_of(&counts));
    let mut measured = Measured::default();
    measured.set("duration_s", duration_s);
    let kbps = |messages: f64| messages * f64::from(message_bytes) * 8.0 / 1000.0 / duration_s.max(1e-9);
    report(&mut measured, &[sent, received], kbps);
    measured.set("frames_lost_in_cards", world.lost_in_cards() as f64);
    measured.set("sender_idle_percent", (100.0 * (1.0 - busy_s / duration_s.max(1e-9))).max(0.0));
    Ok(measured)
}

/// For a time (DEC table 1).
fn stream(setup: &Setup, seed: u64, message_bytes: u32, duration_ms: u32) -> Result<Measured, SetupError> {
    within("duration_ms", duration_ms, 1..=600_000)?;
    let Running { mut world, counts, programs } = start(setup, seed, message_bytes, u64::MAX)?;
    let fails = || programs.iter().any(Outcome::has_failed);
    let never = Outcome::default();
    world.run_for(HEAD_START, &never, fails)?;
    let busy_before = world.network.used(MEASURED).total();
    let (before, lost_before) = (counts_of(&counts), world.lost_in_cards());
    let duration = Duration::from_millis(u64::from(duration_ms));
    world.run_for(duration, &never, fails)?;
    programs.iter().try_for_each(Outcome::check)?;
    let busy_s = (world.network.used(MEASURED).total() - busy_before).as_secs_f64();
    // What each peer was sent, and what it received.
    let after = counts_of(&counts).into_iter().zip(before);
    let by_peer: Vec<[f64; 2]> = after.map(|(after, before)| [0, 1].map(|i| after[i] - before[i])).collect();
    let messages = sums(&by_peer);
    let least = by_peer.iter().map(|of| of[1]).fold(f64::INFINITY, f64::min);
    let seconds = duration.as_secs_f64();
    let kbps = |messages: f64| messages * f64::from(message_bytes) * 8.0 / 1000.0 / seconds;
    let mut measured = Measured::default();
    report(&mut measured, &messages, kbps);
    measured.set("frames_lost_in_cards", (world.lost_in_cards() - lost_before) as f64);
    measured.set("receive_least_kbps", kbps(least));
    measured.set("sender_idle_percent", (100.0 * (1.0 - busy_s / seconds)).max(0.0));
    Ok(measured)
}

/// Messages sent to and received by each peer so far.
fn counts_of(counts: &[Counts]) -> Vec<[f64; 2]> {
    counts.iter().map(|counts| [&counts.sent, &counts.received].map(|of| of.get() as f64)).collect()
}

/// Messages sent and received, of all peers.
fn sums(by_peer: &[[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|i| by_peer.iter().map(|of| of[i]).sum())
}

fn report(measured: &mut Measured, &[sent, received]: &[f64; 2], kbps: impl Fn(f64) -> f64) {
    measured.set("messages_sent", sent);
    measured.set("messages_received", received);
    measured.set("send_kbps", kbps(sent));
    measured.set("receive_kbps", kbps(received));
    measured.set("loss_percent", 100.0 * (1.0 - received / sent.max(1.0)).max(0.0));
}

async fn send(
    node: Node,
    (to, sent): (Endpoint, Rc<Cell<u64>>),
    message_bytes: u32,
    messages: u64,
) -> Result<(), String> {
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 0);
    let mut options = UdpOptions::default();
    if node.costs.order[1] == Step::Tasks {
        // A write sends its datagram at once (VPI §3.2.2): the next one waits until it has left.
        options.send_limit_bytes = 1;
    }
    let socket = node.host.udp(any, options).map_err(wrong)?;
    let message = vec![b'a'; message_bytes as usize];
    while sent.get() < messages {
        socket.send_to(&message, to).await.map_err(wrong)?;
        sent.set(sent.get() + 1);
        node.spend("write", node.costs.datagram_write.of(message.len())).await;
        if node.is_ideal {
            // A machine whose work takes no time still lets time pass.
            node.host.sleep(Duration::from_micros(1)).await;
        }
    }
    // The socket stays, for its queue is not sent yet.
    std::future::pending().await
}

async fn receive(node: Node, counts: Counts, buffer_bytes: usize) -> Result<(), String> {
    let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, PORT);
    let mut options = UdpOptions::default();
    options.receive_limit_bytes = buffer_bytes;
    let socket = node.host.udp(at, options).map_err(wrong)?;
    let mut place = vec![0; 65_536];
    loop {
        let count = socket.receive_from(&mut place).await.map_err(wrong)?.length_bytes;
        counts.received.set(counts.received.get() + 1);
        node.spend("read", node.costs.datagram_read.of(count)).await;
        counts.read.set(counts.read.get() + 1);
        counts.read_at.set(node.host.now());
    }
}
