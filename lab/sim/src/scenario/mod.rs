//! What happens under one seed: hosts, what joins them, its faults, what befalls them, and the calls between them.

mod build;
mod draw;

pub use build::{address, interface};

use inhost_base::{Duration, Endpoint, Ipv4Addr, Ipv6Addr};
use inhost_stack::{IpConfig, StackConfig, TcpConfig};

use crate::clock::Clock;
use crate::jump::JumpPlan;
use crate::link::LinkConfig;
use crate::queue::WhenFull;
use crate::stream::Talk;

/// A whole run, drawn from a seed. Its `Debug` form says all there is to it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it was drawn from.
    pub seed: u64,
    /// How the hosts are joined.
    pub shape: Shape,
    /// Ethernet, or bare IP, where the shape leaves the choice.
    pub is_ethernet: bool,
    /// Bytes of the largest packet at the hosts.
    pub mtu_bytes: u16,
    /// Whether hosts decide on several segments at once, and act once on those that come together.
    pub gso: bool,
    /// See `runs`.
    pub gro: bool,
    /// Each link, in both directions, in the order in which [`Shape`] makes them.
    pub links: Vec<[LinkConfig; 2]>,
    /// The hosts that talk.
    pub hosts: Vec<HostPlan>,
    /// What the hosts say to each other.
    pub calls: Vec<ConnectionPlan>,
    /// What befalls them.
    pub events: Vec<Event>,
    /// Which hosts' connections jump in sequence space.
    pub jumps: Vec<(usize, JumpPlan)>,
    /// Connections that nobody holds any more, behind windows that never open.
    pub orphans: Vec<Orphan>,
}

/// Whether devices and hosts do anything for several segments at once, whatever the seed means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offloads {
    /// As drawn.
    #[default]
    Drawn,
    /// Nothing anywhere: every segment is decided on, summed and acted on alone.
    Off,
    /// Everything everywhere: devices cut, sum, check and gather; none refuses a frame, for one that does cuts none.
    On,
}

/// How hosts are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Two hosts on a wire.
    Pair,
    /// All on one switch, a link each.
    Star,
    /// Two switches with a link between them, which is the last; even hosts on the first, odd ones on the second.
    Tree,
    /// Two routers with a link between them, which is the last; even hosts on the first, odd ones on the second.
    Dumbbell,
}

/// One host.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// The knobs of TCP.
    pub tcp: TcpConfig,
    /// How its clock goes.
    pub clock: Clock,
}

impl HostPlan {
    /// What the host's stack is made with.
    pub fn config(&self) -> StackConfig {
        let mut config = StackConfig::default();
        config.tcp = self.tcp.clone();
        config.ip = IpConfig::default();
        config
    }
}

/// Something that happens once, so long after the beginning.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub after: Duration,
    /// What.
    pub what: What,
}

/// What can befall a network.
#[derive(Clone, Debug)]
pub enum What {
    /// A link is cut, in one direction or both, and mended.
    Cut {
        /// Its number.
        link: usize,
        /// Only what this end sends.
        direction: Option<usize>,
        /// How long.
        time: Duration,
    },
    /// A host is cut off from all others.
    Partition {
        /// Its number.
        host: usize,
        /// How long.
        time: Duration,
    },
    /// A host stands still.
    Pause {
        /// Its number.
        host: usize,
        /// How long.
        time: Duration,
    },
    /// A link becomes another one in one direction.
    Change {
        /// Its number.
        link: usize,
        /// What this end sends.
        end: usize,
        /// As it is from then on.
        config: LinkConfig,
    },
    /// A link takes packets of another size. Hosts and routers on it know that: their interfaces change, and routers tell
    /// who sends too much at once.
    Mtu {
        /// Its number.
        link: usize,
        /// The largest packet.
        mtu_bytes: u16,
        /// How long.
        time: Duration,
    },
    /// MTU black hole in one direction of a link.
    BlackHole {
        /// Its number.
        link: usize,
        /// What this end sends.
        end: usize,
        /// The largest packet that passes.
        mtu_bytes: u32,
        /// How long; for ever when `None`.
        time: Option<Duration>,
    },
    /// A host's memory becomes scarce.
    Memory {
        /// Its number.
        host: usize,
        /// What it may have, in bytes.
        limit_bytes: usize,
        /// How long.
        time: Duration,
    },
}

/// One connection.
#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    /// Which host calls.
    pub caller: usize,
    /// Whom.
    pub called: usize,
    /// By IPv6, not IPv4.
    pub is_ipv6: bool,
    /// The listener's port.
    pub port: u16,
    /// When it is made, from the beginning.
    pub starts_after: Duration,
    /// The caller's part, and that of who is called.
    pub talks: [Talk; 2],
    /// The caller aborts after so long.
    pub aborts_after: Option<Duration>,
}

/// A connection of which the caller lets go while its peer, which holds it for ever, reads nothing.
#[derive(Clone, Debug)]
pub struct Orphan {
    /// Which host calls.
    pub caller: usize,
    /// Whom.
    pub called: usize,
    /// The listener's port, of IPv4.
    pub port: u16,
    /// When the call is made, from the beginning.
    pub starts_after: Duration,
    /// What the caller writes at most.
    pub write_bytes: usize,
}

impl Scenario {
    /// The same with every offload on, or off.
    #[must_use]
    pub fn with_offloads(mut self, offloads: Offloads) -> Scenario {
        let on = match offloads {
            Offloads::Drawn => return self,
            Offloads::Off => false,
            Offloads::On => true,
        };
        (self.gso, self.gro) = (on, on);
        let later = self.events.iter_mut().filter_map(|event| match &mut event.what {
            What::Change { config, .. } => Some(config),
            _ => None,
        });
        for direction in self.links.iter_mut().flatten().chain(later) {
            (direction.offloads, direction.gathers) = (on, on);
            if on {
                direction.queue.when_full = WhenFull::Drop;
            }
        }
        self
    }
    /// Where the caller of a call calls.
    pub fn remote(&self, call: &ConnectionPlan) -> Endpoint {
        Endpoint { address: self.address(call.called, call.is_ipv6), port: call.port }
    }
    /// Where one calls that will be let go.
    pub fn remote_of_orphan(&self, orphan: &Orphan) -> Endpoint {
        Endpoint { address: self.address(orphan.called, false), port: orphan.port }
    }
}

impl ConnectionPlan {
    /// Where it is waited for.
    pub fn listens_at(&self) -> Endpoint {
        match self.is_ipv6 {
            true => Endpoint::new(Ipv6Addr::UNSPECIFIED, self.port),
            false => Endpoint::new(Ipv4Addr::UNSPECIFIED, self.port),
        }
    }
}
