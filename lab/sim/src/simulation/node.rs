//! A program's handle of its host.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Random};
use inhost_socket::{ConnectError, Host, ListenError, Listener, Stream};
use inhost_stack::ListenOptions;

use super::Names;

/// Result of a program.
pub type ProgramResult = Result<(), Box<dyn std::error::Error>>;

/// A host as the program on it has it. It is the [`Host`] itself (connections, listeners, UDP, `sleep`, `timeout`,
/// `spawn`), and knows the other hosts by name. Clones are the same host.
#[derive(Clone)]
pub struct Node {
    host: Host,
    names: Names,
    random: Rc<RefCell<Random>>,
}

impl Node {
    pub(super) fn new(host: Host, names: Names, random: Rc<RefCell<Random>>) -> Node {
        Node { host, names, random }
    }
    /// The host itself.
    pub fn host(&self) -> &Host {
        &self.host
    }
    /// The address of a host, as `tokio::net::lookup_host` would give it.
    pub fn lookup(&self, name: &str) -> Option<IpAddr> {
        self.names.borrow().get(name).copied()
    }
    /// Calls `port` of the host `name`, as `tokio::net::TcpStream::connect` would.
    pub async fn dial(&self, name: &str, port: u16) -> Result<Stream, DialError> {
        let address = self.lookup(name).ok_or_else(|| DialError::UnknownName(name.to_owned()))?;
        self.host.connect(Endpoint::new(address, port)).await.map_err(DialError::Connect)
    }
    /// Listens at `port` of every address, as `tokio::net::TcpListener::bind` would.
    pub fn bind(&self, port: u16) -> Result<Listener, ListenError> {
        self.host.listen(Endpoint::new(Ipv4Addr::UNSPECIFIED, port), ListenOptions::default())
    }
    /// A number below `limit`, which follows from the run's seed; 0 when `limit` is 0.
    pub fn random_below(&self, limit: u32) -> u32 {
        self.random.borrow_mut().public_below(limit)
    }
}

impl Deref for Node {
    type Target = Host;
    fn deref(&self) -> &Host {
        &self.host
    }
}

/// Why [`Node::dial`] failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialError {
    /// No host has this name.
    UnknownName(String),
    /// The connection could not be opened.
    Connect(ConnectError),
}

impl core::fmt::Display for DialError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DialError::UnknownName(name) => write!(f, "no host is called {name}"),
            DialError::Connect(why) => why.fmt(f),
        }
    }
}
impl core::error::Error for DialError {}
