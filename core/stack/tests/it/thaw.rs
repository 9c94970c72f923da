//! Frozen stacks that were changed: refused, or thawed to a stack that works without a panic.

use crate::common::transfer::Transfer;
use crate::common::{Faults, LINK, Net, endpoint, ethernet};
use inhost_base::{Duration, Random};
use inhost_stack::{Ignore, Medium, Stack, StackConfig, UdpOptions};

/// Stacks that are changed, and changes of each.
const STACKS: u64 = 12;
const CHANGES: u32 = 150;

/// A stack in the middle of much.
fn busy(seed: u64) -> Stack {
    let mut config = StackConfig::default();
    if seed % 3 == 1 {
        config.memory_limit_bytes = 256 << 10;
    }
    if seed % 4 == 2 {
        config.tcp = inhost_stack::TcpConfig::linux();
    }
    let mut net = match seed % 2 {
        0 => Net::with(seed, config, |_| Medium::Ip),
        _ => Net::with(seed, config, ethernet),
    };
    net.set_faults(Faults {
        lost: 30,
        repeated: 20,
        corrupted: 0,
        reordered: 80,
        delay: Duration::from_millis(5),
    });
    let sockets = net.connected(23);
    let mut transfer = Transfer::new(seed, [sockets.0, sockets.1], [60_000, 9_000]);
    let end = net.now + Duration::from_millis(12 + 11 * (seed % 11));
    let echo = net.stacks[0].echo(net.now, &mut Ignore).open().unwrap();
    let udp = net.stacks[0].udp(net.now, &mut Ignore).bind(endpoint(0, 4000), UdpOptions::default()).unwrap();
    net.run(Duration::from_secs(100), |net| {
        let now = net.now;
        let _ = net.stacks[0].echo(now, &mut Ignore).send(echo, endpoint(1, 0).address, 7, b"are you there?");
        let _ = net.stacks[0].udp(now, &mut Ignore).send_to(udp, b"data", Some(endpoint(1, 9)), None);
        transfer.work(net);
        now > end
    });
    // The first fragment of a datagram whose rest never comes.
    let mut fragment =
        crate::common::packets::ip_frame(endpoint(1, 0).address, endpoint(0, 0).address, 17, &[9; 64]);
    fragment[6] = 0x20;
    let sum = inhost_stack::wire::checksum::Sum::of(&[&fragment[..10], &[0, 0], &fragment[12..20]].concat());
    fragment[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    if seed.is_multiple_of(2) {
        net.inject(0, &fragment);
    }
    assert!(net.stacks[0].links().any(|link| link == LINK));
    let [stack, _] = net.stacks;
    stack
}

#[test]
fn changed_bytes_are_refused_or_give_a_stack_that_works() {
    let (mut refused, mut thawed) = (0, 0);
    for seed in 0..STACKS {
        let mut random = Random::from_number(seed);
        let frozen = busy(seed).freeze().unwrap();
        let body = Stack::unseal_frozen(&frozen).unwrap();
        for change in 0..CHANGES {
            let mut body = body.to_vec();
            for _ in 0..=random.public_below(3) {
                let at = random.public_below(body.len() as u32) as usize;
                match random.public_below(4) {
                    0 => body[at] = 0xff,
                    1 => body[at] = 0,
                    _ => body[at] ^= 1 << random.public_below(8),
                }
            }
            if change % 50 == 0 {
                body.truncate(random.public_below(body.len() as u32) as usize);
            }
            match Stack::thaw(&Stack::seal_frozen(&body), 64 << 20).is_ok() {
                true => thawed += 1,
                false => refused += 1,
            }
            let done = std::panic::catch_unwind(|| crate::bodies::thaw(&body));
            assert!(done.is_ok(), "stack {seed}, change {change}: a panic");
        }
    }
    println!("{refused} refused, {thawed} thawed");
    assert!(refused > 100 && thawed > 100, "{refused} refused, {thawed} thawed: they prove little");
}
