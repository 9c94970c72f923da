//! The portmapper (RFC 1833): version 2, and GETADDR of rpcbind versions 3 and 4.

use std::net::{IpAddr, SocketAddr};

use super::xdr::{xdr_octets, xdr_struct};

/// Program number.
pub const PROGRAM: u32 = 100_000;
/// The port where it is found.
pub const PORT: u16 = 111;
/// Version 2, the portmapper.
pub const VERSION: u32 = 2;
/// Version 4, rpcbind.
pub const VERSION_4: u32 = 4;
/// Protocol number of TCP.
pub const TCP: u32 = 6;
/// Protocol number of UDP.
pub const UDP: u32 = 17;

/// Procedures of version 2.
pub mod procedure {
    /// Does nothing.
    pub const NULL: u32 = 0;
    /// Enters a port; [`super::Mapping`] to bool.
    pub const SET: u32 = 1;
    /// Removes a port; [`super::Mapping`] to bool.
    pub const UNSET: u32 = 2;
    /// Asks for a port; [`super::Mapping`] to u32, zero for none.
    pub const GETPORT: u32 = 3;
    /// All ports; a list of [`super::Mapping`].
    pub const DUMP: u32 = 4;
    /// Asks for an address in versions 3 and 4; [`super::RpcBinding`] to [`super::Text`], empty for none.
    pub const GETADDR: u32 = 3;
    /// All addresses in versions 3 and 4; a list of [`super::RpcBinding`].
    pub const RPCB_DUMP: u32 = 4;
}

xdr_struct! {
    /// A program's port.
    Mapping {
        /// Program number.
        program: u32,
        /// Version of the program.
        version: u32,
        /// [`TCP`] or [`UDP`].
        protocol: u32,
        /// Its port; not looked at by GETPORT.
        port: u32,
    }
}

xdr_octets! {
    /// A network identifier, an address, an owner.
    Text, 256
}

xdr_struct! {
    /// A program's address.
    RpcBinding {
        /// Program number.
        program: u32,
        /// Version of the program.
        version: u32,
        /// `tcp`, `udp`, `tcp6` or `udp6`.
        network: Text,
        /// A [universal address](universal).
        address: Text,
        /// Who entered it.
        owner: Text,
    }
}

/// An address and port as text (RFC 5665 §5.2.3.3): the port's two octets stand behind the address, with dots.
///
/// ```
/// assert_eq!(inhost_nfs::codec::portmap::universal([10, 9, 0, 1].into(), 2049), "10.9.0.1.8.1");
/// ```
pub fn universal(address: IpAddr, port: u16) -> String {
    format!("{address}.{}.{}", port >> 8, port & 0xff)
}

/// The address and port of such a text.
pub fn from_universal(text: &str) -> Option<SocketAddr> {
    let (rest, low) = text.rsplit_once('.')?;
    let (address, high) = rest.rsplit_once('.')?;
    let port = u16::from_be_bytes([high.parse().ok()?, low.parse().ok()?]);
    Some(SocketAddr::new(address.parse().ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn universal_addresses_go_both_ways() {
        for address in ["10.9.0.1:2049", "[fd00::1]:111", "0.0.0.0:65535"] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(from_universal(&universal(address.ip(), address.port())), Some(address));
        }
        assert!(["", "1.2", "1.2.3.4.5", "1.2.3.4.256.1", "::1"].iter().all(|t| from_universal(t).is_none()));
    }
}
