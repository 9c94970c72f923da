//! Multicast group membership of one link, and when it is reported (IGMPv2, MLDv1).

use crate::ConfigureError;
use crate::scope::{self, level};
use alloc::vec::Vec;
use inhost_base::{Duration, Instant, IpAddr, Random};

/// Most groups of one link, those that go with our addresses included.
pub(crate) const GROUP_LIMIT: usize = 64;
/// The longest wait before the second unsolicited report (RFC 2236 §8.10, RFC 2710 §7.10).
const UNSOLICITED_INTERVAL_MS: u32 = 10_000;
/// Reports on joining.
const UNSOLICITED_COUNT: u8 = 2;
/// How long a router of IGMPv1 is remembered (RFC 2236 §8.11).
const VERSION_1_ROUTER_PRESENT: Duration = Duration::from_secs(400);

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Membership {
    group: IpAddr,
    users: u32,
    report_at: Instant,
    /// Reports still to come without being asked, this one included.
    unsolicited_left: u8,
    /// We were the last to report it, so that leaving is for us to tell.
    is_last_reporter: bool,
}

/// The groups of one link.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Groups {
    list: Vec<Membership>,
    version_1_until: Instant,
}

/// Groups that are never reported: all-hosts groups and groups of link-local or smaller scope.
// spec: RFC2236 6, RFC2710 5
fn is_reported(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(a) => a != scope::ALL_SYSTEMS,
        IpAddr::V6(a) => a != scope::ALL_NODES && scope::scope(group) > level::INTERFACE,
    }
}

impl Groups {
    pub fn contains(&self, group: IpAddr) -> bool {
        self.list.iter().any(|membership| membership.group == group)
    }
    /// One more of us listens to `group`.
    pub fn join(&mut self, group: IpAddr, now: Instant) -> Result<(), ConfigureError> {
        if !group.is_multicast() {
            return Err(ConfigureError::Invalid);
        }
        if let Some(membership) = self.list.iter_mut().find(|membership| membership.group == group) {
            membership.users = membership.users.saturating_add(1);
            return Ok(());
        }
        if self.list.len() >= GROUP_LIMIT {
            return Err(ConfigureError::Limit);
        }
        let reported = is_reported(group);
        self.list.push(Membership {
            group,
            users: 1,
            report_at: if reported { now } else { Instant::FAR_FUTURE },
            unsolicited_left: if reported { UNSOLICITED_COUNT } else { 0 },
            is_last_reporter: false,
        });
        Ok(())
    }
    /// Removes one listener; true when a leave message is due.
    // spec: RFC2236 3, RFC2710 4
    pub fn leave(&mut self, group: IpAddr, now: Instant) -> Result<bool, ConfigureError> {
        let at = self.list.iter().position(|m| m.group == group).ok_or(ConfigureError::Absent)?;
        let Some(membership) = self.list.get_mut(at) else { return Err(ConfigureError::Absent) };
        membership.users = membership.users.saturating_sub(1);
        if membership.users > 0 {
            return Ok(false);
        }
        let gone = self.list.swap_remove(at);
        Ok(gone.is_last_reporter && !(group.is_ipv4() && self.speaks_version_1(now)))
    }
    /// Whether a router of IGMPv1 is about.
    // spec: RFC2236 4
    pub fn speaks_version_1(&self, now: Instant) -> bool {
        self.version_1_until > now
    }
    /// A router of IGMPv1 asked.
    pub fn querier_is_version_1(&mut self, now: Instant) {
        self.version_1_until = now + VERSION_1_ROUTER_PRESENT;
    }
    /// A router asks about `group`, or about all of its family if it is unspecified: each answers after a random part of
    /// `within`.
    // spec: RFC2236 3, RFC2710 4
    pub fn queried(&mut self, group: IpAddr, within: Duration, now: Instant, random: &mut Random) {
        for membership in &mut self.list {
            let of_all = group.is_unspecified() && group.is_ipv6() == membership.group.is_ipv6();
            let asked = (of_all || group == membership.group) && is_reported(membership.group);
            if asked && membership.report_at > now + within {
                let part = u64::from(random.public_below(1 << 16));
                membership.report_at = now + Duration::from_nanos((within.as_nanos() >> 16) * part);
            }
        }
    }
    /// Somebody else reported `group`: ours need not.
    // spec: RFC2236 3, RFC2710 4
    pub fn reported_by_other(&mut self, group: IpAddr) {
        if let Some(membership) = self.list.iter_mut().find(|membership| membership.group == group)
            && membership.report_at < Instant::FAR_FUTURE
        {
            membership.report_at = Instant::FAR_FUTURE;
            membership.unsolicited_left = 0;
            membership.is_last_reporter = false;
        }
    }
    /// When the next report is due.
    pub fn deadline(&self) -> Instant {
        self.list.iter().map(|membership| membership.report_at).min().unwrap_or(Instant::FAR_FUTURE)
    }
    /// The next group whose report is due; call until `None`.
    pub fn pop_report(&mut self, now: Instant, random: &mut Random) -> Option<IpAddr> {
        let membership = self.list.iter_mut().find(|membership| membership.report_at <= now)?;
        membership.is_last_reporter = true;
        membership.unsolicited_left = membership.unsolicited_left.saturating_sub(1);
        membership.report_at = if membership.unsolicited_left > 0 {
            // Never zero, so that a loop over due reports ends.
            let wait_ms = 1 + u64::from(random.public_below(UNSOLICITED_INTERVAL_MS));
            now + Duration::from_millis(wait_ms)
        } else {
            Instant::FAR_FUTURE
        };
        Some(membership.group)
    }
    /// The groups, in the order in which they were joined, but for those that took a left one's place.
    pub fn list(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.list.iter().map(|membership| membership.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: RFC2236 3
    #[test]
    fn a_query_is_answered_in_its_time_unless_another_does() {
        let mut groups = Groups::default();
        let mut random = Random::from_number(8);
        let (a, b): (IpAddr, IpAddr) = ("239.1.1.1".parse().unwrap(), "239.1.1.2".parse().unwrap());
        groups.join(a, Instant::ZERO).unwrap();
        groups.join(b, Instant::ZERO).unwrap();
        groups.join(scope::ALL_SYSTEMS.into(), Instant::ZERO).unwrap();
        let mut reports = 0;
        while groups.deadline() < Instant::FAR_FUTURE {
            groups.pop_report(groups.deadline(), &mut random).unwrap();
            reports += 1;
        }
        assert_eq!(reports, 4, "two for each, none for 224.0.0.1");
        let now = Instant::from_millis(100_000);
        groups.queried(inhost_base::Ipv4Addr::UNSPECIFIED.into(), Duration::from_secs(10), now, &mut random);
        assert!(groups.deadline() < now + Duration::from_secs(10));
        groups.reported_by_other(a);
        let due = groups.deadline();
        assert_eq!(groups.pop_report(due, &mut random), Some(b));
        assert_eq!(groups.pop_report(now + Duration::from_secs(11), &mut random), None);
        assert_eq!(groups.leave(a, now), Ok(false), "another reported it last");
        assert_eq!(groups.leave(b, now), Ok(true));
        assert_eq!(groups.leave(b, now), Err(ConfigureError::Absent));
    }

    #[test]
    fn membership_counts_users_and_is_bounded() {
        let mut groups = Groups::default();
        for i in 0..1000u32 {
            let group = IpAddr::V4((0xef00_0000 + i).into());
            let joined = groups.join(group, Instant::ZERO);
            assert_eq!(joined.is_ok(), (i as usize) < GROUP_LIMIT);
        }
        let group = IpAddr::V4(0xef00_0000.into());
        groups.join(group, Instant::ZERO).unwrap();
        assert_eq!(groups.leave(group, Instant::ZERO), Ok(false));
        assert!(groups.contains(group));
        groups.leave(group, Instant::ZERO).unwrap();
        assert!(!groups.contains(group));
    }
}
