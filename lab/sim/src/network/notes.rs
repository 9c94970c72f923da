//! What watchers are told besides frames: names, faults, and frames that were lost.

use std::fmt;

use inhost_base::{IpAddr, LinkId};
use inhost_stack::InterfaceConfig;

use super::{End, Machine, Network, Seen, Watcher};

impl Machine {
    fn addresses(&self) -> Vec<IpAddr> {
        let of = |(_, config): &(LinkId, InterfaceConfig)| -> Vec<IpAddr> {
            config.addresses.iter().map(|cidr| cidr.address()).collect()
        };
        self.interfaces.iter().flat_map(of).collect()
    }
}

impl Network {
    /// Gives a host a name, for messages and captures. Its addresses are those of the links that it has.
    pub fn name_host(&mut self, host: usize, name: &str) {
        let place = &mut self.hosts[host];
        place.name = Some(name.to_owned());
        let addresses = place.machine.addresses();
        self.watch.others.iter_mut().for_each(|watcher| watcher.named(host, name, &addresses));
    }
    /// Shows a watcher the names that were given before it came.
    pub(super) fn show_names(&self, watcher: &mut impl Watcher) {
        for (host, place) in self.hosts.iter().enumerate() {
            if let Some(name) = &place.name {
                watcher.named(host, name, &place.machine.addresses());
            }
        }
    }
    /// Tells watchers that something happened, to a host where one is given: a capture has it as a comment.
    pub fn note(&mut self, host: Option<usize>, words: &str) {
        if self.watch.others.is_empty() {
            return;
        }
        let name = host.map(|host| self.shown_name(host));
        self.watch.others.iter_mut().for_each(|watcher| watcher.noted(self.now, name.as_deref(), words));
    }
    pub(super) fn note_host(&mut self, host: usize, words: fmt::Arguments<'_>) {
        if !self.watch.others.is_empty() {
            self.note(Some(host), &words.to_string());
        }
    }
    pub(super) fn note_link(&mut self, link: usize, words: &str) {
        if self.watch.others.is_empty() {
            return;
        }
        let ends = self.links[link].ends;
        let hosts = ends.iter().filter_map(|end| match end {
            End::Host { host, .. } => Some(self.shown_name(*host)),
            End::Switch { .. } | End::Medium { .. } => None,
        });
        let hosts = hosts.collect::<Vec<_>>().join(" and ");
        let of = if hosts.is_empty() { String::new() } else { format!(" of {hosts}") };
        self.note(None, &format!("link {link}{of}: {words}"));
    }
    pub(super) fn note_partition(&mut self, hosts: &[usize]) {
        if !self.watch.others.is_empty() {
            let names: Vec<String> = hosts.iter().map(|&host| self.shown_name(host)).collect();
            self.note(None, &format!("partition: {} cut off from all others", names.join(", ")));
        }
    }
    fn shown_name(&self, host: usize) -> String {
        self.hosts[host].name.clone().unwrap_or_else(|| format!("host-{host}"))
    }
    /// Shows watchers the frames that were lost since the last call.
    pub(super) fn tell_losses(&mut self) {
        if !self.watch.wants_losses {
            return;
        }
        for (number, link) in self.links.iter_mut().enumerate() {
            for (end, direction) in link.directions.iter_mut().enumerate() {
                for (frame, why) in direction.losses.take() {
                    let seen = Seen {
                        at: self.now,
                        link: number,
                        end,
                        bytes: frame.bytes(),
                        is_ethernet: link.is_ethernet,
                        is_intact: true,
                    };
                    self.watch.others.iter_mut().for_each(|watcher| watcher.lost(&seen, why));
                    self.buffers.give(frame);
                }
            }
        }
    }
}
