//! Addresses as the sockets take them.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use inhost_base::Endpoint;

use crate::current;

/// Anything that stands for socket addresses, as `tokio::net::ToSocketAddrs`: addresses, or a name and a port. Names are
/// looked up by the current host.
pub trait ToSocketAddrs: sealed::Addresses {}

impl<T: sealed::Addresses + ?Sized> ToSocketAddrs for T {}

pub(super) mod sealed {
    use super::{Future, SocketAddr, io};

    /// What was given: addresses, or a name to look up.
    #[derive(Debug)]
    pub enum Given {
        Address(SocketAddr),
        Addresses(Vec<SocketAddr>),
        Name(String, u16),
    }

    impl Given {
        pub async fn resolve(self) -> io::Result<Vec<SocketAddr>> {
            super::resolve(self).await
        }
    }

    pub trait Addresses {
        fn given(&self) -> io::Result<Given>;
        fn addresses(&self) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send {
            let given = self.given();
            async move { given?.resolve().await }
        }
    }
}

use sealed::{Addresses, Given};

async fn resolve(given: Given) -> io::Result<Vec<SocketAddr>> {
    let (name, port) = match given {
        Given::Address(address) => return Ok(vec![address]),
        Given::Addresses(addresses) => return Ok(addresses),
        Given::Name(name, port) => (name, port),
    };
    let addresses = current::host()?.resolve(&name).await?;
    Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

/// Looks up a name, as `tokio::net::lookup_host`.
///
/// # Errors
/// When the name has no address, the host has no resolver, or no host is current.
pub async fn lookup_host<T: ToSocketAddrs>(host: T) -> io::Result<impl Iterator<Item = SocketAddr>> {
    Ok(host.addresses().await?.into_iter())
}

/// Tries `each` address in turn: the first success, or the last error.
pub(super) async fn first_of<A: ToSocketAddrs, T, F: Future<Output = io::Result<T>>>(
    addresses: A,
    each: impl Fn(SocketAddr) -> F,
) -> io::Result<T> {
    let mut last = None;
    for address in addresses.addresses().await? {
        match each(address).await {
            Ok(done) => return Ok(done),
            Err(error) => last = Some(error),
        }
    }
    Err(last
        .unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any address")))
}

fn one(address: impl Into<SocketAddr>) -> io::Result<Given> {
    Ok(Given::Address(address.into()))
}

impl Addresses for SocketAddr {
    fn given(&self) -> io::Result<Given> {
        one(*self)
    }
}
impl Addresses for SocketAddrV4 {
    fn given(&self) -> io::Result<Given> {
        one(*self)
    }
}
impl Addresses for SocketAddrV6 {
    fn given(&self) -> io::Result<Given> {
        one(*self)
    }
}
impl Addresses for Endpoint {
    fn given(&self) -> io::Result<Given> {
        one(*self)
    }
}
impl Addresses for (IpAddr, u16) {
    fn given(&self) -> io::Result<Given> {
        one(*self)
    }
}
impl Addresses for (Ipv4Addr, u16) {
    fn given(&self) -> io::Result<Given> {
        one(*self)
    }
}
impl Addresses for (Ipv6Addr, u16) {
    fn given(&self) -> io::Result<Given> {
        one(*self)
    }
}
impl Addresses for [SocketAddr] {
    fn given(&self) -> io::Result<Given> {
        Ok(Given::Addresses(self.to_vec()))
    }
}
impl Addresses for (&str, u16) {
    fn given(&self) -> io::Result<Given> {
        let (name, port) = *self;
        match name.parse::<IpAddr>() {
            Ok(address) => one((address, port)),
            Err(_) => Ok(Given::Name(name.to_owned(), port)),
        }
    }
}
impl Addresses for (String, u16) {
    fn given(&self) -> io::Result<Given> {
        (self.0.as_str(), self.1).given()
    }
}
impl Addresses for str {
    fn given(&self) -> io::Result<Given> {
        if let Ok(address) = self.parse::<SocketAddr>() {
            return one(address);
        }
        let bad = |what| io::Error::new(io::ErrorKind::InvalidInput, format!("{self:?}: {what}"));
        let (name, port) = self.rsplit_once(':').ok_or_else(|| bad("no port; write HOST:PORT"))?;
        let port = port.parse().map_err(|_| bad("the port is not a number up to 65535"))?;
        (name, port).given()
    }
}
impl Addresses for String {
    fn given(&self) -> io::Result<Given> {
        self.as_str().given()
    }
}
impl<T: Addresses + ?Sized> Addresses for &T {
    fn given(&self) -> io::Result<Given> {
        (**self).given()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        let address = |given: io::Result<Given>| match given {
            Ok(Given::Address(address)) => address,
            other => panic!("{other:?}"),
        };
        assert_eq!(address("10.9.0.1:80".given()).port(), 80);
        assert_eq!(address("[::1]:80".given()).ip(), IpAddr::from(Ipv6Addr::LOCALHOST));
        assert_eq!(address(("::1", 80).given()).ip(), IpAddr::from(Ipv6Addr::LOCALHOST));
        assert!(matches!("server:80".given(), Ok(Given::Name(name, 80)) if name == "server"));
        assert!("server".given().is_err() && "server:http".given().is_err());
    }
}
