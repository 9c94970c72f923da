//! The opening of a connection: calls, listeners and both at once (RFC 9293 §3.5); a SYN that was held back, and data
//! in the SYN (RFC 7413), as the stack steers them, which chooses and verifies the cookies.

use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::ledger::Accounts;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sender::handshake::LEAST_MSS;
use crate::{Changes, Config, Connection, Environment, FastOpenAnswer, FastOpenState, Header, Open, Outcome};
use alloc::sync::Arc;
use inhost_base::Instant;
use inhost_buf::Packet;
use inhost_event::TcpState;

impl Connection {
    /// An active open: the SYN is sent by the next [`Connection::transmit`].
    #[inline]
    pub fn connect(config: &Arc<Config>, open: Open, env: &mut Environment<'_>) -> Connection {
        let mut connection = Connection::new(config, open, TcpState::SynSent, env.now());
        connection.common.set(ConnectionFlags::ACTIVE_OPEN, true);
        if open.fast_open.is_some() || open.syn_data_mss > 0 {
            connection.common.set_fast_open(FastOpenState::Requested);
        }
        connection.update(env);
        connection
    }
    /// A passive open, from a SYN that the stack found acceptable. The SYN-ACK is sent by the next
    /// [`Connection::transmit`]. Data in the SYN is not accepted, but by [`Connection::take_syn_data`]; the peer
    /// retransmits it.
    #[inline]
    pub fn accept(config: &Arc<Config>, open: Open, syn: &Header, env: &mut Environment<'_>) -> Connection {
        let mut connection = Connection::new(config, open, TcpState::SynReceived, env.now());
        connection.learn_from_syn(syn, env.now());
        if open.syn_was_sent {
            connection.receiver.syn_was_answered(&connection.common);
            connection.sender.syn_was_answered(&connection.common, env.now());
        }
        connection.update(env);
        connection
    }
    #[inline]
    fn new(config: &Arc<Config>, open: Open, state: TcpState, now: Instant) -> Connection {
        let path_mss = open.path_mtu_mss.min(config.mss_limit_bytes).max(LEAST_MSS);
        let common = Common::new(config, state, &open, path_mss);
        let mut sender = Sender::new(config, open.initial_sequence, path_mss, common.timestamp(now), now);
        if open.fast_open.is_some() || open.syn_data_mss > 0 {
            sender.offer_fast_open(open.fast_open, open.syn_data_mss.min(path_mss));
        }
        Connection { common, sender, receiver: Receiver::new(config, now), accounts: Accounts::new(now) }
    }
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
