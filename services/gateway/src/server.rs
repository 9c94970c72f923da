//! The gateway as a whole: its host, its tasks, and both ends of the link.

use crate::aside::SharedAside;
use crate::config::{Forward, GatewayConfig};
use crate::driver::link::{Bell, Pump, UserDriver};
use crate::driver::udp::{Inward, Outward};
use crate::driver::{echo, tcp};
use crate::state::{Counters, State};
use inhost_base::{Cidr, Duration, Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_buf::Batch;
use inhost_common::Transport;
use inhost_ip::{DuplicateDetection, InterfaceConfig, Medium};
use inhost_link::memory;
use inhost_runtime::{AsyncFd, Reactor};
use inhost_socket::{Host, Task};
use inhost_stack::{ListenOptions, Stack, StackConfig, UdpOptions};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;

/// Memory of the gateway's own stack. It bounds what its connections hold, however many there are.
const MEMORY_BYTES: usize = 64 << 20;
/// What one connection of it may hold of what the guest sent; of what goes to the guest, a quarter of that.
const BUFFER_BYTES: usize = 1 << 20;
/// Handshakes of the guest's that wait for the system, beside the limit on connections.
const BACKLOG: usize = 256;

/// Why a gateway cannot be started: what failed, and where.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The system does not let us listen there.
    Forward {
        /// The forward.
        forward: Forward,
        /// The system's error.
        error: io::Error,
    },
    /// The gateway's own host cannot be set up as configured.
    Host(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Forward { forward, error } => write!(
                f,
                "cannot forward {}{} to the guest's port {}: {error}; choose another port or address, or end the program \
                 that has it",
                if forward.transport == Transport::Udp { "udp:" } else { "" },
                forward.outside,
                forward.guest_port
            ),
            StartError::Host(why) => write!(f, "cannot set up the user network: {why}"),
        }
    }
}
impl std::error::Error for StartError {}

/// A running gateway. Dropping it ends its connections.
#[must_use = "dropping it stops the gateway"]
pub struct Gateway {
    state: Rc<State>,
    forwards: Vec<Forward>,
    /// Those that another process was to listen at.
    given_up: Vec<Forward>,
    /// The tasks that listen for `forwards`.
    listening: Vec<Task<()>>,
    _tasks: Vec<Task<()>>,
}

impl Gateway {
    /// Starts the gateway's tasks on `host`, whose stack has one link with `any_address` to the guest.
    /// [`user_link`] does this and all around it.
    fn start(
        host: &Host,
        config: GatewayConfig,
        reactor: &Reactor,
        aside: &SharedAside,
    ) -> Result<Gateway, StartError> {
        let state = State::new(host, reactor, config, aside);
        let mut tasks = Vec::new();
        let refused = |why: &dyn fmt::Display| StartError::Host(why.to_string());
        for any in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            let everything = Endpoint::new(any, 0);
            let mut listen = ListenOptions::default();
            listen.backlog = BACKLOG;
            listen.syn_queue = state.config.connections_limit + BACKLOG;
            listen.any_address = true;
            listen.hold_syn = true;
            let listener = host.listen(everything, listen).map_err(|why| refused(&why))?;
            tasks.push(host.spawn(tcp::accept_outward(state.clone(), listener)));
            let mut options = UdpOptions::default();
            options.any_address = true;
            let socket = host.udp(everything, options).map_err(|why| refused(&why))?;
            tasks.push(host.spawn(Outward::new(&state, socket).run()));
        }
        tasks.push(host.spawn(echo::run(state.clone())));
        let mut gateway = Gateway {
            state,
            forwards: Vec::new(),
            given_up: Vec::new(),
            listening: Vec::new(),
            _tasks: tasks,
        };
        for forward in gateway.state.config.forwards.clone() {
            gateway.forward(forward)?;
        }
        Ok(gateway)
    }

    /// Adds a forwarded port, and gives the address at which the system listens.
    pub fn forward(&mut self, forward: Forward) -> Result<SocketAddr, StartError> {
        let failed = |error| StartError::Forward { forward, error };
        let Forward { transport, outside, guest_port } = forward;
        let (task, at) = match transport {
            Transport::Tcp => {
                let listener = TcpListener::bind(outside).map_err(failed)?;
                let at = listener.local_addr().map_err(failed)?;
                let listener = AsyncFd::new(&self.state.reactor, listener).map_err(failed)?;
                (self.state.host.spawn(tcp::accept_inward(self.state.clone(), listener, guest_port)), at)
            }
            Transport::Udp => {
                let socket = UdpSocket::bind(outside).map_err(failed)?;
                let at = socket.local_addr().map_err(failed)?;
                let socket = AsyncFd::new(&self.state.reactor, socket).map_err(failed)?;
                (self.state.host.spawn(Inward::new(&self.state, socket, guest_port).run()), at)
            }
        };
        self.listening.push(task);
        self.forwards.push(Forward { outside: at, ..forward });
        Ok(at)
    }

    /// Stops listening for the forwarded ports, so that another process can; what was forwarded goes on.
    pub fn stop_forwarding(&mut self) {
        self.listening.clear();
        self.given_up.append(&mut self.forwards);
    }
    /// Listens again after [`Gateway::stop_forwarding`], and at what was refused when this was last called.
    ///
    /// # Errors
    /// The first port at which the system does not let us listen; the others are listened at, and it is tried again by the
    /// next call.
    pub fn resume_forwarding(&mut self) -> Result<(), StartError> {
        let mut refused = None;
        for forward in std::mem::take(&mut self.given_up) {
            if let Err(why) = self.forward(forward) {
                self.given_up.push(forward);
                refused.get_or_insert(why);
            }
        }
        refused.map_or(Ok(()), Err)
    }
    /// The forwarded ports, with the addresses at which the system really listens.
    pub fn forwards(&self) -> &[Forward] {
        &self.forwards
    }
    /// Counters since start.
    pub fn counters(&self) -> Counters {
        self.state.counters.get()
    }
    /// Connections open now, both ways.
    pub fn connections(&self) -> usize {
        self.state.connections()
    }
    /// UDP conversations known now, both ways.
    pub fn udp_flows(&self) -> usize {
        self.state.udp_flows()
    }
    /// The gateway's own host, for instruments.
    pub fn host(&self) -> &Host {
        &self.state.host
    }
}

/// Both ends of a `user` network, ready to be driven.
pub struct UserLink {
    /// The guest's driver.
    pub driver: UserDriver,
    /// The gateway. It runs within the guest's rounds, on the guest's executor.
    pub gateway: Gateway,
    pump: Task<()>,
}

/// Interface configuration of a guest on the `user` network: addresses and gateways. Give it to [`Stack::add_link`],
/// and the addresses of [`name_servers`] to the resolver.
pub fn guest_interface(name: &str, config: &GatewayConfig) -> InterfaceConfig {
    let network = &config.network;
    let mut link = InterfaceConfig::new(name, Medium::Ip);
    link.mtu_bytes = config.mtu_bytes;
    link.duplicate_detection = DuplicateDetection::Off;
    link.with_address(network.guest_v4)
        .with_address(network.guest_v6)
        .with_gateway(network.gateway_v4)
        .with_gateway(network.gateway_v6)
}

/// DNS servers for the guest.
pub fn name_servers(config: &GatewayConfig) -> [IpAddr; 2] {
    [config.network.names_v4.into(), config.network.names_v6.into()]
}

/// Makes a `user` network for `guest`: a gateway with its own stack, seeded by `seed`, that reaches the operating
/// system through `reactor`, which the guest's driver must step.
///
/// The gateway is a task of the guest's host: it lives in the same thread, under the same clock, and within the
/// guest's rounds. Nothing of it needs a privilege.
pub fn user_link(
    guest: &Host,
    config: GatewayConfig,
    reactor: &Reactor,
    seed: [u8; 32],
) -> Result<UserLink, StartError> {
    let refused = |why: &dyn fmt::Display| StartError::Host(why.to_string());
    let memory = memory::Config {
        name: "user".into(),
        mtu_bytes: usize::from(config.mtu_bytes),
        trusted: true,
        ..memory::Config::default()
    };
    let (near, far) = memory::pair(&memory).map_err(|why| refused(&why))?;
    let now = guest.now();
    let mut stack_config = StackConfig::default();
    stack_config.memory_limit_bytes = MEMORY_BYTES;
    stack_config.socket_limit = 4 * config.connections_limit + 2 * config.udp_flows_limit + 64;
    // Between two hosts of one process an acknowledgment costs next to nothing, and a delayed one would be all
    // that the guest's round-trip time and ledgers tell of.
    stack_config.tcp.acknowledgment_delay = Duration::ZERO;
    // The link has no length, so that more would only lie about.
    stack_config.tcp.send_buffer_limit_bytes = BUFFER_BYTES / 4;
    stack_config.tcp.receive_buffer_limit_bytes = BUFFER_BYTES;
    let mut stack = Stack::new(stack_config, seed, now);
    let link = stack.add_link(gateway_interface(&config), now).map_err(|why| refused(&why))?;
    let host = Host::new(stack, now);
    let bell = Arc::new(Bell::default());
    let aside = SharedAside::default();
    let network = config.network;
    let gateway = Gateway::start(&host, config, reactor, &aside)?;
    let pump = Pump {
        guest: guest.clone(),
        gateway: host,
        link,
        memory: far,
        bell: bell.clone(),
        aside,
        is_own: Box::new(move |address| network.is_own(address)),
        batch: Batch::new(),
        sifted: Batch::new(),
        alarm: None,
    };
    pump.listen_for_the_gateway();
    Ok(UserLink { driver: UserDriver::new(near, bell), gateway, pump: guest.spawn(pump) })
}

impl UserLink {
    /// The driver to be given away, and what must be kept for the gateway to run.
    pub fn split(self) -> (UserDriver, Running) {
        (self.driver, Running { gateway: self.gateway, _pump: self.pump })
    }
}

/// Keeps a gateway running after its guest's driver was given away. Dropping it stops the gateway.
#[must_use = "dropping it stops the gateway"]
pub struct Running {
    /// The gateway.
    pub gateway: Gateway,
    _pump: Task<()>,
}

fn gateway_interface(config: &GatewayConfig) -> InterfaceConfig {
    let network = &config.network;
    let of_guests = |address: IpAddr, guest: Cidr| Cidr::new(address, guest.prefix_bits());
    let mut interface = InterfaceConfig::new("guest", Medium::Ip);
    interface.mtu_bytes = config.mtu_bytes;
    interface.any_address = true;
    interface.duplicate_detection = DuplicateDetection::Off;
    for (address, guest) in [
        (IpAddr::V4(network.gateway_v4), network.guest_v4),
        (IpAddr::V4(network.names_v4), network.guest_v4),
        (IpAddr::V6(network.gateway_v6), network.guest_v6),
        (IpAddr::V6(network.names_v6), network.guest_v6),
    ] {
        interface.addresses.extend(of_guests(address, guest));
    }
    interface
}
