//! The connection's hot state and what its caller may do with it.

use crate::buffers::Buffers;
use crate::history::History;
use crate::ledger::Accounts;
use crate::marks::Marks;
use crate::outcome::{Changes, Outcome, SegmentOutput};
use crate::phase::Allows;
use crate::promptness::Promptness;
use crate::recovery::Recovery;
use crate::rtt::RoundTrip;
use crate::transmit::Next;
use crate::{
    Config, ConnectionError, Ecn, Environment, FastOpenState, Header, Info, Ledgers, RecoveryState, SoftError,
};
use inhost_base::{Duration, Instant, Sequence};
use inhost_buf::{Packet, Pool};
use inhost_congestion::Congestion;
use inhost_event::{CauseChanged, Disconnected, Event, Mask, PhaseChanged, SendCause, TcpPhase};
use std::sync::Arc;

/// Probes after which a closed window is no hiccup of the application behind it.
const PROBES_OF_A_CLOSED_WINDOW: u8 = 3;

/// One TCP connection of RFC 9293, from its SYN to the end of TIME-WAIT. A listener is the stack's.
///
/// It is driven by its owner, in rounds: [`receive`](Connection::receive) for every segment that arrived; then
/// [`timeout`](Connection::timeout) when [`deadline`](Connection::deadline) has come; then the application's calls;
/// and at the end of the round [`transmit`](Connection::transmit) once, when
/// [`wants_transmit`](Connection::wants_transmit). Nothing else makes a segment, so that what the round has made due
/// (acknowledgment, reply, window update) shares segments (MIT §3.3). The one exception is a
/// [`ResetReply`](crate::ResetReply) in an [`Outcome`], which the owner sends at once.
///
/// - Any call may come at any time; a spurious one changes nothing. `now` never goes back.
/// - After each call that takes an [`Environment`], `deadline` and `wants_transmit` may have changed. `wants_transmit`
///   is true exactly when `transmit`, with room on the link, would send a segment.
/// - State changes by `transmit` only as far as its output accepted segments, unless what it refuses counts as lost
///   ([`Config::refusal_retry`]).
/// - Before it is dropped, [`clear`](Connection::clear) gives its buffers back to the pool.
#[derive(Debug)]
pub struct Connection {
    pub(crate) config: Arc<Config>,
    /// Made when there is data, freed after [`crate::timers::TIDY_AFTER`] without.
    pub(crate) buffers: Option<Box<Buffers>>,
    /// Made when there is something to tell.
    pub(crate) history: Option<Box<History>>,
    pub(crate) accounts: Accounts,
    pub(crate) congestion: Congestion,
    pub(crate) round_trip: RoundTrip,
    /// The retransmission timer; while the peer's window holds us up, the persist timer.
    pub(crate) retransmit_at: Instant,
    /// The delayed acknowledgment's.
    pub(crate) acknowledge_at: Instant,
    /// End of TIME-WAIT, or of patience in FIN-WAIT-2, or of that with a peer that takes nothing of an orphan.
    pub(crate) linger_at: Instant,
    /// When the peer last showed that it gets what is sent, or when something began to wait for that.
    pub(crate) progress_at: Instant,
    /// When the last segment came.
    pub(crate) received_at: Instant,
    /// When data last left.
    pub(crate) sent_at: Instant,
    pub(crate) acknowledged_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) send: SendSpace,
    pub(crate) receive: ReceiveSpace,
    pub(crate) recovery: Recovery,
    pub(crate) timestamps: Timestamps,
    /// Transmissions that the peer got before the queues' box was last freed.
    pub(crate) delivered_segments: u32,
    /// When challenge acknowledgments were last counted: in seconds of the host's time, or where an interval paces them in
    /// milliseconds.
    pub(crate) challenged_at: u32,
    pub(crate) challenges: u8,
    pub(crate) keep_alive_probes: u8,
    /// Acknowledgments without data that the peer is owed for segments ahead of a hole.
    pub(crate) duplicates_due: u8,
    /// How soon data is acknowledged.
    pub(crate) promptness: Promptness,
    pub(crate) marks: Marks,
    /// Largest payload that the peer said it takes.
    pub(crate) peer_mss: u16,
    /// Largest payload that the path allows, options not counted.
    pub(crate) path_mss: u16,
    /// The same when the connection began: what the peer was offered.
    pub(crate) offered_mss: u16,
    /// Payload of what counts as a full-sized segment of the peer's.
    pub(crate) receive_mss: u16,
    pub(crate) error: Option<ConnectionError>,
    pub(crate) soft_error: Option<SoftError>,
    pub(crate) fast_open: FastOpenState,
    pub(crate) phase: TcpPhase,
}

/// How far beyond the numbers of a connection in TIME-WAIT Linux begins the next one.
const SMALL_STATE_DISTANCE: u32 = 65_537;

/// The send sequence space (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendSpace {
    /// `SND.UNA`
    pub unacknowledged: Sequence,
    /// `SND.NXT`: after all that was ever sent.
    pub next: Sequence,
    /// `SND.WND`, in bytes.
    // spec: RFC9293 MUST-1 (unsigned)
    pub window: u32,
    /// `SND.WL1`
    pub window_sequence: Sequence,
    /// `SND.WL2`
    pub window_acknowledgment: Sequence,
    /// Largest window that the peer offered.
    pub largest_window: u32,
    /// `SND.UP`: after the last urgent byte; at or before `unacknowledged` when nothing is urgent.
    pub urgent: Sequence,
    /// After the last pushed byte.
    pub push: Sequence,
    /// Bits by which the peer's windows are shifted.
    pub scale: u8,
}

/// The receive sequence space (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiveSpace {
    /// `IRS`
    pub initial: Sequence,
    /// `RCV.NXT`
    pub next: Sequence,
    /// `RCV.NXT + RCV.WND`: the furthest that was offered. It never moves back.
    pub edge: Sequence,
    /// The last acknowledgment that left.
    pub acknowledged: Sequence,
    /// `RCV.UP`: after the last urgent byte; at or before what is read when nothing is urgent.
    pub urgent: Sequence,
    /// Bits by which our windows are shifted.
    pub scale: u8,
}

/// Timestamps (RFC 7323 §3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timestamps {
    pub offset: u32,
    /// `TS.Recent`
    pub recent: u32,
    /// Second of the host's time when that was learned.
    pub recent_second: u32,
    /// Our timestamp at the last time-out, or at birth: an older echo is no measure of the round trip.
    pub least_echo: u32,
}

impl Connection {
    /// Takes a segment for this connection. `payload`'s window is the segment's data; what is kept of it is taken,
    /// and the caller gives the rest back to the pool.
    pub fn receive(
        &mut self,
        header: &Header,
        payload: &mut Packet,
        ecn: Ecn,
        env: &mut Environment<'_>,
    ) -> Outcome {
        let outcome = self.arrive(header, payload, ecn, env);
        self.settle(env);
        outcome
    }
    /// Lets the timers that are due by `env.now` fire.
    pub fn timeout(&mut self, env: &mut Environment<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        self.fire(env, &mut outcome);
        self.settle(env);
        outcome
    }
    /// When [`Connection::timeout`] wants to be called next; [`Instant::FAR_FUTURE`] for never.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.next_deadline()
    }
    /// Whether [`Connection::transmit`] would send something at `now`.
    #[inline]
    pub fn wants_transmit(&self, now: Instant) -> bool {
        // What is due is decided when it becomes due; time alone changes nothing before `timeout` has seen it. Every
        // call that may change the answer ends by asking for it, in `decide`.
        let _ = now;
        debug_assert_eq!(self.marks.has(Marks::WANTS), self.next_segment().is_ok());
        self.marks.has(Marks::WANTS)
    }
    /// Hands up to `budget_segments` segments to `out`, in the order in which they should leave, and stops where
    /// `out` refuses one.
    pub fn transmit<O: SegmentOutput + ?Sized>(
        &mut self,
        env: &mut Environment<'_>,
        budget_segments: usize,
        out: &mut O,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let mut budget_segments = budget_segments;
        if budget_segments > 0
            && let Some(next) = self.control_segment()
        {
            if !self.transmit_control(next, env, out) {
                return outcome;
            }
            budget_segments -= 1;
        }
        let waits = self.marks.has(Marks::WRITER_WAITS) && self.config.not_sent_low_water_bytes != usize::MAX;
        let not_sent_bytes = if waits { self.not_sent_bytes() } else { 0 };
        let why = self.transmit_pass(env, budget_segments, out);
        // A pass in which nothing left makes no room: a writer that lacks memory would be told in each pass of a full
        // device, and would try in vain each time.
        if waits && self.not_sent_bytes() < not_sent_bytes {
            self.tell_writer(&mut outcome);
        }
        match why {
            // It was asked for just now, and nothing that it depends on has changed since.
            Some(cause) if outcome.changes.is_empty() => {
                debug_assert_eq!(self.next_segment(), Err(cause));
                self.marks.clear(Marks::WANTS);
                self.settle_as(Err(cause), env);
            }
            _ => self.settle(env),
        }
        outcome
    }
    /// The state of RFC 9293 §3.3.2.
    pub fn phase(&self) -> TcpPhase {
        self.phase
    }
    /// Why the connection ended, when it did not end by both sides closing.
    // spec: RFC9293 MUST-12 (the user can tell an abort from a close)
    pub fn error(&self) -> Option<ConnectionError> {
        self.error
    }
    /// The latest trouble that did not end the connection.
    // spec: RFC9293 MUST-47 (soft errors are reported)
    pub fn soft_error(&self) -> Option<SoftError> {
        self.soft_error
    }
    /// Both ledgers as they stand at `now`; each sums exactly to the connection's age.
    pub fn ledgers(&self, now: Instant) -> Ledgers {
        self.accounts.at(now)
    }
    /// All figures as they stand at `now`.
    pub fn info(&self, now: Instant) -> Info {
        self.figures(now)
    }
    /// How the connection opened, as far as data came with the SYNs.
    pub fn fast_open(&self) -> FastOpenState {
        self.fast_open
    }
    /// Bytes of the peer's stream that arrived in order.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }
    /// When the peer last showed that it gets what is sent, or when something began to wait for that.
    pub fn progress_at(&self) -> Instant {
        self.progress_at
    }
    /// Whether the peer's window has been closed for several probes while something waits to be sent.
    pub fn waits_behind_closed_window(&self) -> bool {
        let is_closed = self.send.window == 0 && self.queued_bytes() > 0;
        is_closed && self.round_trip.backoff >= PROBES_OF_A_CLOSED_WINDOW
    }
    /// Memory that the connection holds beside its own entry, by capacity: queues with what their buffers pin, records of
    /// what is in flight, and all lists.
    pub fn held_bytes(&self) -> usize {
        let history = self.history.as_ref().map_or(0, |_| size_of::<History>());
        history + self.buffers.as_ref().map_or(0, |buffers| buffers.held_bytes())
    }
    /// The smoothed round trip, once measured.
    pub fn smoothed_round_trip(&self) -> Option<inhost_base::Duration> {
        self.round_trip.smoothed()
    }
    /// Gives all memory back to the pool. What comes after is as for a connection without data.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.marks.clear(Marks::PACED);
        if let Some(mut buffers) = self.buffers.take() {
            self.delivered_segments = self.delivered_segments.wrapping_add(buffers.flight.delivered_segments);
            buffers.end(pool);
            self.congestion.tidy();
        }
    }
    /// Whether `header`, a SYN for a connection in TIME-WAIT, may begin a new one in its place (RFC 9293 §3.10.7.4,
    /// RFC 6191): the least initial sequence number that the new connection must choose.
    // spec: RFC9293 SHLD-4
    pub fn yields_to(&self, header: &Header) -> Option<Sequence> {
        use inhost_wire::tcp::Flags;
        let flags = header.flags & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN);
        if self.phase != TcpPhase::TimeWait || flags != Flags::SYN {
            return None;
        }
        let newer_number = self.receive.next.precedes(header.sequence);
        let newer = match header.options.timestamps {
            Some((value, _)) if self.marks.has(Marks::TIMESTAMPS) => {
                let ahead = value.wrapping_sub(self.timestamps.recent) as i32;
                ahead > 0 || (ahead == 0 && newer_number)
            }
            _ => newer_number,
        };
        // A distance that no earlier segment of ours can bridge.
        let distance = match self.config.policy.minimal_last_states {
            true => SMALL_STATE_DISTANCE,
            false => self.send.largest_window.max(0xffff),
        };
        newer.then(|| self.send.next + distance)
    }

    // What the rest of the crate shares.

    /// Moves to `phase` and says so.
    pub(crate) fn enter(&mut self, phase: TcpPhase, env: &mut Environment<'_>) {
        if phase == TcpPhase::Established {
            let crossed = self.marks.has(Marks::ACTIVE) && self.phase == TcpPhase::SynReceived;
            self.promptness.opened(crossed && self.config.policy.answers_crossing_syn, env.now);
        }
        let from = core::mem::replace(&mut self.phase, phase);
        let socket = env.socket;
        env.emit(Mask::CONNECTION, || Event::PhaseChanged(PhaseChanged { socket, from, to: phase }));
    }
    /// The connection is over: CLOSED, no timers, nothing to send. What was received stays readable unless the
    /// end is an error (RFC 9293 §3.10.7.4: a reset flushes the queues).
    pub(crate) fn finish(
        &mut self,
        error: Option<ConnectionError>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        if self.phase == TcpPhase::Closed {
            return;
        }
        self.stop_timers();
        self.marks.clear(Marks::DUE);
        self.recovery.end();
        if let Some(buffers) = &mut self.buffers {
            buffers.send.clear(env.pool);
            buffers.reassembly.clear(env.pool);
            buffers.flight.clear();
            buffers.tail_probe.end();
            (buffers.reorder_at, buffers.pace_at) = (Instant::FAR_FUTURE, Instant::FAR_FUTURE);
            if error.is_some() && !self.config.policy.received_data_survives_reset {
                buffers.receive.clear(env.pool);
            }
        }
        self.enter(TcpPhase::Closed, env);
        self.error = error;
        outcome.changes |= Changes::CLOSED | Changes::READABLE | Changes::WRITABLE;
        if error.is_some() {
            outcome.changes |= Changes::ERROR;
        }
        let (socket, now) = (env.socket, env.now);
        let (sent_bytes, received_bytes) = (self.acknowledged_bytes, self.received_bytes);
        let age = self.accounts.at(now).send.total();
        env.emit(Mask::CONNECTION, || {
            Event::Disconnected(Disconnected { socket, age, sent_bytes, received_bytes })
        });
    }
    /// The box of queues, made when it is not there.
    #[inline]
    pub(crate) fn buffers_mut(&mut self) -> &mut Buffers {
        match &mut self.buffers {
            Some(buffers) => buffers,
            none => none.get_or_insert_default(),
        }
    }
    /// Bytes in the send queue.
    #[inline]
    pub(crate) fn queued_bytes(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.send.len() as u32)
    }
    /// Bytes queued and never sent.
    #[inline]
    pub fn not_sent_bytes(&self) -> u32 {
        let (next, end) = (self.send.next, self.stream_end());
        match () {
            () if self.phase.opens() && !self.marks.has(Marks::EARLY) => self.queued_bytes(),
            () if next.precedes(end) => end.since(next),
            () => 0,
        }
    }
    /// After the last byte of the stream so far. Meaningful from ESTABLISHED until our FIN is acknowledged.
    #[inline]
    pub(crate) fn stream_end(&self) -> Sequence {
        self.send.unacknowledged + self.queued_bytes()
    }
    /// Up to where the peer lets us send. It is counted from the acknowledgment that came with the window, not from
    /// `SND.UNA`, which a segment that was overtaken may have moved since.
    #[inline]
    pub(crate) fn send_edge(&self) -> Sequence {
        self.send.window_acknowledgment + self.send.window
    }
    /// Payload of a full segment of ours.
    #[inline]
    pub(crate) fn segment_bytes(&self) -> u32 {
        self.congestion.window.segment_bytes
    }
    /// Bytes thought to be in the network.
    // spec: RFC5681 3.2-6; RFC6675 4-3
    #[inline]
    pub(crate) fn in_flight_bytes(&self) -> u32 {
        let outstanding = self.send.next.since(self.send.unacknowledged);
        let counted = u32::from(self.recovery.duplicates) * self.segment_bytes();
        let absent = self.buffers.as_ref().map_or(0, |buffers| buffers.flight.absent_bytes());
        outstanding.saturating_sub(absent + counted)
    }
    /// Bytes of the stream ever sent.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.acknowledged_bytes + u64::from(self.send.next.since(self.send.unacknowledged))
    }
    /// What was met so far, made when it is not there.
    pub(crate) fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }
    /// Whether something is sent and not acknowledged.
    #[inline]
    pub(crate) fn has_outstanding(&self) -> bool {
        self.send.unacknowledged != self.send.next
    }
    /// Our timestamp at `now`: milliseconds from an offset.
    // spec: RFC7323 4.1-1, 5.4-1, 5.4-2, 7.1-1
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.timestamps.offset)
    }
    /// The timestamps of a segment that leaves at `now`, where they were agreed on.
    pub(crate) fn timestamps_to_send(&self, now: Instant) -> Option<(u32, u32)> {
        self.marks.has(Marks::TIMESTAMPS).then(|| (self.timestamp(now), self.timestamps.recent))
    }
    /// Brings both ledgers and the persist timer in line with what has happened: called at the end of every call.
    #[inline]
    pub(crate) fn settle(&mut self, env: &mut Environment<'_>) {
        let next = self.decide();
        self.settle_as(next, env);
    }
    /// The same, where what is to be sent next is known.
    #[inline]
    pub(crate) fn settle_as(&mut self, next: Result<Next, SendCause>, env: &mut Environment<'_>) {
        let changed = self.send_waits_as(next, env.now);
        self.settle_receiving(changed, env);
    }
    /// The same, where nothing has happened to the receiving side.
    pub(crate) fn settle_sending(&mut self, env: &mut Environment<'_>) {
        let next = self.decide();
        if self.send_waits_as(next, env.now) {
            self.tell_causes(env);
        }
    }
    /// Brings the ledger of sending in line with `next`; true when its cause is another than before.
    #[inline]
    fn send_waits_as(&mut self, next: Result<Next, SendCause>, now: Instant) -> bool {
        let cause = match next {
            // There is something to send, and whoever calls `transmit` has not: the link, or the round, is awaited.
            // Whatever is sent meanwhile (RFC 7413): both ledgers leave it in one call.
            _ if self.phase.opens() => SendCause::Opening,
            Ok(_) => SendCause::Link,
            Err(cause) => cause,
        };
        if matches!(cause, SendCause::ClosedWindow | SendCause::ReceiverWindow)
            && !self.has_outstanding()
            && self.retransmit_at == Instant::FAR_FUTURE
        {
            self.progress_at = now;
            self.arm_retransmission(now);
        }
        self.accounts.send_waits_for(cause, now)
    }
    /// The receiving side's part of it; `changed` says that the sending side's cause has.
    #[inline]
    pub(crate) fn settle_receiving(&mut self, mut changed: bool, env: &mut Environment<'_>) {
        changed |= self.accounts.receive_waits_for(self.receive_cause(), env.now);
        if changed {
            self.tell_causes(env);
        }
    }
    fn tell_causes(&self, env: &mut Environment<'_>) {
        let (socket, send, receive) = (env.socket, self.accounts.send_cause(), self.accounts.receive_cause());
        env.emit(Mask::CAUSE, || Event::CauseChanged(CauseChanged { socket, send, receive }));
    }
    /// Asks what is to be sent next, and keeps whether there is anything: it is asked for more often than it changes.
    #[inline]
    pub(crate) fn decide(&mut self) -> Result<Next, SendCause> {
        let next = self.next_segment();
        self.marks.put(Marks::WANTS, next.is_ok());
        next
    }
    #[inline]
    fn receive_cause(&self) -> inhost_event::ReceiveCause {
        use inhost_event::ReceiveCause;
        if self.phase.opens() {
            return ReceiveCause::Opening;
        }
        if let Some(buffers) = &self.buffers {
            if !buffers.receive.is_empty() {
                let closed = self.receive.edge == self.receive.next && self.phase.expects_data();
                return if closed { ReceiveCause::WindowClosed } else { ReceiveCause::ApplicationSlow };
            }
            if !buffers.reassembly.is_empty() {
                return ReceiveCause::Hole;
            }
        }
        if self.phase.peer_has_closed() || self.phase == TcpPhase::Closed {
            ReceiveCause::Closed
        } else {
            ReceiveCause::AwaitingData
        }
    }
    fn figures(&self, now: Instant) -> Info {
        let ledgers = self.accounts.at(now);
        let buffers = self.buffers.as_deref();
        let rate = buffers.and_then(|buffers| buffers.rate);
        let history = self.history.as_deref().copied().unwrap_or_default();
        Info {
            phase: self.phase,
            age: ledgers.send.total(),
            send_unacknowledged: self.send.unacknowledged,
            send_next: self.send.next,
            send_window_bytes: self.send.window,
            send_window_scale: self.send.scale,
            send_segment_bytes: self.segment_bytes() as u16,
            send_queue_bytes: buffers.map_or(0, |b| b.send.len()),
            send_queue_capacity_bytes: buffers.map_or(0, |b| b.send.capacity_bytes()),
            in_flight_bytes: self.in_flight_bytes(),
            receive_next: self.receive.next,
            receive_window_bytes: self.receive.edge.since(self.receive.next),
            receive_window_scale: self.receive.scale,
            receive_queue_bytes: buffers.map_or(0, |b| b.receive.len()),
            receive_queue_capacity_bytes: buffers.map_or(0, |b| b.receive.capacity_bytes()),
            reassembly_pieces: buffers.map_or(0, |b| b.reassembly.pieces()),
            reassembly_bytes: buffers.map_or(0, |b| b.reassembly.bytes()),
            urgent_ahead_bytes: self.urgent_ahead(),
            urgent_has_come: self.urgent_has_come(),
            smoothed_round_trip: self.round_trip.smoothed(),
            round_trip_variation: self.round_trip.variation(),
            retransmission_timeout: self.round_trip.timeout(&self.config),
            retransmission_backoff: self.round_trip.backoff,
            congestion_control: self.congestion.name(),
            congestion_window_bytes: self.congestion.window.window_bytes,
            slow_start_threshold_bytes: self.congestion.window.threshold_bytes,
            timestamps: self.marks.has(Marks::TIMESTAMPS),
            window_scaling: self.marks.has(Marks::SCALING),
            sack: self.marks.has(Marks::SACK),
            ecn: self.marks.has(Marks::ECN),
            sent_bytes: self.acknowledged_bytes,
            received_bytes: self.received_bytes,
            retransmitted_segments: history.retransmitted_segments,
            retransmitted_bytes: history.retransmitted_bytes,
            timeouts: history.timeouts,
            recovery: self.recovery.state,
            fast_open: self.fast_open,
            sacked_bytes: self.sacked_bytes(),
            lost_bytes: buffers.map_or(0, |b| b.flight.lost_bytes()),
            reorderings: history.reorderings,
            delivered_segments: u32::from(!self.phase.opens())
                .wrapping_add(self.delivered_segments)
                .wrapping_add(buffers.map_or(0, |b| b.flight.delivered_segments)),
            syn_data_taken: self.marks.has(Marks::SYN_DATA),
            bursts_in_flight: buffers.map_or(0, |b| b.flight.bursts()),
            retransmitted_in_flight_bytes: buffers.map_or(0, |b| b.flight.again_bytes()),
            unanswered_probes: self.unanswered_probes(),
            since_data_received: self.promptness.since_data(now),
            receive_segment_bytes: self.receive_mss,
            offered_segment_bytes: self.offered_mss.min(self.config.mss_limit_bytes),
            reordering_segments: self.reordering_segments() as u16,
            duplicate_sacks: history.duplicate_sacks,
            delivered_bytes: self.acknowledged_bytes + u64::from(self.sacked_bytes()),
            congestion_marks: history.congestion_marks,
            min_round_trip: buffers.and_then(|b| b.flight.rack.least_round_trip()),
            delivery_rate_bytes_per_second: rate.map_or(0, |rate| rate.bytes_per_s()),
            delivery_rate_is_application_limited: rate.is_some_and(|rate| rate.application_limited),
            pacing_rate_bytes_per_second: self.pacing_rate(),
            receive_round_trip: buffers.and_then(|b| b.sizing.round_trip()),
            not_sent_bytes: self.not_sent_bytes() as usize,
            send_buffer_bytes: self.send_buffer_bytes(),
            receive_buffer_bytes: self.receive_buffer_bytes(),
            path_segment_bytes: self.path_mss,
            peer_segment_bytes: self.peer_mss,
            busy: busy_of(&ledgers.send),
            receive_window_limited: ledgers.send.of(SendCause::ReceiverWindow)
                + ledgers.send.of(SendCause::ClosedWindow),
            send_buffer_limited: ledgers.send.of(SendCause::SendBuffer),
            idle: now.since(self.received_at.max(self.sent_at)),
            error: self.error,
            soft_error: self.soft_error,
            send_cause: self.accounts.send_cause(),
            receive_cause: self.accounts.receive_cause(),
            ledgers,
        }
    }
    /// The cause of waiting while a repair is under way, or `otherwise`.
    pub(crate) fn repair_cause_or(&self, otherwise: SendCause) -> SendCause {
        match self.recovery.state {
            RecoveryState::Recovery => SendCause::LossRecovery,
            RecoveryState::Loss => SendCause::Timeout,
            _ if self.buffers.as_ref().is_some_and(|buffers| buffers.flight.lost_bytes() > 0) => {
                SendCause::LossRecovery
            }
            _ => otherwise,
        }
    }
}

/// Time with something to send or to have acknowledged.
fn busy_of(send: &crate::SendLedger) -> Duration {
    let idle = send.of(SendCause::Opening) + send.of(SendCause::ApplicationIdle) + send.of(SendCause::Closed);
    send.total() - idle
}
