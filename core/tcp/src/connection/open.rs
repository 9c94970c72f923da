//! The three-way handshake, from either side and from both (RFC 9293 §3.5).

use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::ledger::Accounts;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sender::handshake::LEAST_MSS;
use crate::{Config, Connection, Environment, FastOpenState, Header, Open};
use alloc::sync::Arc;
use inhost_base::Instant;
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
    /// [`Connection::transmit`]. Data in the SYN is not accepted, but by [`Connection::take_syn_data`]; the peer retransmits
    /// it.
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
}
