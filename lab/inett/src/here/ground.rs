//! The hosts between which is measured, with the link that joins them.

use std::str::FromStr;

use inhost_base::{Cidr, IpAddr, Ipv4Addr};
use inhost_gateway::{GatewayConfig, LoopbackPorts, Running, guest_interface, user_link};
use inhost_link::{Driver, Faults, Kind, Spec, SpecError, memory, open};
use inhost_runtime::{Runtime, entropy, interface, with_spec};
use inhost_socket::Host;
use inhost_stack::{DuplicateDetection, InterfaceConfig, StackConfig};
use serde::Deserialize;

use super::HereError;

/// The ends of a link between two hosts.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const PREFIX_BITS: u8 = 24;
/// What makes a pty, so that both ends of the line are here.
const PTY: &str = "/dev/ptmx";

/// How the ends of a measurement are joined: `loopback`, or a SPEC as of `--link`.
#[derive(Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(try_from = "String")]
pub enum Link {
    /// Both ends are on one host.
    #[default]
    Loopback,
    /// `memory:NAME` and `serial:/dev/ptmx` join two hosts. Through `user`, `tun:NAME` and `tap:NAME` a host reaches the
    /// system's sockets, which have the server; TUN and TAP need `address=`, `host=` and a privilege.
    Spec(Box<Spec>),
}

impl FromStr for Link {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Link, SpecError> {
        match text {
            "loopback" => Ok(Link::Loopback),
            spec => spec.parse().map(|spec| Link::Spec(Box::new(spec))),
        }
    }
}
impl TryFrom<String> for Link {
    type Error = SpecError;
    fn try_from(text: String) -> Result<Link, SpecError> {
        text.parse()
    }
}

/// Where the server is.
pub(super) enum Place {
    /// On this host of the runtime.
    Host(Host),
    /// At this address of the system.
    System(IpAddr),
}

impl Place {
    /// Its host, if it is one of the runtime.
    pub fn host(&self) -> Option<&Host> {
        match self {
            Place::Host(host) => Some(host),
            Place::System(_) => None,
        }
    }
}

/// Hosts of one thread. The client is on the runtime's first.
pub(super) struct Ground {
    pub runtime: Runtime,
    pub server: Place,
    /// The server's address, as the client sees it.
    pub address: IpAddr,
    _gateway: Option<Running>,
}

impl Ground {
    pub fn new(link: &Link) -> Result<Ground, HereError> {
        let mut runtime = Runtime::new(StackConfig::default())?;
        let client = runtime.host().clone();
        let Link::Spec(spec) = link else {
            let (server, address) = (Place::Host(client), Ipv4Addr::LOCALHOST.into());
            return Ok(Ground { runtime, server, address, _gateway: None });
        };
        let mut gateway = None;
        let (server, address) = match spec.kind {
            Kind::Memory | Kind::Serial => {
                if !spec.addresses.is_empty() || !spec.gateways.is_empty() {
                    return Err(HereError::Link(
                        "the hosts of this link have their addresses already".to_owned(),
                    ));
                }
                let [near, far] = pair(spec)?;
                let server = runtime.add_host(StackConfig::default())?;
                add(&mut runtime, &client, at(near, spec, CLIENT)?)?;
                add(&mut runtime, &server, at(far, spec, SERVER)?)?;
                (Place::Host(server), SERVER.into())
            }
            Kind::User => {
                let mut config = GatewayConfig::of_spec(spec);
                config.loopback_ports = LoopbackPorts::All;
                let (address, interface) =
                    (config.network.gateway_v4.into(), guest_interface("user", &config));
                let (driver, running) =
                    user_link(&client, config, runtime.handle(), entropy()?).map_err(failed)?.split();
                gateway = Some(running);
                let driver = Faults::around(Box::new(driver), spec.faults);
                add(&mut runtime, &client, (with_spec(interface, spec), driver))?;
                (Place::System(Ipv4Addr::LOCALHOST.into()), address)
            }
            Kind::Tap | Kind::Tun => {
                let system = spec.host_addresses.first().map(Cidr::address);
                let system = system.filter(|_| !spec.addresses.is_empty());
                let system = system.ok_or_else(|| failed("this link needs address= and host="))?;
                let driver = open(spec).map_err(failed)?;
                let config = with_spec(interface("link", &*driver), spec);
                add(&mut runtime, &client, (config, driver))?;
                (Place::System(system), system)
            }
        };
        Ok(Ground { runtime, server, address, _gateway: gateway })
    }
}

fn failed(why: impl ToString) -> HereError {
    HereError::Link(why.to_string())
}

/// Both ends of a link; faults are on the first, which makes them in both directions.
fn pair(spec: &Spec) -> Result<[Box<dyn Driver>; 2], HereError> {
    if spec.kind == Kind::Memory {
        let mut config = memory::Config::default();
        config.mtu_bytes = spec.mtu_bytes.unwrap_or(config.mtu_bytes);
        let (near, far) = memory::pair(&config)?;
        return Ok([Faults::around(Box::new(near), spec.faults), Box::new(far)]);
    }
    if spec.device != PTY {
        return Err(failed(format!("both ends of a serial line are here on serial:{PTY} only")));
    }
    let near = open(spec).map_err(failed)?;
    let what = near.describe();
    let name = what.split("other end ").nth(1).and_then(|rest| rest.split(',').next());
    let mut other = spec.clone();
    other.device = name.ok_or_else(|| failed("the pty does not say where its other end is"))?.to_owned();
    other.faults = Default::default();
    Ok([near, open(&other).map_err(failed)?])
}

/// The end of a link with this address.
fn at(
    driver: Box<dyn Driver>,
    spec: &Spec,
    address: Ipv4Addr,
) -> Result<(InterfaceConfig, Box<dyn Driver>), HereError> {
    let cidr = Cidr::new(address, PREFIX_BITS).map_err(failed)?;
    Ok((with_spec(interface("link", &*driver), spec).with_address(cidr), driver))
}

fn add(
    runtime: &mut Runtime,
    host: &Host,
    (mut config, driver): (InterfaceConfig, Box<dyn Driver>),
) -> Result<(), HereError> {
    // A test of the addresses would take seconds, and they are known to be free.
    config.duplicate_detection = DuplicateDetection::Off;
    runtime.add_link(host, config, driver).map_err(failed)?;
    Ok(())
}
