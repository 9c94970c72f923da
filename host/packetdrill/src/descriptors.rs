//! The descriptor table: real descriptors of the system as placeholders, and the object behind each.

use crate::completions::Completions;
use crate::epoll::Epoll;
use crate::socket::Socket;
use inhost_socket::SendBuffer;
use inhost_stack::SocketId;
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
    /// With what is told of it at MSG_ERRQUEUE, and will be.
    Socket(Box<(Socket, Completions)>),
    Epoll(Epoll),
}

impl From<Socket> for Entry {
    fn from(socket: Socket) -> Entry {
        Entry::Socket(Box::new((socket, Completions::default())))
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
            Entry::Socket(entry) => Ok(&entry.0),
            Entry::Epoll(_) => Err(ENOTSOCK),
        }
    }
    pub fn socket_mut(&mut self, fd: i32) -> Result<&mut Socket, i32> {
        match self.entries.get_mut(&fd).ok_or(EBADF)? {
            Entry::Socket(entry) => Ok(&mut entry.0),
            Entry::Epoll(_) => Err(ENOTSOCK),
        }
    }
    pub fn completions_mut(&mut self, fd: i32) -> Result<&mut Completions, i32> {
        match self.entries.get_mut(&fd).ok_or(EBADF)? {
            Entry::Socket(entry) => Ok(&mut entry.1),
            Entry::Epoll(_) => Err(ENOTSOCK),
        }
    }
    /// Whether something waits to be told of a socket.
    pub fn has_notices(&self, fd: i32) -> bool {
        matches!(self.entries.get(&fd), Some(Entry::Socket(entry)) if entry.1.has_notices())
    }
    pub fn epoll_mut(&mut self, fd: i32) -> Result<&mut Epoll, i32> {
        match self.entries.get_mut(&fd).ok_or(EBADF)? {
            Entry::Epoll(epoll) => Ok(epoll),
            Entry::Socket(_) => Err(libc::EINVAL),
        }
    }
    /// The descriptor of a socket of the stack.
    pub fn holder(&self, socket: SocketId) -> Option<i32> {
        self.entries.iter().find_map(|(&fd, entry)| match entry {
            Entry::Socket(found) if found.0.stack_socket() == Some(socket) => Some(fd),
            _ => None,
        })
    }
    /// Every socket.
    pub fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Socket(entry) => Some(&entry.0),
            Entry::Epoll(_) => None,
        })
    }
    /// The sockets whose room to send is counted here, and that wait for some.
    pub fn waiting_for_room(&self) -> Vec<i32> {
        let wants = |entry: &Entry| match entry {
            Entry::Socket(entry) => entry.0.send_buffer.as_ref().is_some_and(SendBuffer::is_wanted),
            Entry::Epoll(_) => false,
        };
        self.entries.iter().filter(|(_, entry)| wants(entry)).map(|(&fd, _)| fd).collect()
    }
    /// The sockets that wait for a completion.
    pub fn waiting_for_completions(&self) -> Vec<i32> {
        let waits = |entry: &Entry| matches!(entry, Entry::Socket(entry) if entry.1.is_waiting());
        self.entries.iter().filter(|(_, entry)| waits(entry)).map(|(&fd, _)| fd).collect()
    }
    /// Notes that something happened to a descriptor, of a kind that `poll` has `events` for.
    pub fn note(&mut self, fd: i32, events: i16) {
        for entry in self.entries.values_mut() {
            if let Entry::Epoll(epoll) = entry {
                epoll.note(fd, events);
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
