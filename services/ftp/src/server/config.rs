//! Configuration of the server.

use inhost_base::{Duration, Ipv4Addr};

/// Whether control connections may be, or must be, encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TlsPolicy {
    /// There is no certificate, so AUTH is refused.
    #[default]
    Off,
    /// TLS on request (AUTH TLS).
    Offered,
    /// Nobody logs in without, no data moves without, and CCC is refused.
    Required,
}

/// Configuration of FTP sessions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Host name in the greeting. Default "inhost".
    pub host_name: String,
    /// Failed passwords before the connection is closed. Default 3.
    pub attempts: u8,
    /// Delay of the reply to a wrong password, doubled for each further one. Default 1 s.
    pub denial: Duration,
    /// Longest time before login. Default 2 minutes.
    pub login_time: Duration,
    /// Longest time from the first octet of a command to its end. Default 30 s.
    pub line_time: Duration,
    /// Idle timeout while no transfer is active. Default 5 minutes (RFC 1123 §4.1.3.2 asks for no less).
    pub idle_time: Duration,
    /// The longest that SITE IDLE may ask for. Default 2 hours.
    pub idle_limit: Duration,
    /// Timeout of a TLS handshake. Default 20 s.
    pub handshake_time: Duration,
    /// Timeout for opening a data connection. Default 30 s.
    pub connect_time: Duration,
    /// Timeout of a stalled transfer. Default 1 minute.
    pub stall_time: Duration,
    /// Longest time to flush output after the end of a session. Default 5 s.
    pub closing_time: Duration,
    /// Encryption. Default off.
    pub tls: TlsPolicy,
    /// Whether an encrypted data connection has to resume the session of its control connection, or of another one of the
    /// same user, so that nobody else's can take its place. Default yes. A client that leaves TLS by CCC without close_notify has no session to resume,
    /// and is not asked to.
    pub resumption_required: bool,
    /// Whether logged-in users may have data connections with others than themselves (RFC 959's third-party
    /// transfers). Default no.
    pub third_party: bool,
    /// Address announced by PASV, if clients reach this host at another one (NAT, forward). Default its own.
    pub passive_address: Option<Ipv4Addr>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            host_name: "inhost".into(),
            attempts: 3,
            denial: Duration::from_secs(1),
            login_time: Duration::from_secs(120),
            line_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(300),
            idle_limit: Duration::from_secs(7200),
            handshake_time: Duration::from_secs(20),
            connect_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(60),
            closing_time: Duration::from_secs(5),
            tls: TlsPolicy::Off,
            resumption_required: true,
            third_party: false,
            passive_address: None,
        }
    }
}
