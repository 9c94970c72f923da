//! Two hosts on a wire, in one process and on a clock that is made up: what `two-stacks` and `fixed-window` run on.
#![forbid(unsafe_code)]

use inhost_stack::{
    Batch, Cidr, Device, Duration, Endpoint, Frame, Full, Ignore, Instant, InterfaceConfig, Ipv4Addr, LinkId,
    Medium, Stack, StackConfig,
};
use std::collections::VecDeque;

/// The link of each host; link 0 is its loopback.
const LINK: LinkId = LinkId(1);
/// Frames of one [`Stack::transmit`].
const BUDGET_FRAMES: usize = 64;

/// One direction of the wire: frames on their way, with the instant at which each arrives.
struct Wire {
    frames: VecDeque<(Instant, Vec<u8>)>,
    delay: Duration,
    now: Instant,
}

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes);
        self.frames.push_back((self.now + self.delay, bytes));
        Ok(())
    }
}

/// Hosts 0 and 1 with the addresses 10.0.0.1 and 10.0.0.2.
pub struct Pair {
    /// The hosts.
    pub stacks: [Stack; 2],
    /// The time.
    pub now: Instant,
    /// What each host has sent.
    wires: [Wire; 2],
}

impl Pair {
    /// Two hosts of this configuration, `delay` apart.
    pub fn new(config: &StackConfig, delay: Duration) -> Pair {
        let now = Instant::ZERO;
        let stack = |host: u8| {
            // The seed is all the randomness of a host: a fixed one gives the same run each time. Use entropy in production.
            let mut stack = Stack::new(config.clone(), [host; 32], now);
            let address = Cidr::new(Pair::address(host), 24).expect("a prefix of 24 bits");
            let interface = InterfaceConfig::new("wire", Medium::Ip).with_address(address);
            assert_eq!(stack.add_link(interface, now), Ok(LINK));
            stack
        };
        let wire = || Wire { frames: VecDeque::new(), delay, now };
        Pair { stacks: [stack(0), stack(1)], now, wires: [wire(), wire()] }
    }
    fn address(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, 1 + host)
    }
    /// A port of a host.
    pub fn endpoint(host: u8, port: u16) -> Endpoint {
        Endpoint::new(Pair::address(host), port)
    }

    /// Runs rounds until `application` is done, or nothing will ever happen again; whether it was done.
    pub fn run(&mut self, mut application: impl FnMut(&mut [Stack; 2], Instant) -> bool) -> bool {
        loop {
            for host in 0..2 {
                // 1. A batch of frames goes up. Their memory comes from the pool of the host that receives them.
                let (stack, wire) = (&mut self.stacks[host], &mut self.wires[1 - host]);
                let mut batch = Batch::new();
                while !batch.is_full() && wire.frames.front().is_some_and(|(at, _)| *at <= self.now) {
                    let Some((_, bytes)) = wire.frames.pop_front() else { break };
                    // A host without memory loses what comes.
                    let Some(mut packet) = stack.pool().take(bytes.len()) else { continue };
                    packet.append(&bytes);
                    let _ = batch.push(packet);
                }
                stack.receive(LINK, &mut batch, self.now, &mut Ignore);
                // 2. Timers that are due.
                stack.timeout(self.now, &mut Ignore);
            }
            // 3. The applications. Their calls change state and send nothing.
            if application(&mut self.stacks, self.now) {
                return true;
            }
            // 4. What is due leaves: data, acknowledgment and window in one segment.
            for (stack, wire) in self.stacks.iter_mut().zip(&mut self.wires) {
                wire.now = self.now;
                while stack.transmit(LINK, self.now, BUDGET_FRAMES, wire, &mut Ignore).more {}
            }
            // 5. Sleep: here the clock jumps to the next frame or deadline.
            let arrivals = self.wires.iter().filter_map(|wire| Some(wire.frames.front()?.0));
            let Some(next) = arrivals.chain(self.stacks.iter().filter_map(Stack::deadline)).min() else {
                return false;
            };
            self.now = self.now.max(next);
        }
    }
}
