//! Configuration of the server.

use inhost_base::{Duration, Ipv4Addr};

/// Whether control connections may be, or must be, encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TlsPolicy {
    /// There is no certificate, so AUTH is refused.
    #[default]
    Off,
    /// Who says AUTH TLS gets it.
    Offered,
    /// Nobody logs in without, no data moves without, and CCC is refused.
    Required,
}

/// How sessions behave.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What the greeting calls this host. Default "inhost".
    pub host_name: String,
    /// Failed passwords before the connection is closed. Default 3.
    pub attempts: u8,
    /// How long the answer to a wrong password is held back, doubled for each further one. Default 1 s.
    pub denial: Duration,
    /// How long a visitor may stay before being logged in. Default 2 minutes.
    pub login_time: Duration,
    /// How long one command may take to come, from its first octet on. Default 30 s.
    pub line_time: Duration,
    /// How long a user may say nothing while nothing is transferred. Default 5 minutes (RFC 1123 §4.1.3.2 asks for no
    /// less).
    pub idle_time: Duration,
    /// The longest that SITE IDLE may ask for. Default 2 hours.
    pub idle_limit: Duration,
    /// How long a TLS handshake may take. Default 20 s.
    pub handshake_time: Duration,
    /// How long a data connection may take to come about. Default 30 s.
    pub connect_time: Duration,
    /// How long a transfer may not move at all. Default 1 minute.
    pub stall_time: Duration,
    /// How long the last octets may take to leave once a session is over. Default 5 s.
    pub closing_time: Duration,
    /// Encryption. Default off.
    pub tls: TlsPolicy,
    /// Whether an encrypted data connection has to resume the session of its control connection, so that nobody
    /// else's can take its place. Default yes. Whoever leaves TLS by CCC without a word that ends it has no session to
    /// resume, and is not asked to.
    pub resumption_required: bool,
    /// Whether logged-in users may have data connections with others than themselves (RFC 959's third-party
    /// transfers). Default no.
    pub third_party: bool,
    /// What PASV calls this host, where clients see it at another address. Default its own.
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
