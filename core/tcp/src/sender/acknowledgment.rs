//! Processing of an acknowledgment by the sender: delivered data, samples of the path, and the timers of data still in
//! flight (RFC 9293 §3.10.7.4, fifth step; RFC 5681, RFC 6298).

use super::Sender;
use crate::Changes;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::sender::flight::AckSample;
use crate::{Environment, PlainHeader, RecoveryState};
use inhost_base::{Duration, Instant, Offset};
use inhost_event::Layer;
use inhost_wire::tcp::{Flags, SackBlocks};

/// Segments out, at most, for which the timer counts from the oldest (RFC 7765 §4, rrthresh).
const RESTART_SEGMENTS: usize = 4;
/// Minimum time that a peer has to show that it still holds the data that it reported by SACK, before it counts as having
/// reneged.
const LEAST_RENEGING_WAIT: Duration = Duration::from_millis(10);

impl Sender {
    /// Takes an acknowledgment, new or duplicate, with its SACK blocks.
    pub fn take_acknowledgment(
        &mut self,
        common: &mut Common,
        arrival: &Arrival<'_>,
        duplicate: bool,
        env: &mut Environment<'_>,
    ) {
        let header = arrival.header;
        let echo = common.echo_of(header.options.timestamps);
        let mut sample = self.ack_sample(arrival.acknowledgment, header.window, echo);
        sample.is_duplicate = duplicate;
        if self.leaves_out_record(common) && self.space.unacknowledged() < arrival.acknowledgment {
            sample.bytes = 1;
            sample.oldest_round_trip = Some(env.now().since(self.sent_at));
            sample.newest_round_trip = sample.oldest_round_trip;
        }
        sample.congestion = self.tells_of_mark(common, header.flags);
        let sack = Some(&header.options.sack)
            .filter(|blocks| !blocks.is_empty() && common.has(ConnectionFlags::SACK));
        self.acknowledge(common, sample, sack, env);
    }
    /// Takes the acknowledgment of something new in a segment as predicted, without SACK blocks. In ESTABLISHED there is no
    /// FIN of ours to be acknowledged.
    #[inline(never)]
    pub fn take_predicted_acknowledgment(
        &mut self,
        common: &mut Common,
        header: &PlainHeader,
        acknowledgment: Offset,
        env: &mut Environment<'_>,
    ) {
        let sample = self.ack_sample(acknowledgment, header.window, common.echo_of(header.timestamps));
        self.acknowledge(common, sample, None, env);
    }
    /// What an acknowledgment with this number, window and echo shows before it is processed. An old one says nothing but what
    /// its blocks say.
    #[inline]
    fn ack_sample(&self, acknowledgment: Offset, window_field: u16, echo: Option<u32>) -> AckSample {
        let edge = self.space.unacknowledged().max(acknowledgment) + self.scaled(window_field);
        AckSample { acknowledgment, echo, edge, ..self.sample_without_ack() }
    }
    /// Whether the peer tells of a congestion mark.
    fn tells_of_mark(&self, common: &Common, flags: Flags) -> bool {
        common.has(ConnectionFlags::ECN)
            && flags.ece()
            && (self.space.has_outstanding() || !common.policy().ece_needs_data_in_flight)
    }
    /// Whether an old acknowledgment is not too old: by the largest window (RFC 5961 §5.2), and never by more than was
    /// acknowledged at all.
    pub fn is_recent(&self, common: &Common, acknowledgment: Offset) -> bool {
        let syn = u64::from(!common.has(ConnectionFlags::ACTIVE_OPEN));
        let acknowledged = self.space.unacknowledged().count().saturating_sub(syn);
        let old_bytes = u64::from(self.space.largest_window()).min(acknowledged) as u32;
        acknowledgment.within(self.space.unacknowledged().back(old_bytes), old_bytes + 1)
    }
    /// RFC 5681 §2: nothing new, nothing else, and something outstanding.
    pub fn is_duplicate(&self, common: &Common, arrival: &Arrival<'_>) -> bool {
        let header = arrival.header;
        let window = self.scaled(header.window);
        // An unacceptable acknowledgment changes nothing.
        let same_window = window == self.space.window()
            || (common.policy().same_sequence_only_widens_window
                && self.space.narrows(arrival.first, arrival.acknowledgment, window));
        let empty = arrival.payload.is_empty() && !header.flags.fin();
        self.space.has_outstanding() && same_window && empty && self.space.window() > 0
    }
    /// Processes an acknowledgment, with the SACK blocks where both sides use them: delivered data, losses, samples of the
    /// path, and the timers of data still in flight. It is inlined in
    /// the fast path and in the slow path, so that the fast path is compiled without the checks whose results it knows.
    // spec: RFC7323 4.1-2
    #[inline(always)]
    fn acknowledge(
        &mut self,
        common: &mut Common,
        mut sample: AckSample,
        sack: Option<&SackBlocks>,
        env: &mut Environment<'_>,
    ) {
        let (now, duplicate) = (env.now(), sample.is_duplicate);
        env.begin_layer(Layer::Timers);
        let before = self.space.unacknowledged();
        let acknowledgment = before.max(sample.acknowledgment);
        sample.advanced_bytes = acknowledgment.after(before);
        self.deliver(common, sack, acknowledgment, &mut sample, now);
        let advanced = sample.advanced_bytes > 0;
        if advanced {
            let echo = sample.echo.filter(|_| !sample.within_segment);
            let echoed = echo.and_then(|echo| self.echoed_round_trip(common, echo, now));
            let (acked, left) = (sample.advanced_bytes, self.space.next().after(acknowledgment));
            let measured = sample.oldest_round_trip;
            common.measured(acked, left, measured, echoed);
            if sample.newest_round_trip.is_none()
                && echoed.is_some()
                && let Some(buffers) = &mut self.buffers
            {
                buffers.tail_probe.measured();
            }
            self.discard_acknowledged(acknowledgment, sample.advanced_bytes, env);
        }
        sample.rate =
            self.buffers.as_deref_mut().and_then(|buffers| buffers.sample_rate(&sample.builder, now));
        self.count_duplicates(common, &mut sample);
        let calm = self.recovery.state == RecoveryState::Open
            && !duplicate
            && !sample.congestion
            && sample.repeated.is_none()
            && sample.overtaken.is_none()
            && self.sums().sacked_bytes == 0;
        if calm {
            self.grow(common, sample.bytes, &sample, now);
        } else {
            self.recover_by(common, &sample, env);
        }
        self.release_held_writes(common);
        let pure = !advanced && sample.sacked_bytes == 0 && duplicate;
        let unacknowledged = self.space.unacknowledged();
        if self.buffers.as_mut().is_some_and(|b| b.tail_probe.acknowledged(unacknowledged, pure)) {
            self.probe_repaired_a_loss(common, sample.in_flight_before_bytes, env);
        }
        if self.flags.contains(SenderFlags::PMTU_SEARCH) {
            self.judge_search(common, now);
        }
        self.set_pace(common);
        let restarts = advanced && !sample.within_segment;
        self.restart_timers(common, restarts, restarts || sample.sacked_bytes > 0, now);
        env.end_layer();
        if advanced {
            common.set_soft_error(None);
            env.changed(Changes::REACHED);
            if self.wakes_writer(common) {
                env.changed(Changes::WRITABLE);
            }
        }
    }
    /// The round-trip sample by the echoed timestamp, to a millisecond. After a timeout, an echo from before the timeout
    /// is not a sample: if a peer's acknowledgment was lost, the peer drops the retransmission as old, and so keeps and
    /// echoes the timestamp of the first transmission (RFC 7323 §5.3, R2 before R3), regardless of how long ago that was.
    /// This is Karn's ambiguity again.
    // spec: RFC9293 MUST-18
    pub fn echoed_round_trip(&self, common: &Common, echo: u32, now: Instant) -> Option<Duration> {
        let stamp = common.timestamp(now);
        let elapsed_ms = stamp.wrapping_sub(echo);
        let counts = elapsed_ms <= stamp.wrapping_sub(self.least_echo);
        counts.then(|| Duration::from_millis(u64::from(elapsed_ms.max(1))))
    }
    #[inline(always)]
    pub fn deliver(
        &mut self,
        common: &Common,
        sack: Option<&SackBlocks>,
        acknowledgment: Offset,
        sample: &mut AckSample,
        now: Instant,
    ) {
        if sack.is_some() || self.recovery.state != RecoveryState::Open {
            sample.echo_at_most = sample.echo.and_then(|echo| common.echo_left_by(echo, now));
        }
        let segment_bytes = self.congestion.window().segment_bytes.max(1);
        let Some(buffers) = &mut self.buffers else { return };
        sample.sacked_before = buffers.flight.highest_sacked();
        if let Some(sack) = sack {
            buffers.flight.take_sack(sack, sample.acknowledgment, &self.space, segment_bytes, now, sample);
        }
        let before = buffers.flight.records().len();
        buffers.flight.acknowledge(acknowledgment, now, sample);
        if common.policy().partial_acks_recut_segments {
            buffers.flight.count_whole(before, segment_bytes, sample);
        }
        if let Some(round_trip) = sample.newest_round_trip {
            buffers.flight.rack_mut().measured(round_trip, common.round_trip(), now);
            buffers.tail_probe.measured();
        }
    }
    /// Releases acknowledged data.
    // spec: RFC6675 4-2; RFC2018 8-3
    #[inline(always)]
    pub fn discard_acknowledged(
        &mut self,
        acknowledgment: Offset,
        advanced_bytes: u32,
        env: &mut Environment<'_>,
    ) {
        let queued = self.queued_bytes();
        if let Some(buffers) = &mut self.buffers {
            buffers.send.discard(advanced_bytes.min(queued) as usize, env.pool());
        }
        self.space.acknowledge(acknowledgment);
        self.progress_at = env.now();
        self.flags.remove(SenderFlags::WINDOW_PROBE);
        if advanced_bytes > queued {
            self.flags.insert(SenderFlags::FIN_ACKNOWLEDGED);
        }
    }
    /// Without SACK, each duplicate acknowledgment counts as a segment that has left the network (RFC 6582). So the first two
    /// let new data go: limited transmit (RFC 3042). With SACK the scoreboard counts what has left.
    // spec: RFC5681 3.2-4, 3.2-5
    #[inline]
    pub fn count_duplicates(&mut self, common: &Common, sample: &mut AckSample) {
        if common.has(ConnectionFlags::SACK) {
            return;
        }
        let segment = self.segment_bytes().max(1);
        if sample.advanced_bytes > 0 {
            if self.recovery.state == RecoveryState::Recovery {
                // One of the segments acknowledged filled the hole; the duplicates stood for the others.
                let others =
                    (sample.advanced_bytes.div_ceil(segment) - 1).min(u32::from(self.recovery.duplicates));
                self.recovery.duplicates -= others as u8;
                sample.counted_bytes = others * segment;
            } else {
                sample.counted_bytes = u32::from(self.recovery.duplicates) * segment;
                self.recovery.duplicates = 0;
            }
        }
        if sample.is_duplicate {
            // At most the segments in flight besides the missing one: a peer can forge duplicates.
            let most = self.space.outstanding_bytes().div_ceil(segment).saturating_sub(1);
            let more = u32::from(self.recovery.duplicates) < most;
            self.recovery.duplicates = self.recovery.duplicates.saturating_add(u8::from(more));
            sample.is_duplicate = more;
        }
    }
    /// Updates the timers of data still in flight after an acknowledgment.
    // spec: RFC6298 5-2; RFC6928 9-1
    #[inline]
    pub fn restart_timers(&mut self, common: &Common, advanced: bool, delivered: bool, now: Instant) {
        if !self.space.has_outstanding() {
            self.timer.stop();
            if let Some(buffers) = &mut self.buffers {
                buffers.tail_probe.stop();
                buffers.reorder_at.stop();
            }
            return;
        }
        if advanced {
            self.arm_timer(common, now);
            self.restart_early(common, now);
            if self.buffers.as_ref().is_some_and(|buffers| buffers.flight.is_reneged()) {
                // RFC 2018 §8: what the peer had it may have thrown away; it has half a round trip to show otherwise.
                let half = common.round_trip().smoothed().unwrap_or(Duration::ZERO).divided_by(2);
                self.timer.bring_forward(now + half.max(LEAST_RENEGING_WAIT));
            }
        }
        if delivered {
            self.arm_tail_probe(common, now);
        }
    }
    /// RFC 7765 §4: with few segments in flight and nothing to send, the timer counts from the transmission of the
    /// oldest, because too few acknowledgments will arrive to detect a loss otherwise.
    fn restart_early(&mut self, common: &Common, now: Instant) {
        // In recovery the timer counts from the retransmission.
        let calm = !self.recovery.state.has_end();
        if !common.config().rto_restart
            || !calm
            || self.space.next() < self.stream_end()
            || self.space.window() == 0
        {
            return;
        }
        let timeout = common.timeout();
        let Some(buffers) = &self.buffers else { return };
        if buffers.flight.records().len() < RESTART_SEGMENTS
            && let Some(oldest) = buffers.flight.records().front()
        {
            let at = oldest.sent_at + timeout;
            if at > now {
                self.timer.bring_forward(at);
            }
        }
    }
}
