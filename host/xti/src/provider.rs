//! Transport providers and what they offer: `t_info`.

use core::str::FromStr;

use crate::error::Error;

/// Most bytes of a datagram.
pub(crate) const DATAGRAM_MAX_BYTES: usize = 65_507;
/// Bytes of an address: those of IPv6 with the port.
const ADDRESS_BYTES: usize = 18;

/// A transport provider, by the name that `t_open` takes.
///
/// ```
/// use inhost_xti::{Error, Provider};
/// assert_eq!("/dev/tcp".parse(), Ok(Provider::Tcp));
/// assert_eq!("/dev/ticots".parse::<Provider>(), Err(Error::BadName));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Provider {
    /// `/dev/tcp`: connections with orderly release.
    Tcp,
    /// `/dev/udp`: datagrams.
    Udp,
}

impl FromStr for Provider {
    type Err = Error;
    fn from_str(name: &str) -> Result<Provider, Error> {
        match name {
            "/dev/tcp" => Ok(Provider::Tcp),
            "/dev/udp" => Ok(Provider::Udp),
            _ => Err(Error::BadName),
        }
    }
}

/// A limit of a provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// `T_INFINITE`: none.
    Infinite,
    /// `T_INVALID`: the provider has nothing of this kind.
    Invalid,
    /// So many bytes. A `tsdu` of zero means that the provider keeps no boundaries: its data is a stream.
    Bytes(usize),
}

/// What kind of service a provider has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// `T_COTS_ORD`: connections with orderly release.
    ConnectionsOrderly,
    /// `T_CLTS`: datagrams.
    Datagrams,
}

/// What a provider offers: `t_info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Info {
    /// Bytes of an address.
    pub address: Limit,
    /// Bytes of a transport service data unit.
    pub tsdu: Limit,
    /// Bytes of an expedited one.
    pub etsdu: Limit,
    /// Bytes of data with a connection's opening.
    pub connect: Limit,
    /// Bytes of data with a disconnect.
    pub disconnect: Limit,
    /// The service.
    pub service: Service,
    /// `T_SENDZERO`: units without a byte are sent.
    pub sends_zero: bool,
}

impl Provider {
    /// What it offers.
    pub const fn info(self) -> Info {
        match self {
            Provider::Tcp => Info {
                address: Limit::Bytes(ADDRESS_BYTES),
                tsdu: Limit::Bytes(0),
                etsdu: Limit::Infinite,
                connect: Limit::Invalid,
                disconnect: Limit::Invalid,
                service: Service::ConnectionsOrderly,
                sends_zero: false,
            },
            Provider::Udp => Info {
                address: Limit::Bytes(ADDRESS_BYTES),
                tsdu: Limit::Bytes(DATAGRAM_MAX_BYTES),
                etsdu: Limit::Invalid,
                connect: Limit::Invalid,
                disconnect: Limit::Invalid,
                service: Service::Datagrams,
                sends_zero: true,
            },
        }
    }
}
