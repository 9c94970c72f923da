//! One direction of the emulated link: a queue with a limit, a rate, a delay, and what is lost. It reads no clock.

use super::drops::Drops;
use inhost_base::{Duration, Instant};
use inhost_buf::Packet;
use std::collections::VecDeque;

/// How a direction is.
pub struct WireConfig {
    /// Bits sent in a second.
    pub rate_bits_per_second: u64,
    /// From the end of sending to arrival.
    pub delay: Duration,
    /// Bytes that may wait, what is being sent included.
    pub queue_bytes: u64,
    /// What is lost after it was sent.
    pub drops: Drops,
}

/// Counters of a wire.
#[derive(Clone, Copy, Default, Debug)]
pub struct WireCount {
    /// Packets that arrived at the other end.
    pub carried: u64,
    /// Bytes of them.
    pub carried_bytes: u64,
    /// Packets lost on the way.
    pub lost: u64,
    /// Packets for which the queue had no room.
    pub overflowed: u64,
}

/// The direction.
pub struct Wire {
    config: WireConfig,
    /// When what was taken has been sent.
    idle_at: Instant,
    flying: VecDeque<(Instant, Packet)>,
    /// What happened so far.
    pub count: WireCount,
}

impl Wire {
    /// An idle one.
    pub fn new(config: WireConfig) -> Wire {
        Wire { config, idle_at: Instant::ZERO, flying: VecDeque::new(), count: WireCount::default() }
    }
    /// Takes a packet, or gives it back when it is lost.
    pub fn offer(&mut self, packet: Packet, now: Instant) -> Result<(), Packet> {
        let length_bytes = packet.len() as u64;
        let idle_at = self.idle_at.max(now);
        let waiting_ns = u128::from(idle_at.since(now).as_nanos());
        let waiting_bytes = waiting_ns * u128::from(self.config.rate_bits_per_second) / 8_000_000_000;
        if waiting_bytes as u64 + length_bytes > self.config.queue_bytes {
            self.count.overflowed += 1;
            return Err(packet);
        }
        let sending_ns = length_bytes * 8_000_000_000 / self.config.rate_bits_per_second;
        self.idle_at = idle_at + Duration::from_nanos(sending_ns);
        // Lost on the wire: it took its time there.
        if self.config.drops.next_is_lost() {
            self.count.lost += 1;
            return Err(packet);
        }
        self.flying.push_back((self.idle_at + self.config.delay, packet));
        Ok(())
    }
    /// When the next packet arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.flying.front().map(|(at, _)| *at)
    }
    /// A packet that has arrived by `now`, and when.
    pub fn arrived(&mut self, now: Instant) -> Option<(Instant, Packet)> {
        if self.next_arrival()? > now {
            return None;
        }
        let (at, packet) = self.flying.pop_front()?;
        self.count.carried += 1;
        self.count.carried_bytes += packet.len() as u64;
        Some((at, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::kernel::cell::Loss;
    use inhost_buf::Pool;

    #[test]
    fn rate_queue_and_delay_are_kept() {
        let mut pool = Pool::new(1 << 20);
        let start = Instant::from_millis(1_000);
        let mut wire = Wire::new(WireConfig {
            rate_bits_per_second: 8_000_000,
            delay: Duration::from_millis(10),
            queue_bytes: 3_000,
            drops: Drops::new(Loss::None, 1),
        });
        let mut offer = |wire: &mut Wire, now| {
            let mut packet = pool.take(1000).unwrap();
            packet.extend(1000);
            wire.offer(packet, now).is_ok()
        };
        // A byte takes a microsecond; three packets fill the queue, and a millisecond later one has gone.
        let taken: Vec<bool> = (0..4).map(|_| offer(&mut wire, start)).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert!(offer(&mut wire, start + Duration::from_millis(1)));
        assert!(wire.arrived(start + Duration::from_micros(10_999)).is_none());
        let mut arrivals = Vec::new();
        while let Some((at, packet)) = wire.arrived(start + Duration::from_secs(1)) {
            arrivals.push(at.since(start).as_millis());
            assert_eq!(packet.len(), 1000);
        }
        assert_eq!(arrivals, [11, 12, 13, 14]);
        assert_eq!((wire.count.carried, wire.count.overflowed), (4, 1));
    }
}
