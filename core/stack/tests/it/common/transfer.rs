//! A stream both ways, and the check that what is delivered is what was sent.

use super::Net;
use inhost_base::Random;
use inhost_stack::{Readiness, StreamError, TcpSocketId};

/// The byte at `position` of the stream that `host` sends.
fn byte(seed: u64, host: usize, position: usize) -> u8 {
    let mixed = (position as u64 ^ seed << 20 ^ (host as u64) << 50).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// One end of a transfer.
#[derive(Debug)]
pub struct End {
    pub host: usize,
    pub socket: TcpSocketId,
    to_send: usize,
    to_receive: usize,
    sent: usize,
    received: usize,
    at_end: bool,
    pub done: bool,
}

/// A transfer between two connected sockets.
#[derive(Debug)]
pub struct Transfer {
    seed: u64,
    pub ends: [End; 2],
    random: Random,
}

impl Transfer {
    /// `bytes[i]` are sent by host `i`.
    pub fn new(seed: u64, sockets: [TcpSocketId; 2], bytes: [usize; 2]) -> Transfer {
        let end = |host: usize| End {
            host,
            socket: sockets[host],
            to_send: bytes[host],
            to_receive: bytes[1 - host],
            sent: 0,
            received: 0,
            at_end: false,
            done: false,
        };
        Transfer { seed, ends: [end(0), end(1)], random: Random::from_number(seed ^ 0x7a57) }
    }
    /// Lets both applications do what they can; true when both are done and have closed.
    pub fn work(&mut self, net: &mut Net) -> bool {
        let seed = self.seed;
        for end in &mut self.ends {
            if !end.done {
                end.write(seed, &mut self.random, net);
                end.read(seed, &mut self.random, net);
                end.finish(net);
            }
        }
        self.ends.iter().all(|end| end.done)
    }
}

impl End {
    fn write(&mut self, seed: u64, random: &mut Random, net: &mut Net) {
        let ready = net.stacks[self.host].readiness(self.socket);
        if !ready.contains(Readiness::WRITABLE) {
            return;
        }
        while self.sent < self.to_send {
            let most = 1 + random.public_below(5_000) as usize;
            let end = self.to_send.min(self.sent + most);
            let bytes: Vec<u8> = (self.sent..end).map(|at| byte(seed, self.host, at)).collect();
            let (stack, sink) = (&mut net.stacks[self.host], &mut net.sinks[self.host]);
            match stack.tcp(net.now, sink).send(self.socket, &bytes) {
                Ok(count) => self.sent += count,
                Err(StreamError::WouldBlock) => return,
                Err(why) => panic!("seed {seed}: host {} cannot send: {why}", self.host),
            }
            if self.sent == self.to_send {
                stack.tcp(net.now, sink).shutdown(self.socket).unwrap();
            }
        }
    }
    fn read(&mut self, seed: u64, random: &mut Random, net: &mut Net) {
        while !self.at_end {
            let mut place = vec![0; 1 + random.public_below(9_000) as usize];
            let (stack, sink) = (&mut net.stacks[self.host], &mut net.sinks[self.host]);
            match stack.tcp(net.now, sink).read(self.socket, &mut place) {
                Ok(0) => {
                    assert_eq!(self.received, self.to_receive, "seed {seed}: the stream ended early");
                    self.at_end = true;
                }
                Ok(count) => {
                    for (offset, &got) in place[..count].iter().enumerate() {
                        let at = self.received + offset;
                        let sent = byte(seed, 1 - self.host, at);
                        assert_eq!(got, sent, "seed {seed}: byte {at} at host {}", self.host);
                    }
                    self.received += count;
                    assert!(self.received <= self.to_receive, "seed {seed}: more than was sent");
                }
                Err(StreamError::WouldBlock) => return,
                Err(why) => panic!("seed {seed}: host {} cannot read: {why}", self.host),
            }
        }
    }
    fn finish(&mut self, net: &mut Net) {
        if self.at_end && self.sent == self.to_send {
            self.done = true;
            net.close(self.host, self.socket);
        }
    }
}
