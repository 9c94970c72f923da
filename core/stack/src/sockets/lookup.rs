//! How a packet finds its socket: the tables of flows and of bindings, and the choice of local ports.

use crate::demux::{ANY_ADDRESS, NOWHERE, Name, NameHash, echo_binding};
use crate::error::BindError;
use crate::socket::{AnySocketId, SocketId, TcpSocketId, UdpSocketId};
use crate::sockets::{Socket, Sockets, Target};
use crate::tcp::{TcpSocket, TcpSocketFlags, default_mss, segment_limit};
use inhost_base::{Endpoint, Instant, IpAddr, Ipv6Addr, Key, LinkId, Random, Sequence, unspecified_like};
use inhost_ip::{Path, Paths};
use inhost_tcp::Open;
use inhost_wire::packet::IpFront;
use inhost_wire::protocol;

impl Sockets {
    /// Lists the sockets of a thawed stack anew.
    #[cfg(feature = "freeze")]
    pub(crate) fn relist(&mut self) -> Result<(), crate::Invalid> {
        self.flows.clear();
        self.bindings.clear();
        let keys: alloc::vec::Vec<Key> = self.slab.iter().map(|(key, _)| key).collect();
        for key in keys {
            let Some(socket) = self.slab.at(key) else { continue };
            let (is_bound, is_flow) = (socket.binding_name().is_some(), socket.flow_name().is_some());
            let is_new = !is_bound || self.bindings.list(&self.slab, key, None).is_some();
            crate::require(is_new, "two sockets at one address")?;
            crate::require(!is_flow || self.list_flow(key, None), "two sockets of one flow")?;
        }
        Ok(())
    }
    /// Whose segment it is that has these ends, for which `is_it` must hold of its connection: mostly it is that of the
    /// last segment.
    #[inline]
    pub(crate) fn find_segment(
        &mut self,
        is_it: impl Fn(&TcpSocket) -> bool,
        name: impl FnOnce() -> Name,
    ) -> Target {
        let takes = |id: &TcpSocketId| {
            self.tcp(*id).is_some_and(|flow| is_it(flow) && !flow.has(TcpSocketFlags::UNLISTED))
        };
        if let Some(last) = self.last_flow.filter(takes) {
            return Ok(last);
        }
        let hash = self.flows.hash(&name());
        let at = |place| self.slab.key_at(place).map(TcpSocketId::of).filter(takes);
        let found = self.flows.find_place(hash, at).ok_or(hash)?;
        self.last_flow = Some(found);
        Ok(found)
    }
    /// Whose segment it is that has this IP header and these ports.
    #[inline]
    pub(crate) fn whose(&mut self, ip: &IpFront<'_>, source_port: u16, destination_port: u16) -> Target {
        let is_it = |flow: &TcpSocket| flow.matches(ip, source_port, destination_port);
        self.find_segment(is_it, || {
            let (source, destination) = ip.addresses();
            let local = Endpoint { address: destination, port: destination_port };
            Name::tcp(local, Endpoint { address: source, port: source_port })
        })
    }
    /// The connection between two ends.
    pub(crate) fn find_tcp(&mut self, name: &Name) -> Option<TcpSocketId> {
        self.find_segment(|flow| flow.name() == *name, || *name).ok()
    }
    /// Puts a connection into the tables; `None` when they are full or its ends are taken. `known` is the hash of these,
    /// where it is known.
    #[inline(always)]
    pub(crate) fn add_flow(&mut self, flow: TcpSocket, known: Option<NameHash>) -> Option<TcpSocketId> {
        let id = self.insert_tcp(flow)?;
        if !self.list_flow(id.key(), known) {
            self.discard_tcp(id);
            return None;
        }
        // The next segment is mostly the answer to its SYN.
        self.last_flow = Some(id);
        Some(id)
    }
    /// Makes a socket be found by its two ends; false when another has the same.
    #[inline]
    fn list_flow(&mut self, key: Key, known: Option<NameHash>) -> bool {
        let listed = self.flows.list(&self.slab, key, known);
        if let (Some(hash), Some(Socket::Tcp(flow))) = (listed, self.slab.at_mut(key)) {
            flow.set_name_hash(hash);
        }
        listed.is_some()
    }
    /// Makes a connection be found no more.
    pub(crate) fn unlist_tcp(&mut self, id: TcpSocketId) {
        let Some(flow) = self.tcp_mut(id) else { return };
        if !flow.has(TcpSocketFlags::UNLISTED) {
            flow.set(TcpSocketFlags::UNLISTED, true);
            let hash = flow.name_hash();
            self.flows.remove(hash, id.place());
        }
    }

    /// The UDP socket that is connected between two ends.
    pub(crate) fn find_connected_udp(&self, name: &Name) -> Option<UdpSocketId> {
        self.flows.find(&self.slab, name).map(UdpSocketId::of)
    }
    /// Connects a UDP socket, so that it is found by its two ends; false when another has the same.
    pub(crate) fn connect_udp(&mut self, id: UdpSocketId, local: Endpoint, remote: Endpoint) -> bool {
        self.unlist_udp(id.into());
        let Some(udp) = self.udp_mut(id) else { return false };
        udp.connect(local, remote);
        let is_new = self.list_flow(id.key(), None);
        if !is_new && let Some(udp) = self.udp_mut(id) {
            udp.disconnect();
        }
        is_new
    }
    /// Makes a UDP socket be found by its two ends no more, while it still has them.
    pub(super) fn unlist_udp(&mut self, socket: SocketId) {
        self.flows.unlist(&self.slab, socket.0);
    }

    /// Adds a socket that takes from anybody, under its local end.
    pub(crate) fn bind(&mut self, socket: Socket) -> Result<SocketId, BindError> {
        let any_address = socket.binding_name().is_some_and(|name| name.protocol & ANY_ADDRESS != 0);
        self.last_binding = None;
        let id = self.insert(socket).ok_or(BindError::TooManySockets)?;
        if self.bindings.list(&self.slab, id.0, None).is_some() {
            self.any_address |= any_address;
            return Ok(id);
        }
        self.remove(id);
        Err(BindError::InUse)
    }
    /// Frees the local end of a socket.
    pub(crate) fn unbind(&mut self, socket: SocketId) {
        self.last_binding = None;
        self.bindings.unlist(&self.slab, socket.0);
    }
    /// The bound socket of a transport for `local` on `link`. In order of preference: bound to this address, to the
    /// unspecified address, to every address, to every address and port.
    pub(crate) fn find_binding(&mut self, paths: &Paths, link: LinkId, name: &Name) -> Option<AnySocketId> {
        let wanted = (name.protocol, link, name.local);
        let found = match self.last_binding {
            Some((last, id)) if last == wanted => Some(id),
            _ => {
                let found = self.search_binding(paths, link, name);
                // A binding to every address depends on the host's own addresses.
                self.last_binding = found.filter(|_| !self.any_address).map(|id| (wanted, id));
                found
            }
        };
        self.typed(found?)
    }
    fn search_binding(&self, paths: &Paths, link: LinkId, name: &Name) -> Option<SocketId> {
        let Name { protocol: number, local, .. } = *name;
        let any_v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let any_own = unspecified_like(local.address);
        let find = |protocol: u8, address: IpAddr, port: u16| {
            let name = Name { protocol, local: Endpoint { address, port }, remote: NOWHERE };
            let found = SocketId(self.bindings.find(&self.slab, &name)?);
            self.any(found)?.bound_link().is_none_or(|bound| bound == link).then_some(found)
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
            Some(_) if !paths.is_local(local.address) => every,
            _ => any.or(every),
        }
    }
    /// The echo or probe socket with this identifier.
    pub(crate) fn find_echo(&self, identifier: u16) -> Option<AnySocketId> {
        self.typed(SocketId(self.bindings.find(&self.slab, &echo_binding(identifier))?))
    }

    /// A free local port for a call from `address` to `remote`, and the hash of the two ends with it.
    pub(crate) fn choose_tcp_port(
        &mut self,
        address: IpAddr,
        remote: Endpoint,
        random: &mut Random,
    ) -> Option<(u16, NameHash)> {
        let Sockets { slab, flows, bindings, identity, .. } = self;
        let mut hash = None;
        let is_free = |port| {
            let local = Endpoint { address, port };
            let name = Name::tcp(local, remote);
            let name_hash = flows.hash(&name);
            hash = Some(name_hash);
            flows.find_hashed(slab, &name, name_hash).is_none()
                && !bindings.is_bound(slab, protocol::TCP, local)
        };
        let port = identity.ephemeral_port(Some((address, remote)), random, is_free)?;
        hash.map(|hash| (port, hash))
    }
    /// A free local port for a UDP socket or a TCP listener at `address`.
    pub(crate) fn choose_bound_port(
        &mut self,
        protocol: u8,
        address: IpAddr,
        random: &mut Random,
    ) -> Result<u16, BindError> {
        let Sockets { slab, bindings, identity, .. } = self;
        let is_free = |port| !bindings.is_bound(slab, protocol, Endpoint { address, port });
        let port = identity.ephemeral_port(None, random, is_free);
        port.ok_or(BindError::NoPort)
    }
    /// Whether the segments between two ends come to this stack, where several form one host.
    pub(crate) fn shares(&self, name: &Name) -> bool {
        self.identity.shares(name)
    }
    /// Parameters of a new connection that the host chooses.
    pub(crate) fn open(&self, path: &Path, name: &Name, now: Instant) -> Open {
        let (initial_sequence, timestamp_offset) = self.initial_sequence(name, now);
        let default_mss = default_mss(name.remote.address);
        let path_mtu_mss = segment_limit(path);
        Open { initial_sequence, timestamp_offset, path_mtu_mss, default_mss, ..Open::default() }
    }
    /// The initial sequence number of a connection that begins now, and the offset of its timestamp clock.
    pub(crate) fn initial_sequence(&self, name: &Name, now: Instant) -> (Sequence, u32) {
        self.identity.initial_sequence(name, now)
    }
}
