//! One end of a connection as the frames show it: data received and sent.

use inhost_base::{Duration, Instant, Sequence};
use inhost_wire::tcp::{Flags, TcpOptions};

use super::received::{Received, position};
use super::segment::SegmentView;
use crate::ecn::Ecn;

/// Longest time for which data may go unacknowledged by a receiver that has it in order (RFC 9293 §3.8.6.3).
const ACKNOWLEDGMENT_LIMIT: Duration = Duration::from_millis(500);
/// Room for clocks that are wrong, and for what rounds take.
const CLOCK_SLACK: Duration = Duration::from_millis(60);
/// Longest time for which unacknowledged data may go unrepeated: the largest time-out of any profile (Linux's 120 s), and
/// slack.
const REPETITION_LIMIT: Duration = Duration::from_secs(125);
/// Connections between the same ends that are remembered.
const INCARNATIONS: usize = 8;

/// The violation about data that goes again after it was acknowledged.
pub(super) const REPEATS: &str = "repeats what was acknowledged";

/// State of one end, from received and sent segments.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Data received after the newest SYN.
    newest: Option<Received>,
    own: Option<Own>,
    /// The same for each SYN before, the oldest first; an old one may come again after another connection.
    older: Vec<Received>,
    /// Data that is in order waits for its acknowledgment since then.
    owes_since: Option<Instant>,
    /// Data of its own waits for an acknowledgment; it last did something about it then.
    waits_since: Option<Instant>,
    /// Segments that it sent.
    pub says_count: u64,
}

/// Data sent since its SYN. Positions count from there.
#[derive(Debug)]
struct Own {
    initial: Sequence,
    scale: Option<u8>,
    timestamps: bool,
    asks_for_ecn: bool,
    /// Everything before was sent.
    sent: u64,
    /// Position of its FIN.
    fin_at: Option<u64>,
    /// Everything before was acknowledged by something that it cannot have refused.
    acknowledged: u64,
    /// Everything before was acknowledged by something that came.
    maybe_acknowledged: u64,
    /// The furthest that the peer has let it send.
    may_send: u64,
    /// The furthest that it has let the peer send, by the peer's positions.
    edge: Option<u64>,
    /// Highest acknowledgment sent, in the peer's positions.
    acknowledges: u64,
    /// In-order data within its window, in the peer's positions: it must have accepted that.
    must_have: u64,
    last_timestamp: Option<u32>,
    /// It said something after its SYN.
    is_open: bool,
    /// A CE mark was received.
    saw_congestion: bool,
    /// ECE is due.
    owes_echo: bool,
    /// The peer has ended its stream.
    peer_ended: bool,
    ecn: bool,
}

impl Own {
    fn new(segment: &SegmentView<'_>, options: &TcpOptions) -> Own {
        Own {
            initial: segment.sequence,
            scale: options.window_scale.map(|scale| scale.min(14)),
            timestamps: segment.timestamps.is_some(),
            asks_for_ecn: segment.flags.contains(Flags::ECE),
            sent: 0,
            fin_at: None,
            acknowledged: 0,
            maybe_acknowledged: 0,
            may_send: 0,
            edge: None,
            acknowledges: 0,
            must_have: 0,
            last_timestamp: None,
            is_open: false,
            saw_congestion: false,
            owes_echo: false,
            peer_ended: false,
            ecn: false,
        }
    }
}

impl Flow {
    fn all_received(&self) -> impl Iterator<Item = &Received> {
        self.newest.iter().chain(&self.older)
    }
    /// Something came that was whole.
    pub fn receives(&mut self, segment: &SegmentView<'_>, now: Instant) {
        if segment.flags.rst() {
            return;
        }
        if segment.flags.syn() && self.all_received().all(|received| received.initial != segment.sequence) {
            let new = Received::new(segment.sequence, segment.timestamps.is_some(), &segment.options());
            self.older.extend(self.newest.replace(new));
            if self.older.len() >= INCARNATIONS {
                self.older.remove(0);
            }
        }
        let length = u64::from(segment.sequence_length());
        for received in &mut self.older {
            if let Some(start) = received.position(segment.sequence) {
                received.add(start, start + length);
            }
        }
        let Some(received) = &mut self.newest else { return };
        let (mut is_in_order, mut is_newer) = (false, true);
        if let Some(start) = received.position(segment.sequence) {
            is_in_order = start == received.contiguous && !segment.flags.syn();
            is_newer = received.is_newer(segment.timestamps);
            received.add(start, start + length);
        }
        let (received, Some(own)) = (&*received, &mut self.own) else { return };
        let is_acceptable = own.receives(segment, received, is_in_order, is_newer);
        if let Some(end) = received.position(segment.sequence_end())
            && is_acceptable
            && end.saturating_sub(length) <= own.must_have
            && own.edge.is_some_and(|edge| end <= edge)
        {
            own.must_have = own.must_have.max(end);
        }
        if own.is_open && own.must_have > own.acknowledges && self.owes_since.is_none() {
            self.owes_since = Some(now);
        }
        if own.maybe_acknowledged >= own.sent {
            self.waits_since = None;
        }
    }
    /// It says something.
    pub fn says(&mut self, segment: &SegmentView<'_>, now: Instant) -> Result<(), &'static str> {
        if segment.flags.rst() {
            // It knows nothing of a connection any more.
            (self.owes_since, self.waits_since) = (None, None);
            return Ok(());
        }
        if segment.flags.syn() && self.own.as_ref().is_none_or(|own| own.initial != segment.sequence) {
            // Another connection between the same ends.
            self.own = Some(Own::new(segment, &segment.options()));
            (self.owes_since, self.waits_since) = (None, None);
        }
        let Some(own) = &mut self.own else { return Err("speaks before its SYN") };
        let received = acknowledged_by(&self.newest, &self.older, segment, own)?;
        own.says_numbers(segment, received)?;
        if let Some(received) = received {
            own.says_of_the_peer(segment, received)?;
            own.must_have = own.must_have.max(own.acknowledges);
            if own.acknowledges >= own.must_have {
                self.owes_since = None;
            }
        }
        self.waits_since = (own.sent > own.maybe_acknowledged).then_some(now);
        Ok(())
    }
    /// Checks deadlines: acknowledgment and retransmission. `busy_at` is when its host last could not send.
    pub fn is_late(&self, now: Instant, busy_at: Instant) -> Option<&'static str> {
        let late =
            |since: Option<Instant>, limit| since.is_some_and(|since| now.since(since.max(busy_at)) > limit);
        if late(self.owes_since, ACKNOWLEDGMENT_LIMIT + CLOCK_SLACK) {
            return Some("does not acknowledge what it has in order");
        }
        late(self.waits_since, REPETITION_LIMIT).then_some("does not repeat what is not acknowledged")
    }
    /// A violation of lateness is made once.
    pub fn forgive(&mut self) {
        (self.owes_since, self.waits_since) = (None, None);
    }
}

/// Which SYN's stream the segment acknowledges; `None` without an acknowledgment.
fn acknowledged_by<'a>(
    newest: &'a Option<Received>,
    older: &'a [Received],
    segment: &SegmentView<'_>,
    own: &Own,
) -> Result<Option<&'a Received>, &'static str> {
    if !segment.flags.ack() {
        return if segment.flags.syn() || !own.is_open { Ok(None) } else { Err("does not acknowledge") };
    }
    let Some(newest) = newest else { return Err("acknowledges where nothing came") };
    let came = |received: &&Received| {
        received.position(segment.acknowledgment).is_some_and(|at| at > 0 && at <= received.contiguous)
    };
    if came(&newest) {
        return Ok(Some(newest));
    }
    older.iter().rev().find(came).map(Some).ok_or("acknowledges what was not received")
}

impl Own {
    /// Whether the segment is not older than others (RFC 7323 §5: then it may be refused).
    fn receives(
        &mut self,
        segment: &SegmentView<'_>,
        received: &Received,
        is_in_order: bool,
        is_newer: bool,
    ) -> bool {
        // RFC 5961 §5.2: what acknowledges too little is refused, too.
        let mut is_current = false;
        if segment.flags.ack()
            && let Some(at) = position(self.initial, self.sent, segment.acknowledgment)
            && at <= self.sent
        {
            is_current = at >= self.maybe_acknowledged;
            self.maybe_acknowledged = self.maybe_acknowledged.max(at);
            let shift = self.peer_shift(received, segment.flags.syn());
            self.may_send = self.may_send.max(at + (u64::from(segment.window) << shift));
            if (is_in_order || segment.flags.syn()) && is_newer {
                self.acknowledged = self.acknowledged.max(at);
            }
        }
        let offers_ecn = segment.flags.contains(Flags::ECE);
        if segment.flags.syn() && offers_ecn && self.asks_for_ecn {
            self.ecn = true;
        }
        // Ahead of a hole it counts as well, if it was kept.
        if segment.flags.contains(Flags::CWR) {
            self.owes_echo = false;
        }
        self.peer_ended |= segment.flags.fin();
        if segment.ecn == Ecn::Congested && !segment.flags.syn() {
            self.saw_congestion = true;
            self.owes_echo |= is_in_order && is_newer && is_current && self.ecn && segment.payload_bytes > 0;
        }
        is_newer && is_current
    }
    /// By how much the peer's windows are shifted.
    fn peer_shift(&self, received: &Received, is_syn: bool) -> u8 {
        match (self.scale, received.scale) {
            (Some(_), Some(scale)) if !is_syn => scale,
            _ => 0,
        }
    }
    /// Numbers and sizes of what it sends itself.
    fn says_numbers(
        &mut self,
        segment: &SegmentView<'_>,
        received: Option<&Received>,
    ) -> Result<(), &'static str> {
        let Some(start) = position(self.initial, self.sent, segment.sequence) else {
            return Err("uses a number that is nowhere near its stream");
        };
        let end = start + u64::from(segment.sequence_length());
        let is_data = end > start;
        let is_new = end > self.sent;
        if start > self.sent {
            return Err("leaves out numbers");
        }
        if let Some(received) = received {
            // A SYN that comes again after more has passed keeps its own place.
            self.sizes(segment, received, end)?;
            // RFC 3168 §6.1.6: the receiver discards the byte, and a CE mark would be lost.
            if is_data && start >= self.may_send && segment.ecn != Ecn::NotCapable {
                return Err("lets a probe of a closed window be marked");
            }
        }
        if is_data && start > 0 {
            // One byte before what is acknowledged is a probe that asks for an acknowledgment (RFC 9293 §3.8.4).
            if end <= self.acknowledged && end - start > 1 {
                return Err(REPEATS);
            }
        } else if !is_data && start + 1 < self.acknowledged {
            return Err("uses an old number");
        }
        if self.fin_at.is_some_and(|fin| end > fin + 1 || (segment.flags.fin() && end != fin + 1)) {
            return Err("goes on after its FIN");
        }
        if segment.flags.fin() {
            self.fin_at = Some(end - 1);
        }
        self.marks(segment, is_data && is_new)?;
        self.sent = self.sent.max(end);
        if !segment.flags.syn() {
            self.is_open = true;
        }
        Ok(())
    }
    /// Window and segment size of the peer.
    fn sizes(&self, segment: &SegmentView<'_>, received: &Received, end: u64) -> Result<(), &'static str> {
        if segment.flags.syn() {
            return Ok(());
        }
        // A probe of a closed window goes one byte beyond (RFC 9293 §3.8.6.1).
        if end > self.may_send + 1 && end > self.sent {
            return Err("overruns the window");
        }
        // RFC 9293 §3.7.1 and RFC 6691: what the peer announced is without options.
        let largest = received.mss.map_or(1220, usize::from);
        if segment.payload_bytes > 0 && segment.payload_bytes + segment.option_bytes > largest.max(64) {
            return Err("sends more than the peer's largest segment");
        }
        Ok(())
    }
    /// RFC 3168 §6.1: who may be marked, and who may speak of marks.
    fn marks(&mut self, segment: &SegmentView<'_>, is_new_data: bool) -> Result<(), &'static str> {
        if segment.flags.syn() {
            let answers = segment.flags.ack() && segment.flags.contains(Flags::ECE);
            self.ecn |= answers;
            return if segment.ecn == Ecn::NotCapable {
                Ok(())
            } else {
                Err("sends a SYN that may be marked")
            };
        }
        if segment.ecn != Ecn::NotCapable && !(self.ecn && is_new_data && segment.payload_bytes > 0) {
            return Err("lets be marked what is not new data of a connection that agreed on it");
        }
        let (echoes, reduced) = (segment.flags.contains(Flags::ECE), segment.flags.contains(Flags::CWR));
        if echoes && !(self.ecn && self.saw_congestion) {
            return Err("echoes congestion of which it has not heard");
        }
        // CWR needs no mark before it (RFC 3168 §6.1.2): a loss may be known, or its own device be full, before a frame
        // shows it.
        if reduced && !self.ecn {
            return Err("says that it reduced its window to who never asked for that");
        }
        // Where both streams have ended nobody sends any more who could go slower.
        let both_ended = self.peer_ended && self.fin_at.is_some();
        if self.owes_echo && !echoes && segment.flags.ack() && !both_ended {
            return Err("does not echo congestion");
        }
        Ok(())
    }
    /// Checks acknowledgment, SACK, timestamps and window.
    fn says_of_the_peer(
        &mut self,
        segment: &SegmentView<'_>,
        received: &Received,
    ) -> Result<(), &'static str> {
        let Some(at) = received.position(segment.acknowledgment) else { return Ok(()) };
        self.acknowledges = self.acknowledges.max(at);
        self.blocks(segment, received, at)?;
        self.times(segment, received)?;
        if segment.flags.syn() && self.edge.is_some() {
            // A SYN that goes again, after more was offered than its window can say.
            return Ok(());
        }
        let shift = if segment.flags.syn() || received.scale.is_none() { 0 } else { self.scale.unwrap_or(0) };
        let edge = at + (u64::from(segment.window) << shift);
        let before = self.edge.unwrap_or(edge);
        self.edge = Some(edge.max(before));
        // RFC 9293 §3.8.6, but for a rounding to its unit (RFC 7323 §2.4).
        if edge < before && before - edge >= 1 << shift {
            return Err("shrinks its window");
        }
        Ok(())
    }
    /// RFC 2018 §4 and RFC 2883 §4.
    fn blocks(
        &self,
        segment: &SegmentView<'_>,
        received: &Received,
        acknowledged: u64,
    ) -> Result<(), &'static str> {
        if !segment.has_other_options() {
            return Ok(());
        }
        let blocks = segment.options().sack;
        if !blocks.is_empty() && !received.sack_permitted {
            return Err("reports by SACK to who does not understand it");
        }
        for (index, &(start, end)) in blocks.iter().enumerate() {
            let (Some(start), Some(end)) = (received.position(start), received.position(end)) else {
                return Err("reports by SACK what is nowhere near");
            };
            if start >= end || start == 0 {
                return Err("reports an empty block by SACK");
            }
            if !received.has(start, end) {
                return Err("reports by SACK what was not received");
            }
            // Only the first may be of what came twice.
            if index > 0 && start <= acknowledged {
                return Err("reports by SACK what it acknowledges");
            }
        }
        Ok(())
    }
    /// RFC 7323 §3.2 and §4.
    fn times(&mut self, segment: &SegmentView<'_>, received: &Received) -> Result<(), &'static str> {
        let agreed = self.timestamps && received.timestamps;
        match segment.timestamps {
            None if agreed && !segment.flags.syn() => Err("leaves out timestamps that were agreed on"),
            Some(_) if !agreed && !segment.flags.syn() => Err("sends timestamps that were not agreed on"),
            Some((value, echo)) if agreed && !segment.flags.syn() => {
                let before = self.last_timestamp.replace(value).unwrap_or(value);
                if (value.wrapping_sub(before) as i32) < 0 {
                    return Err("lets its timestamps go back");
                }
                let newest = received.newest_timestamp.unwrap_or(echo);
                if (newest.wrapping_sub(echo) as i32) < 0 {
                    return Err("echoes a timestamp that did not come");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
