//! Streams over a bad wire: what is delivered is what was sent, in order, once; both ends close; nothing is left.

use crate::common::transfer::Transfer;
use crate::common::{Faults, Net, ethernet};
use inhost_base::{Duration, Random};
use inhost_stack::{Medium, StackConfig};

/// How many seeds one run tries; each differs in its faults, its sizes and its medium.
const SEEDS: u64 = 240;

fn faults(random: &mut Random) -> Faults {
    // Half of the wires are nearly good, half are bad.
    let worst = if random.public_below(2) == 0 { 20 } else { 120 };
    Faults {
        lost: random.public_below(worst),
        repeated: random.public_below(worst),
        corrupted: random.public_below(worst / 2),
        reordered: random.public_below(4 * worst),
        delay: Duration::from_micros(u64::from(50 + random.public_below(40_000))),
    }
}

fn run(seed: u64) {
    let mut random = Random::from_number(seed);
    let mut config = StackConfig::default();
    // On the worst wires five minutes may pass without an acknowledgment; the test is about the stream.
    config.tcp.user_timeout = Duration::from_secs(2 * 3600);
    let mut net = match seed % 4 {
        3 => Net::with(seed, config, ethernet),
        _ => Net::with(seed, config, |_| Medium::Ip),
    };
    let faults = faults(&mut random);
    net.set_faults(faults);
    if seed % 5 == 4 {
        net.wires.iter_mut().for_each(|wire| wire.room = 3);
    }
    let most = if seed.is_multiple_of(10) { 1_000_000 } else { 60_000 };
    let bytes = [random.public_below(most) as usize, random.public_below(most / 3) as usize];
    let opened = net.now;
    let (caller, called) = net.connected(23);
    let mut transfer = Transfer::new(seed, [caller, called], bytes);
    let done = net.run(Duration::from_secs(4 * 3600), |net| {
        check_ledgers(net, &transfer, opened);
        transfer.work(net)
    });
    assert!(done, "seed {seed}: not done with {faults:?}: {transfer:?}");
    close_listeners(&mut net);
    let clean = net
        .run(Duration::from_secs(3600), |net| net.stacks.iter().all(|s| s.instruments().socket_count() == 0));
    assert!(clean, "seed {seed}: connections stay");
    net.pass(Duration::from_secs(120));
    net.assert_clean();
}

/// Both ledgers hold all of a connection's time.
fn check_ledgers(net: &Net, transfer: &Transfer, opened: inhost_base::Instant) {
    for end in &transfer.ends {
        let Some(info) = net.stacks[end.host].instruments().info(end.socket, net.now) else { continue };
        let Some(tcp) = info.tcp else { continue };
        assert_eq!(tcp.ledgers.send.total(), info.age);
        assert_eq!(tcp.ledgers.receive.total(), info.age);
        assert!(info.age <= net.now.since(opened));
    }
}

fn close_listeners(net: &mut Net) {
    for host in 0..2 {
        let listeners: Vec<_> = net.stacks[host]
            .instruments()
            .sockets(net.now)
            .filter(|info| info.kind == inhost_stack::SocketKind::Listener)
            .map(|info| info.socket)
            .collect();
        listeners.into_iter().for_each(|listener| net.close(host, listener));
    }
}

/// `INHOST_SEEDS=first..last` tries others.
#[test]
fn every_seed_delivers_what_was_sent() {
    let asked = std::env::var("INHOST_SEEDS").ok();
    let range = asked.as_deref().and_then(|range| range.split_once(".."));
    let (first, last) = match range {
        Some((first, last)) => (first.parse().unwrap(), last.parse().unwrap()),
        None => (0, SEEDS),
    };
    for seed in first..last {
        run(seed);
    }
}
