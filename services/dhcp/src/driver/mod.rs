//! The clients of a host's links, on its own sockets: what they want is done to the host, and what is lent is kept.

mod files;
mod link;
mod work;

pub use files::{Files, LocalFuture, Store};

use crate::client::News;
use crate::lease::Lease;
use crate::limits;
use crate::{CLIENT_PORT, CLIENT_PORT_V6};
use inhost_base::{Duration, Endpoint, IpAddr, Ipv4Addr, Ipv6Addr, LinkId};
use inhost_socket::{Host, ListenError, UdpSocket};
use inhost_stack::UdpOptions;
use link::Link;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Memory that replies which nobody has read yet may pin, in bytes: a few dozen of them.
const RECEIVE_LIMIT_BYTES: usize = 64 << 10;

/// Hears what a person may want to know, with the link's name.
pub type Tell = Box<dyn Fn(&str, &News)>;

/// Context of a host's DHCP clients.
pub struct Setup {
    /// The links, each an Ethernet.
    pub links: Vec<LinkId>,
    /// Storage of leases and of the host's identifier.
    pub store: Rc<dyn Store>,
    /// The wall's clock, in seconds since 1970: leases outlive a restart by it.
    pub unix_seconds: fn() -> u64,
    /// What servers are told that the host is called.
    pub host_name: Option<String>,
    /// Randomness for transactions, waits and the host's identifier.
    pub seed: [u8; 32],
    /// Hears what a person may want to know, with the link's name.
    pub tell: Tell,
}

/// Why the clients did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The client's port of IPv4 or IPv6 cannot be had.
    Port(ListenError),
    /// The link has no card, and nobody to ask.
    NoCard(LinkId),
}

impl core::fmt::Display for StartError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            StartError::Port(why) => write!(f, "the DHCP client's port cannot be used: {why}"),
            StartError::NoCard(link) => {
                write!(f, "link {} is not Ethernet: nobody answers DHCP there", link.0)
            }
        }
    }
}
impl core::error::Error for StartError {}

/// The clients of a host. They run until the host stops; clones are the same.
#[derive(Clone)]
pub struct Dhcp {
    shared: Rc<Shared>,
}

struct Shared {
    host: Host,
    links: RefCell<Vec<Link>>,
    v4: UdpSocket,
    v6: UdpSocket,
    store: Rc<dyn Store>,
    unix_seconds: fn() -> u64,
    host_name: Option<String>,
    tell: Tell,
    /// Counts what was done.
    changes: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

/// The client of one link, for instruments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The link.
    pub link: LinkId,
    /// See [`crate::client::Status::state`].
    pub state: &'static str,
    /// The lease in hand.
    pub lease: Option<Lease>,
    /// Until its end; `None` without a lease, or for ever.
    pub expires_in: Option<Duration>,
    /// Until its server is asked for more time; `None` as above.
    pub renews_in: Option<Duration>,
    /// The address of the link's own that is used instead.
    pub link_local: Option<Ipv4Addr>,
    /// Whether DHCPv6 is off, asking or informed.
    pub stateless: &'static str,
    /// Name servers by DHCPv6.
    pub name_servers_v6: Vec<Ipv6Addr>,
    /// Search domains by DHCPv6.
    pub search_v6: Vec<String>,
    /// Datagrams that came to the client's ports and were no answer to it.
    pub refused: u64,
}

/// DNS servers and search domains.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resolvers {
    /// In order of preference; at most [`limits::NAME_SERVERS`].
    pub servers: Vec<IpAddr>,
    /// At most [`limits::SEARCH_DOMAINS`].
    pub search: Vec<String>,
}

impl Dhcp {
    /// Starts a client on each of the links.
    pub fn start(host: &Host, setup: Setup) -> Result<Dhcp, StartError> {
        let Setup { links, store, unix_seconds, host_name, seed, tell } = setup;
        let bind = |address: IpAddr, port| {
            let mut options = UdpOptions::default();
            options.broadcast = true;
            options.receive_limit_bytes = RECEIVE_LIMIT_BYTES;
            host.udp(Endpoint::new(address, port), options).map_err(StartError::Port)
        };
        let v4 = bind(Ipv4Addr::UNSPECIFIED.into(), CLIENT_PORT)?;
        let v6 = bind(Ipv6Addr::UNSPECIFIED.into(), CLIENT_PORT_V6)?;
        let found = links.into_iter().map(|link| Link::find(host, link).ok_or(StartError::NoCard(link)));
        let links = RefCell::new(found.collect::<Result<Vec<Link>, StartError>>()?);
        let (changes, waiting) = Default::default();
        let host = host.clone();
        let shared =
            Rc::new(Shared { host, links, v4, v6, store, unix_seconds, host_name, tell, changes, waiting });
        let work = work::run(shared.clone(), seed);
        shared.host.spawn(work).detach();
        Ok(Dhcp { shared })
    }
    /// Each link's client.
    pub fn views(&self) -> Vec<View> {
        let now = self.shared.host.now();
        self.shared.links.borrow().iter().map(|link| link.view(now)).collect()
    }
    /// Name servers and domains of all links, the first link's first, and IPv6's behind IPv4's.
    pub fn resolvers(&self) -> Resolvers {
        let mut found = Resolvers::default();
        let add = |found: &mut Resolvers, servers: Vec<IpAddr>, search: &[String]| {
            for server in servers {
                if found.servers.len() < limits::NAME_SERVERS && !found.servers.contains(&server) {
                    found.servers.push(server);
                }
            }
            for domain in search {
                if found.search.len() < limits::SEARCH_DOMAINS && !found.search.contains(domain) {
                    found.search.push(domain.clone());
                }
            }
        };
        for link in self.shared.links.borrow().iter() {
            if let Some(settings) = link.settings() {
                let servers = settings.name_servers.iter().map(|&a| a.into()).collect();
                add(&mut found, servers, &settings.search);
            }
            if let Some(information) = link.information() {
                let servers = information.name_servers.iter().map(|&a| a.into()).collect();
                add(&mut found, servers, &information.search);
            }
        }
        found
    }
    /// Whether every link has an address, lent or its own.
    pub fn has_addresses(&self) -> bool {
        self.shared.links.borrow().iter().all(Link::has_address)
    }
    /// Waits until something is other than at the count `seen`; gives the count that holds now. The first is 0.
    pub async fn changed(&self, seen: u64) -> u64 {
        poll_fn(|context| {
            let changes = self.shared.changes.get();
            if changes != seen {
                return Poll::Ready(changes);
            }
            let mut waiting = self.shared.waiting.borrow_mut();
            if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
    /// Gives every lease back to its server, for a host that ends; `seed` is randomness for that.
    pub async fn release(&self, seed: [u8; 32]) {
        work::release(&self.shared, seed).await;
    }
    /// Waits until every link has an address.
    pub async fn ready(&self) {
        let mut seen = 0;
        while !self.has_addresses() {
            seen = self.changed(seen).await;
        }
    }
}

impl Shared {
    fn has_changed(&self) {
        self.changes.set(self.changes.get() + 1);
        let waiting = core::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }
}
