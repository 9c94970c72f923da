//! Flags of a connection, of its sender and of its receiver: what was negotiated, and what is due with the next segment.

/// A set of flags, one bit each.
macro_rules! flags {
    ($(#[$doc:meta])* $name:ident($bits:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
        pub(crate) struct $name($bits);

        impl $name {
            /// Whether any of `flag` is set.
            #[inline]
            pub const fn has(self, flag: Self) -> bool {
                self.0 & flag.0 != 0
            }
            #[inline]
            pub fn set(&mut self, flag: Self) {
                self.0 |= flag.0;
            }
            #[inline]
            pub fn clear(&mut self, flag: Self) {
                self.0 &= !flag.0;
            }
            #[inline]
            pub fn put(&mut self, flag: Self, on: bool) {
                if on { self.set(flag) } else { self.clear(flag) }
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                $name(self.0 | other.0)
            }
        }
    };
}

flags! {
    /// Flags of a connection besides its state.
    ConnectionFlags(u32)
}
flags! {
    /// What the sender has to send, and what holds it back.
    SenderFlags(u16)
}
flags! {
    /// What is due to the peer for segments received.
    ReceiverFlags(u8)
}

impl ConnectionFlags {
    /// The SYN, or SYN and ACK, is due now.
    pub const SYN_DUE: ConnectionFlags = ConnectionFlags(1);
    /// Both sides sent timestamps.
    pub const TIMESTAMPS: ConnectionFlags = ConnectionFlags(1 << 1);
    /// Both sides sent a window scale.
    pub const SCALING: ConnectionFlags = ConnectionFlags(1 << 2);
    /// Active open.
    pub const ACTIVE_OPEN: ConnectionFlags = ConnectionFlags(1 << 3);
    /// The SYN or SYN-ACK is held until the application releases it.
    pub const SYN_HELD: ConnectionFlags = ConnectionFlags(1 << 4);
    /// Our side closed before the handshake was done.
    pub const CLOSE_AFTER_OPEN: ConnectionFlags = ConnectionFlags(1 << 5);
    /// The application has closed the receiving side.
    pub const RECEIVE_CLOSED: ConnectionFlags = ConnectionFlags(1 << 6);
    /// The SYN was sent more than once.
    pub const SYN_REPEATED: ConnectionFlags = ConnectionFlags(1 << 7);
    /// Both sides may send selective acknowledgments.
    pub const SACK: ConnectionFlags = ConnectionFlags(1 << 8);
    /// Both sides take part in explicit congestion notification.
    pub const ECN: ConnectionFlags = ConnectionFlags(1 << 9);
    /// Data may be sent before the handshake is complete: SND.UNA is behind our SYN already (RFC 7413 §4.2.1).
    pub const EARLY_DATA: ConnectionFlags = ConnectionFlags(1 << 10);
    /// The path is IPv6: its MTU is at least IPv6's minimum.
    pub const IPV6: ConnectionFlags = ConnectionFlags(1 << 11);
    /// The time at which the SYN was sent is known.
    pub const SYN_TIMED: ConnectionFlags = ConnectionFlags(1 << 12);
    /// Data in a SYN, ours or the peer's, was accepted.
    pub const SYN_DATA: ConnectionFlags = ConnectionFlags(1 << 13);
    /// `transmit` would send something: the latest result of `next_segment`.
    pub const WANTS_TRANSMIT: ConnectionFlags = ConnectionFlags(1 << 14);
    /// The device computes checksums (checksum offload), so no payload sums are made.
    pub const CHECKSUM_OFFLOAD: ConnectionFlags = ConnectionFlags(1 << 15);

    /// Flags with which header prediction needs further checks.
    pub const CLOSED_OR_ECN: ConnectionFlags =
        ConnectionFlags(ConnectionFlags::RECEIVE_CLOSED.0 | ConnectionFlags::ECN.0);
}

impl SenderFlags {
    /// A probe of the peer's window is due now.
    pub const WINDOW_PROBE: SenderFlags = SenderFlags(1);
    /// A keep-alive probe is due now.
    pub const KEEP_ALIVE: SenderFlags = SenderFlags(1 << 1);
    /// A segment with URG is due now, with data or without.
    pub const ANNOUNCE_URGENT: SenderFlags = SenderFlags(1 << 2);
    /// The next small segment overrides silly-window avoidance (RFC 9293 §3.8.6.2.1).
    pub const OVERRIDE_SWS: SenderFlags = SenderFlags(1 << 3);
    /// A tail loss probe is due now (RFC 8985 §7.3).
    pub const TAIL_PROBE: SenderFlags = SenderFlags(1 << 4);
    /// The application holds small segments back (TCP_CORK).
    pub const CORKED: SenderFlags = SenderFlags(1 << 5);
    /// The link refused the last data, which waits to be retried.
    pub const LINK_REFUSED: SenderFlags = SenderFlags(1 << 6);
    /// Pacing holds the next data back.
    pub const PACED: SenderFlags = SenderFlags(1 << 7);
    /// A search for the path MTU is under way (PLPMTUD).
    pub const PMTU_SEARCH: SenderFlags = SenderFlags(1 << 8);
    /// A write found the send buffer full: WRITABLE is to be reported.
    pub const WRITER_WAITS: SenderFlags = SenderFlags(1 << 10);
    /// The next new data bears CWR (RFC 3168 §6.1.2).
    pub const WINDOW_REDUCED: SenderFlags = SenderFlags(1 << 11);
    /// The peer has acknowledged our FIN.
    pub const FIN_ACKNOWLEDGED: SenderFlags = SenderFlags(1 << 12);

    /// Cleared when a segment is sent: each lets a single segment go.
    pub const SINGLE_USE: SenderFlags =
        SenderFlags(SenderFlags::WINDOW_PROBE.0 | SenderFlags::OVERRIDE_SWS.0);
    /// Cleared when the application adds to the stream.
    pub const BLOCKED: SenderFlags = SenderFlags::LINK_REFUSED;
    /// Cleared when a segment of the peer arrives.
    pub const CLEARED_ON_ARRIVAL: SenderFlags =
        SenderFlags(SenderFlags::KEEP_ALIVE.0 | SenderFlags::BLOCKED.0);
    /// A segment without data is due.
    pub const EMPTY_SEGMENT_DUE: SenderFlags =
        SenderFlags(SenderFlags::WINDOW_PROBE.0 | SenderFlags::KEEP_ALIVE.0 | SenderFlags::ANNOUNCE_URGENT.0);
    /// The decision what to send needs the slow path, even if all queued data was sent.
    pub const SLOW_PATH: SenderFlags =
        SenderFlags(SenderFlags::EMPTY_SEGMENT_DUE.0 | SenderFlags::TAIL_PROBE.0 | SenderFlags::BLOCKED.0);
    /// The queued data cannot be sent as a single segment with a plain header on the fast path.
    pub const NO_SINGLE_SEGMENT: SenderFlags = SenderFlags(
        SenderFlags::SLOW_PATH.0
            | SenderFlags::PACED.0
            | SenderFlags::CORKED.0
            | SenderFlags::OVERRIDE_SWS.0
            | SenderFlags::PMTU_SEARCH.0
            | SenderFlags::WINDOW_REDUCED.0,
    );
}

impl ReceiverFlags {
    /// An acknowledgment is due now.
    pub const ACKNOWLEDGE: ReceiverFlags = ReceiverFlags(1);
    /// Something received is not acknowledged yet.
    pub const SCHEDULED: ReceiverFlags = ReceiverFlags(1 << 1);
    /// A CE mark arrived: acknowledgments bear ECE until the peer sends CWR (RFC 3168 §6.1.3).
    pub const ECHO_CONGESTION: ReceiverFlags = ReceiverFlags(1 << 2);
    /// The peer's FIN arrived when no data was left to read, and the application has not read the end of the stream since.
    pub const FIN_UNREAD: ReceiverFlags = ReceiverFlags(1 << 3);
}
