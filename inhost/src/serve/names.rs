//! Names of a running host: what its clients look up, and the forwarder for others.

use crate::config::Config;
use crate::dhcp;
use crate::failure::Failure;
use crate::links::Links;
use crate::lookup;
use inhost_base::Endpoint;
use inhost_dhcp::driver::Dhcp;
use inhost_names::forward::{Forwarding, serve};
use inhost_names::{Hosts, Names, NamesConfig, Servers};
use inhost_runtime::control::{Failure as Refusal, Reply, Server};
use inhost_runtime::{Runtime, entropy};
use inhost_socket::Host;
use std::path::Path;
use std::rc::Rc;

/// The running forwarder, with whom the host itself asks.
pub struct Forwarder {
    running: Forwarding,
    own: Vec<Endpoint>,
    host: Host,
}

/// Lets clients of the control socket look names up: `{"op":"look_up","name":NAME}` gives `"addresses"`, and
/// `{"op":"records",…}` what `inhost lookup --json` prints.
pub fn answer(
    runtime: &Runtime,
    control: &Server,
    config: &Config,
    links: &Links,
    dhcp: Option<&Dhcp>,
) -> Result<(), Failure> {
    let hosts = Hosts::parse(&table(config));
    let servers = servers(config, links);
    let names = NamesConfig { hosts, servers: servers.clone(), seed: seed()?, ..NamesConfig::default() };
    let names = Rc::new(Names::new(runtime.host(), names));
    // A lease's servers go before the system's; what is configured goes before both.
    let is_configured = !config.nameserver.is_empty() || !links.nameservers.is_empty();
    if let Some(dhcp) = dhcp.filter(|_| !is_configured) {
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
    let own = servers(config, links).servers;
    let forward = config.names.forward(&own)?;
    let forward = without_itself(host, config.names.port, forward)?;
    let hosts = config.names.table(&table(config));
    let running = serve(host, config.names.port, forward, hosts, seed()?)
        .map_err(|e| Failure::operation(e.to_string()))?;
    Ok(Forwarder { running, own, host: host.clone() })
}

impl Forwarder {
    /// Takes over what the configuration and the table of hosts say now; what cannot be read leaves all as it was.
    pub fn reload(&self, config: &Config) {
        let forward = config.names.forward(&self.own);
        match forward.and_then(|forward| without_itself(&self.host, config.names.port, forward)) {
            Ok(forward) => self.running.change(forward, config.names.table(&table(config))),
            Err(failure) => eprintln!("inhost: names stay as they were: {failure}"),
        }
    }
}

/// What the banner says of it.
pub fn line(config: &Config) -> String {
    format!("  names     port {} (TCP and UDP)\n", config.names.port)
}

/// A forwarder that asked itself would wait for itself.
fn without_itself(
    host: &Host,
    port: u16,
    mut forward: inhost_names::forward::ForwardConfig,
) -> Result<inhost_names::forward::ForwardConfig, Failure> {
    let is_itself =
        |at: &Endpoint| at.port == port && host.with_stack(|stack, _| stack.ip().is_local(at.address));
    forward.servers.retain(|server| !is_itself(server));
    match forward.servers.is_empty() {
        true => Err(Failure::usage(
            "names: there is no server to forward to; name one, as in names.servers = [\"10.9.0.1\"]",
        )),
        false => Ok(forward),
    }
}

fn seed() -> Result<[u8; 32], Failure> {
    entropy().map_err(|e| Failure::operation(format!("the system has no entropy: {e}")))
}

fn table(config: &Config) -> String {
    std::fs::read_to_string(config.hosts.as_deref().unwrap_or(Path::new("/etc/hosts"))).unwrap_or_default()
}

/// Whom the host asks: those of the configuration, else of its links, else of the system.
fn servers(config: &Config, links: &Links) -> Servers {
    let configured = [&config.nameserver, &links.nameservers].into_iter().find(|list| !list.is_empty());
    match configured {
        Some(list) => Servers::of(list.iter().copied()),
        None => Servers::parse(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
    }
}
