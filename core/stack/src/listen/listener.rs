//! A listener: local endpoint, options, counters.

use crate::options::ListenOptions;
use crate::socket::{ConnectionOptions, SocketOption};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use inhost_base::{Duration, Endpoint, Instant};
use inhost_datagram::SocketError;
use inhost_tcp::{Config, ConnectionOption};

/// A handshake that a reset ended counts among those in progress for so long: a spoofed SYN with a stolen cookie makes
/// its victim send one (RFC 7413 §5.1).
const RESET_COUNTS: Duration = Duration::from_secs(60);

/// A listener. [`crate::listen::Listening`] has its SYN queue and its accept queue.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Listener {
    local: Endpoint,
    options: ListenOptions,
    /// Other options that its connections inherit.
    inherited: ConnectionOptions,
    opened: Instant,
    /// Until then an acknowledgment may bring back a cookie.
    cookies_until: Instant,
    /// Connections whose data was taken before their handshake was done.
    fast_opens: usize,
    /// Until when those of them that a reset ended still count.
    fast_open_resets: VecDeque<Instant>,
}

impl Listener {
    pub(crate) fn new(local: Endpoint, options: ListenOptions, tcp: Arc<Config>, now: Instant) -> Listener {
        let inherited = ConnectionOptions {
            tcp,
            cork: false,
            linger: None,
            differentiated_services: 0,
            hop_limit: None,
            dont_fragment: true,
        };
        Listener {
            local,
            options,
            inherited,
            opened: now,
            cookies_until: now,
            fast_opens: 0,
            fast_open_resets: VecDeque::new(),
        }
    }
    /// Gives a thawed listener what is not written with it.
    #[cfg(feature = "freeze")]
    pub(crate) fn thaw(&mut self, tcp: Arc<Config>) {
        self.inherited.tcp = tcp;
    }
    pub(crate) fn local(&self) -> Endpoint {
        self.local
    }
    pub(crate) fn options(&self) -> &ListenOptions {
        &self.options
    }
    /// What its connections inherit.
    pub(crate) fn inherited(&self) -> &ConnectionOptions {
        &self.inherited
    }
    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }
    /// Connections that may wait to be accepted.
    pub(crate) fn backlog(&self) -> usize {
        self.options.backlog.max(1)
    }
    /// Expects cookies to come back until `until`.
    pub(crate) fn expect_cookies(&mut self, until: Instant) {
        self.cookies_until = until;
    }
    /// Whether an acknowledgment may bring back a cookie.
    pub(crate) fn expects_cookies(&self, now: Instant) -> bool {
        now < self.cookies_until
    }
    /// Counts a connection whose data is taken before its handshake is done; false when there are too many.
    pub(crate) fn begin_fast_open(&mut self, now: Instant) -> bool {
        while self.fast_open_resets.pop_front_if(|until| *until <= now).is_some() {}
        // RFC 7413 §5.1: beyond the limit it is an ordinary call.
        let has_room = self.fast_opens + self.fast_open_resets.len() < self.options.fast_open_queue;
        self.fast_opens += usize::from(has_room);
        has_room
    }
    /// The handshake of such a connection is done, or the connection is over.
    pub(crate) fn end_fast_open(&mut self, was_reset: bool, now: Instant) {
        self.fast_opens = self.fast_opens.saturating_sub(1);
        if was_reset {
            self.fast_open_resets.push_back(now + RESET_COUNTS);
        }
    }
    /// Changes an option of the listener, or of the connections that it takes from now on.
    pub(crate) fn set_option(&mut self, option: SocketOption) -> Result<(), SocketError> {
        let (options, inherited) = (&mut self.options, &mut self.inherited);
        let tcp = Arc::make_mut(&mut inherited.tcp);
        match option {
            // Its connections answer SYNs.
            SocketOption::Tcp(ConnectionOption::SynRetries(retries)) => tcp.syn_answer_retries = retries,
            SocketOption::Linger(linger) => inherited.linger = linger,
            SocketOption::DifferentiatedServices(bits) => inherited.differentiated_services = bits,
            SocketOption::HopLimit(limit) => inherited.hop_limit = limit,
            SocketOption::DontFragment(on) => inherited.dont_fragment = on,
            SocketOption::Backlog(count) => options.backlog = count,
            SocketOption::DeferAccept(timeout) => options.defer_accept = timeout,
            SocketOption::FastOpenQueue(count) => options.fast_open_queue = count,
            SocketOption::SynCookies(when) => options.syn_cookies = when,
            option => {
                let option = option.of_connection().filter(|option| option.configure(tcp));
                return option.map(drop).ok_or(SocketError::WrongKind);
            }
        }
        Ok(())
    }
}
