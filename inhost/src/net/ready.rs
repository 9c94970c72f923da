//! Readiness, as `tokio::io` names it.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};
use std::task::{Context, Poll};

use inhost_socket::StreamReadiness;

/// What a task waits for, as `tokio::io::Interest`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

/// What can be done without waiting, as `tokio::io::Ready`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub struct Ready(u8);

impl Interest {
    /// To read.
    pub const READABLE: Interest = Interest(1);
    /// To write.
    pub const WRITABLE: Interest = Interest(2);
    /// To learn that the connection failed.
    pub const ERROR: Interest = Interest(4);
    /// To learn that urgent data is ahead.
    pub const PRIORITY: Interest = Interest(8);

    /// Whether reading is among it.
    pub const fn is_readable(self) -> bool {
        self.0 & Interest::READABLE.0 != 0
    }
    /// Whether writing is among it.
    pub const fn is_writable(self) -> bool {
        self.0 & Interest::WRITABLE.0 != 0
    }
    /// Whether errors are among it.
    pub const fn is_error(self) -> bool {
        self.0 & Interest::ERROR.0 != 0
    }
    /// Whether urgent data is among it.
    pub const fn is_priority(self) -> bool {
        self.0 & Interest::PRIORITY.0 != 0
    }
    /// Both interests.
    pub const fn add(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }
    /// This interest without the other; `None` if nothing is left.
    pub fn remove(self, other: Interest) -> Option<Interest> {
        Some(Interest(self.0 & !other.0)).filter(|left| left.0 != 0)
    }
    /// Whether a socket can do something of it.
    pub(super) fn is_met(self, socket: StreamReadiness) -> bool {
        !Ready::of(socket, self).is_empty()
    }
}

/// Runs `operation` whenever `poll_ready` is done, until it does not say `WouldBlock`.
pub(super) async fn until_done<R>(
    poll_ready: impl Fn(&mut Context<'_>) -> Poll<()>,
    mut operation: impl FnMut() -> io::Result<R>,
) -> io::Result<R> {
    loop {
        poll_fn(&poll_ready).await;
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

impl BitOr for Interest {
    type Output = Interest;
    fn bitor(self, other: Interest) -> Interest {
        self.add(other)
    }
}

impl BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Interest) {
        *self = self.add(other);
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        names(f, self.0, &["READABLE", "WRITABLE", "ERROR", "PRIORITY"])
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        names(f, self.0, &["READABLE", "WRITABLE", "READ_CLOSED", "WRITE_CLOSED", "ERROR", "PRIORITY"])
    }
}

/// The names of the bits that are set.
fn names(f: &mut fmt::Formatter<'_>, bits: u8, names: &[&str]) -> fmt::Result {
    let set = names.iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0).map(|(_, name)| *name);
    f.write_str(&set.collect::<Vec<_>>().join(" | "))
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
    /// The connection failed.
    pub const ERROR: Ready = Ready(16);
    /// Urgent data is ahead.
    pub const PRIORITY: Ready = Ready(32);
    /// All of these.
    pub const ALL: Ready = Ready(63);

    /// Whether nothing is ready.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Whether there is something to read, or no more will come.
    pub fn is_readable(self) -> bool {
        self.0 & (Ready::READABLE.0 | Ready::READ_CLOSED.0) != 0
    }
    /// Whether there is room to write, or nothing can be written any more.
    pub fn is_writable(self) -> bool {
        self.0 & (Ready::WRITABLE.0 | Ready::WRITE_CLOSED.0) != 0
    }
    /// Whether no more data will come.
    pub fn is_read_closed(self) -> bool {
        self.0 & Ready::READ_CLOSED.0 != 0
    }
    /// Whether nothing can be written any more.
    pub fn is_write_closed(self) -> bool {
        self.0 & Ready::WRITE_CLOSED.0 != 0
    }
    /// Whether the connection failed.
    pub fn is_error(self) -> bool {
        self.0 & Ready::ERROR.0 != 0
    }
    /// Whether urgent data is ahead.
    pub fn is_priority(self) -> bool {
        self.0 & Ready::PRIORITY.0 != 0
    }
    /// What a socket can do, as far as `interest` asks for it.
    pub(super) fn of(socket: StreamReadiness, interest: Interest) -> Ready {
        let triples = [
            (socket.readable, Interest::READABLE, Ready::READABLE),
            (socket.read_closed, Interest::READABLE, Ready::READ_CLOSED),
            (socket.writable, Interest::WRITABLE, Ready::WRITABLE),
            (socket.write_closed, Interest::WRITABLE, Ready::WRITE_CLOSED),
            (socket.failed, Interest::ERROR, Ready::ERROR),
            (socket.urgent, Interest::PRIORITY, Ready::PRIORITY),
        ];
        let asked = triples.into_iter().filter(|(is, of, _)| *is && interest.0 & of.0 != 0);
        asked.fold(Ready::EMPTY, |ready, (_, _, bit)| ready | bit)
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
impl Sub for Ready {
    type Output = Ready;
    fn sub(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }
}
