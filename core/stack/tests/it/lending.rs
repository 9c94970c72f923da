//! The faces without a copy: bytes lent to be sent, and packets borrowed to be read.

use crate::common::{Net, endpoint};
use bytes::Bytes;
use inhost_base::Duration;
use inhost_event::Ignore;
use inhost_stack::{Medium, SendHow, StackConfig, StreamError, TcpSocketId};

fn pair(config: StackConfig) -> (Net, TcpSocketId, TcpSocketId) {
    let mut net = Net::with(9, config, |_| Medium::Ip);
    let listener = net.listen(1, 80);
    let caller = net.connect(0, endpoint(1, 80));
    let mut called = None;
    assert!(net.run(Duration::from_secs(10), |net| {
        called = called.or(net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap());
        called.is_some()
    }));
    (net, caller, called.unwrap().socket)
}

/// Reads what is there by borrowing; gives everything back.
fn borrow_all(net: &mut Net, host: usize, socket: TcpSocketId, into: &mut Vec<u8>) {
    let (now, stack) = (net.now, &mut net.stacks[host]);
    loop {
        match stack.tcp(now, &mut Ignore).borrow(socket) {
            Ok(packet) => {
                assert!(!packet.is_empty(), "the stream has not ended");
                into.extend_from_slice(packet.bytes());
                stack.pool().give(packet);
            }
            Err(StreamError::WouldBlock) => return,
            Err(why) => panic!("{why}"),
        }
    }
}

#[test]
fn lent_bytes_arrive_and_are_released_when_acknowledged() {
    let (mut net, caller, called) = pair(StackConfig::default());
    let bytes: Vec<u8> = (0..600_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 15) as u8).collect();
    let lent = Bytes::from(bytes.clone());
    let mut rest = lent.clone();
    let mut got = Vec::new();
    assert!(net.run(Duration::from_secs(60), |net| {
        let (now, stack) = (net.now, &mut net.stacks[0]);
        while !rest.is_empty() {
            match stack.tcp(now, &mut Ignore).lend(caller, &mut rest, SendHow::default()) {
                Ok(taken) => assert!(taken > 0),
                Err(StreamError::WouldBlock) => break,
                Err(why) => panic!("{why}"),
            }
        }
        // The queue holds the very memory, not a copy of it.
        assert_eq!(stack.memory().outstanding_bytes(), 0);
        borrow_all(net, 1, called, &mut got);
        got.len() == bytes.len()
    }));
    assert!(got == bytes);
    drop(rest);
    assert!(net.run(Duration::from_secs(10), |_| lent.is_unique()), "all of it was acknowledged");
    assert_eq!(net.stacks[1].memory().outstanding_bytes(), 0, "all of it was given back");
}

#[test]
fn lent_and_copied_bytes_keep_their_order() {
    let (mut net, caller, called) = pair(StackConfig::default());
    let (mut sent, mut got) = (Vec::new(), Vec::new());
    for n in 0..40u32 {
        let piece: Vec<u8> = (0..n * 97 + 1).map(|i| (i + n) as u8).collect();
        let (now, stack) = (net.now, &mut net.stacks[0]);
        let taken = if n % 2 == 0 {
            stack.tcp(now, &mut Ignore).lend(caller, &mut Bytes::from(piece.clone()), SendHow::default())
        } else {
            stack.tcp(now, &mut Ignore).send(caller, &piece)
        };
        assert_eq!(taken, Ok(piece.len()));
        sent.extend(piece);
        net.pass(Duration::from_millis(1));
    }
    assert!(net.run(Duration::from_secs(10), |net| {
        borrow_all(net, 1, called, &mut got);
        got.len() == sent.len()
    }));
    assert!(got == sent);
    let now = net.now;
    net.stacks[0].tcp(now, &mut Ignore).shutdown(caller).unwrap();
    assert!(net.run(Duration::from_secs(10), |net| {
        let now = net.now;
        net.stacks[1].tcp(now, &mut Ignore).borrow(called).is_ok_and(|packet| packet.is_empty())
    }));
}

/// A sender that fills all of a host's memory still receives acknowledgments.
#[test]
fn full_send_queues_do_not_keep_acknowledgments_out() {
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 1 << 20;
    config.tcp.send_buffer_limit_bytes = 8 << 20;
    config.tcp.send_buffer_initial_bytes = 8 << 20;
    let (mut net, caller, called) = pair(config);
    let mut sent = 0;
    let mut place = [0; 4096];
    let mut got = 0;
    for _ in 0..200 {
        let (now, stack) = (net.now, &mut net.stacks[0]);
        while let Ok(count) = stack.tcp(now, &mut Ignore).send(caller, &[5; 4096]) {
            sent += count;
        }
        let left = stack.memory().limit_bytes() - stack.memory().outstanding_bytes();
        assert!(left >= 2 * 2176, "only {left} bytes are left to receive with");
        net.pass(Duration::from_millis(5));
        let (now, stack) = (net.now, &mut net.stacks[1]);
        while let Ok(count @ 1..) = stack.tcp(now, &mut Ignore).read(called, &mut place) {
            got += count;
        }
    }
    assert!(sent > 4 << 20 && got > 4 << 20, "{sent} bytes sent, {got} received");
}
