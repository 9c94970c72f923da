//! A full-screen terminal session (UCLA §3.2).

use inhost_base::Duration;

use super::{LIMIT, serve, within, wrong};
use crate::measured::Measured;
use crate::setup::Setup;
use crate::world::{MEASURED, Node, PEER, World};
use inhost_sim::setup::SetupError;

/// The session.
pub(super) struct FullScreen {
    pub(super) interactions: u32,
    pub(super) interval_ms: u32,
    pub(super) in_bytes: u32,
    pub(super) out_bytes: u32,
    pub(super) write_bytes: Option<u32>,
}

/// Until the address space of the terminal is dispatched.
const HAND_OVER: Duration = Duration::from_millis(1);
/// The kind of work that programs of the terminal do.
const TERMINAL: &str = "terminal";

pub(super) fn run(setup: &Setup, seed: u64, screen: &FullScreen) -> Result<Measured, SetupError> {
    within("interactions", screen.interactions, 1..=10_000)?;
    within("interval_ms", screen.interval_ms, 1..=60_000)?;
    within("in_bytes", screen.in_bytes, 1..=60_000)?;
    within("out_bytes", screen.out_bytes, 1..=60_000)?;
    let write_bytes = screen.write_bytes.unwrap_or(screen.out_bytes);
    within("write_bytes", write_bytes, 1..=60_000)?;
    let (in_bytes, out_bytes) = (screen.in_bytes as usize, screen.out_bytes as usize);
    let mut world = World::new(setup, seed)?;
    world.spawn(PEER, answer(world.node(PEER), in_bytes, out_bytes, write_bytes as usize));
    let (node, at) = (world.node(MEASURED), world.peer());
    let (interactions, interval) =
        (screen.interactions, Duration::from_millis(u64::from(screen.interval_ms)));
    let typing = async move {
        let stream = node.host.connect(at).await.map_err(wrong)?;
        stream.set_nagle(false);
        let (began_at, typed) = (node.host.now(), vec![b'a'; in_bytes]);
        let types = async {
            for number in 0..interactions {
                node.host.sleep_until(began_at + interval.times(u64::from(number))).await;
                node.write(&stream, &typed).await.map_err(wrong)?;
            }
            Ok(())
        };
        let reads = async {
            let (mut place, mut left) = (vec![0; out_bytes], out_bytes as u64 * u64::from(interactions));
            while left > 0 {
                let count = node.read(&stream, &mut place).await.map_err(wrong)?;
                node.charges.spend("read", Duration::ZERO).await;
                left = if count == 0 { 0 } else { left - count as u64 };
            }
            Ok(())
        };
        let (typed, read): (Result<(), String>, Result<(), String>) = inhost_socket::both(types, reads).await;
        typed.and(read)
    };
    let typed = world.spawn(MEASURED, typing);
    world.run(LIMIT, &typed)?;
    let used = [MEASURED, PEER].map(|host| world.network.used(host));
    let all_s: f64 = used.iter().map(|used| used.total().as_secs_f64()).sum();
    let terminal_s: f64 = used.iter().map(|used| used.of(TERMINAL).as_secs_f64()).sum();
    let mut measured = Measured::default();
    measured.set("cpu_s", all_s);
    measured.set("tcp_cpu_s", all_s - terminal_s);
    for (name, host) in [("segments_to_peer", MEASURED), ("segments_from_peer", PEER)] {
        let tally = world.tally.of(host);
        measured.set(name, (tally.data_segments_sent + tally.bare_segments_sent) as f64);
    }
    Ok(measured)
}

/// The server and the program behind it: a screen for each input.
async fn answer(node: Node, in_bytes: usize, out_bytes: usize, write_bytes: usize) -> Result<(), String> {
    let stream = serve(&node).await?;
    stream.set_nagle(false);
    // Each write is packets of its own.
    stream.set_not_sent_low_water(Some(1));
    let (mut place, screen) = (vec![0; in_bytes], vec![b'b'; out_bytes]);
    let mut left = in_bytes;
    loop {
        let count = node.read(&stream, &mut place[..left]).await.map_err(wrong)?;
        if count == 0 {
            return Ok(());
        }
        left -= count;
        if left > 0 {
            continue;
        }
        left = in_bytes;
        // The terminal is in another address space, so the server waits once for it.
        node.host.sleep(HAND_OVER).await;
        // The input, and the screen, go through the programs of the terminal.
        node.spend(TERMINAL, node.costs.interact.of(in_bytes)).await;
        node.spend(TERMINAL, node.costs.interact.of(out_bytes)).await;
        for piece in screen.chunks(write_bytes) {
            node.write(&stream, piece).await.map_err(wrong)?;
        }
    }
}
