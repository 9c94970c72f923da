//! Descriptors: real ones of the system as placeholders, and what is behind each.

use crate::address::Family;
use crate::calls::readiness::Epoll;
use crate::completions::Completions;
use crate::options::Remembered;
use inhost_base::Endpoint;
use inhost_stack::{SocketId, TcpConfig};
use libc::{EBADF, EMFILE, ENOTSOCK};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors that may be ours; a larger number is refused as too many files.
const LIMIT: usize = 4096;

/// Which numbers are ours: read without the lock, because the C library's `close` comes by here for every file of the
/// process, also while the lock is held.
static OURS: [AtomicU64; LIMIT / 64] = [const { AtomicU64::new(0) }; LIMIT / 64];

/// Whether a descriptor is ours.
pub(crate) fn is_ours(fd: i32) -> bool {
    place(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

fn place(fd: i32) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((OURS.get(fd / 64)?, 1 << (fd % 64)))
}

/// One socket, or one set of sockets that are watched.
pub(crate) enum Entry {
    Socket(Box<Socket>),
    Epoll(Epoll),
}

/// A socket as its owner sees it.
pub(crate) struct Socket {
    pub family: Family,
    pub state: State,
    pub nonblocking: bool,
    /// Where `bind` put it.
    pub bound: Option<Endpoint>,
    /// How its connection is to behave, or behaves.
    pub config: TcpConfig,
    pub options: Remembered,
    /// Whether the error that ended the connection was told; it is told once.
    pub error_told: bool,
    /// An error that the connection itself does not know, to be told once.
    pub error: Option<i32>,
    /// Whether a failed `connect` was told.
    pub connect_told: bool,
    /// The halves that `shutdown` closed.
    pub reading_ended: bool,
    pub writing_ended: bool,
    /// What is told at MSG_ERRQUEUE, and will be.
    pub completions: Completions,
    /// Whether the last write found no room, which is what makes room worth telling.
    pub wants_room: bool,
}

/// What a socket is at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Fresh,
    Listener(SocketId),
    Connection(SocketId),
}

impl Socket {
    pub fn new(family: Family, config: TcpConfig) -> Socket {
        Socket {
            family,
            state: State::Fresh,
            nonblocking: false,
            bound: None,
            config,
            options: Remembered::default(),
            error_told: false,
            error: None,
            connect_told: false,
            reading_ended: false,
            writing_ended: false,
            completions: Completions::default(),
            wants_room: false,
        }
    }
    /// The connection's name.
    pub fn connection(&self) -> Option<SocketId> {
        match self.state {
            State::Connection(socket) => Some(socket),
            _ => None,
        }
    }
    /// The name of whatever it is in the stack.
    pub fn stack_socket(&self) -> Option<SocketId> {
        match self.state {
            State::Connection(socket) | State::Listener(socket) => Some(socket),
            State::Fresh => None,
        }
    }
}

/// All of them, by number.
#[derive(Default)]
pub(crate) struct Descriptors {
    entries: BTreeMap<i32, Entry>,
}

impl Descriptors {
    /// Adds an entry behind a fresh placeholder.
    pub fn add(&mut self, entry: Entry) -> Result<i32, i32> {
        // SAFETY: numbers go to the kernel, which answers with a descriptor or an error.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        let Some((word, bit)) = place(fd) else {
            close_placeholder(fd);
            return Err(EMFILE);
        };
        word.fetch_or(bit, Ordering::Release);
        self.entries.insert(fd, entry);
        Ok(fd)
    }
    /// Takes an entry out and closes its placeholder.
    pub fn remove(&mut self, fd: i32) -> Result<Entry, i32> {
        let entry = self.entries.remove(&fd).ok_or(EBADF)?;
        release(fd);
        for other in self.entries.values_mut() {
            if let Entry::Epoll(epoll) = other {
                epoll.forget(fd);
            }
        }
        Ok(entry)
    }
    pub fn socket(&self, fd: i32) -> Result<&Socket, i32> {
        match self.entries.get(&fd).ok_or(EBADF)? {
            Entry::Socket(socket) => Ok(socket),
            Entry::Epoll(_) => Err(ENOTSOCK),
        }
    }
    pub fn socket_mut(&mut self, fd: i32) -> Result<&mut Socket, i32> {
        match self.entries.get_mut(&fd).ok_or(EBADF)? {
            Entry::Socket(socket) => Ok(socket),
            Entry::Epoll(_) => Err(ENOTSOCK),
        }
    }
    pub fn epoll_mut(&mut self, fd: i32) -> Result<&mut Epoll, i32> {
        match self.entries.get_mut(&fd).ok_or(EBADF)? {
            Entry::Epoll(epoll) => Ok(epoll),
            Entry::Socket(_) => Err(libc::EINVAL),
        }
    }
    /// Notes that something happened to a socket of the stack, for those who watch it for changes.
    pub fn changed(&mut self, socket: SocketId) {
        let fd = self.entries.iter().find_map(|(&fd, entry)| match entry {
            Entry::Socket(found) if found.stack_socket() == Some(socket) => Some(fd),
            _ => None,
        });
        if let Some(fd) = fd {
            self.note(fd);
        }
    }
    /// The sockets that wait for a completion.
    pub fn waiting_for_completions(&self) -> Vec<i32> {
        let waits = |entry: &Entry| matches!(entry, Entry::Socket(socket) if socket.completions.is_waiting());
        self.entries.iter().filter(|(_, entry)| waits(entry)).map(|(&fd, _)| fd).collect()
    }
    /// Notes that something happened to a descriptor.
    pub fn note(&mut self, fd: i32) {
        for entry in self.entries.values_mut() {
            if let Entry::Epoll(epoll) = entry {
                epoll.note(fd);
            }
        }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        for &fd in self.entries.keys() {
            release(fd);
        }
    }
}

fn release(fd: i32) {
    if let Some((word, bit)) = place(fd) {
        word.fetch_and(!bit, Ordering::Release);
    }
    close_placeholder(fd);
}

/// Closes by a bare system call, because the C library's `close` is this library's own when it is preloaded.
fn close_placeholder(fd: i32) {
    if fd >= 0 {
        // SAFETY: the descriptor is the placeholder that `add` made, and nobody uses it any more.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
}
