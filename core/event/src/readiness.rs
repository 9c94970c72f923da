//! Socket readiness: which calls would not block.

use core::fmt;

/// The readiness of a socket, as a set of flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Readiness(u8);

bitflags::bitflags! {
    impl Readiness: u8 {
        /// Data, the end of the stream, a datagram or an error can be received without waiting.
        const READABLE = 1;
        /// Data can be sent, or an error be learnt, without waiting.
        const WRITABLE = 1 << 1;
        /// A listener has a connection to accept.
        const ACCEPTABLE = 1 << 2;
        /// The handshake is done.
        const CONNECTED = 1 << 3;
        /// The peer has closed its side; data received before can still be read.
        const PEER_CLOSED = 1 << 4;
        /// Urgent data is ahead in the stream.
        // spec: RFC9293 MUST-32
        const URGENT = 1 << 5;
        /// There is an error to learn.
        const ERROR = 1 << 6;
        /// The connection is over.
        const CLOSED = 1 << 7;
    }
}

impl Readiness {
    /// `other` added when `holds`.
    #[must_use]
    pub const fn with_if(self, other: Readiness, holds: bool) -> Readiness {
        if holds { self.union(other) } else { self }
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
