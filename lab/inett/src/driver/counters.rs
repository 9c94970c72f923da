//! What streams count while they run.

use std::cell::Cell;
use std::rc::Rc;

use crate::iperf3::Arrivals;

/// Of one stream.
#[derive(Debug, Default)]
pub struct Counter {
    /// Bytes sent or received.
    pub bytes: Cell<u64>,
    /// Whole writes or datagrams sent.
    pub blocks: Cell<u64>,
    /// Writes that had to wait.
    pub waits: Cell<u64>,
    /// Datagrams received.
    pub arrivals: Cell<Arrivals>,
    /// Bytes, datagrams and losses of the warm-up.
    pub omitted: Cell<Omitted>,
    /// Whether the connection was closed, at a server of transactions.
    pub is_over: Cell<bool>,
}

/// What the warm-up had.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Omitted {
    pub bytes: u64,
    pub packets: u64,
    pub lost: u64,
    pub out_of_order: u64,
}

impl Counter {
    /// The warm-up is over: what was counted so far is left out.
    pub fn omit(&self) {
        let arrivals = self.arrivals.get();
        self.omitted.set(Omitted {
            bytes: self.bytes.get(),
            packets: arrivals.highest.max(self.blocks.get()),
            lost: arrivals.lost,
            out_of_order: arrivals.out_of_order,
        });
        let mut measured = arrivals;
        measured.jitter_s = 0.0;
        self.arrivals.set(measured);
    }
    /// A number that changes with each byte, write and datagram.
    pub fn activity(&self) -> u64 {
        self.bytes.get().wrapping_add(self.blocks.get())
    }
    /// Bytes after the warm-up.
    pub fn measured_bytes(&self) -> u64 {
        self.bytes.get() - self.omitted.get().bytes
    }
}

/// The end of a test by bytes or writes, of all streams together, and where it stands. Sent and received are counted
/// apart: either reaches the end.
#[derive(Debug, Default)]
pub struct Total {
    /// Bytes and writes at which it ends; 0 for none.
    pub end: [u64; 2],
    /// Whether the warm-up is not over.
    pub is_warming: Cell<bool>,
    sent: [Cell<u64>; 2],
    received: [Cell<u64>; 2],
}

impl Total {
    /// An end by bytes or writes.
    pub fn new(bytes: Option<u64>, blocks: Option<u64>, is_warming: bool) -> Rc<Total> {
        Rc::new(Total {
            end: [bytes.unwrap_or(0), blocks.unwrap_or(0)],
            is_warming: Cell::new(is_warming),
            ..Total::default()
        })
    }
    /// Counts; true once the end is reached.
    pub fn take(&self, is_sent: bool, bytes: u64, blocks: u64) -> bool {
        if self.is_warming.get() || self.end == [0, 0] {
            return false;
        }
        let counts = if is_sent { &self.sent } else { &self.received };
        counts[0].set(counts[0].get() + bytes);
        counts[1].set(counts[1].get() + blocks);
        (0..2).any(|which| self.end[which] != 0 && counts[which].get() >= self.end[which])
    }
}

/// When the next write of a paced stream may leave.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    bits_per_second: u64,
    bits: u128,
}

impl Pace {
    /// A rate; 0 is none.
    pub fn new(bits_per_second: u64) -> Pace {
        Pace { bits_per_second, bits: 0 }
    }
    /// Counts a write.
    pub fn took(&mut self, bytes: usize) {
        self.bits += bytes as u128 * 8;
    }
    /// Nanoseconds after the begin at which the next write is due; `None` without a rate.
    pub fn due_ns(&self) -> Option<u64> {
        let rate = u128::from(self.bits_per_second);
        (rate != 0).then(|| u64::try_from(self.bits * 1_000_000_000 / rate).unwrap_or(u64::MAX))
    }
}
