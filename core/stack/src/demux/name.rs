//! Socket names: the endpoints by which a packet finds its socket, and their keyed hash.

use inhost_base::{Endpoint, IpAddr, Ipv4Addr, SipKey};
use inhost_wire::protocol;

/// The key of a socket in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    /// The transport, or a transport with [`ANY_ADDRESS`].
    pub(crate) protocol: u8,
    pub(crate) local: Endpoint,
    pub(crate) remote: Endpoint,
}

impl Name {
    #[inline]
    pub(crate) fn tcp(local: Endpoint, remote: Endpoint) -> Name {
        Name { protocol: protocol::TCP, local, remote }
    }
}

/// Added to a protocol number in the names of any-address bindings, so that they do not meet the others.
pub(crate) const ANY_ADDRESS: u8 = 0x80;

/// The remote endpoint of an unconnected socket.
pub(crate) const NOWHERE: Endpoint = Endpoint { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };

/// The name of a binding.
pub(crate) fn binding(number: u8, local: Endpoint, any_address: bool) -> Name {
    let protocol = if any_address { number | ANY_ADDRESS } else { number };
    Name { protocol, local, remote: NOWHERE }
}

/// The name of an echo or probe socket with this identifier, which stands in place of a port.
pub(crate) fn echo_binding(identifier: u16) -> Name {
    binding(protocol::ICMPV4, Endpoint { port: identifier, ..NOWHERE }, false)
}

/// The keyed hash of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct NameHash(u32);

impl NameHash {
    /// For the table, which takes its lowest bits and its highest.
    #[inline]
    pub(crate) fn spread(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
    /// The hash of `name`.
    #[inline]
    pub(crate) fn of(name: &Name, secret: &SipKey) -> NameHash {
        let hash = hash(name, |words| secret.hash_words(words), |words| secret.hash_words(words));
        NameHash((hash >> 32) as u32)
    }
}

/// The words of a name as input of a keyed hash: two of IPv4, otherwise five.
#[inline(always)]
pub(crate) fn hash(
    name: &Name,
    short: impl FnOnce([u64; 2]) -> u64,
    long: impl FnOnce([u64; 5]) -> u64,
) -> u64 {
    let Name { protocol, local, remote } = *name;
    let ports = u64::from(local.port) << 32 | u64::from(remote.port) << 16 | u64::from(protocol);
    match (local.address, remote.address) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            short([u64::from(u32::from(local)) << 32 | u64::from(u32::from(remote)), ports])
        }
        (local, remote) => {
            let ([a, b], [c, d]) = (halves(local), halves(remote));
            long([a, b, c, d, ports])
        }
    }
}

fn halves(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    [(bits >> 64) as u64, bits as u64]
}
