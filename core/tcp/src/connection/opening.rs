//! The opening of a connection, as the stack steers it: holding a SYN back, data in the SYN (RFC 7413), and a handshake that a
//! SYN cookie stood for (RFC 4987 §3.6). The stack chooses and verifies the cookies.

use crate::arrival::Coming;
use crate::fast_open::{FastOpenAnswer, FastOpenState};
use crate::flags::ConnectionFlags;
use crate::offset::Offset;
use crate::outcome::{Changes, Outcome};
use crate::state::Allows;
use crate::{Connection, EcnMode, Environment, Header};
use inhost_base::Instant;
use inhost_buf::Packet;
use inhost_event::TcpState;
use inhost_wire::tcp::{FastOpenCookie, MAX_OPTIONS_BYTES};

/// Largest shift of a window (RFC 7323 §2.3).
const MAX_SCALE: u8 = 14;

/// A connection during its handshake. From [`Connection::opening`]; a call that comes too late changes nothing.
pub struct Opening<'a> {
    tcb: &'a mut Connection,
}

impl Connection {
    /// The opening of the connection, before its first segment is sent.
    #[inline]
    pub fn opening(&mut self) -> Opening<'_> {
        Opening { tcb: self }
    }
}

impl Opening<'_> {
    /// Before the SYN is sent: adds a cookie to it, and the data queued by then, up to `mss`, the payload that the peer
    /// is known to accept. An empty cookie requests one, and such a SYN bears no data. `without_cookie` sends data
    /// without the option, where both sides have agreed on that outside of TCP.
    // RFC 7413 §3, §4.1.2
    pub fn offer_fast_open(
        &mut self,
        cookie: FastOpenCookie,
        experimental: bool,
        mss: u16,
        without_cookie: bool,
    ) {
        if self.tcb.common.state != TcpState::SynSent
            || self.tcb.sender.space.next() != self.tcb.sender.space.unacknowledged()
        {
            return;
        }
        let room = mss.min(self.tcb.common.path_mss).saturating_sub(MAX_OPTIONS_BYTES as u16);
        let has_data = without_cookie || !cookie.is_empty();
        let open = self.tcb.sender.fast_open_box();
        open.option = (!without_cookie).then_some(cookie);
        open.experimental = experimental;
        open.most_data = if has_data { room } else { 0 };
        self.tcb.common.fast_open = FastOpenState::Requested;
    }
    /// Holds the SYN back until [`Opening::release`]: data queued by then is sent with it.
    pub fn hold(&mut self) {
        if self.tcb.common.state == TcpState::SynSent
            && self.tcb.sender.space.next() == self.tcb.sender.space.unacknowledged()
        {
            self.tcb.common.flags.set(ConnectionFlags::SYN_HELD);
            let _ = self.tcb.decide();
        }
    }
    /// Before the SYN-ACK is sent: adds a cookie for the peer to it.
    pub fn grant_fast_open(&mut self, cookie: FastOpenCookie, experimental: bool) {
        if self.tcb.common.state == TcpState::SynReceived
            && self.tcb.sender.space.next() == self.tcb.sender.space.unacknowledged()
        {
            let open = self.tcb.sender.fast_open_box();
            (open.option, open.experimental) = (Some(cookie), experimental);
        }
    }
    /// Accepts the data of the SYN from which a connection was just accepted, because its cookie is valid. From now on
    /// the application may read and, once the SYN-ACK was sent, its writes are sent (RFC 7413 §4.2.1).
    pub fn take_syn_data(
        &mut self,
        syn: &Header,
        payload: &mut Packet,
        env: &mut Environment<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if self.tcb.common.state != TcpState::SynReceived
            || self.tcb.sender.space.next() != self.tcb.sender.space.unacknowledged()
        {
            return outcome;
        }
        self.tcb.sender.fast_open_box().accepted = true;
        self.tcb.common.fast_open = FastOpenState::Accepted;
        self.tcb.sender.congestion.open(
            self.tcb.common.config.initial_window_segments,
            self.tcb.sender.effective_mss(&self.tcb.common),
        );
        payload.truncate(self.tcb.receiver.window_space(&self.tcb.common) as usize);
        self.tcb.common.flags.put(ConnectionFlags::SYN_DATA, !payload.is_empty());
        if !payload.is_empty() {
            let bytes = payload.len() as u32;
            let coming = Coming { bytes, new_bytes: bytes, push: syn.flags.psh(), is_marked: false };
            // Data in a SYN is no sample of the arrival rate.
            let ack_timing = self.tcb.receiver.ack_timing;
            let (common, round_trip) = (&self.tcb.common, &self.tcb.sender.timer.round_trip);
            let payload = core::slice::from_mut(payload);
            self.tcb.receiver.take_in_order(
                common,
                round_trip,
                payload,
                (coming, false),
                syn.options.timestamps,
                env,
            );
            outcome.changes |= Changes::READABLE;
            self.tcb.receiver.schedule_acknowledgment(common, round_trip, env.now);
            self.tcb.receiver.ack_timing = ack_timing;
        }
        self.tcb.update(env);
        outcome.changes |= Changes::WRITABLE;
        outcome
    }
    /// The result of Fast Open in the peer's SYN-ACK; once, and only if Fast Open was requested.
    pub fn take_fast_open_answer(&mut self) -> Option<FastOpenAnswer> {
        if self.tcb.common.state.opens() {
            return None;
        }
        let open = self.tcb.sender.buffers.as_mut()?.fast_open.take()?;
        let (cookie, experimental) =
            open.learned.map_or((None, open.experimental), |(cookie, form)| (Some(cookie), form));
        let syn_repeated = self.tcb.common.flags.has(ConnectionFlags::SYN_REPEATED);
        Some(FastOpenAnswer {
            cookie,
            experimental,
            asked: open.option.is_some(),
            peer_mss: self.tcb.common.peer_mss,
            syn_repeated,
            state: self.tcb.common.fast_open,
        })
    }
    /// The SYN-ACK was sent before, as a stateless SYN cookie, and the peer's acknowledgment follows. It yields no
    /// round-trip sample, because the transmission time is not known. Call it directly after [`Connection::accept`],
    /// which was given the sequence number of the SYN-ACK.
    pub fn answered(&mut self, env: &mut Environment<'_>) {
        if !self.tcb.common.flags.has(ConnectionFlags::SYN_DUE)
            || self.tcb.sender.space.next() != self.tcb.sender.space.unacknowledged()
        {
            return;
        }
        self.tcb.common.flags.clear(ConnectionFlags::SYN_DUE);
        self.tcb.sender.space.sent_to(Offset::SYN + 1);
        self.tcb.receiver.space.acknowledge();
        // The field of a SYN is never scaled (RFC 7323 §2.2).
        self.tcb.receiver.space.offer(self.tcb.receiver.window_space(&self.tcb.common).min(0xffff));
        self.tcb.sender.timer.progress_at = env.now;
        self.tcb.sender.timer.arm(&self.tcb.common, env.now);
        self.tcb.update(env);
    }
    /// Lets a held SYN and ACK go.
    pub fn release(&mut self, env: &mut Environment<'_>) {
        self.tcb.common.flags.clear(ConnectionFlags::SYN_HELD);
        self.tcb.sender.timer.progress_at = env.now;
        self.tcb.update(env);
    }

    /// Takes over what the peer's SYN says.
    // spec: RFC7323 2.2-2, 2.3-4, 2.2-3
    pub(super) fn learn_from_syn(&mut self, syn: &Header, now: Instant) {
        self.tcb.receiver.space.begin(syn.sequence);
        // spec: RFC9293 MUST-14 (the option is taken in)
        if let Some(mss) = syn.options.mss {
            self.tcb.common.peer_mss = mss;
        }
        match syn.options.window_scale {
            Some(scale) if self.tcb.common.config.window_scaling => {
                self.tcb.sender.scale = scale.min(MAX_SCALE);
                self.tcb.common.flags.set(ConnectionFlags::SCALING);
            }
            _ => self.tcb.receiver.space.scale = 0,
        }
        self.tcb
            .common
            .flags
            .put(ConnectionFlags::SACK, syn.options.sack_permitted && self.tcb.common.config.sack);
        self.learn_ecn(syn);
        if let Some((value, _)) = syn.options.timestamps
            && self.tcb.common.config.timestamps
        {
            self.tcb.common.flags.set(ConnectionFlags::TIMESTAMPS);
            self.tcb.receiver.set_timestamp_recent(value, now);
        }
        // The window counts from the first byte, whether or not this SYN acknowledges ours.
        let first = self.tcb.sender.space.unacknowledged() + 1;
        self.tcb.sender.space.set_window(Offset::SYN, first, u32::from(syn.window));
        self.tcb.sender.space.largest_window = u32::from(syn.window);
        self.tcb.sender.congestion.window.segment_bytes = self.tcb.sender.effective_mss(&self.tcb.common);
    }
    /// Whether both sides take part in explicit congestion notification (RFC 3168 §6.1.1).
    // spec: RFC9293 SHLD-8
    fn learn_ecn(&mut self, syn: &Header) {
        let (ece, cwr) = (syn.flags.ece(), syn.flags.cwr());
        let agreed = if syn.flags.ack() {
            // A SYN-ACK with both bits set echoes our flags and is no agreement. One that agrees may answer the first
            // SYN, although the latest did not request ECN any more.
            self.tcb.common.config.ecn == EcnMode::Request && ece && !cwr
        } else {
            let asked = !self.tcb.common.flags.has(ConnectionFlags::ACTIVE_OPEN)
                || !self.tcb.common.config.policy.answers_crossing_syn
                || (self.tcb.common.config.ecn == EcnMode::Request
                    && self.tcb.sender.timer.round_trip.backoff == 0);
            self.tcb.common.config.ecn != EcnMode::Off && ece && cwr && asked
        };
        self.tcb.common.flags.put(ConnectionFlags::ECN, agreed);
    }
}
