//! The timers of links and routes, and the actions that neighbour caches ask for.

use super::Paths;
use crate::IpEnvironment;
use crate::link::{arp, ndp};
use crate::neighbour::cache::Action;
use inhost_base::{IpAddr, LinkId};
use inhost_event::{Event, Mask, NeighbourChanged, NeighbourState};

impl Paths {
    /// Runs the timers of links and routes that are due. Call [`Paths::run_all_actions`] afterwards.
    pub(crate) fn timeout(&mut self, env: &mut IpEnvironment<'_>) {
        self.deadline_moved();
        for index in 0..self.interfaces.len() {
            let link = LinkId(index as u16);
            if let Some(mut link) = self.link(link) {
                link.timeout_addresses(env);
                link.interface_mut().timeout_neighbours(env.now());
                ndp::solicit_routers(link.interface_mut(), env);
                link.timeout_groups(env);
            }
        }
        let (is_changed, silent) = self.routing.timeout(env.now());
        for (link, gateway) in silent {
            if self.interface_mut(link).is_some_and(|interface| !interface.ask_again(gateway, env.now())) {
                self.routing.gateway_is_reachable(link, gateway);
            }
        }
        if is_changed {
            self.changed();
        }
    }
    /// Runs the pending actions of the neighbour caches of all links.
    pub(crate) fn run_all_actions(&mut self, env: &mut IpEnvironment<'_>) {
        for index in 0..self.interfaces.len() {
            self.run_actions(LinkId(index as u16), env);
        }
    }
    /// Runs the pending actions of the neighbour cache of `link`.
    pub(crate) fn run_actions(&mut self, link: LinkId, env: &mut IpEnvironment<'_>) {
        let mut has_any = false;
        while let Some(action) = self.interface_mut(link).and_then(|interface| interface.take_action()) {
            has_any = true;
            match action {
                Action::Solicit { address, at } => {
                    let Some(interface) = self.interface_mut(link) else { return };
                    match address {
                        IpAddr::V4(address) => arp::send_request(interface, address, at, env.pool()),
                        IpAddr::V6(address) => ndp::send_solicitation(interface, address, at, env.pool()),
                    }
                }
                Action::Changed { address, hardware, state, awaited } => {
                    let changed = NeighbourChanged { link, address, hardware, state };
                    env.emit(Mask::IP, || Event::NeighbourChanged(changed));
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
            interface.recheck_waiting();
        }
        let is_news = match state {
            NeighbourState::Failed => self.routing.next_hop_failed(link, address, env.now()),
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
            self.changed();
        }
    }
}
