//! IP timers, and the actions that the neighbour cache asks for.

use crate::address_state::{AddressAction, Conflict};
use crate::group::{igmp, mld};
use crate::link::Link;
use crate::neighbour::cache::Action;
use crate::neighbour::{arp, ndp};
use crate::{Ip, IpEnvironment};
use inhost_base::{IpAddr, LinkId};
use inhost_event::{Event, Mask, NeighbourChanged, NeighbourState};

/// Most steps of one address, or reports of one link, in one call. The rest is due again at once.
const STEP_LIMIT: usize = 64;

impl Ip {
    /// Runs the timers that are due: neighbours, address tests and lifetimes, router solicitations, group reports,
    /// gateways, and expiry of cached state. Call at [`Ip::deadline`]; earlier it does nothing.
    pub fn timeout(&mut self, env: &mut IpEnvironment<'_>) {
        if self.deadline() > env.now {
            return;
        }
        self.deadline_moved();
        for index in 0..self.interfaces.len() {
            let link = LinkId(index as u16);
            if let Some(mut link) = self.link(link) {
                link.timeout_addresses(env);
                link.interface.neighbours.timeout(env.now);
                ndp::solicit_routers(link.interface, env);
                link.timeout_groups(env);
            }
        }
        let (is_changed, silent) = self.routing.timeout(env.now);
        for (link, gateway) in silent {
            if let Some(interface) = self.interface_mut(link) {
                match interface.hardware() {
                    Some(_) => interface.neighbours.ask_again(gateway, env.now),
                    None => {
                        self.routing.gateway_is_reachable(link, gateway);
                    }
                }
            }
        }
        self.timeout_reassembly(env);
        if is_changed {
            self.paths_changed();
        }
        for index in 0..self.interfaces.len() {
            self.run_actions(LinkId(index as u16), env);
        }
    }
    /// Runs the pending actions of the neighbour cache of `link`.
    pub(crate) fn run_actions(&mut self, link: LinkId, env: &mut IpEnvironment<'_>) {
        let mut has_any = false;
        while let Some(action) =
            self.interface_mut(link).and_then(|interface| interface.neighbours.take_action())
        {
            has_any = true;
            match action {
                Action::Solicit { address, at } => {
                    let Some(interface) = self.interface_mut(link) else { return };
                    match address {
                        IpAddr::V4(address) => arp::send_request(interface, address, at, env.pool),
                        IpAddr::V6(address) => ndp::send_solicitation(interface, address, at, env.pool),
                    }
                }
                Action::Changed { address, hardware, state, awaited } => {
                    let changed = NeighbourChanged { link, address, hardware, state };
                    env.sink.emit(Mask::IP, env.now, || Event::NeighbourChanged(changed));
                    self.neighbour_changed(link, address, state, awaited, env);
                }
            }
        }
        if has_any {
            self.deadline_moved();
        }
    }
    /// Applies a change of reachability: notifies transports that wait for the neighbour, and updates gateway health.
    // spec: RFC1122 3.3.1.4-1
    fn neighbour_changed(
        &mut self,
        link: LinkId,
        address: IpAddr,
        state: NeighbourState,
        awaited: bool,
        env: &mut IpEnvironment<'_>,
    ) {
        if let Some(interface) = self.interface_mut(link) {
            interface.control.recheck = true;
            interface.forward.recheck = true;
        }
        let is_news = match state {
            NeighbourState::Failed => self.routing.next_hop_failed(link, address, env.now),
            NeighbourState::Reachable => self.routing.gateway_is_reachable(link, address),
            NeighbourState::Incomplete
            | NeighbourState::Stale
            | NeighbourState::Delay
            | NeighbourState::Probe => false,
        };
        if awaited && state != NeighbourState::Incomplete {
            self.notify_resolved(link, address);
        }
        if is_news {
            self.paths_changed();
        }
    }
}

impl Link<'_> {
    fn timeout_addresses(&mut self, env: &mut IpEnvironment<'_>) {
        if self.interface.deadline() > env.now {
            return;
        }
        let addresses: Vec<IpAddr> =
            self.interface.addresses.iter().map(|assigned| assigned.address()).collect();
        for address in addresses {
            for _ in 0..STEP_LIMIT {
                let Link { interface, routing, .. } = self;
                let before = interface.assigned(address).copied();
                let Some(assigned) = interface.assigned_mut(address) else { break };
                let action = assigned.timeout(env.now, env.random);
                let is_changed = before.is_some_and(|before| before.state() != assigned.state());
                let is_done = action.is_none();
                match action {
                    Some(AddressAction::Probe) => match address {
                        IpAddr::V4(v4) => arp::send_probe(interface, v4, env.pool),
                        IpAddr::V6(v6) => ndp::send_duplicate_test(interface, v6, env.pool),
                    },
                    Some(AddressAction::Announce) => {
                        if let IpAddr::V4(v4) = address {
                            arp::send_announcement(interface, v4, env.pool);
                        }
                    }
                    Some(AddressAction::Passed) | None => {}
                }
                if is_changed {
                    routing.changed();
                }
                if is_done {
                    break;
                }
            }
        }
        while let Some(address) = self.expired_address(env.now) {
            if self.remove_address(address, env).is_err() {
                break;
            }
        }
    }
    fn timeout_groups(&mut self, env: &mut IpEnvironment<'_>) {
        let interface = &mut *self.interface;
        for _ in 0..STEP_LIMIT {
            match interface.groups.pop_report(env.now, env.random) {
                Some(IpAddr::V4(group)) => igmp::send_report(interface, group, env.now, env.pool),
                Some(IpAddr::V6(group)) => mld::send_report(interface, group, env.pool),
                None => break,
            }
        }
    }
    /// Handles an address that another host uses or tests, too.
    pub(crate) fn address_conflict(&mut self, address: IpAddr, env: &mut IpEnvironment<'_>) {
        let interface = &mut *self.interface;
        interface.counters.address_conflicts += 1;
        let Some(assigned) = interface.assigned_mut(address) else { return };
        match assigned.conflict(env.now) {
            Conflict::Lost => {
                let assigned = *assigned;
                self.routing.changed();
                self.try_next_stable(assigned, env);
            }
            Conflict::Defended => match address {
                IpAddr::V4(v4) => arp::send_announcement(interface, v4, env.pool),
                IpAddr::V6(v6) => ndp::send_defence(interface, v6, env.pool),
            },
            Conflict::Ignored => {}
        }
    }
}
