//! A TCP socket: a connection with its two ends, its path and its flags.

use crate::demux::{Name, NameHash};
use crate::socket::ListenerId;
use alloc::boxed::Box;
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Key, LinkId};
use inhost_event::{Readiness, TcpState};
use inhost_ip::Path;
use inhost_tcp::{Connection, Environment};
use inhost_wire::packet::IpFront;

/// A connection with its two ends and its path. There may be many, so small fields stand together.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct TcpSocket {
    connection: Connection,
    /// The hash under which it is found by its ends.
    name_hash: NameHash,
    /// The listener that took it; of no meaning with [`TcpSocketFlags::ACTIVE`].
    listener: Key,
    /// The generation of IP's tables from which the path follows.
    generation: u32,
    local_port: u16,
    remote_port: u16,
    link: LinkId,
    mtu_bytes: u16,
    addresses: Addresses,
    path_hop_limit: u8,
    /// Of the source route that it keeps to.
    option_bytes: u8,
    flags: TcpSocketFlags,
    /// Differentiated services, shifted into place.
    traffic_class: u8,
    /// Values that the application set instead of the path's.
    hop_limit: Option<u8>,
}

/// Flags of a connection. Zero is the common case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct TcpSocketFlags(u16);

bitflags::bitflags! {
    impl TcpSocketFlags: u16 {
        /// The application has not been given it yet.
        const UNCLAIMED = 1;
        /// Its handshake is in progress and counts in the listener's SYN queue.
        const HALF_OPEN = 1 << 1;
        /// Its SYN is held until the application decides.
        const HELD = 1 << 2;
        /// The application has let go of it.
        const ORPHAN = 1 << 3;
        /// Removed from demultiplexing.
        const UNLISTED = 1 << 4;
        /// Bound to its link, whatever the routes say.
        const BOUND = 1 << 5;
        /// We called.
        const ACTIVE = 1 << 6;
        /// Its data was taken with its SYN, and its handshake is not done.
        const FAST_OPEN = 1 << 8;
        /// Its SYN waits for the first data of the application's.
        const DEFERRED = 1 << 9;
        /// Optional state is kept beside it: see [`crate::tcp::OptionalState`].
        const OPTIONAL_STATE = 1 << 10;
        /// Its handshake is done, and it is given out when it has data.
        const AWAITS_DATA = 1 << 11;
        /// Its packets may be fragmented on their way.
        const FRAGMENTS = 1 << 12;
        /// Received segments need checks before the connection gets them.
        const CHECK_INPUT = Self::HALF_OPEN.bits() | Self::HELD.bits();
        /// No notices of changes.
        const SILENT = Self::UNCLAIMED.bits() | Self::ORPHAN.bits();
    }
}

impl TcpSocket {
    /// A connection from `local_port` to `remote_port` over `path`. Without a listener we called, and it is
    /// [`TcpSocketFlags::ACTIVE`].
    #[inline(always)]
    pub(crate) fn new(
        connection: Connection,
        path: &Path,
        local_port: u16,
        remote_port: u16,
        listener: Option<ListenerId>,
        flags: TcpSocketFlags,
    ) -> TcpSocket {
        let Path { link, next_hop, source, destination, mtu_bytes, hop_limit, option_bytes, generation } =
            *path;
        let active = if listener.is_none() { TcpSocketFlags::ACTIVE } else { TcpSocketFlags::default() };
        TcpSocket {
            connection,
            name_hash: NameHash::default(),
            listener: listener.map_or(Key::from_bits(0), ListenerId::key),
            generation,
            local_port,
            remote_port,
            link,
            mtu_bytes,
            addresses: Addresses::new(source, destination, next_hop),
            path_hop_limit: hop_limit,
            option_bytes,
            flags: flags.union(active),
            traffic_class: 0,
            hop_limit: None,
        }
    }
    #[inline]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }
    #[inline]
    pub(crate) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
    /// Whether it has any of these flags.
    #[inline]
    pub(crate) fn has(&self, flags: TcpSocketFlags) -> bool {
        self.flags.intersects(flags)
    }
    pub(crate) fn flags(&self) -> TcpSocketFlags {
        self.flags
    }
    pub(crate) fn set(&mut self, flags: TcpSocketFlags, on: bool) {
        self.flags.set(flags, on);
    }
    /// Lets the SYN go that waited for the first data.
    #[inline]
    pub(crate) fn release_deferred(&mut self, env: &mut Environment<'_>) {
        if self.has(TcpSocketFlags::DEFERRED) {
            self.set(TcpSocketFlags::DEFERRED, false);
            self.connection.release_syn(env);
        }
    }
    pub(crate) fn name_hash(&self) -> NameHash {
        self.name_hash
    }
    pub(crate) fn set_name_hash(&mut self, hash: NameHash) {
        self.name_hash = hash;
    }
    /// Differentiated services, shifted into place.
    pub(crate) fn traffic_class(&self) -> u8 {
        self.traffic_class
    }
    pub(crate) fn set_traffic_class(&mut self, traffic_class: u8) {
        self.traffic_class = traffic_class;
    }
    /// The hops that the application asks for instead of the path's own.
    pub(crate) fn hop_limit(&self) -> Option<u8> {
        self.hop_limit
    }
    pub(crate) fn set_hop_limit(&mut self, hop_limit: Option<u8>) {
        self.hop_limit = hop_limit;
    }
    /// Whether its path follows from IP's tables as they are at `generation`.
    #[inline]
    pub(crate) fn has_path_of(&self, generation: u32) -> bool {
        self.generation == generation
    }
    /// Lets the path be asked for again before the next segment leaves.
    pub(crate) fn expire_path(&mut self, generation: u32) {
        self.generation = generation.wrapping_sub(1);
    }
    pub(crate) fn local(&self) -> Endpoint {
        Endpoint { address: self.addresses.all().0, port: self.local_port }
    }
    pub(crate) fn remote(&self) -> Endpoint {
        Endpoint { address: self.addresses.all().1, port: self.remote_port }
    }
    /// Its name in the table of flows.
    pub(crate) fn name(&self) -> Name {
        Name::tcp(self.local(), self.remote())
    }
    /// Whether a packet goes from the remote end to the local one.
    #[inline]
    pub(crate) fn matches(&self, ip: &IpFront<'_>, source_port: u16, destination_port: u16) -> bool {
        self.local_port == destination_port
            && self.remote_port == source_port
            && match &self.addresses {
                Addresses::V4(local, remote, _) => ip.addresses_v4() == Some((*remote, *local)),
                Addresses::Long(long) => ip.addresses() == (long.1, long.0),
            }
    }
    pub(crate) fn link(&self) -> LinkId {
        self.link
    }
    /// The link that the application, or the caller, fixed.
    pub(crate) fn bound_link(&self) -> Option<LinkId> {
        self.flags.contains(TcpSocketFlags::BOUND).then_some(self.link)
    }
    /// The listener that took it, unless we called.
    pub(crate) fn listener(&self) -> Option<ListenerId> {
        (!self.flags.contains(TcpSocketFlags::ACTIVE)).then_some(ListenerId::of(self.listener))
    }
    /// Whether the handshake is still to be done.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.connection.state(), TcpState::SynSent | TcpState::SynReceived)
    }
    /// The readiness for the application, if it holds the socket.
    pub(crate) fn readiness(&self) -> Readiness {
        if self.has(TcpSocketFlags::SILENT) {
            return Readiness::empty();
        }
        let connection = &self.connection;
        let state = connection.state();
        let closed = state == TcpState::Closed;
        let peer_closed = matches!(
            state,
            TcpState::CloseWait
                | TcpState::Closing
                | TcpState::LastAck
                | TcpState::TimeWait
                | TcpState::Closed
        );
        let readable = connection.receiver().readable_bytes() > 0 || peer_closed;
        let is_early = connection.sender().is_early() || self.has(TcpSocketFlags::DEFERRED);
        let sendable = is_early || matches!(state, TcpState::Established | TcpState::CloseWait);
        let failed = connection.error().is_some();
        Readiness::empty()
            .with_if(Readiness::READABLE, readable)
            .with_if(Readiness::WRITABLE, closed || (sendable && connection.sender().writable_bytes() > 0))
            .with_if(Readiness::CONNECTED, (is_early || !self.is_opening()) && !failed)
            .with_if(Readiness::PEER_CLOSED, peer_closed)
            .with_if(Readiness::URGENT, connection.receiver().urgent_ahead().is_some())
            .with_if(Readiness::ERROR, failed)
            .with_if(Readiness::CLOSED, closed)
    }
    /// Whether it keeps to a source route.
    pub(crate) fn is_routed(&self) -> bool {
        self.option_bytes > 0
    }
    /// The path that its packets take.
    pub(crate) fn path(&self) -> Path {
        let (source, destination, next_hop) = self.addresses.all();
        Path {
            link: self.link,
            next_hop,
            source,
            destination,
            mtu_bytes: self.mtu_bytes,
            hop_limit: self.path_hop_limit,
            option_bytes: self.option_bytes,
            generation: self.generation,
        }
    }
    /// Whether its packets go to the other end without a gateway.
    #[inline]
    pub(crate) fn is_on_link(&self) -> bool {
        match &self.addresses {
            Addresses::V4(_, remote, next_hop) => remote == next_hop,
            Addresses::Long(long) => long.1 == long.2,
        }
    }
    /// Takes another path between the same ends.
    pub(crate) fn set_path(&mut self, path: &Path) {
        let (source, destination, _) = self.addresses.all();
        self.addresses = Addresses::new(source, destination, path.next_hop);
        (self.link, self.mtu_bytes, self.generation) = (path.link, path.mtu_bytes, path.generation);
        (self.path_hop_limit, self.option_bytes) = (path.hop_limit, path.option_bytes);
    }
}

/// Our address, the peer's, and where packets go first. The longer ones lie in a box, so that an entry is small where
/// there are many.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
enum Addresses {
    V4(Ipv4Addr, Ipv4Addr, Ipv4Addr),
    Long(Box<(IpAddr, IpAddr, IpAddr)>),
}

impl Addresses {
    #[inline]
    fn new(local: IpAddr, remote: IpAddr, next_hop: IpAddr) -> Self {
        match (local, remote, next_hop) {
            (IpAddr::V4(local), IpAddr::V4(remote), IpAddr::V4(next_hop)) => {
                Addresses::V4(local, remote, next_hop)
            }
            long => Addresses::Long(Box::new(long)),
        }
    }
    #[inline]
    fn all(&self) -> (IpAddr, IpAddr, IpAddr) {
        match self {
            Addresses::V4(local, remote, next_hop) => {
                (IpAddr::V4(*local), IpAddr::V4(*remote), IpAddr::V4(*next_hop))
            }
            Addresses::Long(long) => **long,
        }
    }
}
