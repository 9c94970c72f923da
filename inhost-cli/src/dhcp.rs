//! The DHCP client of a host's links: where it keeps what, whom it tells, and what instruments see of it.

use crate::config;
use crate::failure::Failure;
use inhost_base::{Duration, IpAddr, LinkId};
use inhost_dhcp::client::News;
use inhost_dhcp::driver::{Dhcp, Files, Setup, View};
use inhost_names::{Names, Servers};
use inhost_runtime::{Runtime, entropy};
use inhost_socket::Host;
use serde_json::{Value, json};
use std::rc::Rc;
use tracing::info;

/// Longest wait for an address: four DHCP requests, and the test of a link-local one.
const CLIENT_WAITS: Duration = Duration::from_secs(30);

/// Longest time for releasing leases.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);

/// Starts the clients of `links`; none where there are none. What happens goes to the log.
pub fn start(host: &Host, links: &[LinkId], section: &config::Dhcp) -> Result<Option<Dhcp>, Failure> {
    if links.is_empty() {
        return Ok(None);
    }
    let seed = entropy().map_err(|e| Failure::operation(format!("the system has no entropy: {e}")))?;
    let tell = |link: &str, news: &News| info!(target: "dhcp", link, "{news}");
    let setup = Setup {
        links: links.to_vec(),
        store: Rc::new(Files::new(
            section.state.clone().unwrap_or_else(|| inhost_common::state_folder("dhcp")),
        )),
        unix_seconds: crate::time::now_s,
        host_name: section.host_name.clone(),
        seed,
        tell: Box::new(tell),
    };
    Dhcp::start(host, setup).map(Some).map_err(|e| Failure::operation(e.to_string()))
}

/// Waits, for a client that somebody waits for, until its links have addresses, and gives the name servers that came with
/// them.
pub fn wait(runtime: &mut Runtime, dhcp: &Dhcp) -> Result<Vec<IpAddr>, Failure> {
    let host = runtime.host().clone();
    let ready = runtime
        .run(host.timeout(CLIENT_WAITS, dhcp.ready()))
        .map_err(|e| Failure::operation(format!("the host cannot wait: {e}")))?;
    match ready {
        Ok(()) => Ok(dhcp.resolvers().servers),
        Err(_) => Err(Failure::operation(format!(
            "no address came by DHCP in {} s; is a server on the link, or give the link address=A.B.C.D/N",
            CLIENT_WAITS.as_secs()
        ))),
    }
}

/// Gives the leases back, for a host that ends. A lost release leaves the lease to expire.
pub async fn release(host: Host, dhcp: Dhcp) {
    if let Ok(seed) = entropy() {
        let _ = host.timeout(RELEASE_WITHIN, dhcp.release(seed)).await;
    }
}

/// Asks the servers that leases bring, as long as nothing else is configured; `otherwise` while they bring none.
pub async fn follow(dhcp: Dhcp, names: Rc<Names>, otherwise: Servers) {
    let (mut seen, mut known) = (0, otherwise.clone());
    loop {
        let found = dhcp.resolvers();
        let servers = match found.servers.is_empty() {
            true => otherwise.clone(),
            false => {
                let mut leased = Servers::of(found.servers);
                leased.search = found.search;
                leased
            }
        };
        if servers != known {
            names.set_servers(&servers);
            known = servers;
        }
        seen = dhcp.changed(seen).await;
    }
}

/// The clients as JSON, one for each link.
pub fn views(dhcp: Option<&Dhcp>) -> Value {
    dhcp.map_or(Vec::new(), Dhcp::views).iter().map(view).collect()
}

fn view(view: &View) -> Value {
    let lease = view.lease.as_ref();
    let settings = lease.map(|lease| &lease.settings);
    json!({
        "link": view.link.0,
        "state": view.state,
        "address": lease.and_then(|lease| lease.cidr()).map(|cidr| cidr.to_string()),
        "server": lease.map(|lease| lease.server.to_string()),
        "expires_in_s": view.expires_in.map(Duration::as_secs),
        "renews_in_s": view.renews_in.map(Duration::as_secs),
        "link_local": view.link_local.map(|address| address.to_string()),
        "name_servers": settings
            .into_iter()
            .flat_map(|settings| settings.name_servers.iter().map(ToString::to_string))
            .chain(view.name_servers_v6.iter().map(ToString::to_string))
            .collect::<Vec<_>>(),
        "search": settings
            .into_iter()
            .flat_map(|settings| &settings.search)
            .chain(&view.search_v6)
            .collect::<Vec<_>>(),
        "dhcpv6": view.stateless,
        "refused_datagrams": view.refused,
    })
}
