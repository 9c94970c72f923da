//! Readiness, as `tokio::io` names it.

use std::ops::{BitAnd, BitOr, BitOrAssign};

use inhost_socket::StreamReadiness;

/// What a task waits for, as `tokio::io::Interest`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest(u8);

/// What can be done without waiting, as `tokio::io::Ready`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ready(u8);

impl Interest {
    /// To read.
    pub const READABLE: Interest = Interest(1);
    /// To write.
    pub const WRITABLE: Interest = Interest(2);

    /// Whether reading is among it.
    pub const fn is_readable(self) -> bool {
        self.0 & Interest::READABLE.0 != 0
    }
    /// Whether writing is among it.
    pub const fn is_writable(self) -> bool {
        self.0 & Interest::WRITABLE.0 != 0
    }
    /// Both interests.
    pub const fn add(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }
}

impl BitOr for Interest {
    type Output = Interest;
    fn bitor(self, other: Interest) -> Interest {
        self.add(other)
    }
}

impl Ready {
    /// Nothing.
    pub const EMPTY: Ready = Ready(0);
    /// A read gives data, the end of the stream or an error.
    pub const READABLE: Ready = Ready(1);
    /// A write takes bytes or gives an error.
    pub const WRITABLE: Ready = Ready(2);
    /// No more data will come.
    pub const READ_CLOSED: Ready = Ready(4);
    /// Nothing can be written any more.
    pub const WRITE_CLOSED: Ready = Ready(8);
    /// All of these.
    pub const ALL: Ready = Ready(15);

    /// Whether nothing is ready.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Whether there is something to read, or no more will come.
    pub const fn is_readable(self) -> bool {
        self.0 & (Ready::READABLE.0 | Ready::READ_CLOSED.0) != 0
    }
    /// Whether there is room to write, or nothing can be written any more.
    pub const fn is_writable(self) -> bool {
        self.0 & (Ready::WRITABLE.0 | Ready::WRITE_CLOSED.0) != 0
    }
    /// Whether no more data will come.
    pub const fn is_read_closed(self) -> bool {
        self.0 & Ready::READ_CLOSED.0 != 0
    }
    /// Whether nothing can be written any more.
    pub const fn is_write_closed(self) -> bool {
        self.0 & Ready::WRITE_CLOSED.0 != 0
    }
    pub(super) fn of(stream: StreamReadiness) -> Ready {
        let pairs = [
            (stream.readable, Ready::READABLE),
            (stream.writable, Ready::WRITABLE),
            (stream.read_closed, Ready::READ_CLOSED),
            (stream.write_closed, Ready::WRITE_CLOSED),
        ];
        pairs.into_iter().filter(|(is, _)| *is).fold(Ready::EMPTY, |ready, (_, bit)| ready | bit)
    }
    /// What of this `interest` asks for.
    pub(super) fn wanted_by(self, interest: Interest) -> Ready {
        let mut wanted = Ready::EMPTY;
        if interest.is_readable() {
            wanted |= Ready::READABLE | Ready::READ_CLOSED;
        }
        if interest.is_writable() {
            wanted |= Ready::WRITABLE | Ready::WRITE_CLOSED;
        }
        self & wanted
    }
}

impl BitOr for Ready {
    type Output = Ready;
    fn bitor(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }
}
impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Ready) {
        self.0 |= other.0;
    }
}
impl BitAnd for Ready {
    type Output = Ready;
    fn bitand(self, other: Ready) -> Ready {
        Ready(self.0 & other.0)
    }
}
