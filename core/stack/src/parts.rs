//! The parts of a host as separate fields, so that a function borrows only those that it needs.

use crate::network::Network;
use crate::options::StackConfig;
use crate::resources::Resources;
use crate::sockets::Sockets;
use inhost_base::{Instant, LinkId, Random};
use inhost_ip::Ip;

/// The parts of a host. Each owns its private state. This struct has no state or rules of its own; a rule that needs
/// several parts takes them.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Parts {
    pub(crate) config: StackConfig,
    pub(crate) resources: Resources,
    pub(crate) network: Network,
    pub(crate) sockets: Sockets,
}

impl Parts {
    pub(crate) fn new(config: StackConfig, seed: [u8; 32], now: Instant) -> Parts {
        let mut random = Random::from_seed(seed);
        let ip = Ip::new(config.ip.clone(), &mut random);
        let sockets = Sockets::new(&config, &mut random, now);
        Parts {
            resources: Resources::new(config.memory_limit_bytes, random, now),
            network: Network::new(ip, config.resets_per_second, now),
            sockets,
            config,
        }
    }
}

/// Whether something is to leave by `link`.
#[inline]
pub(crate) fn has_output(sockets: &Sockets, network: &Network, link: LinkId) -> bool {
    let (ip_waits, replies_wait) = network.waiting(link);
    sockets.schedule().has_senders(link) || replies_wait || ip_waits
}
