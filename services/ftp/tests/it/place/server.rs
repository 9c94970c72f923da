//! What a server of FTP asks of its host, for tests on real and on simulated hosts: user "ada" with password "engine".

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use inhost_common::storage::{Storage, UnixTime};
use inhost_common::{Admission, Callers, LocalFuture};
use inhost_ftp::driver::{
    Entry, Granted, HostNetwork, PassivePorts, Services, SessionEvent, TlsServer, Transferred,
};
use inhost_ftp::server::Rights;
use inhost_socket::Host;

pub struct Server {
    pub host: Host,
    pub network: HostNetwork,
    pub ports: PassivePorts<HostNetwork>,
    pub callers: Callers,
    pub admission: Admission,
    pub storage: Rc<dyn Storage>,
    pub tls: Option<TlsServer>,
    /// The limit of user "slow", in bytes a second.
    pub rate: Option<u64>,
    /// Passwords that were looked at.
    pub checked: Cell<u32>,
    pub log: RefCell<Vec<String>>,
}

impl Server {
    /// Without TLS and without a limit of rate; passive ports 40000 to 40004.
    pub fn new(host: &Host, storage: Rc<dyn Storage>, admission: Admission) -> Server {
        let (network, callers) = (HostNetwork::new(host), Callers::default());
        Server {
            ports: PassivePorts::new(Rc::new(network.clone()), Some(40_000..=40_004), callers.clone()),
            callers,
            network,
            admission,
            storage,
            tls: None,
            rate: None,
            checked: Cell::new(0),
            log: RefCell::default(),
            host: host.clone(),
        }
    }
}

impl Services for Server {
    type Clock = Host;
    type Network = HostNetwork;
    fn clock(&self) -> &Host {
        &self.host
    }
    fn unix_time(&self) -> UnixTime {
        UnixTime { seconds: 1_795_300_000, nanoseconds: 0 }
    }
    fn network(&self) -> &HostNetwork {
        &self.network
    }
    fn ports(&self) -> &PassivePorts<HostNetwork> {
        &self.ports
    }
    fn callers(&self) -> &Callers {
        &self.callers
    }
    fn admission(&self) -> &Admission {
        &self.admission
    }
    fn tls(&self) -> Option<TlsServer> {
        self.tls.clone()
    }
    fn log_in(&self, user: String, password: String) -> LocalFuture<Entry> {
        self.checked.set(self.checked.get() + 1);
        let entry = match (&*user, &*password) {
            ("ada" | "slow", "engine") => Entry::Granted(Granted {
                storage: self.storage.clone(),
                rights: Rights { write: true },
                account: None,
                rate_bytes_per_second: self.rate.filter(|_| user == "slow"),
            }),
            ("busy", _) => Entry::Busy,
            _ => Entry::Denied,
        };
        Box::pin(std::future::ready(entry))
    }
    fn record(&self, event: SessionEvent<'_>) {
        self.log.borrow_mut().push(format!("{event:?}"));
    }
    fn record_transfer(&self, transfer: Transferred<'_>) {
        self.log.borrow_mut().push(format!("{transfer:?}"));
    }
}
