//! What was agreed and met, and what is due with the next segment: one bit each.

/// A set of facts, one bit each.
macro_rules! flags {
    ($(#[$doc:meta])* $name:ident($bits:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
    /// Facts about a connection that its state does not tell.
    ConnectionFlags(u32)
}
flags! {
    /// What keeps the sender, or is due of it.
    SenderFlags(u16)
}
flags! {
    /// What is due to the peer for what came.
    ReceiverFlags(u8)
}

impl ConnectionFlags {
    /// The SYN, or SYN and ACK, is due now.
    pub const SYNCHRONISE: ConnectionFlags = ConnectionFlags(1);
    /// Both sides sent timestamps.
    pub const TIMESTAMPS: ConnectionFlags = ConnectionFlags(1 << 1);
    /// Both sides sent a window scale.
    pub const SCALING: ConnectionFlags = ConnectionFlags(1 << 2);
    /// We called; the peer listened or called too.
    pub const ACTIVE: ConnectionFlags = ConnectionFlags(1 << 3);
    /// The SYN and ACK waits for the application's word.
    pub const HELD: ConnectionFlags = ConnectionFlags(1 << 4);
    /// Our side closed before the handshake was done.
    pub const CLOSE_AFTER_OPEN: ConnectionFlags = ConnectionFlags(1 << 5);
    /// The application reads no more.
    pub const RECEIVE_CLOSED: ConnectionFlags = ConnectionFlags(1 << 6);
    /// The SYN was sent more than once.
    pub const SYN_REPEATED: ConnectionFlags = ConnectionFlags(1 << 7);
    /// Both sides may send selective acknowledgments.
    pub const SACK: ConnectionFlags = ConnectionFlags(1 << 8);
    /// Both sides take part in explicit congestion notification.
    pub const ECN: ConnectionFlags = ConnectionFlags(1 << 9);
    /// The handshake is not done, and what follows our SYN may be sent: `send.unacknowledged` is behind the SYN
    /// already (RFC 7413 §4.2.1).
    pub const EARLY: ConnectionFlags = ConnectionFlags(1 << 10);
    /// The path is IPv6's: it is never narrower than that protocol's least MTU.
    pub const IPV6: ConnectionFlags = ConnectionFlags(1 << 11);
    /// When the SYN left is known.
    pub const SYN_TIMED: ConnectionFlags = ConnectionFlags(1 << 12);
    /// The data of a SYN, ours or the peer's, was taken with it.
    pub const SYN_DATA: ConnectionFlags = ConnectionFlags(1 << 13);
    /// `transmit` would send something: what `next_segment` said when last asked.
    pub const WANTS: ConnectionFlags = ConnectionFlags(1 << 14);
    /// Devices make the checksums of what leaves, as far as was seen: nobody asks for sums of payloads.
    pub const UNSUMMED: ConnectionFlags = ConnectionFlags(1 << 15);
    /// Part of what is due leaves before all else: see [`crate::Connection::next_separate`].
    pub const SEPARATE: ConnectionFlags = ConnectionFlags(1 << 16);

    /// FIN-WAIT-2 that nobody holds is a whole connection still: a bit that means nothing else by then.
    pub const WHOLE: ConnectionFlags = ConnectionFlags::CLOSE_AFTER_OPEN;
    /// What may keep a segment in order from being an ordinary one.
    pub const CLOSED_OR_ECN: ConnectionFlags =
        ConnectionFlags(ConnectionFlags::RECEIVE_CLOSED.0 | ConnectionFlags::ECN.0);
}

impl SenderFlags {
    /// A probe of the peer's window is due now.
    pub const PROBE: SenderFlags = SenderFlags(1);
    /// A keep-alive probe is due now.
    pub const KEEP_ALIVE: SenderFlags = SenderFlags(1 << 1);
    /// A segment with URG is due now, with data or without.
    pub const ANNOUNCE_URGENT: SenderFlags = SenderFlags(1 << 2);
    /// The next small segment goes whatever silly-window avoidance says (RFC 9293 §3.8.6.2.1, override).
    pub const OVERRIDE: SenderFlags = SenderFlags(1 << 3);
    /// A probe of the tail is due now (RFC 8985 §7.3).
    pub const TAIL_PROBE: SenderFlags = SenderFlags(1 << 4);
    /// The application holds small segments back until it lets go.
    pub const CORKED: SenderFlags = SenderFlags(1 << 5);
    /// The link refused the last data, which waits for an occasion to be tried again.
    pub const REFUSED: SenderFlags = SenderFlags(1 << 6);
    /// The pace holds the next data back.
    pub const PACED: SenderFlags = SenderFlags(1 << 7);
    /// The path's largest segment is searched for.
    pub const SEARCHES: SenderFlags = SenderFlags(1 << 8);
    /// The path has become narrower: what is out goes again, and nothing else before the next event.
    pub const RETRANSMIT_ONLY: SenderFlags = SenderFlags(1 << 9);
    /// A write found the send buffer full; it is owed WRITABLE.
    pub const WRITER_WAITS: SenderFlags = SenderFlags(1 << 10);
    /// The next new data tells that the window was reduced (RFC 3168 §6.1.2).
    pub const WINDOW_REDUCED: SenderFlags = SenderFlags(1 << 11);

    /// What lets one segment go, and is over when one left.
    pub const OCCASIONS: SenderFlags = SenderFlags(SenderFlags::PROBE.0 | SenderFlags::OVERRIDE.0);
    /// What is over when the application adds to the stream.
    pub const HELD_UP: SenderFlags = SenderFlags(SenderFlags::REFUSED.0 | SenderFlags::RETRANSMIT_ONLY.0);
    /// What is over as soon as the peer is heard.
    pub const SILENCE: SenderFlags = SenderFlags(SenderFlags::KEEP_ALIVE.0 | SenderFlags::HELD_UP.0);
    /// What is due of its own, for a quick look.
    pub const DUE: SenderFlags =
        SenderFlags(SenderFlags::PROBE.0 | SenderFlags::KEEP_ALIVE.0 | SenderFlags::ANNOUNCE_URGENT.0);
    /// What may ask for a segment, an acknowledgment apart, or keep one back, where all that was queued is out.
    pub const SLOW_PATH: SenderFlags =
        SenderFlags(SenderFlags::DUE.0 | SenderFlags::TAIL_PROBE.0 | SenderFlags::HELD_UP.0);
    /// What keeps all that is queued from leaving as one segment with a plain header.
    pub const NO_SINGLE_SEGMENT: SenderFlags = SenderFlags(
        SenderFlags::SLOW_PATH.0
            | SenderFlags::PACED.0
            | SenderFlags::CORKED.0
            | SenderFlags::OVERRIDE.0
            | SenderFlags::SEARCHES.0
            | SenderFlags::WINDOW_REDUCED.0,
    );
}

impl ReceiverFlags {
    /// An acknowledgment is due now.
    pub const ACKNOWLEDGE: ReceiverFlags = ReceiverFlags(1);
    /// Something of the peer's is not acknowledged yet.
    pub const SCHEDULED: ReceiverFlags = ReceiverFlags(1 << 1);
    /// Congestion marks came: each acknowledgment says so until the peer answers (RFC 3168 §6.1.3).
    pub const ECHO_CONGESTION: ReceiverFlags = ReceiverFlags(1 << 2);
    /// The peer's FIN came when nothing was left to read, and the application has not read the end since.
    pub const FIN_UNREAD: ReceiverFlags = ReceiverFlags(1 << 3);
}
