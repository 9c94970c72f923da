//! Names to addresses, as a host's tasks ask for them.

use std::future::Future;
use std::io;
use std::pin::Pin;

use inhost_base::IpAddr;

/// The addresses of a name, sooner or later.
pub type AddressFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + 'a>>;

/// Looks up names: a DNS client, or the table of a simulation.
pub trait Resolve {
    /// The addresses of `name`, the preferred first.
    fn resolve<'a>(&'a self, name: &'a str) -> AddressFuture<'a>;
}
