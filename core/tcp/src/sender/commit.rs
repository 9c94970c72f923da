//! Accounting of sent segments: flight, bursts, counters and timers.

use super::Sender;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::sender::next::Data;
use crate::{Environment, FastOpenState, RecoveryState};
use inhost_base::{Duration, Instant, Offset};
use inhost_event::{Event, Mask, Retransmitted, RetransmittedWhy, SendCause, TcpState};

impl Sender {
    /// Data was sent. It is inlined in the fast path and in the slow path.
    #[inline(always)]
    pub fn committed(
        &mut self,
        common: &Common,
        full_bytes: u32,
        data: Data,
        lent: u32,
        env: &mut Environment<'_>,
    ) {
        let now = env.now();
        // If the queue lends fewer bytes than asked, those were sent, and the FIN waits.
        let data = if lent == data.length { data } else { Data { length: lent, fin: false, ..data } };
        let end = data.end();
        if !self.space.has_outstanding() && self.space.window() > 0 {
            self.progress_at = now;
            if common.config().refusal_retry.is_some() {
                // The timer ran for data that the link had refused.
                self.timer.stop();
            }
        }
        let in_flight = self.in_flight_bytes();
        let probe = self.flags.contains(SenderFlags::TAIL_PROBE);
        match data.retransmission {
            None => {
                self.flags.remove(SenderFlags::WINDOW_REDUCED);
                self.sent_first(common, full_bytes, data, in_flight, now);
            }
            Some(why) => self.committed_retransmission(common, full_bytes, data, why, in_flight, env),
        }
        if self.recovery.reduces()
            && let Some(buffers) = &mut self.buffers
        {
            buffers.reduction.sent(end.after(data.start));
        }
        self.space.sent_to(end);
        let opens = common.opens() && common.has(ConnectionFlags::ACTIVE_OPEN);
        if !(data.fin && opens) {
            // In a simultaneous open the round-trip sample is still that of our SYN.
            self.sent_at = now;
        }
        self.paced(common, data.length, now);
        self.flags.remove(SenderFlags::SINGLE_USE);
        if !self.timer.is_set() {
            self.arm_timer(common, now);
        }
        if probe {
            self.flags.remove(SenderFlags::TAIL_PROBE);
            let next = self.space.next();
            if let Some(buffers) = &mut self.buffers {
                buffers.tail_probe.sent(next, data.retransmission.map(|_| data.start));
            }
            self.arm_timer(common, now);
        }
        let all_sent = self.space.next() >= self.stream_end();
        if let Some(buffers) = self.buffers.as_mut().filter(|_| all_sent) {
            buffers.aggregate_until.stop();
        }
    }
    /// Our SYN was sent.
    #[inline(never)]
    pub fn committed_syn(&mut self, common: &mut Common, lent: u32, has_offered: bool, now: Instant) {
        let end = Offset::SYN + 1;
        if end <= self.space.next() {
            // The first answer to a crossing SYN: nothing has been offered yet.
            let answers_first = common.state() == TcpState::SynReceived
                && common.has(ConnectionFlags::ACTIVE_OPEN)
                && !has_offered;
            self.history_mut().retransmitted_segments += u32::from(!answers_first);
            // What acknowledges it answers this one, not the SYN before.
            common.set(ConnectionFlags::SYN_TIMED, false);
            self.sent_at = now;
            if common.round_trip().backoff() > 0 {
                // Otherwise a smaller path MTU, not a loss, was the cause of the retransmission.
                common.set(ConnectionFlags::SYN_REPEATED, true);
            }
        } else {
            common.set(ConnectionFlags::SYN_TIMED, true);
            self.sent_at = now;
            self.progress_at = now;
            self.space.sent_to(end + lent);
        }
        if let Some(open) = self.buffers.as_mut().and_then(|buffers| buffers.fast_open.as_mut()) {
            if lent > 0 {
                open.sent = lent;
                common.set_fast_open(FastOpenState::DataSent);
            }
            if open.accepted && !common.has(ConnectionFlags::EARLY_DATA) {
                // The queue begins after the SYN, so that data sent now has its sequence number.
                common.set(ConnectionFlags::EARLY_DATA, true);
                self.space.acknowledge(Offset::SYN + 1);
            }
        }
        common.set(ConnectionFlags::SYN_DUE, false);
        self.arm_timer(common, now);
    }
    /// New data was sent, with `in_flight` bytes in the network before it.
    #[inline(always)]
    pub fn sent_first(&mut self, common: &Common, full_bytes: u32, data: Data, in_flight: u32, now: Instant) {
        if data.fin && self.leaves_out_record(common) {
            return;
        }
        let is_run = data.gso_size > 0;
        let (segment, full) = if is_run { (data.gso_size, data.gso_size) } else { (data.length, full_bytes) };
        let (mut start, mut rest) = (data.start, data.length);
        loop {
            let is_last = rest <= segment;
            let end = start + rest.min(segment);
            let record_end = if is_last { data.end() } else { end };
            let before = in_flight + start.since(data.start);
            if common.policy().pushes_writes_and_bursts {
                let burst = self.burst_of(common, full_bytes, start, end);
                self.buffers_mut().burst_segment_sent(burst, (start, end, record_end), before, now);
            } else {
                self.buffers_mut().flight.sent(start, record_end, before, now);
            }
            if is_last {
                break;
            }
            (start, rest) = (end, rest - segment);
        }
        if rest < full
            && let Some(buffers) = &mut self.buffers
        {
            buffers.last_small = Some(start + rest);
        }
        self.search_probe_sent(common, start, start + rest);
    }
    /// Whether our FIN, which alone is out or to be sent, has no record, for which the box would have to be made: usually the
    /// next that happens is that it is acknowledged. [`Sender::record_fin`] makes the record when something else does.
    pub fn leaves_out_record(&self, common: &Common) -> bool {
        self.buffers.is_none() && common.has_fin_outstanding() && !common.policy().pushes_writes_and_bursts
    }
    /// From now on a FIN that is out alone has its record, and the tail loss probe a timer of its own.
    pub fn record_fin(&mut self, common: &Common) {
        if self.leaves_out_record(common) && self.space.has_outstanding() {
            let (acknowledged_bytes, sent_at) = (self.acknowledged_bytes(), self.sent_at);
            let (start, end) = (self.space.unacknowledged(), self.space.next());
            let buffers = self.buffers_mut();
            buffers.orphan_from_bytes = acknowledged_bytes;
            buffers.flight.sent(start, end, 0, sent_at);
            self.arm_timer(common, sent_at);
            self.arm_tail_probe(common, sent_at);
        }
    }
    /// Data was retransmitted.
    // spec: RFC8985 7.3-4
    pub fn committed_retransmission(
        &mut self,
        common: &Common,
        full_bytes: u32,
        data: Data,
        why: RetransmittedWhy,
        in_flight: u32,
        env: &mut Environment<'_>,
    ) {
        let now = env.now();
        let stamp = common.timestamp(now);
        if common.policy().pushes_writes_and_bursts {
            let burst = self.retransmitted_burst(full_bytes, data.start, data.start + data.length);
            self.buffers_mut().retransmitted_burst = burst;
        }
        // A probe of the window asks, and repairs nothing.
        if why != RetransmittedWhy::Probe {
            // What follows a refused probe in the same segment is new.
            let bytes = u64::from(data.length.min(self.space.next().since(data.start)));
            self.history_mut().retransmitted_segments += 1;
            self.history_mut().retransmitted_bytes += bytes;
        }
        if data.start != self.space.unacknowledged() {
            // RFC 5682 §3.1: what follows is conventional loss recovery.
            self.recovery.forward = false;
        }
        if let Some(buffers) = &mut self.buffers {
            match why {
                RetransmittedWhy::Probe => buffers.flight.probed(),
                RetransmittedWhy::TailProbe => {
                    buffers.flight.retransmitted(data.start, data.end(), in_flight, now)
                }
                RetransmittedWhy::Fast | RetransmittedWhy::Timeout | RetransmittedWhy::Refused => {
                    buffers.flight.retransmitted(data.start, data.end(), in_flight, now);
                    buffers.undo.retransmitted(stamp);
                    buffers.force = false;
                }
            }
        }
        if matches!(why, RetransmittedWhy::Fast | RetransmittedWhy::Refused)
            && data.start == self.space.unacknowledged()
        {
            // The timer covers the oldest segment, from its latest transmission (RFC 6298 §5.1).
            self.arm_timer(common, now);
        }
        let (socket, sequence) = (env.socket(), self.space.sequence(data.start));
        env.emit(Mask::RECOVERY, || {
            Event::Retransmitted(Retransmitted { socket, sequence, payload_bytes: data.length, why })
        });
    }
    /// The cause that ended the pass shows whether the window is in use. The data of this pass begins at `first`.
    #[inline(always)]
    pub fn nothing_more(&mut self, common: &Common, cause: SendCause, first: Offset, now: Instant) {
        let (window, in_flight) = (*self.congestion.window(), self.in_flight_bytes());
        // All data was sent, and the window has room: only a full window, or pacing, shows the window in use.
        if matches!(
            cause,
            SendCause::ApplicationIdle | SendCause::AwaitingAcknowledgment | SendCause::SmallData
        ) && in_flight < window.window_bytes
            && self.recovery.state == RecoveryState::Open
            && let Some(buffers) = &mut self.buffers
        {
            buffers.flight.rates_mut().application_limited(in_flight);
        }
        let limited = match cause {
            SendCause::CongestionWindow => true,
            SendCause::LossRecovery | SendCause::Timeout => {
                in_flight + window.segment_bytes > window.window_bytes
            }
            _ => false,
        };
        let acknowledged = self.acknowledged_bytes();
        let sent = acknowledged + u64::from(self.space.outstanding_bytes());
        self.congestion.transmitted(in_flight, limited, acknowledged, sent);
        let next = self.space.next();
        let runs = self.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.deadline().is_set());
        if first != next || !runs {
            self.arm_tail_probe(common, now);
        }
    }
    /// What these flags ask for was sent.
    pub fn did(&mut self, flags: SenderFlags) {
        self.flags.remove(flags);
    }
    /// The link refused data, which counts as not sent: it is retried after `retry` at the latest.
    pub fn data_was_refused(&mut self, common: &Common, retry: Duration, now: Instant) {
        self.flags.insert(SenderFlags::LINK_REFUSED);
        self.flags.remove(SenderFlags::TAIL_PROBE);
        if self.space.has_outstanding() {
            if self.recovery.state == RecoveryState::Loss {
                self.retry_at(common, now + retry);
            }
        } else if !self.timer.is_set() && self.keep_alive_probes > 0 {
            self.retry_at(common, now + retry);
        } else if !self.timer.is_set() {
            // The first wait is a time-out's, and the user time-out counts from its end.
            let ends_at = now + common.base_timeout();
            self.progress_at = ends_at;
            self.timer.set(ends_at);
        }
    }
}
