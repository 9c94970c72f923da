//! What moves the time, and what passes the link.

use super::World;
use crate::outbound::Outbound;
use inhost_base::{Duration, Instant, IpAddr};
use inhost_buf::Batch;
use inhost_event::Ignore;
use libc::ENOBUFS;

/// Steps of one wait; beyond it the rest of the time passes with nothing happening.
const STEPS_PER_WAIT: usize = 1_000_000;
/// How long nothing may be sent, in virtual time, before the tool is told that nothing comes. Longer than the longest
/// pause that a backed-off retransmission makes.
const SILENCE: Duration = Duration::from_secs(130);
/// The same while no timer is running, so that nothing can come.
const IDLE_SILENCE: Duration = Duration::from_secs(2);

impl World {
    /// The next moment at which something happens by itself.
    pub fn next_event(&self) -> Option<Instant> {
        match (self.stack.deadline(), self.blocked.deadline()) {
            (Some(stack), Some(call)) => Some(stack.min(call)),
            (stack, call) => stack.or(call),
        }
    }
    /// Lets the time pass until `until`, with everything that happens on the way at its own time.
    pub fn advance_to(&mut self, until: Instant) {
        for _ in 0..STEPS_PER_WAIT {
            match self.next_event() {
                Some(moment) if moment <= until => {
                    self.now = self.now.max(moment);
                    self.run_until_idle();
                }
                _ => break,
            }
        }
        self.now = self.now.max(until);
    }
    /// A datagram from the tool.
    pub fn take(&mut self, datagram: &[u8]) -> Result<(), i32> {
        if let Some(destination) = destination(datagram) {
            self.learn(destination);
        }
        let mut packet = self.stack.pool().take(datagram.len()).ok_or(ENOBUFS)?;
        packet.append(datagram);
        let mut batch = Batch::new();
        if let Err(packet) = batch.push(packet) {
            self.stack.pool().give(packet);
        }
        self.stack.receive(self.link, &mut batch, self.now, &mut Ignore);
        Ok(())
    }
    /// Lets time pass until a datagram has left.
    pub fn await_outbound(&mut self) -> Option<Outbound> {
        let limit = self.now + SILENCE;
        loop {
            if let Some(outbound) = self.outbound.pop_front() {
                return Some(outbound);
            }
            match self.next_event().filter(|&moment| moment <= limit) {
                Some(moment) => self.advance_to(moment),
                None => {
                    self.advance_to(self.now + IDLE_SILENCE);
                    return self.outbound.pop_front();
                }
            }
        }
    }
}

/// Where a datagram goes to, when it looks like one.
fn destination(datagram: &[u8]) -> Option<IpAddr> {
    match datagram.first()? >> 4 {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(datagram.get(16..20)?).ok()?)),
        6 => Some(IpAddr::from(<[u8; 16]>::try_from(datagram.get(24..40)?).ok()?)),
        _ => None,
    }
}
