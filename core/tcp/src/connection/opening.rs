//! The opening of a connection, as the stack steers it: a SYN that was held back, and data in the SYN (RFC 7413). The stack
//! chooses and verifies the cookies.

use crate::fast_open::{FastOpenAnswer, FastOpenState};
use crate::flags::ConnectionFlags;
use crate::{Changes, Connection, Environment, Header, Outcome};
use inhost_base::Instant;
use inhost_buf::Packet;
use inhost_event::TcpState;

impl Connection {
    /// Accepts the data of the SYN from which a connection was just accepted, because its cookie is valid. From now on
    /// the application may read and, once the SYN-ACK was sent, its writes are sent (RFC 7413 §4.2.1).
    pub fn take_syn_data(
        &mut self,
        syn: &Header,
        payload: &mut Packet,
        env: &mut Environment<'_>,
    ) -> Outcome {
        if self.common.state() != TcpState::SynReceived || self.sender.space().has_outstanding() {
            return Outcome::default();
        }
        env.changed(Changes::WRITABLE);
        self.sender.open_early(&self.common);
        self.common.set_fast_open(FastOpenState::Accepted);
        payload.truncate(self.receiver.window_space(&self.common) as usize);
        self.common.set(ConnectionFlags::SYN_DATA, !payload.is_empty());
        if !payload.is_empty() {
            self.receiver.take_syn_data(&self.common, syn, payload, env);
            env.changed(Changes::READABLE);
        }
        self.update(env);
        env.take_outcome()
    }
    /// The result of Fast Open in the peer's SYN-ACK; once, and only if Fast Open was requested.
    pub fn take_fast_open_answer(&mut self) -> Option<FastOpenAnswer> {
        if self.common.opens() {
            return None;
        }
        let open = self.sender.take_fast_open()?;
        Some(FastOpenAnswer {
            cookie: open.learned.map(|(cookie, _)| cookie),
            experimental: open.learned.or(open.option).is_some_and(|(_, experimental)| experimental),
            asked: open.option.is_some(),
            peer_mss: self.common.peer_mss(),
            syn_repeated: self.common.has(ConnectionFlags::SYN_REPEATED),
            state: self.common.fast_open(),
        })
    }
    /// Lets a held SYN go.
    pub fn release_syn(&mut self, env: &mut Environment<'_>) {
        self.common.set(ConnectionFlags::SYN_HELD, false);
        self.sender.waits_from(env.now());
        self.update(env);
    }

    /// Takes over what the peer's SYN says.
    pub(super) fn learn_from_syn(&mut self, syn: &Header, now: Instant) {
        self.common.learn_from_syn(syn);
        self.receiver.learn_from_syn(&self.common, syn, now);
        self.sender.learn_from_syn(&self.common, syn);
    }
}
