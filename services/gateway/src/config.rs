//! The `user` network: its addresses, its limits, and what may pass.

use inhost_base::{Cidr, Duration, Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_common::{Callers, Transport};
use inhost_link::Spec;
use std::net::SocketAddr;

/// The addresses of the network between a guest and its gateway. They are the ones that users of such networks know
/// from elsewhere: 10.0.2.0/24 with the gateway at .2, names at .3 and the guest at .15; and the same host parts in
/// fd00:10:0:2::/64, a unique local prefix (RFC 4193). All are static; no router is advertised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// The guest's IPv4 address with the network's prefix. Default 10.0.2.15/24.
    pub guest_v4: Cidr,
    /// The gateway's IPv4 address. Default 10.0.2.2.
    pub gateway_v4: Ipv4Addr,
    /// DNS server address over IPv4. Default 10.0.2.3.
    pub names_v4: Ipv4Addr,
    /// The guest's IPv6 address with the network's prefix. Default fd00:10:0:2::15/64.
    pub guest_v6: Cidr,
    /// The gateway's IPv6 address. Default fd00:10:0:2::2.
    pub gateway_v6: Ipv6Addr,
    /// DNS server address over IPv6. Default fd00:10:0:2::3.
    pub names_v6: Ipv6Addr,
}

impl Default for Network {
    fn default() -> Self {
        let v6 = |host| Ipv6Addr::new(0xfd00, 0x10, 0, 2, 0, 0, 0, host);
        let cidr =
            |address: IpAddr, bits| Cidr::new(address, bits).unwrap_or_else(|_| unreachable!("it fits"));
        Network {
            guest_v4: cidr(Ipv4Addr::new(10, 0, 2, 15).into(), 24),
            gateway_v4: Ipv4Addr::new(10, 0, 2, 2),
            names_v4: Ipv4Addr::new(10, 0, 2, 3),
            guest_v6: cidr(v6(0x15).into(), 64),
            gateway_v6: v6(2),
            names_v6: v6(3),
        }
    }
}

impl Network {
    /// Whether `address` is the gateway's.
    pub fn is_gateway(&self, address: IpAddr) -> bool {
        address == self.gateway_v4 || address == self.gateway_v6
    }
    /// The gateway's address and the guest's, of the family in which `caller` came.
    pub(crate) fn ends_for(&self, caller: SocketAddr) -> (IpAddr, IpAddr) {
        if caller.ip().to_canonical().is_ipv6() { self.ends_v6() } else { self.ends_v4() }
    }
    pub(crate) fn ends_v4(&self) -> (IpAddr, IpAddr) {
        (self.gateway_v4.into(), self.guest_v4.address())
    }
    pub(crate) fn ends_v6(&self) -> (IpAddr, IpAddr) {
        (self.gateway_v6.into(), self.guest_v6.address())
    }
    /// Whether names are asked at `address`: at their own address, and at the gateway's.
    pub fn is_names(&self, address: IpAddr) -> bool {
        address == self.names_v4 || address == self.names_v6 || self.is_gateway(address)
    }
    /// Whether the gateway itself stands behind `address`.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.is_names(address)
    }
    /// Whether `address` lies in the network, so that nobody outside has it.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.guest_v4.contains(address) || self.guest_v6.contains(address)
    }
}

/// A port of the operating system that leads to one of the guest's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forward {
    /// The forwarded service.
    pub transport: Transport,
    /// Listening address of the system; port 0 for a free port. Use 127.0.0.1 unless other machines may connect. A
    /// caller over IPv6 reaches the guest's IPv6 address; a connection that is refused there, its IPv4 address.
    pub outside: SocketAddr,
    /// The guest's port.
    pub guest_port: u16,
}

/// Configuration of a gateway.
///
/// ```
/// use inhost_base::Endpoint;
/// use inhost_gateway::{Closed, GatewayConfig, RouteDecision};
/// let config = GatewayConfig::default();
/// let outside = Endpoint::new([192, 0, 2, 9], 443);
/// assert!(matches!(config.route(outside), RouteDecision::Outside(_)));
/// let loopback = Endpoint::new([127, 0, 0, 1], 22);
/// assert_eq!(config.route(loopback), RouteDecision::Closed(Closed::Policy));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// The addresses. Default: see [`Network`].
    pub network: Network,
    /// Ports that lead inward. Default: none.
    pub forwards: Vec<Forward>,
    /// Table of the outer callers of forwarded connections and UDP flows, for services that limit and log by caller: to
    /// them all come from the gateway's address. Default: a table that nobody else reads.
    pub callers: Callers,
    /// The system's name servers, asked in turn. Default: none, and then names are not answered.
    pub resolvers: Vec<Endpoint>,
    /// Ports of the system's loopback that the guest reaches at the gateway's address. Default: none. Cost: whatever
    /// listens on loopback commonly trusts every client that can reach it.
    pub loopback_ports: LoopbackPorts,
    /// Whether the guest may reach link-local addresses and the addresses at which clouds hand out credentials to every
    /// local process (metadata services). Default: no.
    pub allow_link_local: bool,
    /// TCP connections at a time, both directions together. Default: 1024. Beyond it they are refused.
    /// Cost: each takes a descriptor of the system.
    pub connections_limit: usize,
    /// Forwarded connections of one outer caller at a time, an IPv6 /64 being one. Default: 256. Beyond it that caller is
    /// reset, and others find a place.
    pub connections_per_caller: usize,
    /// Connect timeout; until then the guest's SYN stays unanswered, and then the guest's next one is tried anew.
    /// Default: 75 s, about as long as a guest tries.
    pub connect_limit: Duration,
    /// Timeout of an idle half-closed connection. Default: 10 minutes.
    pub half_closed_limit: Duration,
    /// Keep-alive time of outer connections; a connection whose peer answers none of four such probes ends, within
    /// twice this time. Default: 10 minutes.
    pub keep_alive: Duration,
    /// UDP conversations at a time; beyond it the one silent for longest makes room. Default: 512.
    /// Cost: each takes a descriptor of the system.
    pub udp_flows_limit: usize,
    /// Idle timeout of a UDP flow. Default: 120 s (RFC 4787 REQ-5).
    pub udp_idle: Duration,
    /// The same for questions about names. Default: 30 s.
    pub names_idle: Duration,
    /// The MTU of the link. Default: 65,520 bytes: nothing on it is lost, so that large segments only save work.
    pub mtu_bytes: u16,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        GatewayConfig {
            network: Network::default(),
            forwards: Vec::new(),
            callers: Callers::default(),
            resolvers: Vec::new(),
            loopback_ports: LoopbackPorts::None,
            allow_link_local: false,
            connections_limit: 1024,
            connections_per_caller: 256,
            connect_limit: Duration::from_secs(75),
            half_closed_limit: Duration::from_secs(600),
            keep_alive: Duration::from_secs(600),
            udp_flows_limit: 512,
            udp_idle: Duration::from_secs(120),
            names_idle: Duration::from_secs(30),
            mtu_bytes: 65_520,
        }
    }
}

impl From<&inhost_link::Forward> for Forward {
    fn from(forward: &inhost_link::Forward) -> Forward {
        Forward {
            transport: match forward.transport {
                inhost_link::Transport::Tcp => Transport::Tcp,
                inhost_link::Transport::Udp => Transport::Udp,
            },
            outside: forward.from,
            guest_port: forward.to,
        }
    }
}

/// Which ports of the system's loopback a guest may reach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopbackPorts {
    /// None.
    None,
    /// These.
    Only(Vec<u16>),
    /// All.
    All,
}

impl LoopbackPorts {
    fn contain(&self, port: u16) -> bool {
        match self {
            LoopbackPorts::None => false,
            LoopbackPorts::Only(ports) => ports.contains(&port),
            LoopbackPorts::All => true,
        }
    }
}

/// Most name servers that are asked.
pub const RESOLVERS_LIMIT: usize = 3;

impl GatewayConfig {
    /// The gateway of a `user` link as `spec` describes it, with the system's name servers.
    pub fn of_spec(spec: &Spec) -> GatewayConfig {
        let resolv_conf = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let mut config = GatewayConfig {
            forwards: spec.forwards.iter().map(Forward::from).collect(),
            resolvers: GatewayConfig::resolvers_of(&resolv_conf),
            loopback_ports: if spec.reach_loopback { LoopbackPorts::All } else { LoopbackPorts::None },
            ..GatewayConfig::default()
        };
        if let Some(limit) = spec.connections_per_caller {
            config.connections_per_caller = limit;
        }
        if let Some(mtu) = spec.mtu_bytes {
            config.mtu_bytes = u16::try_from(mtu).unwrap_or(u16::MAX);
        }
        config
    }
    /// The name servers that the text of a resolv.conf(5) lists; the local machine's where it lists none, as C
    /// libraries have it.
    pub fn resolvers_of(resolv_conf: &str) -> Vec<Endpoint> {
        let address = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            (words.next() == Some("nameserver")).then(|| words.next()?.parse::<IpAddr>().ok()).flatten()
        };
        let found: Vec<Endpoint> = resolv_conf
            .lines()
            .filter_map(address)
            .take(RESOLVERS_LIMIT)
            .map(|address| Endpoint::new(address, NAMES_PORT))
            .collect();
        if found.is_empty() { vec![Endpoint::new(Ipv4Addr::LOCALHOST, NAMES_PORT)] } else { found }
    }
}

/// The port of the DNS.
pub const NAMES_PORT: u16 = 53;

/// Route of a guest's packets to a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteDecision {
    /// To this end, through a socket of the system.
    Outside(SocketAddr),
    /// To the system's name servers.
    Names,
    /// Nowhere.
    Closed(Closed),
}

/// Why a destination is closed to the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// Nobody has that address or port: it is the gateway's own, or in its network.
    Nobody,
    /// The configuration does not allow it.
    Policy,
    /// It is not an address of one host.
    NotUnicast,
}

impl GatewayConfig {
    /// The route to a guest's `destination`. All protocols obey this decision.
    pub fn route(&self, destination: Endpoint) -> RouteDecision {
        let address = destination.address;
        if destination.port == NAMES_PORT && self.network.is_names(address) {
            return if self.resolvers.is_empty() {
                RouteDecision::Closed(Closed::Nobody)
            } else {
                RouteDecision::Names
            };
        }
        if self.network.is_gateway(address) && self.loopback_ports.contain(destination.port) {
            let loopback = match address {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            };
            return RouteDecision::Outside(SocketAddr::new(loopback, destination.port));
        }
        match self.closed(address) {
            Some(closed) => RouteDecision::Closed(closed),
            None => RouteDecision::Outside(SocketAddr::new(address, destination.port)),
        }
    }

    /// Why no port of `address` may be reached, or `None` when it may.
    pub fn closed(&self, address: IpAddr) -> Option<Closed> {
        if self.network.contains(address) {
            return Some(Closed::Nobody);
        }
        match address {
            IpAddr::V4(address) => self.closed_v4(address),
            IpAddr::V6(address) => self.closed_v6(address),
        }
    }

    fn closed_v4(&self, address: Ipv4Addr) -> Option<Closed> {
        let [first, ..] = address.octets();
        // 0.0.0.0/8 is this host to some systems, and 240.0.0.0/4 nobody's.
        if first == 0 || first >= 240 || address.is_multicast() {
            return Some(Closed::NotUnicast);
        }
        let local = address.is_link_local() || METADATA_V4.contains(&address);
        if address.is_loopback() || (local && !self.allow_link_local) {
            return Some(Closed::Policy);
        }
        None
    }

    fn closed_v6(&self, address: Ipv6Addr) -> Option<Closed> {
        // An IPv4 address in any clothes is that IPv4 address: mapped, compatible, translated (RFC 6052), 6to4.
        if let Some(inside) = address.to_ipv4() {
            return self.closed_v4(inside).or(Some(Closed::NotUnicast));
        }
        let octets = address.octets();
        if let [0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
        | [0x20, 0x02, a, b, c, d, _, _, _, _, _, _, _, _, _, _] = octets
            && let Some(closed) = self.closed_v4(Ipv4Addr::new(a, b, c, d))
        {
            return Some(closed);
        }
        if address.is_multicast() {
            return Some(Closed::NotUnicast);
        }
        let local = address.is_unicast_link_local() || METADATA_V6.contains(&address);
        (local && !self.allow_link_local).then_some(Closed::Policy)
    }
}

/// Outside 169.254.0.0/16, where clouds answer questions about the machine that asks.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
/// The same in IPv6.
const METADATA_V6: [Ipv6Addr; 1] = [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)];

#[cfg(test)]
mod tests {
    use super::*;

    fn route(config: &GatewayConfig, text: &str) -> RouteDecision {
        config.route(text.parse::<SocketAddr>().unwrap().into())
    }

    #[test]
    fn by_default_the_machine_itself_and_its_cloud_are_closed() {
        let config = GatewayConfig::default();
        for open in ["1.2.3.4:80", "192.168.1.1:22", "[2001:db8::1]:443", "[64:ff9b::1.2.3.4]:80"] {
            assert_eq!(route(&config, open), RouteDecision::Outside(open.parse().unwrap()));
        }
        for closed in [
            "127.0.0.1:80",
            "127.9.9.9:80",
            "[::1]:80",
            "169.254.169.254:80",
            "100.100.100.200:80",
            "[fe80::1]:80",
            "[fd00:ec2::254]:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:1.2.3.4]:80",
            "[64:ff9b::127.0.0.1]:80",
            "[2002:7f00:1::]:80",
            "0.0.0.0:80",
            "0.1.2.3:80",
            "[::]:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "[ff02::1]:80",
            "10.0.2.2:80",
            "10.0.2.3:80",
            "10.0.2.77:80",
            "[fd00:10:0:2::2]:80",
            "10.0.2.3:53",
        ] {
            assert!(matches!(route(&config, closed), RouteDecision::Closed(_)), "{closed}");
        }
    }

    #[test]
    fn what_is_configured_is_open() {
        let config = GatewayConfig {
            loopback_ports: LoopbackPorts::Only(vec![8080]),
            allow_link_local: true,
            resolvers: GatewayConfig::resolvers_of("nameserver 192.0.2.1\n"),
            ..GatewayConfig::default()
        };
        assert_eq!(
            route(&config, "10.0.2.2:8080"),
            RouteDecision::Outside("127.0.0.1:8080".parse().unwrap())
        );
        assert_eq!(
            route(&config, "[fd00:10:0:2::2]:8080"),
            RouteDecision::Outside("[::1]:8080".parse().unwrap())
        );
        assert_eq!(route(&config, "10.0.2.2:8081"), RouteDecision::Closed(Closed::Nobody));
        assert_eq!(route(&config, "10.0.2.3:8080"), RouteDecision::Closed(Closed::Nobody));
        assert_eq!(route(&config, "127.0.0.1:8080"), RouteDecision::Closed(Closed::Policy));
        for names in ["10.0.2.3:53", "10.0.2.2:53", "[fd00:10:0:2::3]:53"] {
            assert_eq!(route(&config, names), RouteDecision::Names);
        }
        assert!(matches!(route(&config, "169.254.169.254:80"), RouteDecision::Outside(_)));
    }

    #[test]
    fn resolvers_as_the_system_lists_them() {
        let found = GatewayConfig::resolvers_of(
            "search x\nnameserver 127.0.0.53 \nnameserver fe80::1%eth0\n#nameserver 1.1.1.1\n",
        );
        assert_eq!(found, [Endpoint::new([127, 0, 0, 53], 53)]);
        assert_eq!(GatewayConfig::resolvers_of(""), [Endpoint::new([127, 0, 0, 1], 53)]);
    }
}
