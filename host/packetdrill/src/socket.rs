//! A socket as its owner sees it, and the options that are remembered for it.

use crate::address::Family;
use crate::flags::Profile;
use crate::sysctl::{self, FastOpenKeys};
use inhost_base::Endpoint;
use inhost_event::TcpState;
use inhost_socket::{SendBuffer, UNCOUNTED_BYTES};
use inhost_stack::{ListenerId, SocketId, SocketOption, TcpConfig, TcpSocketId};

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
    /// The room of a connection that begins, counted as Linux does, where that is asked for.
    pub fn room(&self) -> Option<SendBuffer> {
        let fixed = self.options.send_buffer_bytes;
        let first = fixed.unwrap_or(self.config.send_buffer_initial_bytes);
        (self.profile == Profile::Linux)
            .then(|| SendBuffer::new(first, self.config.send_buffer_limit_bytes, fixed.is_some()))
    }
    /// How little may wait to be sent for the first time for more to be wanted.
    pub fn low_water(&self) -> usize {
        match self.options.notsent_lowat {
            0 => self.config.not_sent_low_water_bytes,
            bytes => sysctl::not_sent_low_water(bytes),
        }
    }
    /// How many connections may open fast at a listener, and whether a cookie is needed.
    pub fn fast_open(&self) -> (usize, bool) {
        let asked = usize::try_from(self.options.fast_open_queue).unwrap_or(0);
        match self.profile {
            Profile::Rfc => (asked, false),
            Profile::Linux => {
                let system = sysctl::fast_open();
                let queue = match () {
                    () if !system.server => 0,
                    () if asked == 0 && system.every_listener => self.backlog.max(0) as usize,
                    () => asked,
                };
                (queue, system.server_without_cookie)
            }
        }
    }
    /// The key that its cookies are made with, and the one before it: its own, or the system's.
    pub fn fast_open_keys(&self) -> Option<FastOpenKeys> {
        let (first, rest) = self.options.fast_open_key.split_first_chunk().unzip();
        let own = first.copied().map(|key| (key, rest.and_then(|rest: &[u8]| rest.first_chunk().copied())));
        match self.profile {
            Profile::Rfc => own,
            Profile::Linux => own.or_else(sysctl::fast_open_keys),
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

/// Option values that are only remembered here, or that a fresh socket passes on to its connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered {
    pub reuse_address: bool,
    /// Seconds; `None` is off.
    pub linger: Option<i32>,
    pub cork: bool,
    pub mss: Option<i32>,
    /// 0 is the system's.
    pub notsent_lowat: u32,
    pub syn_retries: Option<i32>,
    pub quick_acknowledgment: Option<i32>,
    pub defer_accept: i32,
    pub fast_open_queue: i32,
    pub fast_open_connect: bool,
    pub fast_open_key: Vec<u8>,
    pub inquires: bool,
    pub zero_copy: bool,
    /// The bits of SO_TIMESTAMPING.
    pub timestamping: u32,
    pub keep_alive: bool,
    pub user_timeout_ms: i32,
    /// `TCP_LINGER2`; 0 is the host's time.
    pub fin_wait_2_seconds: i32,
    pub receive_buffer_bytes: Option<usize>,
    pub send_buffer_bytes: Option<usize>,
}

impl Remembered {
    /// What an accepted connection has of its listener.
    pub fn inherited(&self) -> Remembered {
        Remembered { fast_open_queue: 0, fast_open_key: Vec::new(), ..self.clone() }
    }
}
