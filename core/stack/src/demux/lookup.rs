//! The demultiplexer: the tables of flows and of bindings, and the choice of local ports.

use crate::demux::name::{ANY_ADDRESS, NOWHERE, Name, NameHash, binding};
use crate::demux::ports::{Identity, PortSelection};
use crate::demux::table::Table;
use crate::error::BindError;
use crate::options::StackConfig;
use crate::sockets::{Socket, SocketId, Sockets, TcpSocket, TcpSocketFlags, TcpSocketId, UdpSocketId};
use inhost_base::{Endpoint, Instant, IpAddr, Ipv4Addr, Ipv6Addr, LinkId, Random, Sequence};
use inhost_ip::Ip;
use inhost_wire::protocol;

/// Finds the socket that a packet is for. Flows have two ends and are looked up first; bindings have a local end and take
/// from anybody.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Demux {
    flows: Table,
    bindings: Table,
    identity: Identity,
    /// Some binding accepts, or accepted, every address.
    any_address: bool,
    /// The last binding look-up, by transport and link, and its result. Valid until a socket is bound.
    // A cache.
    #[cfg_attr(feature = "freeze", serde(skip))]
    last_binding: Option<((u8, LinkId, Endpoint), SocketId)>,
    /// The flow that the last segment was for; it may be gone.
    last_flow: Option<TcpSocketId>,
}

impl Demux {
    pub(crate) fn new(random: &mut Random) -> Demux {
        Demux {
            flows: Table::new(random.private_key(), Socket::flow_name),
            bindings: Table::new(random.private_key(), Socket::binding_name),
            identity: Identity::new(random),
            any_address: false,
            last_binding: None,
            last_flow: None,
        }
    }

    /// Lists the sockets of a thawed stack anew.
    #[cfg(feature = "freeze")]
    pub(crate) fn relist(&mut self, sockets: &mut Sockets) -> Result<(), inhost_base::freeze::Invalid> {
        use inhost_base::freeze::{Invalid, require};
        self.flows = Table::new(self.flows.secret(), Socket::flow_name);
        self.bindings = Table::new(self.bindings.secret(), Socket::binding_name);
        let mut tcp = alloc::vec::Vec::new();
        for (id, socket) in sockets.iter() {
            if socket.binding_name().is_some() {
                require(self.bindings.insert(sockets, id), "two sockets at one address")?;
            }
            match socket {
                Socket::Tcp(flow) if flow.has(TcpSocketFlags::UNLISTED) => {}
                Socket::Tcp(_) => tcp.push(TcpSocketId::of(id.0)),
                socket if socket.flow_name().is_some() => {
                    require(self.flows.insert(sockets, id), "two sockets of one flow")?;
                }
                _ => {}
            }
        }
        for id in tcp {
            if !self.list_tcp(sockets, id, None) {
                return Err(Invalid("two connections of one flow"));
            }
        }
        Ok(())
    }
    /// Gives a fork secrets of its own; [`Demux::relist`] must follow.
    #[cfg(feature = "freeze")]
    pub(crate) fn reseed(&mut self, random: &mut Random) {
        let any_address = self.any_address;
        *self = Demux { any_address, ..Demux::new(random) };
    }
    /// The connection between two ends: mostly that of the last segment.
    pub(crate) fn find_tcp(
        &self,
        sockets: &Sockets,
        local: Endpoint,
        remote: Endpoint,
    ) -> Option<TcpSocketId> {
        let is_it = |id: &TcpSocketId| {
            sockets.tcp(*id).is_some_and(|flow| {
                (flow.local(), flow.remote()) == (local, remote) && !flow.has(TcpSocketFlags::UNLISTED)
            })
        };
        self.last_flow.filter(is_it).or_else(|| self.search_tcp(sockets, local, remote))
    }
    /// The connection between two ends, where it need not be that of the last segment.
    pub(crate) fn search_tcp(
        &self,
        sockets: &Sockets,
        local: Endpoint,
        remote: Endpoint,
    ) -> Option<TcpSocketId> {
        let found = self.flows.find(sockets, &Name { protocol: protocol::TCP, local, remote })?;
        Some(TcpSocketId::of(found.0))
    }
    /// The connection whose name has this hash and for which `is_it` holds.
    #[inline]
    pub(crate) fn find_tcp_hashed(
        &self,
        sockets: &Sockets,
        hash: NameHash,
        is_it: impl Fn(&TcpSocket) -> bool,
    ) -> Option<TcpSocketId> {
        let is_it = |id: SocketId| is_tcp(sockets, TcpSocketId::of(id.0), &is_it);
        let found = self.flows.find_hashed(sockets, hash, is_it)?;
        Some(TcpSocketId::of(found.0))
    }
    /// The hash of a connection's name.
    #[inline]
    pub(crate) fn tcp_hash(&self, local: Endpoint, remote: Endpoint) -> NameHash {
        self.flows.hash(&Name { protocol: protocol::TCP, local, remote })
    }
    /// The connection that the last segment was for, if `is_it` holds for it.
    #[inline]
    pub(crate) fn last_tcp(
        &self,
        sockets: &Sockets,
        is_it: impl Fn(&TcpSocket) -> bool,
    ) -> Option<TcpSocketId> {
        self.last_flow.filter(|&id| is_tcp(sockets, id, &is_it))
    }
    /// The connection that the last segment was for; it may be gone.
    #[inline]
    pub(crate) fn last_flow(&self) -> Option<TcpSocketId> {
        self.last_flow
    }
    /// Remembers whom a segment was for.
    #[inline]
    pub(crate) fn remember_last_flow(&mut self, id: TcpSocketId) {
        self.last_flow = Some(id);
    }
    /// Makes a connection be found by its ends; false when another has the same. `known` is the hash of its name, where
    /// that is known.
    #[inline]
    pub(crate) fn list_tcp(
        &mut self,
        sockets: &mut Sockets,
        id: TcpSocketId,
        known: Option<NameHash>,
    ) -> bool {
        let listed = self.flows.insert_hashed(sockets, id.into(), known);
        match (listed, sockets.tcp_mut(id)) {
            (Some(hash), Some(flow)) => {
                flow.set_name_hash(hash);
                true
            }
            _ => false,
        }
    }
    /// Makes a connection be found no more.
    pub(crate) fn unlist_tcp(&mut self, sockets: &mut Sockets, id: TcpSocketId) {
        let Some(flow) = sockets.tcp_mut(id) else { return };
        if !flow.has(TcpSocketFlags::UNLISTED) {
            flow.set(TcpSocketFlags::UNLISTED);
            self.flows.remove_hashed(flow.name_hash(), id.into());
        }
    }

    /// The UDP socket that is connected between two ends.
    pub(crate) fn find_connected_udp(
        &self,
        sockets: &Sockets,
        local: Endpoint,
        remote: Endpoint,
    ) -> Option<UdpSocketId> {
        let found = self.flows.find(sockets, &Name { protocol: protocol::UDP, local, remote })?;
        Some(UdpSocketId::of(found.0))
    }
    /// Makes a UDP socket be found by its two ends, while it has them; false when another has the same.
    pub(crate) fn list_udp(&mut self, sockets: &Sockets, id: UdpSocketId) -> bool {
        self.flows.insert(sockets, id.into())
    }
    /// Makes a UDP socket be found by its two ends no more, while it still has them.
    pub(crate) fn unlist_udp(&mut self, sockets: &Sockets, socket: SocketId) {
        self.flows.remove(sockets, socket);
    }

    /// Adds a socket that takes from anybody, under its local end.
    pub(crate) fn bind(&mut self, sockets: &mut Sockets, socket: Socket) -> Result<SocketId, BindError> {
        let any_address = socket.is_any_address();
        self.last_binding = None;
        let id = sockets.insert(socket).ok_or(BindError::TooManySockets)?;
        if self.bindings.insert(sockets, id) {
            self.any_address |= any_address;
            return Ok(id);
        }
        sockets.remove(id);
        Err(BindError::InUse)
    }
    /// Frees the local end of a socket.
    pub(crate) fn unbind(&mut self, sockets: &Sockets, socket: SocketId) {
        self.last_binding = None;
        self.bindings.remove(sockets, socket);
    }
    /// The bound socket of a transport for `local` on `link`. In order of preference: bound to this address, to the
    /// unspecified address, to every address, to every address and port.
    pub(crate) fn find_binding(
        &mut self,
        sockets: &Sockets,
        ip: &Ip,
        number: u8,
        link: LinkId,
        local: Endpoint,
    ) -> Option<SocketId> {
        let wanted = (number, link, local);
        if let Some((last, id)) = self.last_binding
            && last == wanted
        {
            return Some(id);
        }
        let found = self.search_binding(sockets, ip, number, link, local);
        // A binding to every address depends on the host's own addresses.
        self.last_binding = found.filter(|_| !self.any_address).map(|id| (wanted, id));
        found
    }
    fn search_binding(
        &self,
        sockets: &Sockets,
        ip: &Ip,
        number: u8,
        link: LinkId,
        local: Endpoint,
    ) -> Option<SocketId> {
        let any_v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let any_own = match local.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => any_v6,
        };
        let find = |protocol: u8, address: IpAddr, port: u16| {
            let name = Name { protocol, local: Endpoint { address, port }, remote: NOWHERE };
            let found = self.bindings.find(sockets, &name)?;
            sockets.any(found)?.is_open_to(link).then_some(found)
        };
        if let Some(exact) = find(number, local.address, local.port) {
            return Some(exact);
        }
        let any = find(number, any_own, local.port).or_else(|| find(number, any_v6, local.port));
        if !self.any_address {
            return any;
        }
        let every = [(any_own, local.port), (any_v6, local.port), (any_own, 0), (any_v6, 0)]
            .into_iter()
            .find_map(|(address, port)| find(number | ANY_ADDRESS, address, port));
        // An ordinary socket at any address means any address of ours; others' are for those that take every one.
        match every {
            Some(_) if !ip.paths().is_local(local.address) => every,
            _ => any.or(every),
        }
    }
    /// The echo or probe socket with this identifier.
    pub(crate) fn find_echo(&self, sockets: &Sockets, identifier: u16) -> Option<SocketId> {
        let local = Endpoint { port: identifier, ..NOWHERE };
        self.bindings.find(sockets, &binding(protocol::ICMPV4, local, false))
    }

    /// A free local port for a call from `address` to `remote`, and the hash of the two ends with it.
    pub(crate) fn choose_tcp_port(
        &mut self,
        sockets: &Sockets,
        config: &StackConfig,
        address: IpAddr,
        remote: Endpoint,
        random: &mut Random,
    ) -> Option<(u16, NameHash)> {
        let Demux { flows, bindings, identity, .. } = self;
        let mut hash = None;
        let is_free = |port| {
            let local = Endpoint { address, port };
            let name = Name { protocol: protocol::TCP, local, remote };
            let name_hash = flows.hash(&name);
            hash = Some(name_hash);
            let is_it = |id| sockets.any(id).and_then(Socket::flow_name) == Some(name);
            config.share.is_none_or(|share| share.is_ephemeral_here(port))
                && flows.find_hashed(sockets, name_hash, is_it).is_none()
                && !is_bound(bindings, sockets, protocol::TCP, local)
        };
        let range = (config.ephemeral_ports_first, config.ephemeral_ports_last);
        let selection = config.port_selection;
        let port = identity.ephemeral_port(selection, range, Some(address), remote, random, is_free)?;
        hash.map(|hash| (port, hash))
    }
    /// A free local port for a UDP socket or a TCP listener at `address`.
    pub(crate) fn choose_bound_port(
        &mut self,
        sockets: &Sockets,
        config: &StackConfig,
        (protocol, address): (u8, IpAddr),
        random: &mut Random,
    ) -> Option<u16> {
        let Demux { bindings, identity, .. } = self;
        let range = (config.ephemeral_ports_first, config.ephemeral_ports_last);
        let remote = Endpoint { address, port: 0 };
        // RFC 5452 §9.2 asks of a UDP port what RFC 6056 gives by its first algorithm.
        let selection = PortSelection::Random;
        identity.ephemeral_port(selection, range, None, remote, random, |port| {
            config.share.is_none_or(|share| share.is_ephemeral_here(port))
                && !is_bound(bindings, sockets, protocol, Endpoint { address, port })
        })
    }
    /// The initial sequence number of a connection that begins now, and the offset of its timestamp clock.
    pub(crate) fn initial_sequence(
        &self,
        local: Endpoint,
        remote: Endpoint,
        now: Instant,
    ) -> (Sequence, u32) {
        self.identity.initial_sequence(local, remote, now)
    }
}

/// Whether `id` is a connection for which `is_it` holds, and which is found by its ends.
#[inline]
fn is_tcp(sockets: &Sockets, id: TcpSocketId, is_it: &impl Fn(&TcpSocket) -> bool) -> bool {
    sockets.tcp(id).is_some_and(|flow| is_it(flow) && !flow.has(TcpSocketFlags::UNLISTED))
}

/// Whether some socket is bound to `local`, to its port at any address of ours included.
fn is_bound(bindings: &Table, sockets: &Sockets, number: u8, local: Endpoint) -> bool {
    let Endpoint { address, port } = local;
    let any_v4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let any_v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let candidates = match address {
        IpAddr::V4(_) => [address, any_v4, any_v6],
        IpAddr::V6(_) => [address, any_v6, any_v6],
    };
    candidates
        .into_iter()
        .any(|address| bindings.find(sockets, &binding(number, Endpoint { address, port }, false)).is_some())
}
