//! As much data as possible from the measured machine to its peer.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr};
use inhost_socket::Stream;
use inhost_stack::ListenOptions;

use super::{LIMIT, within, wrong};
use crate::measured::Measured;
use crate::setup::Setup;
use crate::wiring::address_of;
use crate::world::{MEASURED, Node, Outcome, PEER, PORT, World};
use inhost_sim::setup::SetupError;

/// Bytes of a read.
const READ_BYTES: usize = 64 << 10;

/// What is sent.
pub(super) struct Bulk {
    pub(super) write_bytes: u32,
    pub(super) total_bytes: Option<u32>,
    pub(super) duration_s: Option<u32>,
    pub(super) prints: bool,
    pub(super) sessions: u32,
}

/// Where both ends are.
#[derive(Clone, Default)]
struct Progress {
    received_bytes: Rc<Cell<u64>>,
    began_at: Rc<Cell<Option<Instant>>>,
}

pub(super) fn run(setup: &Setup, seed: u64, bulk: &Bulk) -> Result<Measured, SetupError> {
    within("write_bytes", bulk.write_bytes, 1..=65_536)?;
    within("sessions", bulk.sessions, 1..=64)?;
    let (total_bytes, limit) = match (bulk.total_bytes, bulk.duration_s) {
        (Some(total_bytes), None) => {
            within("total_bytes", total_bytes, 1..=1 << 30)?;
            (u64::from(total_bytes), LIMIT)
        }
        (None, Some(duration_s)) => {
            within("duration_s", duration_s, 1..=3600)?;
            (u64::MAX, Duration::from_secs(u64::from(duration_s)))
        }
        _ => {
            let why = "a bulk transfer has either total_bytes or duration_s".to_owned();
            return Err(SetupError::Unsupported { why });
        }
    };
    let mut world = World::new(setup, seed)?;
    let progress = Progress::default();
    world.spawn(PEER, receive(world.node(PEER), progress.clone(), bulk.prints));
    let sessions: Vec<Outcome> = (0..bulk.sessions)
        .map(|_| send(world.node(MEASURED), progress.clone(), bulk.write_bytes as usize, total_bytes))
        .map(|sending| world.spawn(MEASURED, sending))
        .collect();
    let fails = || sessions.iter().any(Outcome::has_failed);
    let never = Outcome::default();
    world.run_until(LIMIT, &never, || progress.began_at.get().is_some() || fails())?;
    let (received, all_bytes) =
        (progress.received_bytes.clone(), total_bytes.saturating_mul(u64::from(bulk.sessions)));
    world.run_for(limit, &never, || received.get() >= all_bytes || fails())?;
    for session in &sessions {
        session.check()?;
    }
    Ok(report(&world, &progress))
}

async fn send(node: Node, progress: Progress, write_bytes: usize, total_bytes: u64) -> Result<(), String> {
    let stream = node.host.connect(address_of(PEER)).await.map_err(wrong)?;
    stream.set_nagle(node.costs.nagle);
    if node.costs.pushes {
        stream.set_not_sent_low_water(Some(1));
    }
    progress.began_at.set(progress.began_at.get().or(Some(node.host.now())));
    let piece = vec![b'a'; write_bytes];
    let mut left = total_bytes;
    while left > 0 {
        let most = left.min(piece.len() as u64) as usize;
        node.write(&stream, &piece[..most]).await.map_err(wrong)?;
        left -= most as u64;
    }
    stream.shutdown();
    stream.closed().await.map_err(wrong)
}

fn report(world: &World, progress: &Progress) -> Measured {
    let now = world.network.now();
    let duration = now.since(progress.began_at.get().unwrap_or(now));
    let duration_s = duration.as_secs_f64();
    let (sender, receiver) = (world.tally.of(MEASURED), world.tally.of(PEER));
    let mut measured = Measured::default();
    measured.set("duration_s", duration_s);
    measured.set("packets_received", receiver.data_segments_received as f64);
    measured.set("packets_sent", sender.data_segments_sent as f64);
    measured.set("acknowledgments_sent", receiver.bare_segments_sent as f64);
    measured.set("throughput_kbps", progress.received_bytes.get() as f64 * 8.0 / 1000.0 / duration_s);
    // Figure 13 of VPI: from the first write until a window is sent, and until it is acknowledged.
    let begun_at = progress.began_at.get().unwrap_or(now);
    for (name, at) in
        [("first_window_ms", sender.first_window_at), ("first_acknowledged_ms", sender.first_acknowledged_at)]
    {
        if let Some(at) = at {
            measured.set(name, at.since(begun_at).as_secs_f64() * 1000.0);
        }
    }
    let cpu_s = |host| world.network.used(host).total().as_secs_f64();
    measured.set("cpu_s", cpu_s(MEASURED) + cpu_s(PEER));
    // A write and the read of its RFNM for each segment sent, and a read for each received (UCLA §3.1).
    let segments = [sender, receiver].map(|of| of.data_segments_sent + of.bare_segments_sent);
    measured.set("io_requests", 3.0 * segments.iter().sum::<u64>() as f64);
    for (name, host) in [("sender", MEASURED), ("receiver", PEER)] {
        let used = world.network.used(host);
        for (kind, time) in used.iter() {
            measured.set(format!("{name}_{}_s", kind.replace(' ', "_")), time.as_secs_f64());
        }
        let busy_s = used.total().as_secs_f64();
        measured.set(format!("{name}_busy_s"), busy_s);
        measured.set(format!("{name}_idle_percent"), (100.0 * (1.0 - busy_s / duration_s)).max(0.0));
    }
    measured
}

async fn receive(node: Node, progress: Progress, prints: bool) -> Result<(), String> {
    let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, PORT);
    let listener = node.host.listen(at, ListenOptions::default()).map_err(wrong)?;
    loop {
        let stream = listener.accept().await.map_err(wrong)?;
        let (session, progress) = (node.clone(), progress.clone());
        node.host.spawn(async move { take_all(session, stream, progress, prints).await }).detach();
    }
}

async fn take_all(node: Node, stream: Stream, progress: Progress, prints: bool) -> Result<(), String> {
    let mut place = vec![0; READ_BYTES];
    loop {
        let count = node.read(&stream, &mut place).await.map_err(wrong)?;
        if count == 0 {
            return Ok(());
        }
        node.print(if prints { count } else { 0 }, true).await;
        progress.received_bytes.set(progress.received_bytes.get() + count as u64);
    }
}
