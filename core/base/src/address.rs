//! IP addresses, endpoints and hardware addresses.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// An Ethernet (EUI-48) address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct HardwareAddress(pub [u8; 6]);

impl HardwareAddress {
    /// Every card on the wire.
    pub const BROADCAST: HardwareAddress = HardwareAddress([0xff; 6]);

    /// Whether a single card is meant.
    pub const fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0
    }
}

impl fmt::Display for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
impl fmt::Debug for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An IP address and a port: one end of a transport conversation.
///
/// ```
/// use inhost_base::{Endpoint, Ipv4Addr};
/// let endpoint = Endpoint::new(Ipv4Addr::new(10, 9, 0, 2), 80);
/// assert_eq!(endpoint.to_string(), "10.9.0.2:80");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Endpoint {
    /// The host; unspecified where any will do.
    pub address: IpAddr,
    /// The port; zero where any will do.
    pub port: u16,
}

impl Endpoint {
    /// The end at `port` of `address`.
    pub fn new(address: impl Into<IpAddr>, port: u16) -> Self {
        Endpoint { address: address.into(), port }
    }
}
impl From<SocketAddr> for Endpoint {
    fn from(a: SocketAddr) -> Self {
        Endpoint { address: a.ip(), port: a.port() }
    }
}
impl From<Endpoint> for SocketAddr {
    fn from(e: Endpoint) -> Self {
        SocketAddr::new(e.address, e.port)
    }
}
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&SocketAddr::from(*self), f)
    }
}
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An address with the length of its prefix, as in `10.9.0.2/24`.
///
/// ```
/// use inhost_base::Cidr;
/// let cidr: Cidr = "10.9.0.2/24".parse()?;
/// assert!(cidr.contains("10.9.0.200".parse().unwrap()));
/// assert!(!cidr.contains("10.9.1.2".parse().unwrap()));
/// # Ok::<(), inhost_base::InvalidCidr>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "freeze", serde(try_from = "(IpAddr, u8)", into = "(IpAddr, u8)"))]
pub struct Cidr {
    address: IpAddr,
    prefix_bits: u8,
}

/// Why a text or a pair is no [`Cidr`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidCidr;

impl fmt::Display for InvalidCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an address with a prefix length, such as 10.9.0.2/24 or fd00::2/64")
    }
}
impl core::error::Error for InvalidCidr {}

impl Cidr {
    /// `address` within its network of `prefix_bits`; an error where the prefix is longer than the address.
    pub fn new(address: impl Into<IpAddr>, prefix_bits: u8) -> Result<Self, InvalidCidr> {
        let address = address.into();
        let most = if address.is_ipv4() { 32 } else { 128 };
        if prefix_bits > most { Err(InvalidCidr) } else { Ok(Cidr { address, prefix_bits }) }
    }
    /// The network that is this address alone.
    pub fn whole(address: impl Into<IpAddr>) -> Cidr {
        let address = address.into();
        Cidr { address, prefix_bits: if address.is_ipv4() { 32 } else { 128 } }
    }
    /// Whether it is one address alone.
    pub fn is_whole(&self) -> bool {
        *self == Cidr::whole(self.address)
    }
    /// The host's own address.
    pub fn address(&self) -> IpAddr {
        self.address
    }
    /// Length of the network part, in bits.
    pub fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }
    /// The address with its host part zeroed.
    pub fn network(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(a) => IpAddr::V4(Ipv4Addr::from(u32::from(a) & self.mask_v4())),
            IpAddr::V6(a) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(a) & mask))
            }
        }
    }
    /// The directed broadcast address; `None` for IPv6 and for /31 and /32 (RFC 3021).
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        match self.address {
            IpAddr::V4(a) if self.prefix_bits < 31 => Some(Ipv4Addr::from(u32::from(a) | !self.mask_v4())),
            _ => None,
        }
    }
    /// Whether `other` is in this network.
    pub fn contains(&self, other: IpAddr) -> bool {
        match Cidr::new(other, self.prefix_bits) {
            Ok(c) => c.address.is_ipv4() == self.address.is_ipv4() && c.network() == self.network(),
            Err(InvalidCidr) => false,
        }
    }
    fn mask_v4(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix_bits)).unwrap_or(0)
    }
}
#[cfg(feature = "freeze")]
impl TryFrom<(IpAddr, u8)> for Cidr {
    type Error = InvalidCidr;
    fn try_from((address, prefix_bits): (IpAddr, u8)) -> Result<Self, InvalidCidr> {
        Cidr::new(address, prefix_bits)
    }
}
#[cfg(feature = "freeze")]
impl From<Cidr> for (IpAddr, u8) {
    fn from(cidr: Cidr) -> (IpAddr, u8) {
        (cidr.address, cidr.prefix_bits)
    }
}
impl FromStr for Cidr {
    type Err = InvalidCidr;
    fn from_str(text: &str) -> Result<Self, InvalidCidr> {
        let (address, bits) = text.split_once('/').ok_or(InvalidCidr)?;
        let address: IpAddr = address.parse().map_err(|_| InvalidCidr)?;
        Cidr::new(address, bits.parse().map_err(|_| InvalidCidr)?)
    }
}
impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}
impl fmt::Debug for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The unspecified address of the family of `address`.
pub fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_own() {
        let c: Cidr = "10.9.0.2/24".parse().unwrap();
        assert!(c.contains("10.9.0.77".parse().unwrap()) && !c.contains("10.9.1.2".parse().unwrap()));
        assert_eq!(c.broadcast(), Some(Ipv4Addr::new(10, 9, 0, 255)));
        assert!("0.0.0.0/0".parse::<Cidr>().unwrap().contains("1.2.3.4".parse().unwrap()));
        assert!("::/0".parse::<Cidr>().unwrap().contains("fe80::1".parse().unwrap()));
        assert!(!"::/0".parse::<Cidr>().unwrap().contains("1.2.3.4".parse().unwrap()));
        assert!("10.0.0.1/33".parse::<Cidr>().is_err());
    }
}
