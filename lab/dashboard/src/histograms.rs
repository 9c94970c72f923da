//! Histograms of what passes: round trips, acknowledgment times, segment sizes, service times, transmit queues.
//!
//! Heads of frames are looked at as the recorder has them, so many a second at most: where more pass, these are a sample.
//! Times are measured within an unbroken row of frames only.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;
use inhost_base::Duration;
use inhost_explain::capture::{Frame, LinkType, dissect};
use inhost_record::{Recorder, Seen};
use inhost_socket::Host;
use serde_json::{Value, json};

const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Frames of one look.
const FRAMES: usize = 256;
/// Connections whose queue is looked at in one look.
const QUEUES: usize = 16;
/// Connections that are followed; at more, all are forgotten.
const FOLLOWED: usize = 10_000;
/// An hour in nanoseconds, and more than any size; what is more counts as this.
const MOST: u64 = 3_600_000_000_000;
/// Significant digits.
const DIGITS: u8 = 2;
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// What is measured: its name, what it is, its unit.
const KINDS: [(&str, &str, &str); 5] = [
    ("round trip", "from data that the host sent to its acknowledgment", "ns"),
    ("acknowledgment time", "from data that came to the host's acknowledgment", "ns"),
    ("transmit queue", "what waits in a connection's send queue, sent or not", "bytes"),
    ("segment size", "data in a segment, both ways", "bytes"),
    ("service time", "from the last data of a request to the first of the answer", "ns"),
];
const ROUND_TRIP: usize = 0;
const ACKNOWLEDGMENT: usize = 1;
const QUEUE: usize = 2;
const SIZE: usize = 3;
const SERVICE: usize = 4;

/// The histograms of a host. Clones are the same.
#[derive(Clone)]
pub(crate) struct Histograms(Arc<Mutex<Measured>>);

struct Measured {
    histograms: Vec<Histogram<u64>>,
    flows: HashMap<[SocketAddr; 2], Flow>,
    next_frame: u64,
    /// Whether what the recorder held at the beginning is measured.
    is_caught_up: bool,
}

/// A connection from the host's side.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// The end of a segment that was sent, and when: its acknowledgment is awaited.
    timed: Option<(u32, u64)>,
    /// The end of what was sent.
    sent_to: Option<u32>,
    /// The end of data that came and is not acknowledged, and when the first of it came.
    came: Option<(u32, u64)>,
    /// When the last data came, until something is sent.
    asked_ns: Option<u64>,
}

impl Histograms {
    /// Measures from now on, and first what the recorder holds.
    pub(crate) fn start(host: &Host, recorder: &Recorder) -> Histograms {
        let histograms = KINDS.iter().filter_map(|_| Histogram::new_with_max(MOST, DIGITS).ok()).collect();
        let (mut from, held_to) = (recorder.oldest_frame(), recorder.next_frame());
        let measured =
            Measured { histograms, flows: HashMap::new(), next_frame: from, is_caught_up: from == held_to };
        let all = Histograms(Arc::new(Mutex::new(measured)));
        let (clock, recorder, kept) = (host.clone(), recorder.clone(), all.clone());
        host.spawn(async move {
            let mut place = 0;
            loop {
                let is_past = from < held_to;
                // Time goes on between rounds only.
                clock.sleep(if is_past { Duration::from_nanos(1) } else { LOOK_EVERY }).await;
                let queues = queues(&clock, &mut place);
                let latest = recorder.next_frame().saturating_sub(FRAMES as u64);
                let seen = recorder.heads(if is_past { from } else { from.max(latest) }, FRAMES);
                from = seen.last().map_or(from.max(held_to), |last| last.number + 1);
                if seen.is_empty() && queues.is_empty() && !is_past {
                    continue;
                }
                let (kept, is_caught_up) = (kept.clone(), from >= held_to);
                blocking::unblock(move || kept.add(&seen, &queues, is_caught_up)).await;
            }
        })
        .detach();
        all
    }
    /// Waits until what the recorder held at the beginning is measured.
    pub(crate) async fn caught_up(&self, host: &Host) {
        while !self.lock().is_caught_up {
            host.sleep(LOOK_AGAIN).await;
        }
    }
    fn lock(&self) -> MutexGuard<'_, Measured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn add(&self, seen: &[Seen], queues: &[u64], is_caught_up: bool) {
        let mut measured = self.lock();
        measured.is_caught_up = is_caught_up;
        queues.iter().for_each(|bytes| measured.record(QUEUE, *bytes));
        seen.iter().for_each(|frame| measured.frame(frame));
    }
    /// All of them.
    pub(crate) fn json(&self) -> Value {
        let measured = self.lock();
        let all = KINDS.iter().zip(&measured.histograms).map(|((name, about, unit), of)| {
            let percentiles = PERCENTILES.iter().filter(|&&at| has_percentile(of.len(), at));
            let percentiles = percentiles.map(|&at| json!([at, of.value_at_percentile(at)]));
            let buckets = of.iter_log(1, 2.0).filter(|bucket| bucket.count_since_last_iteration() > 0);
            let buckets = buckets.map(|bucket| {
                let to = bucket.value_iterated_to() + 1;
                json!([to / 2, to, bucket.count_since_last_iteration()])
            });
            json!({
                "name": name, "about": about, "unit": unit, "count": of.len(), "min": of.min(), "max": of.max(), "mean": of.mean(),
                "percentiles": percentiles.collect::<Vec<_>>(), "buckets": buckets.collect::<Vec<_>>(),
            })
        });
        json!({ "histograms": all.collect::<Vec<_>>() })
    }
    /// For each: name, unit, how many values at most each bound, how many in all, and their sum.
    pub(crate) fn each(&self, mut tell: impl FnMut(&str, &str, &dyn Fn(u64) -> u64, u64, f64)) {
        let measured = self.lock();
        for ((name, _, unit), of) in KINDS.iter().zip(&measured.histograms) {
            let count = of.len();
            tell(name, unit, &|bound| of.count_between(0, bound), count, of.mean() * count as f64);
        }
    }
}

/// Whether there are enough values for a percentile: one above it at least.
fn has_percentile(count: u64, at: f64) -> bool {
    count as f64 * (100.0 - at) >= 100.0 - 1e-6
}

/// Bytes that wait in the send queues of some connections.
fn queues(host: &Host, place: &mut usize) -> Vec<u64> {
    host.with_stack(|stack, now| {
        let places = stack.instruments().socket_places();
        let mut found = Vec::new();
        for _ in 0..QUEUES.min(places) {
            *place = (*place + 1) % places;
            let info = stack.instruments().socket_at(*place, now);
            found.extend(info.filter(|info| info.tcp.is_some()).map(|info| info.send_queue as u64));
        }
        found
    })
}

impl Measured {
    fn record(&mut self, kind: usize, value: u64) {
        if let Some(histogram) = self.histograms.get_mut(kind) {
            histogram.saturating_record(value);
        }
    }
    fn frame(&mut self, seen: &Seen) {
        if seen.number != self.next_frame || self.flows.len() > FOLLOWED {
            self.flows.clear();
        }
        self.next_frame = seen.number + 1;
        let link = if seen.is_ethernet { LinkType::Ethernet } else { LinkType::Ip };
        let frame = Frame {
            number: seen.number,
            at_ns: seen.at_unix_ns,
            interface: 0,
            link,
            bytes: &seen.head,
            original_bytes: seen.frame_bytes,
            is_inbound: Some(!seen.is_sent),
            comment: None,
        };
        let Ok((flow, segment)) = dissect(&frame) else { return };
        let bytes = segment.payload_bytes;
        if bytes > 0 {
            self.record(SIZE, u64::from(bytes));
        }
        let now_ns = seen.at_unix_ns;
        let end = segment.sequence.wrapping_add(bytes);
        let acknowledged = segment.flags.ack().then_some(segment.acknowledgment);
        let ends =
            if seen.is_sent { [flow.source, flow.destination] } else { [flow.destination, flow.source] };
        let of = self.flows.entry(ends).or_default();
        let mut found = Vec::new();
        if seen.is_sent {
            if let (Some((to, since_ns)), Some(acknowledged)) = (of.came, acknowledged)
                && is_at_or_after(acknowledged, to)
            {
                found.push((ACKNOWLEDGMENT, now_ns.saturating_sub(since_ns)));
                of.came = None;
            }
            if bytes > 0 {
                // What is sent again is not timed (Karn).
                let is_new = of.sent_to.is_none_or(|sent_to| is_at_or_after(segment.sequence, sent_to));
                of.timed = if is_new { of.timed.or(Some((end, now_ns))) } else { None };
                of.sent_to = Some(
                    of.sent_to
                        .map_or(end, |sent_to| if is_at_or_after(end, sent_to) { end } else { sent_to }),
                );
                found.extend(of.asked_ns.take().map(|asked_ns| (SERVICE, now_ns.saturating_sub(asked_ns))));
            }
        } else {
            if let (Some((to, since_ns)), Some(acknowledged)) = (of.timed, acknowledged)
                && is_at_or_after(acknowledged, to)
            {
                found.push((ROUND_TRIP, now_ns.saturating_sub(since_ns)));
                of.timed = None;
            }
            if bytes > 0 {
                of.came = Some((end, of.came.map_or(now_ns, |(_, since_ns)| since_ns)));
                of.asked_ns = Some(now_ns);
            }
        }
        found.into_iter().for_each(|(kind, ns)| self.record(kind, ns));
    }
}

/// Whether one sequence number is at or after another.
fn is_at_or_after(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) >= 0
}
