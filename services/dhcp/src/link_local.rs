//! An address that the hosts of a link give themselves (RFC 3927), for want of a server.

use inhost_base::{Cidr, Duration, HardwareAddress, Instant, Ipv4Addr, SipKey};

/// The block's prefix.
const PREFIX_BITS: u8 = 16;
/// Addresses of the block that may be chosen: all but the first and the last 256 (RFC 3927 §2.1).
const CHOICES: u64 = 254 * 256;
/// Conflicts behind which a host tries slowly (RFC 3927 §2.2.1, §9).
const MOST_CONFLICTS: u8 = 10;
/// Between tries then.
const RATE_LIMIT_INTERVAL: Duration = Duration::from_secs(60);

/// Action on the address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Assign(Cidr),
    Unassign(Ipv4Addr),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Off,
    /// There were too many conflicts.
    Resting {
        until: Instant,
    },
    Testing(Ipv4Addr),
    InUse(Ipv4Addr),
}

/// The choice and the use of one.
#[derive(Clone, Debug)]
pub(crate) struct LinkLocal {
    card: HardwareAddress,
    phase: Phase,
    /// Since the last time that one could be used: how many choices others had.
    conflicts: u8,
    /// The one that was used last.
    last: Option<Ipv4Addr>,
}

impl LinkLocal {
    pub fn new(card: HardwareAddress, last: Option<Ipv4Addr>) -> LinkLocal {
        let last = last.filter(|&last| is_choice(last));
        LinkLocal { card, phase: Phase::Off, conflicts: 0, last }
    }
    /// Wants an address, unless it has or tries one.
    pub fn begin(&mut self) -> Option<Step> {
        if self.phase != Phase::Off {
            return None;
        }
        Some(self.test())
    }
    /// Needs none any more.
    pub fn end(&mut self) -> Option<Step> {
        self.conflicts = 0;
        match core::mem::replace(&mut self.phase, Phase::Off) {
            Phase::Off | Phase::Resting { .. } => None,
            Phase::Testing(address) | Phase::InUse(address) => Some(Step::Unassign(address)),
        }
    }
    /// It is ours. True when that is news.
    pub fn settled(&mut self, address: Ipv4Addr) -> bool {
        let is_news = self.phase == Phase::Testing(address);
        if is_news {
            self.phase = Phase::InUse(address);
            self.conflicts = 0;
            self.last = Some(address);
        }
        is_news
    }
    /// Another host has it: it goes, and another is tried, at once or, after many, in a minute. Nothing when it is not
    /// the address.
    // RFC 3927 §2.5 (b): the host has defended it once, for that is done where addresses are kept.
    pub fn conflict(&mut self, address: Ipv4Addr, now: Instant) -> Option<(Step, Option<Step>)> {
        if self.phase != Phase::Testing(address) && self.phase != Phase::InUse(address) {
            return None;
        }
        self.last = None;
        self.conflicts = self.conflicts.saturating_add(1);
        let next = match self.conflicts > MOST_CONFLICTS {
            true => {
                self.phase = Phase::Resting { until: now + RATE_LIMIT_INTERVAL };
                None
            }
            false => Some(self.test()),
        };
        Some((Step::Unassign(address), next))
    }
    pub fn timeout(&mut self, now: Instant) -> Option<Step> {
        match self.phase {
            Phase::Resting { until } if until <= now => Some(self.test()),
            _ => None,
        }
    }
    pub fn deadline(&self) -> Instant {
        match self.phase {
            Phase::Resting { until } => until,
            Phase::Off | Phase::Testing(_) | Phase::InUse(_) => Instant::FAR_FUTURE,
        }
    }
    /// The address in use.
    pub fn in_use(&self) -> Option<Ipv4Addr> {
        match self.phase {
            Phase::InUse(address) => Some(address),
            _ => None,
        }
    }
    /// The one to begin with the next time.
    pub fn last(&self) -> Option<Ipv4Addr> {
        self.last
    }

    /// The last one, or one that follows from the card and the number of conflicts, so that a host mostly finds its old
    /// address again, and hosts differ (RFC 3927 §2.1).
    fn test(&mut self) -> Step {
        let address = self.last.unwrap_or_else(|| choice(self.card, self.conflicts));
        self.phase = Phase::Testing(address);
        match Cidr::new(address, PREFIX_BITS) {
            Ok(cidr) => Step::Assign(cidr),
            Err(_) => Step::Unassign(address),
        }
    }
}

fn choice(card: HardwareAddress, conflicts: u8) -> Ipv4Addr {
    let [a, b, c, d, e, g] = card.0;
    let hash = SipKey::from_halves(3927, 0x6c69_6e6b).hash(&[a, b, c, d, e, g, conflicts]);
    let [high, low] = ((256 + hash % CHOICES) as u16).to_be_bytes();
    Ipv4Addr::new(169, 254, high, low)
}

fn is_choice(address: Ipv4Addr) -> bool {
    address.is_link_local() && !matches!(address.octets()[2], 0 | 255)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(step: Option<Step>) -> Ipv4Addr {
        let Some(Step::Assign(cidr)) = step else { panic!("{step:?}") };
        assert_eq!(cidr.prefix_bits(), 16);
        let std::net::IpAddr::V4(address) = cidr.address() else { panic!("{cidr}") };
        assert!(is_choice(address), "{address}");
        address
    }

    // RFC 3927 §2.1, §2.2.1
    #[test]
    fn choices_repeat_for_a_card_and_slow_down_after_ten_conflicts() {
        let card = HardwareAddress([2, 0, 0, 0, 0, 1]);
        let mut one = LinkLocal::new(card, None);
        let first = address(one.begin());
        assert_eq!(address(LinkLocal::new(card, None).begin()), first);
        assert_ne!(address(LinkLocal::new(HardwareAddress([2, 0, 0, 0, 0, 2]), None).begin()), first);
        assert!(one.settled(first) && !one.settled(first) && one.begin().is_none());
        let now = Instant::from_millis(9);
        assert!(one.conflict(Ipv4Addr::new(169, 254, 1, 1), now).is_none() || first.octets()[2..] == [1, 1]);
        let mut tried = first;
        for _ in 0..10 {
            let (gone, next) = one.conflict(tried, now).unwrap();
            assert_eq!(gone, Step::Unassign(tried));
            tried = address(next);
        }
        assert_eq!(one.conflict(tried, now), Some((Step::Unassign(tried), None)));
        assert_eq!(one.deadline(), now + RATE_LIMIT_INTERVAL);
        assert_eq!(one.timeout(now), None);
        let later = address(one.timeout(one.deadline()));
        assert_eq!((one.end(), one.end()), (Some(Step::Unassign(later)), None));
    }

    #[test]
    fn the_last_one_is_tried_first_if_it_is_of_the_block() {
        let card = HardwareAddress([2, 0, 0, 0, 0, 1]);
        let last = Ipv4Addr::new(169, 254, 7, 7);
        assert_eq!(address(LinkLocal::new(card, Some(last)).begin()), last);
        for wrong in
            [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(169, 254, 0, 5), Ipv4Addr::new(169, 254, 255, 5)]
        {
            assert_ne!(address(LinkLocal::new(card, Some(wrong)).begin()), wrong);
        }
    }
}
