//! What was negotiated, and what is due with the next segment: one bit each.

/// A set of facts about a connection that its phase does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks(u32);

impl Marks {
    /// An acknowledgment is due now.
    pub const ACKNOWLEDGE: Marks = Marks(1);
    /// The SYN, or SYN and ACK, is due now.
    pub const SYNCHRONISE: Marks = Marks(1 << 1);
    /// A probe of the peer's window is due now.
    pub const PROBE: Marks = Marks(1 << 2);
    /// A keep-alive probe is due now.
    pub const KEEP_ALIVE: Marks = Marks(1 << 3);
    /// The peer is to be told of urgent data now, with data or without.
    pub const ANNOUNCE_URGENT: Marks = Marks(1 << 4);
    /// The next small segment goes whatever silly-window avoidance says (RFC 9293 §3.8.6.2.1, override).
    pub const OVERRIDE: Marks = Marks(1 << 5);
    /// What lets one segment go, and is over when one left.
    pub const OCCASIONS: Marks = Marks(Marks::PROBE.0 | Marks::OVERRIDE.0);
    /// Both sides sent timestamps.
    pub const TIMESTAMPS: Marks = Marks(1 << 6);
    /// Both sides sent a window scale.
    pub const SCALING: Marks = Marks(1 << 7);
    /// We called; the peer listened or called too.
    pub const ACTIVE: Marks = Marks(1 << 8);
    /// The SYN and ACK waits for the application's word.
    pub const HELD: Marks = Marks(1 << 9);
    /// Our side closed before the handshake was done.
    pub const CLOSE_AFTER_OPEN: Marks = Marks(1 << 10);
    /// FIN-WAIT-2 that nobody holds is a whole connection still: a bit that means nothing else by then.
    pub const WHOLE: Marks = Marks::CLOSE_AFTER_OPEN;
    /// The application reads no more.
    pub const RECEIVE_CLOSED: Marks = Marks(1 << 11);
    /// A write found the send buffer full; it is owed WRITABLE.
    pub const WRITER_WAITS: Marks = Marks(1 << 12);
    /// The SYN was sent more than once.
    pub const SYN_REPEATED: Marks = Marks(1 << 13);
    /// Both sides may send selective acknowledgments.
    pub const SACK: Marks = Marks(1 << 14);
    /// Both sides take part in explicit congestion notification.
    pub const ECN: Marks = Marks(1 << 15);
    /// Congestion marks came: each acknowledgment says so until the peer answers (RFC 3168 §6.1.3).
    pub const ECHO_CONGESTION: Marks = Marks(1 << 16);
    /// The next new data tells that the window was reduced (RFC 3168 §6.1.2).
    pub const WINDOW_REDUCED: Marks = Marks(1 << 17);
    /// A probe of the tail is due now (RFC 8985 §7.3).
    pub const TAIL_PROBE: Marks = Marks(1 << 18);
    /// The application holds small segments back until it lets go.
    pub const CORKED: Marks = Marks(1 << 19);
    /// The handshake is not done, and what follows our SYN may be sent: `send.unacknowledged` is behind the SYN
    /// already (RFC 7413 §4.2.1).
    pub const EARLY: Marks = Marks(1 << 20);
    /// The path is IPv6's: it is never narrower than that protocol's least MTU.
    pub const IPV6: Marks = Marks(1 << 21);
    /// The link refused the last data, which waits for an occasion to be tried again.
    pub const REFUSED: Marks = Marks(1 << 27);
    /// When the SYN left is known.
    pub const SYN_TIMED: Marks = Marks(1 << 22);
    /// The data of a SYN, ours or the peer's, was taken with it.
    pub const SYN_DATA: Marks = Marks(1 << 23);
    /// The pace holds the next data back.
    pub const PACED: Marks = Marks(1 << 24);
    /// The path's largest segment is searched for.
    pub const SEARCHES: Marks = Marks(1 << 25);
    /// `transmit` would send something: what `next_segment` said when last asked.
    pub const WANTS: Marks = Marks(1 << 26);
    /// Devices make the checksums of what leaves, as far as was seen: nobody asks for sums of payloads.
    pub const UNSUMMED: Marks = Marks(1 << 28);
    /// Part of what is due leaves before all else: see [`crate::Connection::goes_apart`].
    pub const APART: Marks = Marks(1 << 29);
    /// What goes before the stream, where anything does.
    pub const FIRST: Marks = Marks(Marks::PROBE.0 | Marks::APART.0);
    /// Something of the peer's is not acknowledged yet.
    pub const SCHEDULED: Marks = Marks(1 << 31);
    /// What is over as soon as the peer is heard.
    pub const SILENCE: Marks = Marks(Marks::KEEP_ALIVE.0 | Marks::HELD_UP.0);
    /// The path has become narrower: what is out goes again, and nothing else before the next event.
    pub const REPAIRS_ONLY: Marks = Marks(1 << 30);
    /// What is over when the application adds to the stream.
    pub const HELD_UP: Marks = Marks(Marks::REFUSED.0 | Marks::REPAIRS_ONLY.0);
    /// What may keep a segment in order from being an ordinary one.
    pub const CLOSED_OR_ECN: Marks = Marks(Marks::RECEIVE_CLOSED.0 | Marks::ECN.0);
    /// What is due of its own, for a quick look.
    pub const DUE: Marks = Marks(0b1_1111);

    /// What may ask for a segment, an acknowledgment apart, or keep one back, where all that was queued is out.
    pub const STIRS: Marks = Marks(
        Marks::SYNCHRONISE.0
            | Marks::PROBE.0
            | Marks::KEEP_ALIVE.0
            | Marks::ANNOUNCE_URGENT.0
            | Marks::TAIL_PROBE.0
            | Marks::HELD_UP.0,
    );

    /// What a segment that opens or closes the connection in good order has nothing to do with.
    pub const UNUSUAL: Marks = Marks(
        Marks::PROBE.0
            | Marks::KEEP_ALIVE.0
            | Marks::ANNOUNCE_URGENT.0
            | Marks::TAIL_PROBE.0
            | Marks::REFUSED.0
            | Marks::ECHO_CONGESTION.0
            | Marks::HELD.0
            | Marks::EARLY.0
            | Marks::WRITER_WAITS.0
            | Marks::APART.0,
    );

    /// What keeps all that is queued from leaving as one segment with a plain header.
    pub const RARE: Marks = Marks(
        Marks::STIRS.0
            | Marks::PACED.0
            | Marks::CORKED.0
            | Marks::OVERRIDE.0
            | Marks::SEARCHES.0
            | Marks::ECHO_CONGESTION.0
            | Marks::WINDOW_REDUCED.0,
    );

    /// Whether any of `mark` is set.
    pub const fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }
    pub fn set(&mut self, mark: Marks) {
        self.0 |= mark.0;
    }
    pub fn clear(&mut self, mark: Marks) {
        self.0 &= !mark.0;
    }
    pub fn put(&mut self, mark: Marks, on: bool) {
        if on { self.set(mark) } else { self.clear(mark) }
    }
}

impl core::ops::BitOr for Marks {
    type Output = Marks;
    fn bitor(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }
}
