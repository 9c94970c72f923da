//! The three-way handshake, from either side and from both (RFC 9293 §3.5).

use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::ledger::Accounts;
use crate::receiver::Receiver;
use crate::round_trip::RoundTrip;
use crate::sender::Sender;
use crate::sender::handshake::LEAST_MSS;
use crate::sender::search::IPV6_LEAST_MSS;
use crate::{Config, Connection, Environment, FastOpenState, Header, Open};
use alloc::sync::Arc;
use inhost_base::Instant;
use inhost_event::TcpState;

impl Connection {
    /// An active open: the SYN is sent by the next [`Connection::transmit`].
    #[inline]
    pub fn connect(config: &Arc<Config>, open: Open, env: &mut Environment<'_>) -> Connection {
        let mut connection = Connection::new(config, open, TcpState::SynSent, env.now);
        connection.common.flags.insert(ConnectionFlags::ACTIVE_OPEN);
        connection.common.flags.insert(ConnectionFlags::SYN_DUE);
        connection.update(env);
        connection
    }
    /// A passive open, from a SYN that the stack found acceptable. The SYN-ACK is sent by the next
    /// [`Connection::transmit`], or with `hold` by the first after [`Connection::release_syn`]. Data in the SYN is not
    /// accepted; the peer retransmits it.
    #[inline]
    pub fn accept(
        config: &Arc<Config>,
        open: Open,
        syn: &Header,
        hold: bool,
        env: &mut Environment<'_>,
    ) -> Connection {
        let mut connection = Connection::new(config, open, TcpState::SynReceived, env.now);
        connection.common.flags.insert(ConnectionFlags::SYN_DUE);
        connection.common.flags.set(ConnectionFlags::SYN_HELD, hold);
        connection.learn_from_syn(syn, env.now);
        connection.update(env);
        connection
    }
    #[inline]
    fn new(config: &Arc<Config>, open: Open, state: TcpState, now: Instant) -> Connection {
        let initial = open.initial_sequence;
        let path_mss = open.path_mtu_mss.min(config.mss_limit_bytes).max(LEAST_MSS);
        let mut common = Common {
            config: Arc::clone(config),
            state,
            flags: ConnectionFlags::default(),
            // spec: RFC9293 MUST-15 (536 or 1220 when the peer names none)
            peer_mss: open.default_mss,
            path_mss,
            offered_mss: path_mss,
            timestamp_offset: open.timestamp_offset,
            round_trip: RoundTrip::default(),
            fast_open: FastOpenState::None,
            linger_at: Instant::FAR_FUTURE,
            challenged_at: 0,
            challenges: 0,
            error: None,
            soft_error: None,
        };
        common.flags.set(ConnectionFlags::IPV6, open.default_mss >= IPV6_LEAST_MSS);
        let stamp = common.timestamp(now);
        Connection {
            common,
            sender: Sender::new(config, initial, path_mss, stamp, now),
            receiver: Receiver::new(config, now),
            accounts: Accounts::new(now),
        }
    }
}
