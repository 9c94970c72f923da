//! The host that a client speaks through: the running one, or a private one on its own link.

use crate::args::{Common, Reach, Through};
use crate::config;
use crate::dhcp;
use crate::failure::Failure;
use crate::links::Links;
use inhost_base::{Duration, IpAddr};
use inhost_names::{Hosts, Names, NamesConfig, Servers};
use inhost_runtime::control::Client;
use inhost_runtime::{Runtime, Signal, Signals, entropy};
use inhost_stack::{DuplicateDetection, StackConfig};
use std::path::{Path, PathBuf};

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
        match running(through)? {
            Some(path) => Ok(HostChoice::Running(path)),
            None => Private::new(through.link.as_deref()).map(Box::new).map(HostChoice::Private),
        }
    }
}

/// The control socket of the running host that the flags select, by default of the one that runs for this user.
pub fn running(through: &Through) -> Result<Option<PathBuf>, Failure> {
    match (&through.via, &through.link) {
        (Some(path), _) => Ok(Some(path.clone())),
        (None, Some(_)) => Ok(None),
        // An untrusted control socket is an error, not a reason to use another host silently.
        (None, None) => {
            Client::find().map_err(|e| Failure::operation(format!("the running host is not used: {e}")))
        }
    }
}

/// A conversation with the running host whose control socket is at `path`.
pub fn open_host(path: &Path) -> Result<Client, Failure> {
    Client::open(path).map_err(|why| match why.kind() {
        std::io::ErrorKind::PermissionDenied => {
            Failure::operation(format!("the host at {} is not for this user: {why}", path.display()))
        }
        _ => no_host(path, why),
    })
}

/// Nobody answers at the control socket `path`.
pub fn no_host(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::operation(format!(
        "no host answers at {}: {why}; start one with inhost serve, or name its socket with --via PATH",
        path.display()
    ))
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
            view.is_some_and(|view| view.addresses().iter().any(|own| own.cidr().address().is_ipv4()))
        })
    };
    let answered = async {
        while !links.asking.iter().all(|&link| has_address(link)) {
            host.sleep(ANSWER_POLL).await;
        }
    };
    let waited = runtime.run(host.timeout(ANSWER_WITHIN, answered));
    match waited.map_err(cannot_wait)? {
        Ok(()) => Ok(()),
        Err(_) => Err(Failure::operation(format!(
            "the other end of the line gave no address in {} s; has it offer=A.B.C.D? Or give the link address=A.B.C.D/N",
            ANSWER_WITHIN.as_secs()
        ))),
    }
}

/// The signals that end a client.
pub fn interrupts(runtime: &Runtime) -> Result<Signals, Failure> {
    Signals::new(runtime.handle(), &[Signal::Interrupt, Signal::Terminate])
        .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))
}

/// Fails when one of them comes, during what `name` says.
pub async fn interrupted<T>(signals: &Signals, name: &str) -> Result<T, Failure> {
    signals.next().await;
    Err(Failure::operation(format!("{name}: interrupted")))
}

/// The runtime gave up.
pub fn cannot_wait(error: std::io::Error) -> Failure {
    Failure::operation(format!("the host cannot wait: {error}"))
}

/// A runtime for a client whose work a running host does.
pub fn client_runtime() -> Result<Runtime, Failure> {
    Runtime::new(StackConfig::default())
        .map_err(|e| Failure::operation(format!("the client cannot start: {e}")))
}
