//! Data in the SYN (RFC 7413): what one connection does for it. Who gets which cookie, and whether it holds, is the
//! stack's to know.

use crate::arrival::Coming;
use crate::fast_open::{FastOpenAnswer, FastOpenState};
use crate::flags::ConnectionFlags;
use crate::outcome::{Changes, Outcome};
use crate::sender::burst::WriteBoundary;
use crate::state::Allows;
use crate::{Connection, Environment, Header};
use inhost_base::Sequence;
use inhost_buf::Packet;
use inhost_event::TcpState;
use inhost_wire::tcp::{FastOpenCookie, MAX_OPTIONS_BYTES};

impl Connection {
    /// Before its SYN has left: puts a cookie into it, with what is queued by then, up to what fits `mss`, the payload
    /// that the peer is known to take. An empty cookie asks for one, and such a SYN bears no data; `without_cookie`
    /// sends data all the same and no option at all, where both sides have agreed to that outside of TCP.
    // RFC 7413 §3, §4.1.2
    pub fn offer_fast_open(
        &mut self,
        cookie: FastOpenCookie,
        experimental: bool,
        mss: u16,
        without_cookie: bool,
    ) {
        if self.common.state != TcpState::SynSent
            || self.sender.space.next != self.sender.space.unacknowledged
        {
            return;
        }
        let room = mss.min(self.common.path_mss).saturating_sub(MAX_OPTIONS_BYTES as u16);
        let has_data = without_cookie || !cookie.is_empty();
        let open = self.sender.fast_open_box();
        open.option = (!without_cookie).then_some(cookie);
        open.experimental = experimental;
        open.most_data = if has_data { room } else { 0 };
        self.fast_open = FastOpenState::Requested;
    }
    /// Holds the SYN back until [`Connection::release`]: data that is queued by then goes with it.
    pub fn hold(&mut self) {
        if self.common.state == TcpState::SynSent
            && self.sender.space.next == self.sender.space.unacknowledged
        {
            self.common.flags.set(ConnectionFlags::HELD);
            let _ = self.decide();
        }
    }
    /// Before its SYN and ACK has left: gives the peer a cookie with it.
    pub fn grant_fast_open(&mut self, cookie: FastOpenCookie, experimental: bool) {
        if self.common.state == TcpState::SynReceived
            && self.sender.space.next == self.sender.space.unacknowledged
        {
            let open = self.sender.fast_open_box();
            (open.option, open.experimental) = (Some(cookie), experimental);
        }
    }
    /// Takes the data of the SYN that a connection was just accepted from, because its cookie holds. From here on the
    /// application may read and, once the SYN and ACK has left, what it writes is sent (RFC 7413 §4.2.1).
    pub fn take_syn_data(
        &mut self,
        syn: &Header,
        payload: &mut Packet,
        env: &mut Environment<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if self.common.state != TcpState::SynReceived
            || self.sender.space.next != self.sender.space.unacknowledged
        {
            return outcome;
        }
        self.sender.fast_open_box().accepted = true;
        self.fast_open = FastOpenState::Accepted;
        self.sender
            .congestion
            .open(self.common.config.initial_window_segments, self.sender.effective_mss(&self.common));
        payload.truncate(self.receiver.window_space(&self.common) as usize);
        self.common.flags.put(ConnectionFlags::SYN_DATA, !payload.is_empty());
        if !payload.is_empty() {
            let bytes = payload.len() as u32;
            let coming = Coming { bytes, push: syn.flags.psh(), is_marked: false };
            // Data in a SYN tells nothing about the pace of what follows.
            let ack_timing = self.receiver.ack_timing;
            self.take_in_order(
                core::slice::from_mut(payload),
                false,
                coming,
                syn.options.timestamps,
                env,
                &mut outcome,
            );
            self.schedule_acknowledgment(env.now);
            self.receiver.ack_timing = ack_timing;
        }
        self.receiver.space.edge = self.receiver.space.edge.later(self.receiver.space.next);
        self.settle(env);
        outcome.changes |= Changes::WRITABLE;
        outcome
    }
    /// Bytes that the SYN, which has not left, will bear of what is queued.
    pub fn syn_data_room(&self) -> usize {
        let open = self.sender.fast_open_ref().filter(|open| self.sender.space.next == open.initial);
        open.filter(|_| self.common.state == TcpState::SynSent).map_or(0, |open| usize::from(open.most_data))
    }
    /// Whether the application may write although the handshake is not done.
    pub fn is_early(&self) -> bool {
        self.common.state == TcpState::SynReceived && self.fast_open == FastOpenState::Accepted
    }
    /// Whether `sequence` is that of our SYN, which says that the data of the caller's was taken and which the caller
    /// has not acknowledged yet.
    pub fn is_answer_to_early_data(&self, sequence: Sequence) -> bool {
        self.is_early() && sequence + 1 == self.sender.space.unacknowledged
    }
    /// What the peer's answer to our SYN taught; once, and only where fast open was tried.
    pub fn take_fast_open_answer(&mut self) -> Option<FastOpenAnswer> {
        if self.common.state.opens() {
            return None;
        }
        let open = self.sender.buffers.as_mut()?.fast_open.take()?;
        let (cookie, experimental) =
            open.learned.map_or((None, open.experimental), |(cookie, form)| (Some(cookie), form));
        let syn_repeated = self.common.flags.has(ConnectionFlags::SYN_REPEATED);
        Some(FastOpenAnswer {
            cookie,
            experimental,
            asked: open.option.is_some(),
            peer_mss: self.common.peer_mss,
            syn_repeated,
            state: self.fast_open,
        })
    }
    /// The SYN, or SYN and ACK, left with `sent` bytes of data.
    pub(crate) fn syn_left(&mut self, sent: u32) {
        let Some(open) = self.sender.buffers.as_mut().and_then(|buffers| buffers.fast_open.as_mut()) else {
            return;
        };
        if sent > 0 {
            open.sent = sent;
            self.fast_open = FastOpenState::DataSent;
        }
        if open.accepted && !self.common.flags.has(ConnectionFlags::EARLY) {
            // The queue begins after the SYN, so that what is sent now has its place in it.
            self.common.flags.set(ConnectionFlags::EARLY);
            self.sender.space.unacknowledged = open.initial + 1;
        }
    }
    /// The answer to our SYN: what of its data the peer has, and the cookie for the next time. What it does not have
    /// counts as never sent.
    pub(crate) fn syn_answered(&mut self, header: &Header, env: &mut Environment<'_>) {
        let Some(buffers) = &mut self.sender.buffers else { return };
        let Some(open) = &mut buffers.fast_open else { return };
        let options = &header.options;
        open.learned = options
            .fast_open
            .filter(|cookie| !cookie.is_empty() && open.option.is_some())
            .map(|cookie| (cookie, options.fast_open_experimental));
        if open.sent == 0 {
            return;
        }
        let taken = header.acknowledgment.since(open.initial + 1).min(open.sent);
        self.common.flags.put(ConnectionFlags::SYN_DATA, taken == open.sent);
        self.fast_open =
            if taken == open.sent { FastOpenState::DataAcknowledged } else { FastOpenState::DataRefused };
        let (sent_at, end) = (self.sender.sent_at, open.initial + 1 + open.sent);
        buffers.send.discard(taken as usize, env.pool);
        self.sender.acknowledged_bytes += u64::from(taken);
        if header.acknowledgment.precedes(end) {
            // It was sent, and is to be sent again.
            buffers.flight.sent(header.acknowledgment, end, 0, sent_at);
            buffers.flight.lose_all(|_| true);
            buffers.boundaries.add(end, WriteBoundary::Push, header.acknowledgment);
        }
    }
    /// The acknowledgment of our SYN after data was sent behind it, or could have been.
    pub(crate) fn open_early(&mut self, header: &Header, env: &mut Environment<'_>, outcome: &mut Outcome) {
        self.common.flags.clear(ConnectionFlags::EARLY);
        self.common.flags.clear(ConnectionFlags::SYNCHRONISE);
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.fast_open = None;
        }
        self.enter(TcpState::Established, env);
        self.sender.progress_at = env.now;
        self.sender.space.push = self.sender.space.push.later(self.sender.space.unacknowledged);
        self.sender.space.urgent = self.sender.space.urgent.later(self.sender.space.unacknowledged);
        outcome.changes |= Changes::CONNECTED | Changes::WRITABLE | Changes::REACHED;
        if self.sender.space.unacknowledged.precedes(header.acknowledgment) {
            self.advance(&self.sender.report_of(&self.common, header), false, env, outcome);
        } else if self.sender.has_outstanding() {
            self.sender.arm_retransmission(&self.common, env.now);
        } else {
            self.sender.retransmit_at = inhost_base::Instant::FAR_FUTURE;
        }
        if self.common.flags.has(ConnectionFlags::CLOSE_AFTER_OPEN) {
            self.common.flags.clear(ConnectionFlags::CLOSE_AFTER_OPEN);
            self.enter(TcpState::FinWait1, env);
            if self.common.flags.has(ConnectionFlags::RECEIVE_CLOSED) {
                self.orphaned(env.now);
            }
        }
    }
}
