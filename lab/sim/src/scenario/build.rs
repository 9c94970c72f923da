//! A scenario's network.

use inhost_base::{Cidr, HardwareAddress, Instant, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_ip::{Forwarding, PREFERENCE_CONFIGURED, Route, RouteOrigin};
use inhost_stack::{ConfigureError, DuplicateDetection, InterfaceConfig, IpConfig, Medium, StackConfig};

use super::{Event, Scenario, Shape, What};
use crate::network::Network;

/// The subnet between the routers.
const MIDDLE: u8 = 255;
/// What sets a router's seed and its cards apart from hosts'.
const ROUTERS: usize = 200;

/// The address of a host in a network without routers: 10.0.0.1 and so on, fd00::1 and so on.
pub fn address(host: usize, is_ipv6: bool) -> IpAddr {
    address_in(0, host as u8 + 1, is_ipv6)
}

/// The interface of a host in a network without routers, with both its addresses.
pub fn interface(host: usize, is_ethernet: bool, mtu_bytes: u16) -> InterfaceConfig {
    interface_in(0, host as u8 + 1, card(host, is_ethernet), mtu_bytes)
}

fn card(host: usize, is_ethernet: bool) -> Medium {
    match is_ethernet {
        true => Medium::Ethernet(HardwareAddress([2, 0, 0, 0, 0, host as u8 + 1])),
        false => Medium::Ip,
    }
}
fn address_in(subnet: u8, last: u8, is_ipv6: bool) -> IpAddr {
    match is_ipv6 {
        true => Ipv6Addr::new(0xfd00, 0, 0, u16::from(subnet), 0, 0, 0, u16::from(last)).into(),
        false => Ipv4Addr::new(10, 0, subnet, last).into(),
    }
}
fn interface_in(subnet: u8, last: u8, medium: Medium, mtu_bytes: u16) -> InterfaceConfig {
    let mut config = InterfaceConfig::new("wire", medium);
    config.mtu_bytes = mtu_bytes;
    config.duplicate_detection = DuplicateDetection::Off;
    config.accept_router_advertisements = false;
    for is_ipv6 in [false, true] {
        let prefix_bits = if is_ipv6 { 64 } else { 24 };
        config.addresses.extend(Cidr::new(address_in(subnet, last, is_ipv6), prefix_bits));
    }
    config
}
fn with_gateway(mut config: InterfaceConfig, subnet: u8, last: u8) -> InterfaceConfig {
    config.gateways.extend([false, true].map(|is_ipv6| address_in(subnet, last, is_ipv6)));
    config
}

impl Scenario {
    /// The address of one of its hosts.
    pub fn address(&self, host: usize, is_ipv6: bool) -> IpAddr {
        match self.shape {
            // Each host has a subnet with its router.
            Shape::Dumbbell => address_in(host as u8 + 1, 1, is_ipv6),
            Shape::Pair | Shape::Star | Shape::Tree => address(host, is_ipv6),
        }
    }
    /// Its hosts and links, at the time `now`, with what will befall them.
    pub fn build(&self, now: Instant, round_limit: u64) -> Result<Network, ConfigureError> {
        let mut network = Network::new(now, round_limit);
        for (number, plan) in self.hosts.iter().enumerate() {
            let seed = self.seed.wrapping_mul(64).wrapping_add(number as u64);
            network.add_host_with_clock(plan.config(), seed, plan.clock);
        }
        match self.shape {
            Shape::Pair => {
                let ends =
                    [0, 1].map(|host| (host, self.fitted(interface(host, self.is_ethernet, self.mtu_bytes))));
                network.join(ends, self.links[0].clone(), self.seed)?;
            }
            Shape::Star => {
                let switch = network.add_switch();
                self.plug_in(&mut network, &[switch])?;
            }
            Shape::Tree => {
                let switches = [network.add_switch(), network.add_switch()];
                self.plug_in(&mut network, &switches)?;
                let between = self.hosts.len();
                network.join_switches(switches, self.links[between].clone(), self.seed ^ between as u64);
            }
            Shape::Dumbbell => self.route(&mut network)?,
        }
        for event in &self.events {
            event.plan(&mut network);
        }
        for &(host, plan) in &self.jumps {
            network.plan_jump(host, plan);
        }
        Ok(network)
    }
    fn fitted(&self, config: InterfaceConfig) -> InterfaceConfig {
        let mut changed = config;
        changed.gso = self.gso;
        changed.gro = self.gro;
        changed
    }
    /// Hosts on switches, in turn.
    fn plug_in(&self, network: &mut Network, switches: &[usize]) -> Result<(), ConfigureError> {
        for host in 0..self.hosts.len() {
            let end = (host, self.fitted(interface(host, true, self.mtu_bytes)));
            let (switch, seed) = (switches[host % switches.len()], self.seed ^ host as u64);
            network.join_switch(end, switch, self.links[host].clone(), seed)?;
        }
        Ok(())
    }
    /// Hosts on two routers, in turn, and the routers on a link that may be narrower.
    fn route(&self, network: &mut Network) -> Result<(), ConfigureError> {
        let routers = [0, 1].map(|number| {
            let mut ip = IpConfig::default();
            ip.forwarding = Some(Forwarding::default());
            let seed = self.seed.wrapping_mul(64).wrapping_add((ROUTERS + number) as u64);
            let mut config = StackConfig::default();
            config.ip = ip;
            network.add_host(config, seed)
        });
        for host in 0..self.hosts.len() {
            let subnet = host as u8 + 1;
            let medium = |end: usize| card(end * ROUTERS + host, self.is_ethernet);
            let own = with_gateway(interface_in(subnet, 1, medium(0), self.mtu_bytes), subnet, 2);
            let its = interface_in(subnet, 2, medium(1), self.mtu_bytes);
            let ends = [(host, self.fitted(own)), (routers[host % 2], its)];
            network.join(ends, self.links[host].clone(), self.seed ^ host as u64)?;
        }
        let between = self.hosts.len();
        let ends = [0, 1].map(|number: usize| {
            let last = number as u8 + 1;
            (routers[number], interface_in(MIDDLE, last, Medium::Ip, self.narrowest_bytes()))
        });
        let (_, names) = network.join(ends, self.links[between].clone(), self.seed ^ between as u64)?;
        for host in 0..self.hosts.len() {
            // The other router has its subnet.
            let other = 1 - host % 2;
            for is_ipv6 in [false, true] {
                let subnet = address_in(host as u8 + 1, 0, is_ipv6);
                let destination = Cidr::new(subnet, if is_ipv6 { 64 } else { 24 });
                let route = Route {
                    destination: destination.map_err(|_| ConfigureError::Invalid)?,
                    link: names[other],
                    gateway: Some(address_in(MIDDLE, 2 - other as u8, is_ipv6)),
                    preference: PREFERENCE_CONFIGURED,
                    origin: RouteOrigin::Configured,
                };
                network.host(routers[other]).with_stack(|stack, _| stack.ip_mut().add_route(route))?;
            }
        }
        Ok(())
    }
    /// What fits between the routers.
    fn narrowest_bytes(&self) -> u16 {
        let between = self.links.last().and_then(|link| link[0].mtu_bytes);
        between.map_or(self.mtu_bytes, |bytes| self.mtu_bytes.min(bytes as u16))
    }
}

impl Event {
    /// Lets it happen when its time comes.
    fn plan(&self, network: &mut Network) {
        let what = self.what.clone();
        // Of two such events on one link the one that ends first ends both.
        let began = Widths::of(network, &what);
        network.after(self.after, move |network| match what {
            What::Cut { link, direction, time } => {
                match direction {
                    Some(end) => network.cut_direction(link, end),
                    None => network.cut(link),
                }
                network.after(time, move |network| network.heal(link));
            }
            What::Partition { host, time } => {
                network.partition(&[host]);
                network.after(time, Network::heal_all);
            }
            What::Pause { host, time } => network.pause(host, time),
            What::Change { link, end, config } => network.set_link(link, end, config),
            What::Mtu { link, mtu_bytes, time } => {
                network.set_mtu(link, [mtu_bytes; 2]);
                network.after(time, move |network| network.set_mtu(link, began.mtu_bytes));
            }
            What::BlackHole { link, end, mtu_bytes, time } => {
                network.set_black_hole(link, end, Some(mtu_bytes));
                if let Some(time) = time {
                    network.after(time, move |network| {
                        network.set_black_hole(link, end, began.passes_bytes[end])
                    });
                }
            }
            What::Memory { host, limit_bytes, time } => {
                network.set_memory_limit(host, limit_bytes);
                // What it began with: of two shortages the one that ends first ends both.
                let plenty = StackConfig::default().memory_limit_bytes;
                network.after(time, move |network| network.set_memory_limit(host, plenty));
            }
        });
    }
}

/// What a link took before anything befell it.
#[derive(Clone, Copy, Default)]
struct Widths {
    /// Of what the host at each end gives it.
    mtu_bytes: [u16; 2],
    /// What passes of that which each end sends.
    passes_bytes: [Option<u32>; 2],
}

impl Widths {
    fn of(network: &Network, what: &What) -> Widths {
        let (What::Mtu { link, .. } | What::BlackHole { link, .. }) = *what else { return Widths::default() };
        Widths {
            mtu_bytes: network.mtu_bytes(link),
            passes_bytes: [0, 1].map(|end| network.link(link, end).mtu_bytes),
        }
    }
}
