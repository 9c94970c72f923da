//! Names of a running host: what its clients look up.

use crate::config::Config;
use crate::dhcp;
use crate::failure::Failure;
use crate::links::Links;
use crate::lookup;
use inhost_base::Endpoint;
use inhost_common::service::Resolvers;
use inhost_dhcp::driver::Dhcp;
use inhost_names::service::{NameServer, table};
use inhost_names::{DNS_PORT, Hosts, Names, NamesConfig, Servers};
use inhost_runtime::control::{Failure as Refusal, Reply, Server};
use inhost_runtime::{Runtime, entropy};
use std::rc::Rc;

/// Lets clients of the control socket look names up, and gives what looks them up: `{"op":"look_up","name":NAME}` gives `"addresses"`, and
/// `{"op":"records",…}` what `inhost lookup --json` prints.
pub fn answer(
    runtime: &Runtime,
    control: &Server,
    config: &Config,
    links: &Links,
    dhcp: Option<&Dhcp>,
    forwarder: Option<&NameServer>,
) -> Result<Rc<Names>, Failure> {
    let hosts = Hosts::parse(&table(&config.files().hosts));
    let servers = servers(config, links);
    let names = NamesConfig::new(hosts, servers.clone(), seed()?);
    let names = Rc::new(Names::new(runtime.host(), names));
    if let Some(forwarder) = forwarder {
        names.set_home(forwarder.home());
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
    let asked = names.clone();
    control.handle("records", move |_, request| {
        let names = asked.clone();
        async move {
            let request = lookup::request_of(&request).map_err(Refusal::new)?;
            let found = names.records(&request).await.map_err(|e| Refusal::new(e.to_string()))?;
            Ok(Reply::from(lookup::report(&request, &found)))
        }
    });
    Ok(names)
}

/// Has the forwarder ask the servers that leases bring.
pub async fn follow(forwarder: NameServer, dhcp: Dhcp) {
    let mut seen = 0;
    loop {
        let found = dhcp.resolvers().servers.into_iter().map(|at| Endpoint::new(at, DNS_PORT));
        forwarder.lease(found.collect());
        seen = dhcp.changed(seen).await;
    }
}

/// DNS servers of the host, for its services.
pub fn resolvers(config: &Config, links: &Links) -> Resolvers {
    Resolvers {
        servers: servers(config, links).servers,
        is_configured: is_configured(config, links),
        may_be_leased: !links.dhcp.is_empty(),
    }
}

fn seed() -> Result<[u8; 32], Failure> {
    entropy().map_err(|e| Failure::operation(format!("the system has no entropy: {e}")))
}

fn is_configured(config: &Config, links: &Links) -> bool {
    !config.nameserver.is_empty() || !links.nameservers.is_empty()
}

/// DNS servers of the host: of the configuration, else of its links, else of the system.
fn servers(config: &Config, links: &Links) -> Servers {
    let configured = [&config.nameserver, &links.nameservers].into_iter().find(|list| !list.is_empty());
    match configured {
        Some(list) => Servers::of(list.iter().copied()),
        None => Servers::parse(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
    }
}
