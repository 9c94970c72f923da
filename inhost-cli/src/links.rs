//! From the links of a configuration to the links of a host.

use crate::failure::Failure;
use inhost_base::{IpAddr, LinkId};
use inhost_common::Callers;
use inhost_gateway::{GatewayConfig, Running, user_link};
use inhost_link::{Driver, Faults, Framing, Kind, OpenError, Spec};
use inhost_runtime::{Runtime, entropy, interface, with_spec};
use inhost_socket::Host;
use inhost_stack::{DuplicateDetection, InterfaceConfig};

/// Resources of a host's links.
pub struct Links {
    /// Whether addresses are tested for duplicates before they are used.
    duplicate_detection: DuplicateDetection,
    /// The gateways of `user` links; dropping one ends its connections.
    pub gateways: Vec<Running>,
    /// The outer callers of what the gateways forward.
    pub callers: Callers,
    /// Resolvers that the links know of.
    pub nameservers: Vec<IpAddr>,
    /// A line on each link, for a person.
    pub lines: Vec<String>,
    /// Links whose addresses are to be asked for.
    pub dhcp: Vec<LinkId>,
    /// Links that ask the other end of the line for their address.
    pub asking: Vec<LinkId>,
    /// Addresses at which the other end of a link reaches the host.
    pub addresses: Vec<IpAddr>,
    /// Links behind which the system's own sockets do the sending.
    pub user: Vec<LinkId>,
    /// Links that can be handed over to another process.
    pub devices: Vec<(Spec, LinkId)>,
    /// Links that cannot: serial lines.
    pub fixed: Vec<String>,
}

impl Links {
    /// No links yet. A host that stays tests its addresses before it uses them (RFC 5227, 4862), which takes seconds;
    /// a client that somebody waits for tests them while it works.
    pub fn new(duplicate_detection: DuplicateDetection) -> Links {
        Links {
            duplicate_detection,
            gateways: Vec::new(),
            callers: Callers::default(),
            nameservers: Vec::new(),
            lines: Vec::new(),
            dhcp: Vec::new(),
            asking: Vec::new(),
            addresses: Vec::new(),
            user: Vec::new(),
            devices: Vec::new(),
            fixed: Vec::new(),
        }
    }
    /// Opens the link of `text` and gives it to the runtime's first host.
    pub fn add(&mut self, runtime: &mut Runtime, text: &str) -> Result<(), Failure> {
        self.add_from(runtime, text, inhost_link::open)
    }
    /// Gives the runtime's first host the link of `text`, a device of which is opened by `open`.
    pub fn add_from(
        &mut self,
        runtime: &mut Runtime,
        text: &str,
        open: impl FnOnce(&Spec) -> Result<Box<dyn Driver>, OpenError>,
    ) -> Result<(), Failure> {
        let spec: Spec = text.parse().map_err(|e| Failure::usage(format!("{e}")))?;
        let host = runtime.host().clone();
        let (driver, config) = match spec.kind {
            Kind::User => self.user(runtime, &host, &spec)?,
            Kind::Memory => {
                return Err(Failure::usage(
                    "a memory link joins two hosts of one program; use user, tap, tun or serial here",
                ));
            }
            Kind::Tap | Kind::Tun | Kind::Serial => {
                let driver = open(&spec).map_err(|e| Failure::operation(e.to_string()))?;
                let name = spec.device.rsplit('/').next().unwrap_or(&spec.device);
                let detection = self.duplicate_detection;
                let mut config = interface(name, &*driver);
                config.duplicate_detection = detection;
                (driver, config)
            }
        };
        let config = with_spec(config, &spec);
        let what = driver.describe();
        let given = config.addresses.iter().map(|a| a.to_string());
        let given: Vec<String> = given.chain(spec.dhcp.then(|| "an address by DHCP".to_owned())).collect();
        let asks = spec.kind == Kind::Serial
            && spec.framing == Framing::Llp
            && !config.addresses.iter().any(|own| own.address().is_ipv4());
        let addresses = if given.is_empty() { "no address given".to_owned() } else { given.join(", ") };
        if spec.kind != Kind::User {
            self.addresses.extend(config.addresses.iter().map(|cidr| cidr.address()));
        }
        let link = runtime
            .add_link(&host, config, driver)
            .map_err(|e| Failure::operation(format!("cannot add the link {text}: {e}")))?;
        if spec.dhcp {
            self.dhcp.push(link);
        }
        if asks {
            self.asking.push(link);
        }
        match spec.kind {
            Kind::Tap | Kind::Tun => self.devices.push((spec, link)),
            Kind::Serial => self.fixed.push(spec.device),
            Kind::User => self.user.push(link),
            Kind::Memory => {}
        }
        self.lines.push(format!("{what}: {addresses}"));
        Ok(())
    }

    fn user(
        &mut self,
        runtime: &Runtime,
        host: &Host,
        spec: &Spec,
    ) -> Result<(Box<dyn Driver>, InterfaceConfig), Failure> {
        let mut gateway = GatewayConfig::of_spec(spec);
        gateway.callers = self.callers.clone();
        let config = inhost_gateway::guest_interface("user", &gateway);
        self.nameservers.extend(inhost_gateway::name_servers(&gateway));
        let seed = entropy().map_err(|e| Failure::operation(format!("the system has no entropy: {e}")))?;
        let link = user_link(host, gateway, runtime.handle(), seed)
            .map_err(|e| Failure::operation(e.to_string()))?;
        let (driver, running) = link.split();
        self.gateways.push(running);
        Ok((Faults::around(Box::new(driver), spec.faults), config))
    }
}
