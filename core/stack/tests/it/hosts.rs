//! The whole host: loopback, many connections, fairness, clocks that jump, memory that ends.

use crate::common::transfer::Transfer;
use crate::common::{Faults, LINK, Net, address_v6, endpoint};
use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, LinkId};
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_event::{Ended, Event, Ignore, Mask, Recorded, TcpState};
use inhost_stack::{
    AnySocketId, ConnectOptions, ConnectionOption, KeepAlive, ListenOptions, Medium, Readiness, SocketId,
    SocketKind, SocketOption, Stack, StackConfig, StreamError, TcpSocketId,
};
use std::collections::HashMap;

/// Runs a host that has nothing but its loopback until nothing is due at once.
fn settle(stack: &mut Stack, now: Instant) {
    for _ in 0..10_000 {
        match stack.deadline() {
            Some(deadline) if deadline <= now => stack.timeout(now, &mut Ignore),
            _ => return,
        }
    }
    panic!("the loopback never rests");
}

#[test]
fn a_host_talks_to_itself_without_a_device() {
    let now = Instant::from_millis(77);
    let mut stack = Stack::new(StackConfig::default(), [1; 32], now);
    let there = Endpoint::new(Ipv4Addr::LOCALHOST, 7);
    let listener = stack.tcp(now, &mut Ignore).listen(there, ListenOptions::default()).unwrap();
    let caller = stack.tcp(now, &mut Ignore).connect(there, ConnectOptions::default()).unwrap();
    settle(&mut stack, now);
    let called = stack.tcp(now, &mut Ignore).accept(listener).unwrap().unwrap().socket;
    let text: Vec<u8> = (0..200_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let (mut sent, mut got) = (0, Vec::new());
    let mut place = vec![0; 30_000];
    while got.len() < text.len() {
        if let Ok(count) = stack.tcp(now, &mut Ignore).send(caller, &text[sent..]) {
            sent += count;
        }
        settle(&mut stack, now);
        while let Ok(count @ 1..) = stack.tcp(now, &mut Ignore).read(called, &mut place) {
            got.extend_from_slice(&place[..count]);
        }
    }
    assert_eq!(got, text);
    assert!(!stack.links().any(|link| stack.wants_transmit(link)));
    for socket in [SocketId::from(caller), called.into(), listener.into()] {
        stack.close(socket, now, &mut Ignore).unwrap();
    }
    settle(&mut stack, now);
    let later = now + Duration::from_secs(100);
    stack.timeout(later, &mut Ignore);
    settle(&mut stack, later);
    assert_eq!((stack.instruments().socket_count(), stack.memory().outstanding_bytes()), (0, 0));
    assert!(stack.instruments().link_counters(LinkId(0)).unwrap().received_frames > 10);
}

#[test]
fn own_addresses_are_reached_by_the_loopback_in_the_same_round() {
    let mut net = Net::new(5);
    let listener = net.listen(0, 7);
    let caller = net.connect(0, endpoint(0, 7));
    net.transmit();
    assert_eq!(net.wires[0].passed, 0);
    assert!(net.stacks[0].readiness(caller).contains(Readiness::CONNECTED));
    assert!(net.stacks[0].readiness(listener).contains(Readiness::ACCEPTABLE));
}

#[test]
fn a_full_send_buffer_takes_nothing_and_says_so() {
    let mut net = Net::new(6);
    net.listen(1, 7);
    let caller = net.connect(0, endpoint(1, 7));
    let mut send = |bytes: &[u8]| net.stacks[0].tcp(net.now, &mut Ignore).send(caller, bytes);
    let last = (0..10_000).map(|_| send(&[7; 10_000])).find(|sent| !matches!(sent, Ok(1..)));
    assert_eq!(last, Some(Err(StreamError::WouldBlock)));
    assert_eq!(send(b""), Ok(0), "nothing always fits");
}

#[test]
fn both_families_and_both_media_carry_streams() {
    for (seed, mut net) in [(1, Net::new(1)), (2, Net::ethernet(2))] {
        for to in [Endpoint::new(address_v6(1), 80), endpoint(1, 80)] {
            let any = Endpoint::new(std::net::Ipv6Addr::UNSPECIFIED, 80);
            let listener =
                net.stacks[1].tcp(net.now, &mut Ignore).listen(any, ListenOptions::default()).unwrap();
            let caller = net.connect(0, to);
            let mut called = None;
            let done = net.run(Duration::from_secs(20), |net| {
                called = called.or(net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap());
                called.is_some()
            });
            assert!(done, "no connection to {to}");
            let mut transfer = Transfer::new(seed, [caller, called.unwrap().socket], [100_000, 50_000]);
            assert!(net.run(Duration::from_secs(60), |net| transfer.work(net)), "{to}");
            net.close(1, listener);
        }
    }
}

#[test]
fn ten_thousand_connections_live_side_by_side() {
    const COUNT: usize = 10_000;
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 256 << 20;
    let mut net = Net::with(9, config, |_| Medium::Ip);
    let mut options = ListenOptions::default();
    options.backlog = COUNT;
    options.syn_queue = COUNT;
    let listener = net.listen_with(1, 80, options);
    let callers: Vec<TcpSocketId> = (0..COUNT).map(|_| net.connect(0, endpoint(1, 80))).collect();
    let mut called = HashMap::new();
    let done = net.run(Duration::from_secs(60), |net| {
        while let Some(accepted) = net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap() {
            called.insert(accepted.remote, accepted.socket);
        }
        called.len() == COUNT
    });
    assert!(done, "{} of {COUNT}", called.len());
    // Everybody says his number and hears it back.
    for (number, &caller) in callers.iter().enumerate() {
        net.send(0, caller, &(number as u32).to_be_bytes());
    }
    let mut echoed = 0;
    let done = net.run(Duration::from_secs(60), |net| {
        while let Some((socket, _)) = net.stacks[1].ready() {
            let Some(AnySocketId::Tcp(socket)) = net.stacks[1].typed(socket) else { continue };
            let bytes = net.read(1, socket, 10);
            if !bytes.is_empty() {
                net.send(1, socket, &bytes);
                echoed += 1;
            }
        }
        echoed == COUNT
    });
    assert!(done);
    net.pass(Duration::from_secs(2));
    for (number, &caller) in callers.iter().enumerate() {
        assert_eq!(net.read(0, caller, 10), (number as u32).to_be_bytes());
    }
    assert_eq!(net.stacks[0].instruments().sockets(net.now).count(), COUNT);
    for &caller in &callers {
        net.close(0, caller);
    }
    called.values().for_each(|&socket| net.close(1, socket));
    net.close(1, listener);
    net.pass(Duration::from_secs(200));
    net.assert_clean();
}

/// A device that takes frames and remembers the source ports of segments with data.
struct Ports(Vec<u16>, usize);

impl Device for Ports {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if self.0.len() >= self.1 {
            return Err(Full);
        }
        if !frame.payload.is_empty() {
            self.0.push(u16::from_be_bytes([frame.header[20], frame.header[21]]));
        }
        Ok(())
    }
}

#[test]
fn senders_share_the_link_and_a_full_device_loses_nothing() {
    let mut net = Net::new(12);
    let callers: Vec<TcpSocketId> = (0..8).map(|i| net.connected(100 + i).0).collect();
    net.pass(Duration::from_secs(1));
    for &caller in &callers {
        net.send(0, caller, &[5; 10 * 1448]);
    }
    let mut device = Ports(Vec::new(), 20);
    let done = net.stacks[0].transmit(LINK, net.now, 1000, &mut device, &mut Ignore);
    assert!(done.device_full && done.more && done.frames == 20);
    // A few segments each: nobody has had a second turn before everybody had one; the sixth waits for the device.
    let mut turns: Vec<u16> = device.0.clone();
    turns.dedup();
    assert_eq!(turns.len(), 5, "{:?}", device.0);
    let mut rest = Ports(Vec::new(), 1000);
    while net.stacks[0].transmit(LINK, net.now, 7, &mut rest, &mut Ignore).more {}
    assert!(!turns.contains(&rest.0[0]), "who had no turn yet comes first");
    let all: Vec<u16> = device.0.iter().chain(&rest.0).copied().collect();
    for &caller in &callers {
        let port = net.stacks[0].endpoints(caller).unwrap().0.port;
        assert_eq!(all.iter().filter(|&&sent| sent == port).count(), 10);
    }
}

#[test]
fn a_suspended_host_wakes_up_and_goes_on() {
    let mut net = Net::new(21);
    let (caller, called) = net.connected(80);
    net.pass(Duration::from_secs(1));
    // A month passes for both at once while nothing is outstanding.
    net.now += Duration::from_secs(30 * 86_400);
    net.send(0, caller, b"before");
    net.transmit();
    // Two minutes pass with data, an acknowledgment and a time-out outstanding.
    net.now += Duration::from_secs(120);
    net.pass(Duration::from_secs(5));
    assert_eq!(net.read(1, called, 100), b"before");
    net.send(0, caller, b"after");
    net.pass(Duration::from_secs(5));
    assert_eq!(net.read(1, called, 100), b"after");
    assert_eq!(net.stacks[0].instruments().info(caller, net.now).unwrap().state, Some(TcpState::Established));
}

#[test]
fn a_sleep_far_beyond_the_user_timeout_ends_no_connection() {
    for ethernet in [false, true] {
        let mut net = if ethernet { Net::ethernet(21) } else { Net::new(21) };
        let (caller, called) = net.connected(80);
        for host in 0..2 {
            let socket = [caller, called][host];
            let keep_alive = KeepAlive { idle: Duration::from_secs(60), ..KeepAlive::default() };
            let option = SocketOption::Tcp(ConnectionOption::KeepAlive(Some(keep_alive)));
            net.stacks[host].set_option(socket, option, net.now, &mut Ignore).unwrap();
        }
        for (night, lost) in [1000, 0, 1000].into_iter().enumerate() {
            // All that leaves before the sleep is lost; or it lies in the device, and so does its answer.
            net.set_faults(Faults { lost, ..Faults::NONE });
            net.send(0, caller, b"sleep");
            net.transmit();
            net.pass(Duration::from_millis(20));
            net.set_faults(Faults::NONE);
            net.now += Duration::from_secs(8 * 3600);
            net.pass(Duration::from_secs(100));
            assert_eq!(net.read(1, called, 100), b"sleep", "night {night}");
            for (host, socket) in [(0, caller), (1, called)] {
                let info = net.stacks[host].instruments().info(socket, net.now).unwrap();
                assert_eq!(info.state, Some(TcpState::Established), "night {night}, host {host}");
            }
        }
    }
}

#[test]
fn a_clock_that_steps_back_does_no_harm() {
    let mut net = Net::new(22);
    let (caller, called) = net.connected(80);
    net.now = net.now - Duration::from_millis(500);
    net.send(0, caller, b"earlier");
    let mut got = Vec::new();
    let done = net.run(Duration::from_secs(60), |net| {
        got.extend(net.read(1, called, 100));
        got == b"earlier"
    });
    assert!(done);
}

#[test]
fn timers_that_all_fall_due_at_once_are_served_within_limits() {
    let mut net = Net::new(23);
    let callers: Vec<TcpSocketId> =
        (0..3000).map(|port| net.connect(0, Endpoint::new(Ipv4Addr::new(10, 0, 0, 77), 1 + port))).collect();
    net.transmit();
    net.now += Duration::from_secs(3600);
    let mut calls = 0;
    while net.stacks[0].deadline().is_some_and(|deadline| deadline <= net.now) {
        net.stacks[0].timeout(net.now, &mut Ignore);
        calls += 1;
        assert!(calls < 100, "the deadline never leaves the past");
    }
    assert!(calls > 1, "one call does not do without limit");
    // Nobody gives up for an hour in which nobody could be tried.
    for caller in callers {
        let info = net.stacks[0].instruments().info(caller, net.now).unwrap();
        assert_eq!(info.state, Some(TcpState::SynSent));
        assert_eq!(info.tcp.unwrap().retransmission_backoff, 1);
    }
}

#[test]
fn short_memory_starves_nobody() {
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 1 << 20;
    let mut net = Net::with(31, config, |_| Medium::Ip);
    // Three that are never read, and pin what they can; one that works.
    let lazy: Vec<(TcpSocketId, TcpSocketId)> = (0..3).map(|i| net.connected(100 + i)).collect();
    let busy = net.connected(200);
    let mut transfer = Transfer::new(31, [busy.0, busy.1], [300_000, 10_000]);
    let mut done = false;
    net.run(Duration::from_secs(600), |net| {
        for &(caller, _) in &lazy {
            let _ = net.stacks[0].tcp(net.now, &mut Ignore).send(caller, &[1; 4096]);
        }
        done = done || transfer.work(net);
        for stack in &net.stacks {
            assert!(stack.memory().outstanding_bytes() <= stack.memory().limit_bytes());
        }
        done
    });
    assert!(done, "{transfer:?}");
    for (caller, called) in lazy {
        net.stacks[0].tcp(net.now, &mut Ignore).abort(caller).unwrap();
        net.stacks[1].tcp(net.now, &mut Ignore).abort(called).unwrap();
    }
}

#[test]
fn tables_are_bounded() {
    let mut config = StackConfig::default();
    config.socket_limit = 10;
    let mut net = Net::with(41, config, |_| Medium::Ip);
    for _ in 0..10 {
        net.connect(0, endpoint(1, 80));
    }
    let more = net.stacks[0].tcp(net.now, &mut Ignore).connect(endpoint(1, 80), ConnectOptions::default());
    assert_eq!(more, Err(inhost_stack::ConnectError::TooManySockets));
    let listen = net.stacks[0].tcp(net.now, &mut Ignore).listen(endpoint(0, 1), ListenOptions::default());
    assert_eq!(listen, Err(inhost_stack::BindError::TooManySockets));
}

#[test]
fn ephemeral_ports_run_out_for_one_remote_end_only() {
    let mut config = StackConfig::default();
    config.ephemeral_ports_first = 50_000;
    config.ephemeral_ports_last = 50_009;
    let mut net = Net::with(42, config, |_| Medium::Ip);
    for _ in 0..10 {
        net.connect(0, endpoint(1, 80));
    }
    let more = net.stacks[0].tcp(net.now, &mut Ignore).connect(endpoint(1, 80), ConnectOptions::default());
    assert_eq!(more, Err(inhost_stack::ConnectError::NoPort));
    net.connect(0, endpoint(1, 81));
}

#[test]
fn instruments_see_everything() {
    let mut net = Net::new(51);
    net.sinks[0] = Recorded::new(Mask::all(), 10_000);
    let (caller, called) = net.connected(80);
    net.send(0, caller, &[1; 3000]);
    net.pass(Duration::from_secs(1));
    let infos: Vec<_> = net.stacks[1].instruments().sockets(net.now).collect();
    assert_eq!(
        infos.iter().map(|info| info.kind).collect::<Vec<_>>(),
        [SocketKind::Listener, SocketKind::Connection]
    );
    assert_eq!((infos[1].socket, infos[1].receive_queue, infos[1].is_held), (called.into(), 3000, true));
    let tcp = infos[1].tcp.as_ref().unwrap();
    assert_eq!((tcp.received_bytes, tcp.ledgers.receive.total()), (3000, infos[1].age));
    let counters = *net.stacks[0].instruments().link_counters(LINK).unwrap();
    assert_eq!(
        counters.sent_frames,
        net.stacks[1].instruments().link_counters(LINK).unwrap().received_frames
    );
    let sent: u64 = net.sinks[0]
        .events()
        .map(|(_, event)| match event {
            Event::FrameSent(sent) => u64::from(sent.length_bytes),
            _ => 0,
        })
        .sum();
    assert_eq!(sent, counters.sent_bytes);
    let connected = net.sinks[0].events().find_map(|(_, event)| match event {
        Event::Connected(connected) => Some(*connected),
        _ => None,
    });
    assert!(connected.unwrap().active && connected.unwrap().remote == endpoint(1, 80));
    net.stacks[0].tcp(net.now, &mut net.sinks[0]).abort(caller).unwrap();
    assert!(net.sinks[0].events().any(|(_, event)| matches!(event, Event::Disconnected(_))));
}

/// Accounts of connections that ended, as host `of` told them.
fn ended(net: &Net, of: usize) -> Vec<Ended> {
    let events = net.sinks[of].events();
    events.filter_map(|(_, event)| if let Event::Ended(of) = event { Some(**of) } else { None }).collect()
}

#[test]
fn each_connection_is_accounted_for_once_at_its_end() {
    let mut net = Net::new(52);
    net.sinks = [Recorded::new(Mask::ENDED, 100), Recorded::new(Mask::ENDED, 100)];
    let (caller, called) = net.connected(80);
    net.send(0, caller, &[1; 3000]);
    net.pass(Duration::from_secs(1));
    net.stacks[0].close(caller, net.now, &mut net.sinks[0]).unwrap();
    net.pass(Duration::from_secs(1));
    let mut place = [0; 4000];
    let read = net.stacks[1].tcp(net.now, &mut net.sinks[1]).read(called, &mut place);
    assert_eq!(read, Ok(3000));
    net.stacks[1].close(called, net.now, &mut net.sinks[1]).unwrap();
    net.pass(Duration::from_secs(1));
    assert_eq!(
        net.stacks[0].instruments().connection(caller).map(|connection| connection.state()),
        Some(TcpState::TimeWait)
    );
    // TIME-WAIT has begun at one and not ended, and its end tells nothing more.
    for _ in 0..2 {
        for (host, bytes) in [(0, (3000, 0)), (1, (0, 3000))] {
            let [of] = ended(&net, host)[..] else { panic!("one account at host {host}") };
            assert_eq!((of.sent_bytes, of.received_bytes), bytes);
            assert_eq!((of.active, of.error), (host == 0, None));
            assert_eq!(of.local.address, endpoint(host, 0).address);
            assert_eq!((of.ledgers.send.total(), of.ledgers.receive.total()), (of.age, of.age));
        }
        net.pass(Duration::from_secs(300));
    }

    // One that is aborted, one that is reset by it, and a call that is refused.
    let (caller, _) = net.connected(81);
    net.stacks[0].tcp(net.now, &mut net.sinks[0]).abort(caller).unwrap();
    net.connect(0, endpoint(1, 9));
    net.pass(Duration::from_secs(1));
    let errors = |host| ended(&net, host).iter().skip(1).map(|of| of.error).collect::<Vec<_>>();
    assert_eq!(errors(0), [Some("connection aborted"), Some("connection refused")]);
    assert_eq!(errors(1), [Some("connection reset by the peer")]);
}

#[test]
fn a_flood_of_handshakes_leaves_no_accounts() {
    let mut net = Net::new(53);
    net.sinks[1] = Recorded::new(Mask::ENDED, 100);
    net.listen(1, 80);
    // The caller is gone before it is answered.
    for _ in 0..10 {
        let caller = net.connect(0, endpoint(1, 80));
        net.stacks[0].tcp(net.now, &mut Ignore).abort(caller).unwrap();
    }
    net.pass(Duration::from_secs(300));
    assert_eq!(ended(&net, 1), []);
}

#[test]
fn spurious_calls_do_nothing() {
    let mut net = Net::new(61);
    let (caller, _) = net.connected(80);
    net.pass(Duration::from_secs(1));
    while net.stacks[0].ready().is_some() {}
    let before = format!("{:?}", net.stacks[0].instruments().info(caller, net.now));
    for _ in 0..10 {
        let stack = &mut net.stacks[0];
        stack.receive(LINK, &mut Batch::new(), net.now, &mut Ignore);
        stack.timeout(net.now, &mut Ignore);
        let mut nothing = Ports(Vec::new(), 0);
        assert_eq!(stack.transmit(LINK, net.now, 10, &mut nothing, &mut Ignore).frames, 0);
        assert_eq!(stack.ready(), None);
        assert!(!stack.wants_transmit(LINK));
    }
    assert_eq!(format!("{:?}", net.stacks[0].instruments().info(caller, net.now)), before);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut net = Net::new(71);
        net.set_faults(crate::common::Faults { lost: 50, reordered: 100, ..crate::common::Faults::NONE });
        net.sinks = [Recorded::new(Mask::all(), 100_000), Recorded::new(Mask::all(), 100_000)];
        let (caller, called) = net.connected(80);
        let mut transfer = Transfer::new(71, [caller, called], [50_000, 50_000]);
        assert!(net.run(Duration::from_secs(600), |net| transfer.work(net)));
        net.sinks.each_ref().map(|sink| sink.events().cloned().collect::<Vec<_>>())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_writer_without_memory_is_woken_when_there_is_some() {
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 64 << 10;
    let mut net = Net::with(32, config, |_| Medium::Ip);
    let (caller, _called) = net.connected(80);
    net.pass(Duration::from_secs(1));
    // Somebody else holds all there is.
    let mut held = Vec::new();
    while let Some(packet) = net.stacks[0].pool().take(100) {
        held.push(packet);
    }
    let refused = net.stacks[0].tcp(net.now, &mut Ignore).send(caller, b"hello");
    assert_eq!(refused, Err(StreamError::WouldBlock));
    // A task that writes whenever it may does not find out in vain again and again.
    assert!(!net.stacks[0].readiness(caller).contains(Readiness::WRITABLE));
    while net.stacks[0].ready().is_some() {}
    held.into_iter().for_each(|packet| net.stacks[0].pool().give(packet));
    let woken = net.run(Duration::from_secs(1), |net| {
        core::iter::from_fn(|| net.stacks[0].ready())
            .any(|(socket, readiness)| socket == caller && readiness.contains(Readiness::WRITABLE))
    });
    assert!(woken);
    assert_eq!(net.send(0, caller, b"hello"), 5);
}

#[test]
fn a_loopback_without_memory_waits_and_goes_on() {
    let mut net = Net::new(33);
    let listener = net.listen(0, 7);
    let mut held = Vec::new();
    net.stacks[0].set_memory_limit(64 << 10);
    while let Some(packet) = net.stacks[0].pool().take(100) {
        held.push(packet);
    }
    let caller = net.connect(0, endpoint(0, 7));
    net.stacks[0].timeout(net.now, &mut Ignore);
    let deadline = net.stacks[0].deadline().unwrap();
    assert!(deadline > net.now, "no driver is kept busy by a lack of memory");
    held.into_iter().for_each(|packet| net.stacks[0].pool().give(packet));
    net.stacks[0].set_memory_limit(64 << 20);
    net.pass(Duration::from_secs(1));
    assert!(net.stacks[0].readiness(caller).contains(Readiness::CONNECTED));
    assert!(net.stacks[0].readiness(listener).contains(Readiness::ACCEPTABLE));
}

#[test]
fn both_ledgers_hold_all_of_a_connections_time() {
    let mut net = Net::new(52);
    net.listen(1, 80);
    let opened = net.now;
    let caller = net.connect(0, endpoint(1, 80));
    for step in 1..50 {
        net.pass(Duration::from_micros(step * 777));
        if step % 3 == 0 {
            net.send(0, caller, &[0; 5000]);
        }
        let info = net.stacks[0].instruments().info(caller, net.now).unwrap();
        let ledgers = info.tcp.unwrap().ledgers;
        let age = net.now.since(opened);
        assert_eq!((info.age, ledgers.send.total(), ledgers.receive.total()), (age, age, age));
    }
}

#[test]
fn rubbish_in_the_middle_of_a_transfer_changes_nothing() {
    for seed in 0..4 {
        let mut net = if seed % 2 == 0 { Net::new(seed) } else { Net::ethernet(seed) };
        let mut random = inhost_base::Random::from_number(seed);
        let (caller, called) = net.connected(80);
        let mut transfer = Transfer::new(seed, [caller, called], [400_000, 400_000]);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut injected = 0u32;
        let done = net.run(Duration::from_secs(600), |net| {
            for host in 0..2 {
                seen.extend(net.wires[host].peek());
                let excess = seen.len().saturating_sub(50);
                seen.drain(..excess);
                for _ in 0..500 {
                    let frame = rubbish(&mut random, &seen);
                    net.inject(host, &frame);
                    injected += 1;
                }
            }
            transfer.work(net)
        });
        assert!(done && injected > 5_000, "{injected}: {transfer:?}");
        assert!(net.stacks.iter().all(|stack| stack.instruments().socket_count() < 10));
        net.pass(Duration::from_secs(200));
        let left: usize = net.stacks.iter().map(|stack| stack.memory().outstanding_bytes()).sum();
        assert!(left < 100_000, "{left} bytes stay");
    }
}

/// Bytes at random, or a frame seen before with a bit changed, whole or cut.
fn rubbish(random: &mut inhost_base::Random, seen: &[Vec<u8>]) -> Vec<u8> {
    let from = seen.get(random.public_below(seen.len().max(1) as u32) as usize);
    match from.filter(|frame| !frame.is_empty() && random.public_below(4) > 0) {
        Some(frame) => {
            let mut frame = frame.clone();
            // One bit: two may cancel in the checksum, which TCP could not help.
            let bit = random.public_below(frame.len() as u32 * 8) as usize;
            frame[bit / 8] ^= 1 << (bit % 8);
            frame.truncate(1 + random.public_below(2 * frame.len() as u32) as usize);
            frame
        }
        None => {
            let mut frame: Vec<u8> =
                (0..random.public_below(120)).map(|_| random.public_u64() as u8).collect();
            if let Some(first) = frame.first_mut() {
                *first = [0x45, 0x60, *first][random.public_below(3) as usize];
            }
            frame
        }
    }
}
