//! Configuration of a server.

use inhost_base::Duration;

/// Configuration of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Names under which the server may be asked for, besides IP addresses, `localhost` and names below it. `*` is any
    /// name, and leaves pages open to DNS rebinding. Default none.
    pub hosts: Vec<String>,
    /// What a client must know; see [`crate::guard`]. Default nothing.
    pub token: Option<String>,
    /// The most bytes of a request's head, from 8192. Default 16 KiB.
    pub head_bytes: usize,
    /// The most bytes of a request's body. Default 256 KiB.
    pub body_bytes: usize,
    /// Bytes of a response that may wait for a client to read them. Default 64 KiB.
    pub unread_bytes: usize,
    /// How long a connection may stay without a request. Default 60 s.
    pub idle_time: Duration,
    /// The time limit for a request's head, from its first byte. Default 10 s.
    pub head_time: Duration,
    /// The time limit for a request's body. Default 30 s.
    pub body_time: Duration,
    /// How long a client may read nothing of a response. Default 30 s.
    pub stall_time: Duration,
    /// The time since the start of 1970, UTC, for the field `Date`. Default none: the field is not sent.
    pub unix_time: Option<fn() -> std::time::Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            hosts: Vec::new(),
            token: None,
            head_bytes: 16 << 10,
            body_bytes: 256 << 10,
            unread_bytes: 64 << 10,
            idle_time: Duration::from_secs(60),
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(30),
            unix_time: None,
        }
    }
}
