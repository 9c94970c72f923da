//! Configuration of a host, and options of its sockets.

use crate::demux::Share;
use alloc::vec::Vec;
use inhost_base::{Duration, LinkId};
use inhost_ip::{IpConfig, SourceRoute};
use inhost_tcp::Config;

/// How a host is configured. Begin with [`StackConfig::default`].
///
/// ```
/// use inhost_base::Instant;
/// use inhost_stack::{Stack, StackConfig};
/// let mut config = StackConfig::default();
/// config.memory_limit_bytes = 8 << 20;
/// let stack = Stack::new(config, [7; 32], Instant::ZERO);
/// assert_eq!(stack.instruments().socket_count(), 0);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct StackConfig {
    /// Memory for packets and queues of the whole host, in bytes. Default: 64 MiB. Cost: segments refused at the limit
    /// are retransmitted.
    pub memory_limit_bytes: usize,
    /// Sockets of all kinds. Default: 65,536. Each connection takes less than 512 bytes while it is idle.
    pub socket_limit: usize,
    /// UDP sockets and echo sockets, of the above. Default: 4,096.
    pub datagram_socket_limit: usize,
    /// Most orphans: connections that the application has closed and that still close, TIME-WAIT included. Default:
    /// 16,384. At the limit another's TIME-WAIT is ended. Without one, a connection with a closed window is reset, or
    /// else the one without progress for longest.
    pub orphan_limit: usize,
    /// Stateless resets in a second, of the host, on average: the limit is randomised. Default: 1,000. Cost: segments
    /// above it, of a scanner or of a peer that has restarted, stay unanswered and are retransmitted.
    pub resets_per_second: u32,
    /// The first ephemeral port. Default: 49,152 (RFC 6335 §6).
    pub ephemeral_ports_first: u16,
    /// The last ephemeral port. Default: 65,535.
    pub ephemeral_ports_last: u16,
    /// The share of this stack, where several with the same addresses form one host: see [`StackConfig::shares`].
    /// Default: everything.
    pub share: Option<Share>,
    /// How connections open with data in their SYN. Whether they do is said for each listener and each call.
    pub fast_open: FastOpenConfig,
    /// Defaults of connections' options.
    pub tcp: Config,
    /// The knobs of IP.
    pub ip: IpConfig,
}

impl Default for StackConfig {
    fn default() -> Self {
        StackConfig {
            memory_limit_bytes: 64 << 20,
            socket_limit: 65_536,
            datagram_socket_limit: 4_096,
            orphan_limit: 16_384,
            resets_per_second: 1_000,
            ephemeral_ports_first: 49_152,
            ephemeral_ports_last: 65_535,
            share: None,
            fast_open: FastOpenConfig::default(),
            tcp: Config::default(),
            ip: IpConfig::default(),
        }
    }
}

impl StackConfig {
    /// One configuration for each of `count` shards, which divide what this one allows. `key` is secret, and the same for
    /// all of them.
    pub fn shares(&self, count: u16, key: [u64; 2]) -> Vec<StackConfig> {
        let count = count.max(1);
        let part = |whole: usize| (whole / usize::from(count)).max(1);
        let ephemeral = (self.ephemeral_ports_first, self.ephemeral_ports_last);
        let one = |index| StackConfig {
            memory_limit_bytes: part(self.memory_limit_bytes),
            socket_limit: part(self.socket_limit),
            datagram_socket_limit: part(self.datagram_socket_limit),
            orphan_limit: part(self.orphan_limit),
            resets_per_second: (self.resets_per_second / u32::from(count)).max(1),
            share: (count > 1).then(|| Share::new(index, count, key, ephemeral)),
            ..self.clone()
        };
        (0..count).map(one).collect()
    }
}

/// TCP Fast Open of a host (RFC 7413); each listener and each connection decides whether it uses it.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct FastOpenConfig {
    /// The key of the cookies that are given away. Default: random. Hosts that share an address share it, too.
    pub key: Option<[u8; 16]>,
    /// How long a random key is used; for as long again its cookies still hold. Default: a day. Longer spares round
    /// trips and keeps a stolen cookie of use.
    pub key_life: Duration,
    /// Destinations whose cookie is kept. Default: 1,024. Cost: some 80 bytes each.
    pub destinations_limit: usize,
    /// How long a destination is called without the option after two SYNs with it had to be sent again; doubled for
    /// each that follows. Default: a minute (RFC 7413 §4.1.3.1).
    pub destination_pause: Duration,
    /// Assume that a peer without an MSS option accepts segments of the path MTU, not 536 or 1220 bytes. Default: no.
    pub assumes_path_mss: bool,
    /// How long no data goes into SYNs after a connection that began with it fell silent; it doubles with each time
    /// that follows, at most sixfold. Default: one hour.
    pub black_hole_pause: Duration,
}

impl Default for FastOpenConfig {
    fn default() -> Self {
        FastOpenConfig {
            key: None,
            key_life: Duration::from_secs(24 * 3600),
            destinations_limit: 1024,
            destination_pause: Duration::from_secs(60),
            assumes_path_mss: false,
            black_hole_pause: Duration::from_secs(3600),
        }
    }
}

/// When a call bears data in its SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum FastOpenCall {
    /// Never.
    #[default]
    Off,
    /// Data sent before the round's [`crate::Stack::transmit`] goes with the SYN, when a cookie is known; otherwise the
    /// SYN asks for one.
    Now,
    /// The SYN waits for the first send, when a cookie is known: until then the socket is as if connected.
    OnFirstSend,
}

/// Options of a connection before it is opened. Begin with [`ConnectOptions::default`].
///
/// ```
/// use inhost_stack::{ConnectOptions, Local};
/// let mut options = ConnectOptions::default();
/// options.local = Local { address: None, port: 1023 };
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Our end. An address of `None` and a port of 0 are chosen by the host. Default: both chosen.
    // spec: RFC9293 MUST-43
    pub local: Local,
    /// The only link to use. Default: whichever leads there.
    pub link: Option<LinkId>,
    /// Whether the SYN may carry data (RFC 7413). The data may reach the application twice, so it must be idempotent.
    /// Default: [`FastOpenCall::Off`].
    pub fast_open: FastOpenCall,
    /// Send data in the SYN without a cookie, where both sides have agreed to that. Default: no.
    pub fast_open_without_cookie: bool,
    /// The hosts that every packet is to pass on its way, over IPv4. Default: as the routes say.
    // spec: RFC9293 MUST-51
    pub source_route: Option<SourceRoute>,
    /// How the connection behaves. Default: as [`StackConfig::tcp`].
    pub tcp: Option<Config>,
}

/// Our end of something, as far as it is prescribed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Local {
    /// The address, or `None` for the host to choose.
    pub address: Option<inhost_base::IpAddr>,
    /// The port, or 0 for the host to choose.
    pub port: u16,
}

/// How a listener behaves. Begin with [`ListenOptions::default`].
///
/// ```
/// use inhost_stack::{ListenOptions, SynCookies};
/// let mut options = ListenOptions::default();
/// options.backlog = 16;
/// options.syn_cookies = SynCookies::Off;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct ListenOptions {
    /// Connections that may wait to be accepted. Default: 128. While it is full, handshakes are not completed and
    /// new SYNs stay unanswered, so that the caller tries again.
    pub backlog: usize,
    /// Handshakes that may be in progress. Default: 256. When it is full, the oldest one that has lasted three seconds
    /// makes room; a younger one does not, and the SYN gets a cookie or no answer.
    pub syn_queue: usize,
    /// Give a connection out when it has data, or after this time without (until then it counts as a handshake in
    /// progress). Default: at once.
    pub defer_accept: Option<Duration>,
    /// When SYNs are answered with a cookie instead of an entry in the SYN queue. Default:
    /// [`SynCookies::WhenFull`]. Held SYNs never are. For four minutes after the last cookie, data of a caller whose first
    /// segment may be lost is dropped without a reset ([`Drop::NotCredible`](inhost_event::Drop::NotCredible)): by that segment
    /// alone its cookie is known, and it sends it again.
    pub syn_cookies: SynCookies,
    /// Connections whose data may be taken with their SYN before the handshake is done (RFC 7413): as many as may be
    /// in progress. Default: 0, which is off. What such a SYN asks for may be asked twice.
    pub fast_open_queue: usize,
    /// Accept data in SYNs without a cookie. Cost: anyone can make the host work for a forged address. Default: no.
    pub fast_open_without_cookie: bool,
    /// Listen to every destination address of links with [`inhost_ip::InterfaceConfig::any_address`], also those that
    /// are not ours, and with port 0 to every port. For gateways. Default: no.
    pub any_address: bool,
    /// Hand connections out by [`crate::TcpSockets::accept`] before their SYN is answered; [`crate::TcpSockets::proceed`] then
    /// answers and [`crate::TcpSockets::refuse`] resets. Default: no.
    pub hold_syn: bool,
    /// Give out connections that the peer reset while they waited to be accepted, as Linux does. Default: no.
    pub gives_out_reset: bool,
    /// The only link to listen on. Default: every link.
    pub link: Option<LinkId>,
    /// How accepted connections behave. Default: as [`StackConfig::tcp`].
    pub tcp: Option<Config>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        ListenOptions {
            backlog: 128,
            syn_queue: 256,
            defer_accept: None,
            syn_cookies: SynCookies::WhenFull,
            fast_open_queue: 0,
            fast_open_without_cookie: false,
            any_address: false,
            hold_syn: false,
            gives_out_reset: false,
            link: None,
            tcp: None,
        }
    }
}

/// When a listener answers SYNs without keeping anything of them (RFC 4987 §3.6). Such a connection is like any other,
/// except for options that the caller's timestamps did not return: without timestamps it has neither window scale nor
/// SACK nor ECN, and its segment size is rounded down to a common one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum SynCookies {
    /// Never: a SYN for which there is no room stays unanswered.
    Off,
    /// When the SYN queue is full, or memory is short.
    #[default]
    WhenFull,
    /// Every time: no SYN takes memory.
    Always,
}
