//! What a connection's capture holds, reduced to what a picture of so many columns can show.

use std::collections::VecDeque;
use std::io::Read;

use crate::capture::{CaptureError, Reader, dissect};
use crate::cause::Cause;
use crate::conversation::{Conversation, Table, Unwrapper};
use crate::report::Verdict;

/// Columns of a picture: what falls into one is drawn as one.
pub(super) const COLUMNS: usize = 900;
/// Segments whose acknowledgment is awaited, of which times are taken.
const MAX_TIMED: usize = 20_000;

/// Least and largest of what falls into a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) least: f64,
    pub(super) largest: f64,
}

/// A range for each column that has one.
#[derive(Clone, Debug)]
pub(super) struct Columns(pub(super) Vec<Option<Range>>);

impl Default for Columns {
    fn default() -> Columns {
        Columns(vec![None; COLUMNS])
    }
}

impl Columns {
    fn add(&mut self, column: usize, least: f64, largest: f64) {
        let Some(place) = self.0.get_mut(column) else { return };
        let range = place.get_or_insert(Range { least, largest });
        (range.least, range.largest) = (range.least.min(least), range.largest.max(largest));
    }
}

/// One direction of a connection as it is drawn: the direction that its verdict is about. Times in seconds from the
/// connection's first frame, numbers in bytes from its first one.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub(super) title: String,
    pub(super) diagnosis: String,
    pub(super) seconds: f64,
    pub(super) sent: Columns,
    pub(super) again: Columns,
    pub(super) sacked: Columns,
    pub(super) acknowledged: Columns,
    pub(super) edge: Columns,
    pub(super) flight: Columns,
    pub(super) window: Columns,
    pub(super) times: Columns,
    /// From, to, cause.
    pub(super) causes: Vec<(f64, f64, Cause)>,
}

/// What is known while a capture is read.
struct State {
    numbers: [Unwrapper; 2],
    scale: u8,
    next: i64,
    acknowledged: i64,
    /// Ends of segments that were sent once, and when.
    timed: VecDeque<(i64, u64)>,
}

impl Trace {
    /// Reads the connection of `verdict` from the capture that the verdict is on.
    ///
    /// Fails where [`crate::explain`] does.
    pub fn read(source: impl Read, verdict: &Verdict) -> Result<Trace, CaptureError> {
        let of = &verdict.directions[verdict.direction];
        let sender = if verdict.direction == 0 { &verdict.client } else { &verdict.server };
        let ends = [&verdict.client, &verdict.server].map(|end| end.parse().ok());
        let mut trace = Trace {
            title: format!(
                "{} to {}",
                sender,
                if verdict.direction == 0 { &verdict.server } else { &verdict.client }
            ),
            diagnosis: verdict.diagnosis.clone(),
            seconds: (verdict.duration_ns as f64 / 1e9).max(1e-9),
            ..Trace::default()
        };
        let mut state = State {
            numbers: Default::default(),
            scale: of.window_scale.unwrap_or(0),
            next: 0,
            acknowledged: 0,
            timed: VecDeque::new(),
        };
        let mut table = Table::default();
        table.keeps_spans = true;
        let mut found: Option<Box<Conversation>> = None;
        let mut reader = Reader::new(source)?;
        while let Ok(Some(frame)) = reader.next_frame() {
            if !(verdict.first_frame..=verdict.last_frame).contains(&frame.number) {
                continue;
            }
            let Ok((flow, segment)) = dissect(&frame) else { continue };
            let between = [Some(flow.source), Some(flow.destination)];
            if flow.interface != verdict.interface || !(between == ends || [between[1], between[0]] == ends) {
                continue;
            }
            table.take(flow, &segment, 2, &mut |over| found = Some(over));
            let is_sent = between[0] == ends[verdict.direction];
            trace.take(&mut state, is_sent, &segment, segment.at_ns.saturating_sub(verdict.started_ns));
        }
        table.finish(&mut |over| found = Some(over));
        if let Some(found) = found {
            let seconds = |ns: u64| ns.saturating_sub(found.started_ns) as f64 / 1e9;
            let spans = found.directions[verdict.direction].account.spans();
            trace.causes =
                spans.iter().map(|span| (seconds(span.from_ns), seconds(span.to_ns), span.cause())).collect();
        }
        Ok(trace)
    }
    fn take(&mut self, state: &mut State, is_sent: bool, segment: &crate::capture::Segment, at_ns: u64) {
        let column = (at_ns as f64 / 1e9 / self.seconds * (COLUMNS - 1) as f64) as usize;
        let flags = segment.flags;
        let length = i64::from(segment.payload_bytes) + i64::from(flags.syn()) + i64::from(flags.fin());
        if is_sent {
            let start = state.numbers[0].relative(segment.sequence, flags.syn());
            let end = start + length;
            if length > 0 && !flags.rst() {
                let (bottom, top) = (start as f64, end as f64);
                if start < state.next {
                    self.again.add(column, bottom, top);
                    state.timed.retain(|&(of, _)| of <= start);
                } else {
                    self.sent.add(column, bottom, top);
                    if state.timed.len() < MAX_TIMED {
                        state.timed.push_back((end, at_ns));
                    }
                }
                if state.next == 0 && !flags.syn() {
                    state.acknowledged = start;
                }
                state.next = state.next.max(end);
            }
        } else if flags.ack() && !flags.rst() {
            let number = state.numbers[0].near(segment.acknowledgment);
            let shift = if flags.syn() { 0 } else { state.scale.min(14) };
            let window = i64::from(segment.window) << shift;
            while let Some(&(end, sent_ns)) = state.timed.front()
                && end <= number
            {
                state.timed.pop_front();
                if end == number {
                    let milliseconds = at_ns.saturating_sub(sent_ns) as f64 / 1e6;
                    self.times.add(column, milliseconds, milliseconds);
                }
            }
            state.acknowledged = state.acknowledged.max(number);
            self.acknowledged.add(column, number as f64, number as f64);
            self.edge.add(column, (number + window) as f64, (number + window) as f64);
            self.window.add(column, window as f64, window as f64);
            for &(start, end) in segment.options.sack.iter() {
                let (start, end) = (state.numbers[0].near(start.0), state.numbers[0].near(end.0));
                if number < start && start < end && end <= state.next {
                    self.sacked.add(column, start as f64, end as f64);
                }
            }
        }
        let flight = (state.next - state.acknowledged).max(0) as f64;
        self.flight.add(column, flight, flight);
    }
}
