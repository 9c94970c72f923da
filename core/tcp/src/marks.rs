//! What was agreed and met, and what is due with the next segment: one bit each.

/// A set of facts, one bit each.
macro_rules! marks {
    ($(#[$doc:meta])* $name:ident($bits:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub(crate) struct $name($bits);

        impl $name {
            /// Whether any of `mark` is set.
            #[inline]
            pub const fn has(self, mark: Self) -> bool {
                self.0 & mark.0 != 0
            }
            #[inline]
            pub fn set(&mut self, mark: Self) {
                self.0 |= mark.0;
            }
            #[inline]
            pub fn clear(&mut self, mark: Self) {
                self.0 &= !mark.0;
            }
            #[inline]
            pub fn put(&mut self, mark: Self, on: bool) {
                if on { self.set(mark) } else { self.clear(mark) }
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

marks! {
    /// Facts about a connection that its state does not tell.
    Marks(u32)
}
marks! {
    /// What keeps the sender, or is due of it.
    SendMarks(u16)
}
marks! {
    /// What is due to the peer for what came.
    ReceiveMarks(u8)
}

impl Marks {
    /// The SYN, or SYN and ACK, is due now.
    pub const SYNCHRONISE: Marks = Marks(1);
    /// Both sides sent timestamps.
    pub const TIMESTAMPS: Marks = Marks(1 << 1);
    /// Both sides sent a window scale.
    pub const SCALING: Marks = Marks(1 << 2);
    /// We called; the peer listened or called too.
    pub const ACTIVE: Marks = Marks(1 << 3);
    /// The SYN and ACK waits for the application's word.
    pub const HELD: Marks = Marks(1 << 4);
    /// Our side closed before the handshake was done.
    pub const CLOSE_AFTER_OPEN: Marks = Marks(1 << 5);
    /// The application reads no more.
    pub const RECEIVE_CLOSED: Marks = Marks(1 << 6);
    /// The SYN was sent more than once.
    pub const SYN_REPEATED: Marks = Marks(1 << 7);
    /// Both sides may send selective acknowledgments.
    pub const SACK: Marks = Marks(1 << 8);
    /// Both sides take part in explicit congestion notification.
    pub const ECN: Marks = Marks(1 << 9);
    /// The handshake is not done, and what follows our SYN may be sent: `send.unacknowledged` is behind the SYN
    /// already (RFC 7413 §4.2.1).
    pub const EARLY: Marks = Marks(1 << 10);
    /// The path is IPv6's: it is never narrower than that protocol's least MTU.
    pub const IPV6: Marks = Marks(1 << 11);
    /// When the SYN left is known.
    pub const SYN_TIMED: Marks = Marks(1 << 12);
    /// The data of a SYN, ours or the peer's, was taken with it.
    pub const SYN_DATA: Marks = Marks(1 << 13);
    /// `transmit` would send something: what `next_segment` said when last asked.
    pub const WANTS: Marks = Marks(1 << 14);
    /// Devices make the checksums of what leaves, as far as was seen: nobody asks for sums of payloads.
    pub const UNSUMMED: Marks = Marks(1 << 15);
    /// Part of what is due leaves before all else: see [`crate::Connection::goes_apart`].
    pub const APART: Marks = Marks(1 << 16);

    /// FIN-WAIT-2 that nobody holds is a whole connection still: a bit that means nothing else by then.
    pub const WHOLE: Marks = Marks::CLOSE_AFTER_OPEN;
    /// What may keep a segment in order from being an ordinary one.
    pub const CLOSED_OR_ECN: Marks = Marks(Marks::RECEIVE_CLOSED.0 | Marks::ECN.0);
}

impl SendMarks {
    /// A probe of the peer's window is due now.
    pub const PROBE: SendMarks = SendMarks(1);
    /// A keep-alive probe is due now.
    pub const KEEP_ALIVE: SendMarks = SendMarks(1 << 1);
    /// The peer is to be told of urgent data now, with data or without.
    pub const ANNOUNCE_URGENT: SendMarks = SendMarks(1 << 2);
    /// The next small segment goes whatever silly-window avoidance says (RFC 9293 §3.8.6.2.1, override).
    pub const OVERRIDE: SendMarks = SendMarks(1 << 3);
    /// A probe of the tail is due now (RFC 8985 §7.3).
    pub const TAIL_PROBE: SendMarks = SendMarks(1 << 4);
    /// The application holds small segments back until it lets go.
    pub const CORKED: SendMarks = SendMarks(1 << 5);
    /// The link refused the last data, which waits for an occasion to be tried again.
    pub const REFUSED: SendMarks = SendMarks(1 << 6);
    /// The pace holds the next data back.
    pub const PACED: SendMarks = SendMarks(1 << 7);
    /// The path's largest segment is searched for.
    pub const SEARCHES: SendMarks = SendMarks(1 << 8);
    /// The path has become narrower: what is out goes again, and nothing else before the next event.
    pub const REPAIRS_ONLY: SendMarks = SendMarks(1 << 9);
    /// A write found the send buffer full; it is owed WRITABLE.
    pub const WRITER_WAITS: SendMarks = SendMarks(1 << 10);
    /// The next new data tells that the window was reduced (RFC 3168 §6.1.2).
    pub const WINDOW_REDUCED: SendMarks = SendMarks(1 << 11);

    /// What lets one segment go, and is over when one left.
    pub const OCCASIONS: SendMarks = SendMarks(SendMarks::PROBE.0 | SendMarks::OVERRIDE.0);
    /// What is over when the application adds to the stream.
    pub const HELD_UP: SendMarks = SendMarks(SendMarks::REFUSED.0 | SendMarks::REPAIRS_ONLY.0);
    /// What is over as soon as the peer is heard.
    pub const SILENCE: SendMarks = SendMarks(SendMarks::KEEP_ALIVE.0 | SendMarks::HELD_UP.0);
    /// What is due of its own, for a quick look.
    pub const DUE: SendMarks =
        SendMarks(SendMarks::PROBE.0 | SendMarks::KEEP_ALIVE.0 | SendMarks::ANNOUNCE_URGENT.0);
    /// What may ask for a segment, an acknowledgment apart, or keep one back, where all that was queued is out.
    pub const STIRS: SendMarks = SendMarks(SendMarks::DUE.0 | SendMarks::TAIL_PROBE.0 | SendMarks::HELD_UP.0);
    /// What keeps all that is queued from leaving as one segment with a plain header.
    pub const RARE: SendMarks = SendMarks(
        SendMarks::STIRS.0
            | SendMarks::PACED.0
            | SendMarks::CORKED.0
            | SendMarks::OVERRIDE.0
            | SendMarks::SEARCHES.0
            | SendMarks::WINDOW_REDUCED.0,
    );
}

impl ReceiveMarks {
    /// An acknowledgment is due now.
    pub const ACKNOWLEDGE: ReceiveMarks = ReceiveMarks(1);
    /// Something of the peer's is not acknowledged yet.
    pub const SCHEDULED: ReceiveMarks = ReceiveMarks(1 << 1);
    /// Congestion marks came: each acknowledgment says so until the peer answers (RFC 3168 §6.1.3).
    pub const ECHO_CONGESTION: ReceiveMarks = ReceiveMarks(1 << 2);
}
