//! Flags of a connection, of its sender and of its receiver: what was negotiated, and what is due with the next segment.

use bitflags::bitflags;

/// Flags of a connection besides its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ConnectionFlags(u32);

bitflags! {
    impl ConnectionFlags: u32 {
        /// The SYN, or SYN and ACK, is due now.
        const SYN_DUE = 1;
        /// Both sides sent timestamps.
        const TIMESTAMPS = 1 << 1;
        /// Both sides sent a window scale.
        const SCALING = 1 << 2;
        /// Active open.
        const ACTIVE_OPEN = 1 << 3;
        /// The SYN or SYN-ACK is held until the application releases it.
        const SYN_HELD = 1 << 4;
        /// Our side closed before the handshake was done.
        const CLOSE_AFTER_OPEN = 1 << 5;
        /// The application has closed the socket: it reads no more.
        const RECEIVE_CLOSED = 1 << 6;
        /// The SYN was sent more than once.
        const SYN_REPEATED = 1 << 7;
        /// Both sides may send selective acknowledgments.
        const SACK = 1 << 8;
        /// Both sides take part in explicit congestion notification.
        const ECN = 1 << 9;
        /// Data may be sent before the handshake is complete: SND.UNA is behind our SYN already (RFC 7413 §4.2.1).
        const EARLY_DATA = 1 << 10;
        /// The path is IPv6: its MTU is at least IPv6's minimum.
        const IPV6 = 1 << 11;
        /// The time at which the SYN was sent is known.
        const SYN_TIMED = 1 << 12;
        /// Data in a SYN, ours or the peer's, was accepted.
        const SYN_DATA = 1 << 13;
        /// `transmit` would send something: the latest result of `next_segment`.
        const WANTS_TRANSMIT = 1 << 14;
        /// The device computes checksums (checksum offload), so no payload sums are made.
        const CHECKSUM_OFFLOAD = 1 << 15;
    }
}

/// What the sender has to send, and what holds it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SenderFlags(u16);

bitflags! {
    impl SenderFlags: u16 {
        /// A probe of the peer's window is due now.
        const WINDOW_PROBE = 1;
        /// A keep-alive probe is due now.
        const KEEP_ALIVE = 1 << 1;
        /// A segment with URG is due now, with data or without.
        const ANNOUNCE_URGENT = 1 << 2;
        /// The next small segment overrides silly-window avoidance (RFC 9293 §3.8.6.2.1).
        const OVERRIDE_SWS = 1 << 3;
        /// A tail loss probe is due now (RFC 8985 §7.3).
        const TAIL_PROBE = 1 << 4;
        /// The application holds small segments back (TCP_CORK).
        const CORKED = 1 << 5;
        /// The link refused the last data, which waits to be retried: until the application adds to the stream, a
        /// segment arrives or a timer expires.
        const LINK_REFUSED = 1 << 6;
        /// Pacing holds the next data back.
        const PACED = 1 << 7;
        /// A search for the path MTU is under way (PLPMTUD).
        const PMTU_SEARCH = 1 << 8;
        /// A write found the send buffer full: WRITABLE is to be reported.
        const WRITER_WAITS = 1 << 9;
        /// The next new data bears CWR (RFC 3168 §6.1.2).
        const WINDOW_REDUCED = 1 << 10;
        /// The peer has acknowledged our FIN.
        const FIN_ACKNOWLEDGED = 1 << 11;

        /// Cleared when a segment is sent: each lets a single segment go.
        const SINGLE_USE = Self::WINDOW_PROBE.bits() | Self::OVERRIDE_SWS.bits();
        /// Cleared when a segment of the peer arrives.
        const CLEARED_ON_ARRIVAL = Self::KEEP_ALIVE.bits() | Self::LINK_REFUSED.bits();
        /// A segment without data is due.
        const EMPTY_SEGMENT_DUE = Self::WINDOW_PROBE.bits() | Self::KEEP_ALIVE.bits() | Self::ANNOUNCE_URGENT.bits();
        /// The decision what to send needs the slow path, even if all queued data was sent.
        const SLOW_PATH = Self::EMPTY_SEGMENT_DUE.bits() | Self::TAIL_PROBE.bits() | Self::LINK_REFUSED.bits();
        /// The queued data cannot be sent as a single segment with a plain header on the fast path.
        const NO_SINGLE_SEGMENT = Self::SLOW_PATH.bits() | Self::PACED.bits() | Self::CORKED.bits() | Self::OVERRIDE_SWS.bits() | Self::PMTU_SEARCH.bits() | Self::WINDOW_REDUCED.bits();
    }
}

/// What is due to the peer for segments received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ReceiverFlags(u8);

bitflags! {
    impl ReceiverFlags: u8 {
        /// An acknowledgment is due now.
        const ACKNOWLEDGE = 1;
        /// Something received is not acknowledged yet.
        const SCHEDULED = 1 << 1;
        /// A CE mark arrived: acknowledgments bear ECE until the peer sends CWR (RFC 3168 §6.1.3).
        const ECHO_CONGESTION = 1 << 2;
        /// The peer's FIN arrived when no data was left to read, and the application has not read the end of the stream
        /// since.
        const FIN_UNREAD = 1 << 3;
        /// The application answers what arrives: acknowledgments travel with the answers.
        const INTERACTIVE = 1 << 4;
        /// ECN-capable segments have arrived.
        const ECN_SEEN = 1 << 5;
    }
}
