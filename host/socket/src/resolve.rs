//! Names to addresses, as a host's tasks ask for them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use inhost_base::IpAddr;

use crate::host::Host;

/// The addresses of a name, sooner or later.
pub type AddressFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + 'a>>;

/// Looks up names: a DNS client, or the table of a simulation.
pub trait Resolve {
    /// The addresses of `name`, the preferred first.
    fn resolve<'a>(&'a self, name: &'a str) -> AddressFuture<'a>;
}

impl Host {
    /// Has `resolver` look up names from now on.
    ///
    /// ```
    /// use inhost_base::{Instant, IpAddr, Ipv4Addr};
    /// use inhost_socket::{Host, AddressFuture, Resolve};
    /// use inhost_stack::{Stack, StackConfig};
    ///
    /// struct Table;
    /// impl Resolve for Table {
    ///     fn resolve<'a>(&'a self, name: &'a str) -> AddressFuture<'a> {
    ///         Box::pin(async move {
    ///             match name {
    ///                 "here" => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
    ///                 _ => Err(std::io::ErrorKind::NotFound.into()),
    ///             }
    ///         })
    ///     }
    /// }
    /// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
    /// host.set_resolver(Table);
    /// let found = host.run_alone(host.resolve("here")).unwrap();
    /// assert_eq!(found.unwrap(), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    /// ```
    pub fn set_resolver(&self, resolver: impl Resolve + 'static) {
        *self.inner().resolver.borrow_mut() = Some(Rc::new(resolver));
    }
    /// The addresses of `name`: an address as it is written, `localhost`, or what the resolver finds.
    pub async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(address) = name.parse() {
            return Ok(vec![address]);
        }
        if name.eq_ignore_ascii_case("localhost") {
            return Ok(vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16])]);
        }
        let resolver = self.inner().resolver.borrow().clone();
        match resolver {
            Some(resolver) => resolver.resolve(name).await,
            None => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "{name}: this host has no resolver; give an address, or set one with set_resolver of \
                     inhost_socket's Host; with the feature \"names\" the crate inhost sets one by itself"
                ),
            )),
        }
    }
}
