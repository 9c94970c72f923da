//! One direction of the connection as its sender had it, from the emulator's log: no inference, every fate is known.

use crate::explain::path::middlebox::Why;
use crate::explain::path::{Passed, Plan};
use crate::explain::stacks::CLIENT_PORT;
use inhost_base::{Duration, Instant};

/// A segment that left the sender.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// Offset of its first byte in the stream, and of the byte behind the last.
    pub bytes: [i64; 2],
    /// It opens or closes the stream.
    pub syn: bool,
    /// See above.
    pub fin: bool,
    /// Why it was lost.
    pub lost: Option<Why>,
    /// When it arrived.
    pub arrived: Option<Instant>,
}

impl Sent {
    /// Whether it has data.
    pub fn has_data(&self) -> bool {
        self.bytes[1] > self.bytes[0]
    }
}

/// A segment that arrived at the sender.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// When.
    pub at: Instant,
    /// Offset of the byte that is expected next.
    pub acknowledged: i64,
    /// The offset up to which it allows to send.
    pub edge: i64,
    /// It has selective acknowledgments.
    pub sack: bool,
    /// It has data of the peer.
    pub data: bool,
    /// It resets the connection.
    pub reset: bool,
    /// It opens the stream of the peer.
    pub syn: bool,
}

/// One direction.
pub struct Flow {
    /// What left, by time.
    pub sent: Vec<Sent>,
    /// What came, by time.
    pub came: Vec<Came>,
    /// When the bottleneck was busy, by time, and the time that it was busy before each.
    busy: Vec<(Instant, Instant, u64)>,
    /// The largest segment: what the peer announced, less the timestamps.
    pub mss: i64,
    /// The least round trip.
    pub round_trip: Duration,
    /// The first packet of the connection leaves, and the last one leaves or arrives.
    pub span: [Instant; 2],
}

impl Flow {
    /// The direction `way` of the connection under test; none when it never began.
    pub fn of(log: &[Passed], plan: &Plan, way: usize) -> Option<Flow> {
        let ours = || log.iter().filter(|passed| passed.head.ports.contains(&CLIENT_PORT));
        let syn = |of: usize| ours().find(|passed| passed.way == of && passed.head.flags.syn());
        // A side that has not answered a SYN has no number yet.
        let first = syn(way).map_or(0, |passed| passed.head.sequence.wrapping_add(1));
        let offset = |number: u32| i64::from(number.wrapping_sub(first) as i32);
        let scale = |of: usize| syn(of).and_then(|passed| passed.came.options.window_scale);
        let shift = scale(0).and(scale(1)).and(scale(1 - way)).unwrap_or(0);
        let sent = ours().filter(|passed| passed.way == way && !passed.is_made).map(|passed| {
            let head = &passed.head;
            let begin = offset(head.sequence.wrapping_add(u32::from(head.flags.syn())));
            Sent {
                at: passed.left,
                bytes: [begin, begin + i64::from(head.payload_bytes)],
                syn: head.flags.syn(),
                fin: head.flags.fin(),
                lost: passed.lost,
                arrived: passed.arrived.filter(|_| !passed.damaged),
            }
        });
        let sent: Vec<Sent> = sent.collect();
        let back = ours().filter(|passed| passed.way != way && !passed.damaged);
        let mut came: Vec<Came> = back
            .filter_map(|passed| {
                let (at, head) = (passed.arrived?, &passed.came);
                let acknowledged = if head.flags.ack() { offset(head.acknowledgment) } else { 0 };
                let window = i64::from(head.window) << if head.flags.syn() { 0 } else { shift };
                Some(Came {
                    at,
                    acknowledged,
                    edge: acknowledged + window,
                    sack: !head.options.sack.as_slice().is_empty(),
                    data: head.payload_bytes > 0,
                    reset: head.flags.rst(),
                    syn: head.flags.syn(),
                })
            })
            .collect();
        came.sort_by_key(|came| came.at);
        let mut busy: Vec<_> =
            log.iter().filter(|passed| passed.way == way).filter_map(|passed| passed.sent).collect();
        busy.sort();
        let mut before_ns = 0;
        let busy = busy.into_iter().map(|(begin, end)| {
            let busy_ns = end.since(begin).as_nanos();
            before_ns += busy_ns;
            (begin, end, before_ns - busy_ns)
        });
        let announced = syn(1 - way).and_then(|passed| passed.came.options.mss).unwrap_or(1460);
        let has_timestamps =
            [0, 1].iter().all(|of| syn(*of).is_some_and(|passed| passed.came.options.timestamps.is_some()));
        let mss = i64::from(announced) - if has_timestamps { 12 } else { 0 };
        let times = || ours().flat_map(|passed| [Some(passed.left), passed.arrived]).flatten();
        Some(Flow {
            span: [times().min()?, times().max()?],
            mss: mss.clamp(1, 1460),
            round_trip: plan.round_trip(),
            busy: busy.collect(),
            sent,
            came,
        })
    }
    /// The receiver vanished: what it had not acknowledged when it did was lost with it.
    pub fn receiver_vanished(&mut self) {
        let last = self.came.iter().map(|came| came.acknowledged).max().unwrap_or(0);
        for sent in self.sent.iter_mut().filter(|sent| sent.bytes[1] > last) {
            sent.arrived = None;
        }
    }
    /// The part of the time between two instants for which the bottleneck was busy.
    pub fn used(&self, from: Instant, to: Instant) -> f64 {
        let until = |at: Instant| -> u64 {
            match self.busy.partition_point(|(begin, ..)| *begin < at).checked_sub(1) {
                None => 0,
                Some(place) => {
                    let (begin, end, before_ns) = self.busy[place];
                    before_ns + at.min(end).since(begin).as_nanos()
                }
            }
        };
        let whole = to.since(from).as_nanos().max(1);
        until(to).saturating_sub(until(from)) as f64 / whole as f64
    }
}
