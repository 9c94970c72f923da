//! Names of a running host: what its clients look up, and the forwarder for others.

use crate::config::{Config, Names as Section};
use crate::dhcp;
use crate::failure::Failure;
use crate::links::Links;
use crate::lookup;
use inhost_base::Endpoint;
use inhost_dhcp::driver::Dhcp;
use inhost_names::forward::{ForwardConfig, Forwarding, serve};
use inhost_names::{DNS_PORT, Hosts, Names, NamesConfig, Servers};
use inhost_runtime::control::{Failure as Refusal, Reply, Server};
use inhost_runtime::{Runtime, entropy};
use inhost_socket::Host;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tracing::error;

/// The running forwarder.
#[derive(Clone)]
pub struct Forwarder {
    running: Rc<Forwarding>,
    asked: Rc<RefCell<Asked>>,
    host: Host,
}

/// What decides whom it asks.
struct Asked {
    section: Section,
    table: String,
    /// Whom the host itself asks.
    own: Vec<Endpoint>,
    /// Whether those are configured, and not the system's.
    is_configured: bool,
    /// Those that leases bring.
    leased: Vec<Endpoint>,
    /// A link's address comes by DHCP, and servers may come with it.
    may_be_leased: bool,
}

/// Lets clients of the control socket look names up: `{"op":"look_up","name":NAME}` gives `"addresses"`, and
/// `{"op":"records",…}` what `inhost lookup --json` prints.
pub fn answer(
    runtime: &Runtime,
    control: &Server,
    config: &Config,
    links: &Links,
    dhcp: Option<&Dhcp>,
    forwarder: Option<&Forwarder>,
) -> Result<(), Failure> {
    let hosts = Hosts::parse(&table(&table_path(config)));
    let servers = servers(config, links);
    let names = NamesConfig { hosts, servers: servers.clone(), seed: seed()?, ..NamesConfig::default() };
    let names = Rc::new(Names::new(runtime.host(), names));
    if let Some(forwarder) = forwarder {
        names.set_home(forwarder.running.home(), config.names.port);
    }
    // A lease's servers go before the system's; what is configured goes before both.
    if let Some(dhcp) = dhcp.filter(|_| !is_configured(config, links)) {
        runtime.host().spawn(dhcp::follow(dhcp.clone(), names.clone(), servers)).detach();
    }
    let asked = names.clone();
    control.handle("look_up", move |_, request| {
        let names = asked.clone();
        async move {
            let name = request["name"].as_str().ok_or_else(|| Refusal::new("give \"name\""))?;
            let found = names.look_up(name).await.map_err(|e| Refusal::new(e.to_string()))?;
            let addresses: Vec<String> = found.iter().map(ToString::to_string).collect();
            Ok(Reply::from(serde_json::json!({ "addresses": addresses })))
        }
    });
    control.handle("records", move |_, request| {
        let names = names.clone();
        async move {
            let request = lookup::request_of(&request).map_err(Refusal::new)?;
            let found = names.records(&request).await.map_err(|e| Refusal::new(e.to_string()))?;
            Ok(Reply::from(lookup::report(&request, &found)))
        }
    });
    Ok(())
}

/// Starts the forwarder.
pub fn start(host: &Host, config: &Config, links: &Links) -> Result<Forwarder, Failure> {
    let asked = Asked {
        section: config.names.clone(),
        table: table(&table_path(config)),
        own: servers(config, links).servers,
        is_configured: is_configured(config, links),
        leased: Vec::new(),
        may_be_leased: !links.dhcp.is_empty(),
    };
    let (forward, hosts) = asked.forward(host)?;
    let running = serve(host, config.names.port, forward, hosts, links.callers.clone(), seed()?)
        .map_err(|e| Failure::operation(e.to_string()))?;
    Ok(Forwarder { running: Rc::new(running), asked: Rc::new(RefCell::new(asked)), host: host.clone() })
}

impl Forwarder {
    /// Takes over what the configuration and the table of hosts say now; what cannot be read leaves all as it was. The
    /// file is read where it holds nobody up.
    pub async fn reload(&self, config: &Config) {
        let (section, path) = (config.names.clone(), table_path(config));
        let table = blocking::unblock(move || table(&path)).await;
        {
            let mut asked = self.asked.borrow_mut();
            asked.section = section;
            asked.table = table;
        }
        self.change();
    }
    /// Asks the servers that leases bring, as long as nothing else is configured.
    pub async fn follow(self, dhcp: Dhcp) {
        let mut seen = 0;
        loop {
            let found: Vec<Endpoint> =
                dhcp.resolvers().servers.into_iter().map(|at| Endpoint::new(at, DNS_PORT)).collect();
            if self.asked.borrow().leased != found {
                self.asked.borrow_mut().leased = found;
                self.change();
            }
            seen = dhcp.changed(seen).await;
        }
    }
    fn change(&self) {
        match self.asked.borrow().forward(&self.host) {
            Ok((forward, hosts)) => self.running.change(forward, hosts),
            Err(failure) => error!(target: "names", "stays as it was: {failure}"),
        }
    }
}

impl Asked {
    /// What the forwarder is told. One that asked itself would wait for itself.
    fn forward(&self, host: &Host) -> Result<(ForwardConfig, Hosts), Failure> {
        let is_leased = !self.is_configured && !self.leased.is_empty();
        let mut forward = self.section.forward(if is_leased { &self.leased } else { &self.own })?;
        let port = self.section.port;
        let is_itself =
            |at: &Endpoint| at.port == port && host.with_stack(|stack, _| stack.ip().is_local(at.address));
        forward.servers.retain(|server| !is_itself(server));
        match forward.servers.is_empty() && !self.may_be_leased {
            true => Err(Failure::usage(
                "names: there is no server to forward to; name one, as in names.servers = [\"10.9.0.1\"]",
            )),
            false => Ok((forward, self.section.table(&self.table))),
        }
    }
}

/// What the banner says of it.
pub fn line(config: &Config) -> String {
    format!("  names     port {} (TCP and UDP)\n", config.names.port)
}

fn seed() -> Result<[u8; 32], Failure> {
    entropy().map_err(|e| Failure::operation(format!("the system has no entropy: {e}")))
}

fn table_path(config: &Config) -> PathBuf {
    config.hosts.clone().unwrap_or_else(|| "/etc/hosts".into())
}

/// The text of a table of hosts; one that cannot be read is empty.
fn table(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn is_configured(config: &Config, links: &Links) -> bool {
    !config.nameserver.is_empty() || !links.nameservers.is_empty()
}

/// Whom the host asks: those of the configuration, else of its links, else of the system.
fn servers(config: &Config, links: &Links) -> Servers {
    let configured = [&config.nameserver, &links.nameservers].into_iter().find(|list| !list.is_empty());
    match configured {
        Some(list) => Servers::of(list.iter().copied()),
        None => Servers::parse(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
    }
}
