//! Data in the SYN (RFC 7413): what one connection does for it. Who gets which cookie, and whether it holds, is the
//! stack's to know.

use crate::arrival::Coming;
use crate::fast_open::{FastOpenAnswer, FastOpenState};
use crate::flags::ConnectionFlags;
use crate::outcome::{Changes, Outcome};
use crate::state::Allows;
use crate::{Connection, Environment, Header};
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
        self.common.fast_open = FastOpenState::Requested;
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
        self.common.fast_open = FastOpenState::Accepted;
        self.sender
            .congestion
            .open(self.common.config.initial_window_segments, self.sender.effective_mss(&self.common));
        payload.truncate(self.receiver.window_space(&self.common) as usize);
        self.common.flags.put(ConnectionFlags::SYN_DATA, !payload.is_empty());
        if !payload.is_empty() {
            let bytes = payload.len() as u32;
            let coming = Coming { bytes, new_bytes: bytes, push: syn.flags.psh(), is_marked: false };
            // Data in a SYN tells nothing about the pace of what follows.
            let ack_timing = self.receiver.ack_timing;
            let (common, round_trip) = (&self.common, &self.sender.timer.round_trip);
            let payload = core::slice::from_mut(payload);
            self.receiver.take_in_order(
                common,
                round_trip,
                payload,
                (coming, false),
                syn.options.timestamps,
                env,
            );
            outcome.changes |= Changes::READABLE;
            self.receiver.schedule_acknowledgment(common, round_trip, env.now);
            self.receiver.ack_timing = ack_timing;
        }
        self.receiver.space.edge = self.receiver.space.edge.later(self.receiver.space.next);
        self.settle(env);
        outcome.changes |= Changes::WRITABLE;
        outcome
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
            state: self.common.fast_open,
        })
    }
}
