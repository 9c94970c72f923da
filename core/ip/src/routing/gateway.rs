//! Dead-gateway detection (RFC 1122 §3.3.1.4, UCLA §2.3).
//!
//! A gateway is unusable for one of two reasons. It is *silent* when it does not answer as a neighbour. It is probed
//! periodically, and usable again at its first answer. It is *not forwarding* when it answers as a neighbour, but
//! transports get no acknowledgments through it. Then it is avoided for a minute, if there is another gateway. While all
//! gateways are unusable, they are used in turn: a host with one gateway has no choice.

use alloc::vec::Vec;
use inhost_base::{Duration, Instant, IpAddr, LinkId};

/// Most gateways watched; others are assumed to be alive.
pub(crate) const GATEWAY_LIMIT: usize = 32;
/// Interval between probes of a silent gateway.
const SILENT_RETRY: Duration = Duration::from_secs(30);
/// How long a gateway that does not forward is avoided.
const NOT_FORWARDING_REST: Duration = Duration::from_secs(60);
/// Suspicions without a confirmation in between, after which a gateway is assumed not to forward.
const SUSPICION_LIMIT: u8 = 3;

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Gateway {
    link: LinkId,
    address: IpAddr,
    /// When to probe a gateway that does not answer.
    silent: Option<Instant>,
    rests_until: Instant,
    suspicions: u8,
    /// The number of the choice that last used it although it was unusable.
    chosen: u64,
}

/// The health of a host's gateways.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Gateways {
    list: Vec<Gateway>,
    choices: u64,
}

impl Gateways {
    fn get(&self, link: LinkId, address: IpAddr) -> Option<&Gateway> {
        self.list.iter().find(|gateway| gateway.link == link && gateway.address == address)
    }
    fn find(&mut self, link: LinkId, address: IpAddr) -> Option<&mut Gateway> {
        self.list.iter_mut().find(|gateway| gateway.link == link && gateway.address == address)
    }
    /// Starts to watch a gateway.
    pub fn watch(&mut self, link: LinkId, address: IpAddr) {
        if self.list.len() < GATEWAY_LIMIT && self.find(link, address).is_none() {
            self.list.push(Gateway {
                link,
                address,
                silent: None,
                rests_until: Instant::ZERO,
                suspicions: 0,
                chosen: 0,
            });
        }
    }
    /// Stops watching gateways that no route uses.
    pub fn retain(&mut self, mut is_used: impl FnMut(LinkId, IpAddr) -> bool) {
        self.list.retain(|gateway| is_used(gateway.link, gateway.address));
    }
    /// Whether the gateway is neither silent nor avoided.
    pub fn is_usable(&self, link: LinkId, address: IpAddr, now: Instant) -> bool {
        self.get(link, address).is_none_or(|gateway| gateway.silent.is_none() && gateway.rests_until <= now)
    }
    /// The least recently chosen of `candidates`, which are all unusable.
    // spec: RFC4861 6.3.6
    pub fn in_turn(&mut self, candidates: &[(LinkId, IpAddr)]) -> Option<(LinkId, IpAddr)> {
        let turn =
            |&(link, address): &(LinkId, IpAddr)| self.get(link, address).map_or(0, |gateway| gateway.chosen);
        let next = *candidates.iter().min_by_key(|&candidate| turn(candidate))?;
        self.choices += 1;
        let choice = self.choices;
        if let Some(gateway) = self.find(next.0, next.1) {
            gateway.chosen = choice;
        }
        Some(next)
    }
    /// Notes that the gateway does not answer as a neighbour. True when it did before.
    // spec: RFC1122 3.3.1.4-1
    pub fn mark_unreachable(&mut self, link: LinkId, address: IpAddr, now: Instant) -> bool {
        let gateway = self.find(link, address);
        gateway.is_some_and(|gateway| gateway.silent.replace(now + SILENT_RETRY).is_none())
    }
    /// Notes that the gateway answers. True when it was silent.
    pub fn mark_reachable(&mut self, link: LinkId, address: IpAddr) -> bool {
        self.find(link, address).is_some_and(|gateway| gateway.silent.take().is_some())
    }
    /// Notes that a transport received an acknowledgment through the gateway. True when it was avoided.
    pub fn confirmed(&mut self, link: LinkId, address: IpAddr, now: Instant) -> bool {
        self.find(link, address).is_some_and(|gateway| {
            gateway.suspicions = 0;
            let rested = gateway.rests_until > now;
            gateway.rests_until = Instant::ZERO;
            rested
        })
    }
    /// Notes a retransmission timeout through the gateway. True when it is avoided from now on.
    // spec: RFC1122 3.3.1.4-4
    pub fn suspected(&mut self, link: LinkId, address: IpAddr, now: Instant) -> bool {
        self.find(link, address).is_some_and(|gateway| {
            gateway.suspicions = gateway.suspicions.saturating_add(1);
            let rests = gateway.suspicions >= SUSPICION_LIMIT && gateway.rests_until <= now;
            if rests {
                gateway.suspicions = 0;
                gateway.rests_until = now + NOT_FORWARDING_REST;
            }
            rests
        })
    }
    /// When the next probe is due, or a gateway is no longer avoided.
    pub fn deadline(&self) -> Instant {
        self.list
            .iter()
            .flat_map(|gateway| {
                let rest = Some(gateway.rests_until).filter(|until| *until > Instant::ZERO);
                [gateway.silent, rest]
            })
            .flatten()
            .min()
            .unwrap_or(Instant::FAR_FUTURE)
    }
    /// Whether a gateway is usable again, and the silent gateways that are to be probed.
    pub fn timeout(&mut self, now: Instant) -> (bool, Vec<(LinkId, IpAddr)>) {
        let mut ended = false;
        let mut ask = Vec::new();
        for gateway in &mut self.list {
            if gateway.rests_until > Instant::ZERO && gateway.rests_until <= now {
                gateway.rests_until = Instant::ZERO;
                ended = true;
            }
            if let Some(at) = &mut gateway.silent
                && *at <= now
            {
                *at = now + SILENT_RETRY;
                ask.push((gateway.link, gateway.address));
            }
        }
        (ended, ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: RFC1122 3.3.1.4-4
    #[test]
    fn suspicions_add_up_only_without_confirmation() {
        let (link, address, now) = (LinkId(1), "10.0.0.1".parse().unwrap(), Instant::from_millis(1));
        let mut gateways = Gateways::default();
        gateways.watch(link, address);
        for _ in 0..10 {
            assert!(!gateways.suspected(link, address, now));
            assert!(!gateways.suspected(link, address, now));
            gateways.confirmed(link, address, now);
        }
        gateways.suspected(link, address, now);
        gateways.suspected(link, address, now);
        assert!(gateways.suspected(link, address, now));
        assert!(!gateways.is_usable(link, address, now));
        assert_eq!(gateways.deadline(), now + NOT_FORWARDING_REST);
        assert!(gateways.timeout(now + NOT_FORWARDING_REST).0);
        assert!(gateways.is_usable(link, address, now));
    }

    // spec: RFC4861 6.3.6
    #[test]
    fn gateways_that_are_all_silent_take_turns_and_are_asked() {
        let (a, b) =
            ((LinkId(1), "10.0.0.1".parse().unwrap()), (LinkId(1), "10.0.0.2".parse::<IpAddr>().unwrap()));
        let mut gateways = Gateways::default();
        for (link, address) in [a, b] {
            gateways.watch(link, address);
            assert!(gateways.mark_unreachable(link, address, Instant::ZERO));
        }
        let turns: Vec<_> = (0..4).filter_map(|_| gateways.in_turn(&[a, b])).collect();
        assert_eq!(turns, [a, b, a, b]);
        assert_eq!(gateways.timeout(gateways.deadline()).1, [a, b]);
        assert!(gateways.mark_reachable(a.0, a.1) && gateways.is_usable(a.0, a.1, Instant::ZERO));
    }
}
