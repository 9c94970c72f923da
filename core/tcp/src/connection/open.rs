//! The three-way handshake, from either side and from both (RFC 9293 §3.5).

use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::ledger::Accounts;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sender::handshake::LEAST_MSS;
use crate::sender::search::IPV6_LEAST_MSS;
use crate::{Config, Connection, EcnMode, Environment, FastOpenState, Header, Open};
use inhost_base::{Instant, Sequence};
use inhost_event::TcpState;
use inhost_wire::tcp::Flags;
use std::sync::Arc;

/// Largest shift of a window (RFC 7323 §2.3).
const MAX_SCALE: u8 = 14;

impl Connection {
    /// An active open: the SYN leaves with the next [`Connection::transmit`].
    #[inline]
    pub fn connect(config: &Arc<Config>, open: Open, env: &mut Environment<'_>) -> Connection {
        let mut connection = Connection::new(config, open, TcpState::SynSent, env.now);
        connection.common.flags.set(ConnectionFlags::ACTIVE);
        connection.common.flags.set(ConnectionFlags::SYNCHRONISE);
        connection.settle(env);
        connection
    }
    /// A passive open, from a SYN that the stack found acceptable. The SYN and ACK leaves with the next
    /// [`Connection::transmit`], or when `hold` with the first after [`Connection::release`]. Data in the SYN is not
    /// taken; it comes again.
    #[inline]
    pub fn accept(
        config: &Arc<Config>,
        open: Open,
        syn: &Header,
        hold: bool,
        env: &mut Environment<'_>,
    ) -> Connection {
        let mut connection = Connection::new(config, open, TcpState::SynReceived, env.now);
        connection.common.flags.set(ConnectionFlags::SYNCHRONISE);
        connection.common.flags.put(ConnectionFlags::HELD, hold);
        connection.learn_from_syn(syn, env.now);
        connection.settle(env);
        connection
    }
    /// Lets a held SYN and ACK go.
    pub fn release(&mut self, env: &mut Environment<'_>) {
        self.common.flags.clear(ConnectionFlags::HELD);
        self.sender.timer.progress_at = env.now;
        self.settle(env);
    }

    #[inline]
    fn new(config: &Arc<Config>, open: Open, state: TcpState, now: Instant) -> Connection {
        let initial = open.initial_sequence;
        let path_mss = open.path_mtu_mss.min(config.mss_limit_bytes).max(LEAST_MSS);
        let mut connection = Connection {
            common: Common {
                config: Arc::clone(config),
                state,
                flags: ConnectionFlags::default(),
                // spec: RFC9293 MUST-15 (536 or 1220 when the peer names none)
                peer_mss: open.default_mss,
                path_mss,
                offered_mss: path_mss,
                timestamp_offset: open.timestamp_offset,
                fast_open: FastOpenState::None,
            },
            sender: Sender::new(config, initial, now),
            receiver: Receiver::new(config, now),
            accounts: Accounts::new(now),
            linger_at: Instant::FAR_FUTURE,
            challenged_at: 0,
            challenges: 0,
            error: None,
            soft_error: None,
        };
        connection.common.flags.put(ConnectionFlags::IPV6, open.default_mss >= IPV6_LEAST_MSS);
        connection.sender.congestion.window.segment_bytes = u32::from(path_mss);
        connection.sender.congestion.set_spaced(connection.common.config.pacing);
        connection.sender.least_echo = connection.common.timestamp(now);
        connection
    }
    /// Takes over what the peer's SYN says.
    // spec: RFC7323 2.2-2, 2.3-4, 2.2-3
    pub(super) fn learn_from_syn(&mut self, syn: &Header, now: Instant) {
        self.receiver.space.initial = syn.sequence;
        self.receiver.space.next = syn.sequence + 1;
        self.receiver.space.edge = self.receiver.space.next;
        self.receiver.space.acknowledged = syn.sequence;
        self.receiver.space.urgent = self.receiver.space.next;
        // spec: RFC9293 MUST-14 (the option is taken in)
        if let Some(mss) = syn.options.mss {
            self.common.peer_mss = mss;
        }
        match syn.options.window_scale {
            Some(scale) if self.common.config.window_scaling => {
                self.sender.scale = scale.min(MAX_SCALE);
                self.common.flags.set(ConnectionFlags::SCALING);
            }
            _ => self.receiver.scale = 0,
        }
        self.common.flags.put(ConnectionFlags::SACK, syn.options.sack_permitted && self.common.config.sack);
        self.learn_ecn(syn);
        if let Some((value, _)) = syn.options.timestamps
            && self.common.config.timestamps
        {
            self.common.flags.set(ConnectionFlags::TIMESTAMPS);
            self.receiver.timestamp_recent = value;
            self.receiver.timestamp_second = now.as_nanos().div_euclid(1_000_000_000) as u32;
        }
        self.sender.space.window = u32::from(syn.window);
        self.sender.space.largest_window = self.sender.space.window;
        self.sender.space.window_sequence = syn.sequence;
        // The window counts from the first byte, whether or not this SYN acknowledges ours.
        self.sender.space.window_acknowledgment = self.sender.space.unacknowledged + 1;
        self.sender.congestion.window.segment_bytes = self.sender.effective_mss(&self.common);
    }
    /// Whether both sides take part in explicit congestion notification (RFC 3168 §6.1.1).
    // spec: RFC9293 SHLD-8
    fn learn_ecn(&mut self, syn: &Header) {
        let (ece, cwr) = (syn.flags.ece(), syn.flags.cwr());
        let agreed = if syn.flags.ack() {
            // An answer with both bits set is an echo of what was sent, not an agreement. And one that agrees may
            // answer the first SYN, though the latest did not ask any more.
            self.common.config.ecn == EcnMode::Request && ece && !cwr
        } else {
            let asked = !self.common.flags.has(ConnectionFlags::ACTIVE)
                || !self.common.config.policy.answers_crossing_syn
                || (self.common.config.ecn == EcnMode::Request && self.sender.timer.round_trip.backoff == 0);
            self.common.config.ecn != EcnMode::Off && ece && cwr && asked
        };
        self.common.flags.put(ConnectionFlags::ECN, agreed);
    }
}

/// Whether this is the peer's SYN again.
pub(crate) fn is_repeated_syn(header: &Header, initial: Sequence) -> bool {
    header.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN && header.sequence == initial
}
