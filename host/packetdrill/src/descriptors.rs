//! The descriptor table: real descriptors of the system as placeholders, and the object behind each.

use crate::address::Family;
use crate::calls::readiness::Epoll;
use crate::completions::Completions;
use crate::flags::Profile;
use crate::options::Remembered;
use crate::sysctl;
use inhost_base::Endpoint;
use inhost_event::TcpState;
use inhost_socket::{SendBuffer, UNCOUNTED_BYTES};
use inhost_stack::{ListenerId, SocketId, SocketOption, TcpConfig, TcpSocketId};
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
    /// What `listen` was told.
    pub backlog: i32,
    /// Where `bind` put it.
    pub bound: Option<Endpoint>,
    /// How its connection is to behave, or behaves.
    pub config: TcpConfig,
    pub options: Remembered,
    pub profile: Profile,
    /// Whether the error that ended the connection was told; it is told once.
    pub error_told: bool,
    /// An error that the connection itself does not know, to be told once.
    pub error: Option<i32>,
    /// `connect` was answered, and the SYN waits for the first data.
    pub deferred: bool,
    /// Whether a failed `connect` was told.
    pub connect_told: bool,
    /// The halves that `shutdown` closed.
    pub reading_ended: bool,
    pub writing_ended: bool,
    /// Options that the connection or listener gets as soon as there is one.
    pub pending: Vec<SocketOption>,
    /// What is told at MSG_ERRQUEUE, and will be.
    pub completions: Completions,
    /// How much a write is given room for; `None` leaves it to the stack.
    pub send_buffer: Option<SendBuffer>,
    /// What was last seen of the connection, so that changes are told apart.
    pub seen: Seen,
}

/// What a socket is at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Fresh,
    Listener(ListenerId),
    Connection(TcpSocketId),
}

/// What tells one change from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub received_bytes: u64,
    pub state: Option<TcpState>,
    pub failed: bool,
}

impl Socket {
    pub fn new(family: Family, config: TcpConfig) -> Socket {
        Socket {
            family,
            state: State::Fresh,
            nonblocking: false,
            backlog: 0,
            bound: None,
            config,
            options: Remembered::default(),
            profile: Profile::Rfc,
            error_told: false,
            error: None,
            deferred: false,
            connect_told: false,
            reading_ended: false,
            writing_ended: false,
            pending: Vec::new(),
            completions: Completions::default(),
            send_buffer: None,
            seen: Seen::default(),
        }
    }
    /// How the stack is to treat the connection: where room is counted here, the stack's own limit does not matter.
    pub fn connection_config(&self) -> TcpConfig {
        let mut config = self.config.clone();
        if self.profile == Profile::Linux {
            config.send_buffer_limit_bytes = UNCOUNTED_BYTES;
            config.send_buffer_initial_bytes = UNCOUNTED_BYTES;
            config.not_sent_low_water_bytes = usize::MAX;
        }
        config
    }
    /// Begins to count the room of a connection as Linux does, where that is asked for.
    pub fn count_room(&mut self) {
        if self.profile == Profile::Linux {
            let fixed = self.options.send_buffer_bytes;
            let first = fixed.unwrap_or(self.config.send_buffer_initial_bytes);
            self.send_buffer =
                Some(SendBuffer::new(first, self.config.send_buffer_limit_bytes, fixed.is_some()));
        }
    }
    /// How little may wait to be sent for the first time for more to be wanted.
    pub fn low_water(&self) -> usize {
        match self.options.notsent_lowat {
            0 => self.config.not_sent_low_water_bytes,
            bytes => sysctl::not_sent_low_water(bytes),
        }
    }
    /// The connection's name.
    pub fn connection(&self) -> Option<TcpSocketId> {
        match self.state {
            State::Connection(socket) => Some(socket),
            _ => None,
        }
    }
    /// The name of whatever it is in the stack.
    pub fn stack_socket(&self) -> Option<SocketId> {
        match self.state {
            State::Connection(socket) => Some(socket.into()),
            State::Listener(socket) => Some(socket.into()),
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
    /// The descriptor of a socket of the stack.
    pub fn holder(&self, socket: SocketId) -> Option<i32> {
        self.entries.iter().find_map(|(&fd, entry)| match entry {
            Entry::Socket(found) if found.stack_socket() == Some(socket) => Some(fd),
            _ => None,
        })
    }
    /// Every socket.
    pub fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Socket(socket) => Some(&**socket),
            Entry::Epoll(_) => None,
        })
    }
    /// The sockets whose room to send is counted here, and that wait for some.
    pub fn waiting_for_room(&self) -> Vec<i32> {
        let wants = |entry: &Entry| match entry {
            Entry::Socket(socket) => socket.send_buffer.as_ref().is_some_and(SendBuffer::is_wanted),
            Entry::Epoll(_) => false,
        };
        self.entries.iter().filter(|(_, entry)| wants(entry)).map(|(&fd, _)| fd).collect()
    }
    /// The sockets that wait for a completion.
    pub fn waiting_for_completions(&self) -> Vec<i32> {
        let waits = |entry: &Entry| matches!(entry, Entry::Socket(socket) if socket.completions.is_waiting());
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
