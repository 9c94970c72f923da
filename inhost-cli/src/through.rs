//! The host that a client speaks through: a private one on its own link.

use crate::args::{Common, Reach, Through};
use crate::config;
use crate::dhcp;
use crate::failure::Failure;
use crate::links::Links;
use inhost_base::{Duration, IpAddr};
use inhost_names::{Hosts, Names, NamesConfig, Servers};
use inhost_runtime::{Runtime, entropy};
use inhost_stack::{DuplicateDetection, StackConfig};
use std::path::PathBuf;

/// The default link of a client: the system's own sockets.
const CLIENT_LINK: &str = "user";
/// Longest wait for the other end of a serial line to give an address: it is asked again every two seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Time between two looks whether it has.
const ANSWER_POLL: Duration = Duration::from_millis(10);

/// The host that carries a client's connections.
pub enum HostChoice {
    /// Through the host that answers at this control socket.
    Running(PathBuf),
    /// Through a private host.
    Private(Box<Private>),
}

/// A host of the client's own.
pub struct Private {
    /// It, with its links.
    pub runtime: Runtime,
    /// Its links' gateways.
    pub links: Links,
    /// Its names.
    pub names: Names,
    /// Whether loopback addresses mean the machine's loopback, behind the gateway, and not this host's own, where
    /// nothing listens.
    pub reaches_loopback: bool,
}

impl HostChoice {
    /// The host that the flags select; by default the running host, if any.
    pub fn find(reach: &Reach) -> Result<HostChoice, Failure> {
        let choice = HostChoice::of(&reach.through)?;
        match &choice {
            HostChoice::Running(path) => {
                reach.common.note(format_args!("through the running host at {}", path.display()));
            }
            HostChoice::Private(_) => note_private(&reach.common, reach.through.link.as_deref()),
        }
        Ok(choice)
    }

    fn of(through: &Through) -> Result<HostChoice, Failure> {
        if let Some(path) = &through.via {
            return Ok(HostChoice::Running(path.clone()));
        }
        if through.link.is_none() {
            // An untrusted control socket is an error, not a reason to use another host silently.
            let running = inhost_runtime::control::Client::find()
                .map_err(|e| Failure::operation(format!("the running host is not used: {e}")))?;
            if let Some(path) = running {
                return Ok(HostChoice::Running(path));
            }
        }
        Private::new(through.link.as_deref()).map(Box::new).map(HostChoice::Private)
    }
}

/// Says, for `--verbose`, that a private host is used.
pub fn note_private(common: &Common, link: Option<&str>) {
    common.note(format_args!("a private host on the link {}", link.unwrap_or(CLIENT_LINK)));
}

/// Where `address` is seen from a private host that reaches the machine's loopback: that, at its gateway's address.
pub fn seen_at(address: IpAddr, reaches_loopback: bool) -> IpAddr {
    let network = inhost_gateway::Network::default();
    match address {
        IpAddr::V4(a) if reaches_loopback && a.is_loopback() => network.gateway_v4.into(),
        IpAddr::V6(a) if reaches_loopback && a.is_loopback() => network.gateway_v6.into(),
        other => other,
    }
}

impl Private {
    /// A host on one link; on the system's own sockets when none is named.
    pub fn new(link: Option<&str>) -> Result<Private, Failure> {
        // The machine's loopback is reached on `user`: who runs the client could reach it without it.
        let mut link = link.unwrap_or(CLIENT_LINK).to_owned();
        let is_user = link == "user" || link.starts_with("user,");
        let reaches_loopback = is_user && !link.contains(",loopback=no");
        if reaches_loopback && !link.contains(",loopback=") {
            link.push_str(",loopback=yes");
        }
        let mut runtime = Runtime::new(StackConfig::default())
            .map_err(|e| Failure::operation(format!("the host cannot start: {e}")))?;
        let mut links = Links::new(DuplicateDetection::WhileInUse);
        links.add(&mut runtime, &link)?;
        let host = runtime.host().clone();
        if let Some(dhcp) = dhcp::start(&host, &links.dhcp, &config::Dhcp::default())? {
            links.nameservers.extend(dhcp::wait(&mut runtime, &dhcp)?);
        }
        wait_for_answers(&mut runtime, &links)?;
        let names = names(&runtime, &links)?;
        Ok(Private { runtime, links, names, reaches_loopback })
    }
}

/// Looks names up as the system does.
fn names(runtime: &Runtime, links: &Links) -> Result<Names, Failure> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let servers = match links.nameservers.is_empty() {
        true => Servers::parse(&read("/etc/resolv.conf")),
        false => Servers::of(links.nameservers.iter().copied()),
    };
    let seed = entropy().map_err(|e| Failure::operation(format!("the system has no entropy: {e}")))?;
    let hosts = Hosts::parse(&read("/etc/hosts"));
    Ok(Names::new(runtime.host(), NamesConfig::new(hosts, servers, seed)))
}

/// Waits until the other end of each serial line that asks for an address has given one.
fn wait_for_answers(runtime: &mut Runtime, links: &Links) -> Result<(), Failure> {
    if links.asking.is_empty() {
        return Ok(());
    }
    let host = runtime.host().clone();
    let has_address = |link| {
        host.with_stack(|stack, _| {
            let view = stack.ip().interface(link);
            view.is_some_and(|view| view.addresses().iter().any(|own| own.cidr.address().is_ipv4()))
        })
    };
    let answered = async {
        while !links.asking.iter().all(|&link| has_address(link)) {
            host.sleep(ANSWER_POLL).await;
        }
    };
    let waited = runtime.run(host.timeout(ANSWER_WITHIN, answered));
    match waited.map_err(|e| Failure::operation(format!("the host cannot wait: {e}")))? {
        Ok(()) => Ok(()),
        Err(_) => Err(Failure::operation(format!(
            "the other end of the line gave no address in {} s; has it offer=A.B.C.D? Or give the link address=A.B.C.D/N",
            ANSWER_WITHIN.as_secs()
        ))),
    }
}
