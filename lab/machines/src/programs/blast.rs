//! Datagrams as fast as the machine can send them (DEC table 1 and figure 4).

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_stack::UdpOptions;

use super::{within, wrong};
use crate::error::SetupError;
use crate::measured::Measured;
use crate::setup::Setup;
use crate::wiring::address_of;
use crate::world::{MEASURED, Node, Outcome, PORT, World};

/// What a socket's buffer holds of datagrams that were not read.
const SOCKET_BUFFER_BYTES: usize = 64 << 10;
/// What is sent in the beginning only fills buffers, and is not counted.
const HEAD_START: Duration = Duration::from_millis(500);

/// Counts of one receiver.
#[derive(Clone, Default)]
struct Counts {
    sent: Rc<Cell<u64>>,
    received: Rc<Cell<u64>>,
}

pub(super) fn run(
    setup: &Setup,
    seed: u64,
    message_bytes: u32,
    duration_ms: u32,
) -> Result<Measured, SetupError> {
    within("message_bytes", message_bytes, 1..=60_000)?;
    within("duration_ms", duration_ms, 1..=600_000)?;
    let mut world = World::new(setup, seed)?;
    let counts: Vec<Counts> = world.peers().map(|_| Counts::default()).collect();
    let mut programs = Vec::new();
    for (peer, counts) in world.peers().zip(&counts) {
        programs.push(world.spawn(peer, receive(world.node(peer), counts.received.clone())));
        let sending = send(world.node(MEASURED), address_of(peer), message_bytes, counts.sent.clone());
        programs.push(world.spawn(MEASURED, sending));
    }
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
    let by_peer: Vec<[f64; 2]> =
        after.map(|(after, before)| [0, 1].map(|i| (after[i] - before[i]) as f64)).collect();
    let [sent, received] = [0, 1].map(|i| by_peer.iter().map(|of| of[i]).sum::<f64>());
    let least = by_peer.iter().map(|of| of[1]).fold(f64::INFINITY, f64::min);
    let seconds = duration.as_secs_f64();
    let kbps = |messages: f64| messages * f64::from(message_bytes) * 8.0 / 1000.0 / seconds;
    let mut measured = Measured::default();
    measured.set("messages_sent", sent);
    measured.set("messages_received", received);
    measured.set("frames_lost_in_cards", (world.lost_in_cards() - lost_before) as f64);
    measured.set("send_kbps", kbps(sent));
    measured.set("receive_kbps", kbps(received));
    measured.set("receive_least_kbps", kbps(least));
    measured.set("loss_percent", 100.0 * (1.0 - received / sent.max(1.0)).max(0.0));
    measured.set("sender_idle_percent", (100.0 * (1.0 - busy_s / seconds)).max(0.0));
    Ok(measured)
}

/// Messages sent to and received by each peer so far.
fn counts_of(counts: &[Counts]) -> Vec<[u64; 2]> {
    counts.iter().map(|counts| [counts.sent.get(), counts.received.get()]).collect()
}

async fn send(node: Node, to: Endpoint, message_bytes: u32, sent: Rc<Cell<u64>>) -> Result<(), String> {
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 0);
    let socket = node.host.udp(any, UdpOptions::default()).map_err(wrong)?;
    let message = vec![b'a'; message_bytes as usize];
    loop {
        socket.send_to(&message, to).await.map_err(wrong)?;
        sent.set(sent.get() + 1);
        node.charges.spend("write", node.costs.datagram_write.of(message.len())).await;
        if node.is_ideal {
            // A machine whose work takes no time still lets time pass.
            node.host.sleep(Duration::from_micros(1)).await;
        }
    }
}

async fn receive(node: Node, received: Rc<Cell<u64>>) -> Result<(), String> {
    let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, PORT);
    let mut options = UdpOptions::default();
    options.receive_limit_bytes = SOCKET_BUFFER_BYTES;
    let socket = node.host.udp(at, options).map_err(wrong)?;
    let mut place = vec![0; 65_536];
    loop {
        let count = socket.receive_from(&mut place).await.map_err(wrong)?.length_bytes;
        received.set(received.get() + 1);
        node.charges.spend("read", node.costs.datagram_read.of(count)).await;
    }
}
