//! Socket readiness: which calls would not block.

use core::fmt;

/// The readiness of a socket, as a set of flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Readiness(u8);

impl Readiness {
    /// Nothing.
    pub const NONE: Readiness = Readiness(0);
    /// Data, the end of the stream, a datagram or an error can be received without waiting.
    pub const READABLE: Readiness = Readiness(1);
    /// Data can be sent, or an error be learnt, without waiting.
    pub const WRITABLE: Readiness = Readiness(1 << 1);
    /// A listener has a connection to accept.
    pub const ACCEPTABLE: Readiness = Readiness(1 << 2);
    /// The handshake is done.
    pub const CONNECTED: Readiness = Readiness(1 << 3);
    /// The peer has closed its side; data received before can still be read.
    pub const PEER_CLOSED: Readiness = Readiness(1 << 4);
    /// Urgent data is ahead in the stream.
    // spec: RFC9293 MUST-32
    pub const URGENT: Readiness = Readiness(1 << 5);
    /// There is an error to learn.
    pub const ERROR: Readiness = Readiness(1 << 6);
    /// The connection is over.
    pub const CLOSED: Readiness = Readiness(1 << 7);

    /// Whether all of `other` is in this set.
    pub const fn contains(self, other: Readiness) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any of `other` is in this set.
    pub const fn intersects(self, other: Readiness) -> bool {
        self.0 & other.0 != 0
    }
    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Readiness) -> Readiness {
        Readiness(self.0 | other.0)
    }
    /// `other` added when `holds`.
    #[must_use]
    pub const fn with_if(self, other: Readiness, holds: bool) -> Readiness {
        if holds { self.with(other) } else { self }
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] =
            ["readable", "writable", "acceptable", "connected", "peer closed", "urgent", "error", "closed"];
        let present = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        f.debug_set().entries(present.map(|(_, name)| name)).finish()
    }
}
