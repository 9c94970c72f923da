//! What the socket table holds.

use crate::echo::Echo;
use crate::listener::Listener;
use crate::probe::Prober;
use crate::table::{Name, NameHash};
use crate::udp::Udp;
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Key, LinkId};
use inhost_ip::Path;
use inhost_tcp::Connection;
use inhost_wire::direct::Direct;
use inhost_wire::protocol;
use inhost_wire::straight::Straight;

/// Added to a protocol number in the names of any-address bindings, so that they do not meet the others.
pub(crate) const ANY_ADDRESS: u8 = 0x80;

/// One entry. A connection lies in it whole; the other kinds are few, and boxed.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Connections are what there are many of.
pub(crate) enum Socket {
    Flow(Flow),
    Listener(Box<Listener>),
    Udp(Box<Udp>),
    Echo(Box<Echo>),
    Probe(Box<Prober>),
}

/// A connection with its two ends and its way. There may be many, so what is small stands together.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) connection: Connection,
    /// Under which it is found by its ends.
    pub(crate) name_hash: NameHash,
    /// The listener that waits for it, or waited.
    listener: Key,
    /// The state of IP's tables from which the way follows.
    pub(crate) generation: u32,
    local_port: u16,
    remote_port: u16,
    link: LinkId,
    mtu_bytes: u16,
    addresses: Addresses,
    path_hop_limit: u8,
    /// Of the source route that it keeps to.
    option_bytes: u8,
    pub(crate) marks: Marks,
    /// Differentiated services, shifted into place.
    pub(crate) traffic_class: u8,
    /// What the application asks for instead of the path's own.
    pub(crate) hop_limit: Option<u8>,
}

/// What is out of the ordinary about a flow: a set of bits. Zero is the common case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks(u16);

impl Marks {
    /// The application has not been given it yet.
    pub(crate) const UNCLAIMED: Marks = Marks(1);
    /// Its handshake is in progress and counts in the listener's SYN queue.
    pub(crate) const EMBRYO: Marks = Marks(1 << 1);
    /// Its SYN is held until the application decides.
    pub(crate) const HELD: Marks = Marks(1 << 2);
    /// The application has let go of it.
    pub(crate) const ORPHAN: Marks = Marks(1 << 3);
    /// It is no longer found by its ends.
    pub(crate) const UNLISTED: Marks = Marks(1 << 4);
    /// It keeps to its link, whatever the routes say.
    pub(crate) const BOUND: Marks = Marks(1 << 5);
    /// We called.
    pub(crate) const ACTIVE: Marks = Marks(1 << 6);
    /// Its data was taken with its SYN, and its handshake is not done.
    pub(crate) const FAST_OPEN: Marks = Marks(1 << 8);
    /// Its SYN waits for the first data of the application's.
    pub(crate) const DEFERRED: Marks = Marks(1 << 9);
    /// Something is kept beside it in `Stack::extras`.
    pub(crate) const EXTRAS: Marks = Marks(1 << 10);
    /// Its handshake is done, and it is given out when it has data.
    pub(crate) const AWAITS_DATA: Marks = Marks(1 << 11);
    /// Its packets may be fragmented on their way.
    pub(crate) const FRAGMENTS: Marks = Marks(1 << 12);
    /// Incoming segments need a look before the connection gets them.
    pub(crate) const CHECK_INPUT: Marks = Marks(Marks::EMBRYO.0 | Marks::HELD.0);
    /// Changes are nobody's business.
    pub(crate) const SILENT: Marks = Marks(Marks::UNCLAIMED.0 | Marks::ORPHAN.0);

    /// Both sets.
    pub(crate) const fn and(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }
    pub(crate) const fn any(self, of: Marks) -> bool {
        self.0 & of.0 != 0
    }
    pub(crate) fn set(&mut self, marks: Marks) {
        self.0 |= marks.0;
    }
    pub(crate) fn put(&mut self, marks: Marks, on: bool) {
        if on { self.set(marks) } else { self.clear(marks) }
    }
    pub(crate) fn clear(&mut self, marks: Marks) {
        self.0 &= !marks.0;
    }
}

impl Flow {
    /// A connection from `local` to the port at the end of `path`. `listener` counts unless it is
    /// [`Marks::ACTIVE`].
    #[inline]
    pub(crate) fn new(
        connection: Connection,
        path: &Path,
        local_port: u16,
        remote_port: u16,
        listener: Key,
        marks: Marks,
    ) -> Flow {
        let Path { link, next_hop, source, destination, mtu_bytes, hop_limit, option_bytes, generation } =
            *path;
        Flow {
            connection,
            name_hash: NameHash::default(),
            listener,
            generation,
            local_port,
            remote_port,
            link,
            mtu_bytes,
            addresses: Addresses::new(source, destination, next_hop),
            path_hop_limit: hop_limit,
            option_bytes,
            marks,
            traffic_class: 0,
            hop_limit: None,
        }
    }
    pub(crate) fn local(&self) -> Endpoint {
        Endpoint { address: self.addresses.all().0, port: self.local_port }
    }
    pub(crate) fn remote(&self) -> Endpoint {
        Endpoint { address: self.addresses.all().1, port: self.remote_port }
    }
    /// Whether a packet that came in goes from its other end to this one.
    #[inline]
    pub(crate) fn gets(&self, straight: &Straight<'_>) -> bool {
        self.local_port == straight.destination_port
            && self.remote_port == straight.source_port
            && match &self.addresses {
                Addresses::V4(local, remote, _) => straight.addresses_v4() == Some((*remote, *local)),
                Addresses::Long(long) => straight.addresses() == (long.1, long.0),
            }
    }
    /// The same of any segment.
    #[inline]
    pub(crate) fn gets_direct(&self, direct: &Direct<'_>) -> bool {
        self.local_port == direct.destination_port()
            && self.remote_port == direct.source_port()
            && match &self.addresses {
                Addresses::V4(local, remote, _) => direct.addresses_v4() == Some((*remote, *local)),
                Addresses::Long(long) => direct.addresses() == (long.1, long.0),
            }
    }
    pub(crate) fn link(&self) -> LinkId {
        self.link
    }
    /// The link that the application, or the caller, fixed.
    pub(crate) fn bound_link(&self) -> Option<LinkId> {
        self.marks.any(Marks::BOUND).then_some(self.link)
    }
    pub(crate) fn listener(&self) -> Option<Key> {
        (!self.marks.any(Marks::ACTIVE)).then_some(self.listener)
    }
    /// Whether it keeps to a source route.
    pub(crate) fn is_routed(&self) -> bool {
        self.option_bytes > 0
    }
    /// The way that its packets take.
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
    pub(crate) fn goes_straight(&self) -> bool {
        match &self.addresses {
            Addresses::V4(_, remote, next_hop) => remote == next_hop,
            Addresses::Long(long) => long.1 == long.2,
        }
    }
    /// Takes another way between the same ends.
    pub(crate) fn set_path(&mut self, path: &Path) {
        let Path {
            link,
            next_hop,
            source: _,
            destination: _,
            mtu_bytes,
            hop_limit,
            option_bytes,
            generation,
        } = *path;
        let (source, destination, _) = self.addresses.all();
        self.addresses = Addresses::new(source, destination, next_hop);
        (self.link, self.mtu_bytes) = (link, mtu_bytes);
        (self.path_hop_limit, self.option_bytes, self.generation) = (hop_limit, option_bytes, generation);
    }
}

/// Our address, the peer's, and where packets go first. The longer ones lie in a box, so that an entry is small where
/// there are many.
#[derive(Debug)]
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

// What a million of them cost is decided here.
const _: () = assert!(size_of::<Socket>() <= 416);

/// The other end of what has none.
pub(crate) const NOWHERE: Endpoint = Endpoint { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };

impl Socket {
    /// The name of a socket that talks with one other end.
    pub(crate) fn flow_name(&self) -> Option<Name> {
        match self {
            Socket::Flow(flow) => {
                Some(Name { protocol: protocol::TCP, local: flow.local(), remote: flow.remote() })
            }
            Socket::Udp(udp) => {
                let remote = udp.remote.filter(|_| !udp.is_closed())?;
                Some(Name { protocol: protocol::UDP, local: udp.local, remote })
            }
            Socket::Listener(_) | Socket::Echo(_) | Socket::Probe(_) => None,
        }
    }
    /// Whether it takes what is for others' addresses.
    pub(crate) fn is_any_address(&self) -> bool {
        match self {
            Socket::Listener(listener) => listener.options.any_address,
            Socket::Udp(udp) => udp.options.any_address,
            Socket::Probe(prober) => prober.binding().2,
            Socket::Echo(_) | Socket::Flow(_) => false,
        }
    }
    /// The name of a socket that takes from anybody.
    pub(crate) fn binding_name(&self) -> Option<Name> {
        let (number, local, any_address) = match self {
            Socket::Listener(listener) => (protocol::TCP, listener.local, listener.options.any_address),
            Socket::Udp(udp) if udp.is_closed() => return None,
            Socket::Udp(udp) => (protocol::UDP, udp.bound, udp.options.any_address),
            Socket::Echo(echo) => {
                let local = Endpoint { port: echo.identifier, ..NOWHERE };
                return Some(Name { protocol: protocol::ICMPV4, local, remote: NOWHERE });
            }
            Socket::Probe(prober) => prober.binding(),
            Socket::Flow(_) => return None,
        };
        Some(binding(number, local, any_address))
    }
}

/// The name of a binding.
pub(crate) fn binding(number: u8, local: Endpoint, any_address: bool) -> Name {
    let protocol = if any_address { number | ANY_ADDRESS } else { number };
    Name { protocol, local, remote: NOWHERE }
}
