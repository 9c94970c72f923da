//! The opening of a connection, as the stack steers it: holding a SYN back, data in the SYN (RFC 7413), and a handshake that a
//! SYN cookie stood for (RFC 4987 §3.6). The stack chooses and verifies the cookies.

use crate::fast_open::{FastOpenAnswer, FastOpenState};
use crate::flags::ConnectionFlags;
use crate::outcome::{Changes, Outcome};
use crate::{Connection, Environment, Header};
use inhost_base::Instant;
use inhost_buf::Packet;
use inhost_event::TcpState;
use inhost_wire::tcp::{FastOpenCookie, MAX_OPTIONS_BYTES};

/// Calls before the first segment is sent. One that comes too late changes nothing.
impl Connection {
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
        if self.common.state != TcpState::SynSent || self.sender.space().has_outstanding() {
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
    /// Holds the SYN back until [`Connection::release_syn`]: data queued by then is sent with it.
    pub fn hold_syn(&mut self) {
        if self.common.state == TcpState::SynSent && !self.sender.space().has_outstanding() {
            self.common.flags.insert(ConnectionFlags::SYN_HELD);
            let _ = self.decide();
        }
    }
    /// Before the SYN-ACK is sent: adds a cookie for the peer to it.
    pub fn grant_fast_open(&mut self, cookie: FastOpenCookie, experimental: bool) {
        if self.common.state == TcpState::SynReceived && !self.sender.space().has_outstanding() {
            let open = self.sender.fast_open_box();
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
        if self.common.state != TcpState::SynReceived || self.sender.space().has_outstanding() {
            return outcome;
        }
        self.sender.open_early(&self.common);
        self.common.fast_open = FastOpenState::Accepted;
        payload.truncate(self.receiver.window_space(&self.common) as usize);
        self.common.flags.set(ConnectionFlags::SYN_DATA, !payload.is_empty());
        if !payload.is_empty() {
            self.receiver.take_syn_data(&self.common, syn, payload, env);
            outcome.changes |= Changes::READABLE;
        }
        self.update(env);
        outcome.changes |= Changes::WRITABLE;
        outcome
    }
    /// The result of Fast Open in the peer's SYN-ACK; once, and only if Fast Open was requested.
    pub fn take_fast_open_answer(&mut self) -> Option<FastOpenAnswer> {
        if self.common.opens() {
            return None;
        }
        let open = self.sender.take_fast_open()?;
        let (cookie, experimental) =
            open.learned.map_or((None, open.experimental), |(cookie, form)| (Some(cookie), form));
        let syn_repeated = self.common.flags.contains(ConnectionFlags::SYN_REPEATED);
        Some(FastOpenAnswer {
            cookie,
            experimental,
            asked: open.option.is_some(),
            peer_mss: self.common.peer_mss,
            syn_repeated,
            state: self.common.fast_open,
        })
    }
    /// The SYN-ACK was sent before, as a stateless SYN cookie, and the peer's acknowledgment follows. It yields no
    /// round-trip sample, because the transmission time is not known. Call it directly after [`Connection::accept`],
    /// which was given the sequence number of the SYN-ACK.
    pub fn syn_was_answered(&mut self, env: &mut Environment<'_>) {
        if !self.common.flags.contains(ConnectionFlags::SYN_DUE) || self.sender.space().has_outstanding() {
            return;
        }
        self.common.flags.remove(ConnectionFlags::SYN_DUE);
        self.receiver.syn_was_answered(&self.common);
        self.sender.syn_was_answered(&self.common, env.now);
        self.update(env);
    }
    /// Lets a held SYN and ACK go.
    pub fn release_syn(&mut self, env: &mut Environment<'_>) {
        self.common.flags.remove(ConnectionFlags::SYN_HELD);
        self.sender.waits_from(env.now);
        self.update(env);
    }

    /// Takes over what the peer's SYN says.
    pub(super) fn learn_from_syn(&mut self, syn: &Header, now: Instant) {
        self.common.learn_from_syn(syn);
        self.receiver.learn_from_syn(&self.common, syn, now);
        self.sender.learn_from_syn(&self.common, syn);
    }
}
