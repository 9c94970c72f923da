//! Memory shared among many: who hoards gets no more, and who has little gets what it asks for.

use crate::common::{Net, endpoint};
use inhost_base::Duration;
use inhost_event::Ignore;
use inhost_stack::{ListenOptions, Medium, Readiness, StackConfig, StreamError, TcpConfig, TcpSocketId};

/// Both hosts have so much.
const MEMORY_BYTES: usize = 4 << 20;

fn net(seed: u64) -> Net {
    let mut tcp = TcpConfig::default();
    tcp.send_buffer_limit_bytes = 2 << 20;
    tcp.receive_buffer_limit_bytes = 2 << 20;
    // They do not have to find out that they may be so large.
    tcp.send_buffer_initial_bytes = 2 << 20;
    tcp.receive_buffer_initial_bytes = 2 << 20;
    let mut config = StackConfig::default();
    config.memory_limit_bytes = MEMORY_BYTES;
    config.tcp = tcp;
    Net::with(seed, config, |_| Medium::Ip)
}
/// Connections from host 0 to a listener of host 1.
fn connections(net: &mut Net, port: u16, count: usize) -> Vec<(TcpSocketId, TcpSocketId)> {
    let mut options = ListenOptions::default();
    options.backlog = count;
    let listener = net.listen_with(1, port, options);
    let mut pairs = Vec::new();
    for _ in 0..count {
        let caller = net.connect(0, endpoint(1, port));
        let mut called = None;
        assert!(net.run(Duration::from_secs(300), |net| {
            called = called.or(net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap());
            called.is_some() && net.stacks[0].readiness(caller).contains(Readiness::CONNECTED)
        }));
        pairs.push((caller, called.unwrap().socket));
    }
    pairs
}
fn write_all_it_takes(net: &mut Net, host: usize, socket: TcpSocketId) -> usize {
    let mut written = 0;
    loop {
        let (now, stack) = (net.now, &mut net.stacks[host]);
        match stack.tcp(now, &mut Ignore).send(socket, &[7; 8192]) {
            Ok(count) => written += count,
            Err(StreamError::WouldBlock) => return written,
            Err(why) => panic!("{why}"),
        }
    }
}
fn held(net: &Net, host: usize, socket: TcpSocketId) -> usize {
    let info = net.stacks[host].instruments().info(socket, net.now).unwrap().tcp.unwrap();
    info.receive_queue_capacity_bytes + info.send_queue_capacity_bytes
}

#[test]
fn those_who_do_not_read_leave_enough_for_those_who_do() {
    let mut net = net(3);
    let hoards = connections(&mut net, 80, 6);
    let modest = connections(&mut net, 81, 2);
    for _ in 0..200 {
        for &(caller, _) in &hoards {
            write_all_it_takes(&mut net, 0, caller);
        }
        net.pass(Duration::from_millis(20));
    }
    assert!(net.stacks.iter().any(|stack| stack.memory().outstanding_bytes() > MEMORY_BYTES / 8 * 6));
    for round in 0..20 {
        for &(caller, called) in &modest {
            // Question and answer, each of a few segments.
            net.send(0, caller, &[1; 3000]);
            let mut received = 0;
            assert!(
                net.run(Duration::from_secs(5), |net| {
                    received += net.read(1, called, 4000).len();
                    received == 3000
                }),
                "round {round}: {received} of 3000 bytes, memory {:?}",
                [
                    net.stacks[0].instruments().info(caller, net.now),
                    net.stacks[1].instruments().info(called, net.now)
                ]
            );
            net.send(1, called, &[2; 3000]);
            let mut received = 0;
            assert!(net.run(Duration::from_secs(5), |net| {
                received += net.read(0, caller, 4000).len();
                received == 3000
            }));
        }
    }
    // Nobody was cut off, and all of it arrives once somebody reads.
    for &(_, called) in &hoards {
        assert!(
            net.stacks[1]
                .instruments()
                .connection(called)
                .and_then(|connection| connection.error())
                .is_none()
        );
        assert!(net.run(Duration::from_secs(60), |net| net.read(1, called, 1 << 20).is_empty()));
    }
}

#[test]
fn idle_connections_take_nothing_from_the_few_that_work() {
    let mut net = net(4);
    connections(&mut net, 80, 300);
    let working = connections(&mut net, 81, 3);
    let mut most = vec![0; working.len()];
    for _ in 0..300 {
        for (&(caller, called), most) in working.iter().zip(&mut most) {
            write_all_it_takes(&mut net, 0, caller);
            *most = held(&net, 0, caller).max(held(&net, 1, called)).max(*most);
            net.read(1, called, 64 << 10);
        }
        net.pass(Duration::from_millis(5));
    }
    // Each third of what there is, and not one part in three hundred. What it has at one moment goes up and down.
    assert!(most.iter().all(|&bytes| bytes > MEMORY_BYTES / 5), "{most:?} bytes");
    let spread: Vec<usize> = working.iter().map(|&(caller, _)| held(&net, 0, caller)).collect();
    let (least, most) = (spread.iter().min().unwrap(), spread.iter().max().unwrap());
    assert!(least * 2 > *most, "{spread:?}");
}

#[test]
fn a_limit_below_what_is_queued_leaves_room_for_acknowledgments() {
    for both in [false, true] {
        let mut net = net(5);
        let (caller, called) = connections(&mut net, 80, 1)[0];
        let written = [write_all_it_takes(&mut net, 0, caller), write_all_it_takes(&mut net, 1, called)];
        assert!(written.iter().all(|&bytes| bytes > 700_000), "{written:?}");
        let limit_bytes = 64 << 10;
        net.stacks[0].set_memory_limit(limit_bytes);
        let mut received = [0; 2];
        let done = net.run(Duration::from_secs(60), |net| {
            received[0] += net.read(1, called, 1 << 20).len();
            received[1] += if both { net.read(0, caller, 1 << 20).len() } else { 0 };
            received[0] == written[0] && (!both || received[1] == written[1])
        });
        assert!(done, "{received:?} of {written:?}");
        net.pass(Duration::from_secs(1));
        let used_bytes = net.stacks[0].memory().outstanding_bytes();
        assert!(used_bytes <= limit_bytes, "{used_bytes} bytes in use");
    }
}

#[test]
fn what_nobody_reads_leaves_room_for_acknowledgments() {
    let mut net = net(6);
    let (sender, taker) = connections(&mut net, 80, 1)[0];
    let hoards = connections(&mut net, 81, 400);
    let written = write_all_it_takes(&mut net, 0, sender);
    // The callers take nothing of what the called send.
    for _ in 0..200 {
        for &(_, called) in &hoards {
            write_all_it_takes(&mut net, 1, called);
        }
        net.pass(Duration::from_millis(20));
    }
    let used_bytes = net.stacks[0].memory().outstanding_bytes();
    assert!(used_bytes > MEMORY_BYTES / 10 * 9, "{used_bytes} bytes");
    let mut received = 0;
    let done = net.run(Duration::from_secs(60), |net| {
        received += net.read(1, taker, 1 << 20).len();
        received == written
    });
    assert!(done, "{received} of {written}");
}
