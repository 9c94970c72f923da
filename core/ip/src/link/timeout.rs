//! The timers of one link: address tests and lifetimes, group reports.

use super::{Link, arp, igmp, mld, ndp};
use crate::IpEnvironment;
use crate::address_state::{AddressAction, Assigned, Conflict};
use alloc::vec::Vec;
use inhost_base::IpAddr;

/// Most steps of one address, or reports of one link, in one call. The rest is due again at once.
const STEP_LIMIT: usize = 64;

impl Link<'_> {
    pub(crate) fn timeout_addresses(&mut self, env: &mut IpEnvironment<'_>) {
        if self.interface.deadline() > env.now() {
            return;
        }
        let addresses: Vec<IpAddr> = self.interface.addresses().iter().map(Assigned::address).collect();
        for address in addresses {
            for _ in 0..STEP_LIMIT {
                let Link { interface, routing, .. } = self;
                let Some(assigned) = interface.assigned_mut(address) else { break };
                let before = assigned.state();
                let action = assigned.timeout(env.now(), env.random());
                if assigned.state() != before {
                    routing.changed();
                }
                match action {
                    Some(AddressAction::Probe) => match address {
                        IpAddr::V4(v4) => arp::send_probe(interface, v4, env.pool()),
                        IpAddr::V6(v6) => ndp::send_duplicate_test(interface, v6, env.pool()),
                    },
                    Some(AddressAction::Announce) => {
                        if let IpAddr::V4(v4) = address {
                            arp::send_announcement(interface, v4, env.pool());
                        }
                    }
                    Some(AddressAction::Passed) => {}
                    None => break,
                }
            }
        }
        let is_expired = |assigned: &&Assigned| assigned.valid_until() <= env.now();
        let expired: Vec<IpAddr> =
            self.interface.addresses().iter().filter(is_expired).map(Assigned::address).collect();
        for address in expired {
            self.remove_address(address, env).ok();
        }
    }
    pub(crate) fn timeout_groups(&mut self, env: &mut IpEnvironment<'_>) {
        let interface = &mut *self.interface;
        for _ in 0..STEP_LIMIT {
            match interface.pop_report(env.now(), env.random()) {
                Some(IpAddr::V4(group)) => igmp::send_report(interface, group, env.now(), env.pool()),
                Some(IpAddr::V6(group)) => mld::send_report(interface, group, env.pool()),
                None => break,
            }
        }
    }
    /// Handles an address that another host uses or tests, too.
    pub(crate) fn address_conflict(&mut self, address: IpAddr, env: &mut IpEnvironment<'_>) {
        let interface = &mut *self.interface;
        interface.count(|counters| counters.address_conflicts += 1);
        let Some(assigned) = interface.assigned_mut(address) else { return };
        match assigned.conflict(env.now()) {
            Conflict::Lost => {
                let assigned = *assigned;
                self.routing.changed();
                self.try_next_stable(assigned, env);
            }
            Conflict::Defended => match address {
                IpAddr::V4(v4) => arp::send_announcement(interface, v4, env.pool()),
                IpAddr::V6(v6) => ndp::send_defence(interface, v6, env.pool()),
            },
            Conflict::Ignored => {}
        }
    }
}
