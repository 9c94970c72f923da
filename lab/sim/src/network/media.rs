//! Shared media in a network, and the hosts that are joined to them.

use inhost_base::{Duration, Instant, LinkId};
use inhost_stack::{ConfigureError, InterfaceConfig, Medium};

use super::{End, Network};
use crate::link::{LinkConfig, MediumQueue};
use crate::media::{Happened, SharedMedium};

/// A medium and its stations.
pub(super) struct MediumPlace {
    medium: Box<dyn SharedMedium>,
    /// The link of each station. Its end 0 is the host's, and its end 1 the medium's.
    pub(super) links: Vec<usize>,
}

impl Network {
    /// Adds a shared medium; gives its number.
    pub fn add_medium(&mut self, medium: impl SharedMedium + 'static) -> usize {
        self.media.push(MediumPlace { medium: Box::new(medium), links: Vec::new() });
        self.media.len() - 1
    }
    /// Joins a host to a medium. `queue_frames` frames of the host, at least one, may be on the medium or wait for it;
    /// then its device refuses. Gives the link's number, whose end 0 is the host, and its name at the host. The link itself
    /// takes no time and loses nothing, until [`Network::set_link`] says otherwise; what is on the medium is not among
    /// [`Network::flying`].
    pub fn join_medium(
        &mut self,
        (host, interface): (usize, InterfaceConfig),
        medium: usize,
        queue_frames: usize,
    ) -> Result<(usize, LinkId), ConfigureError> {
        let address = match interface.medium {
            Medium::Ethernet(address) => Some(address),
            _ => None,
        };
        let end = self.end((host, interface))?;
        let id = if let End::Host { id, .. } = end { id } else { LinkId(0) };
        let station = self.media[medium].medium.attach(address);
        let at_once = LinkConfig { delay: Duration::ZERO, ..LinkConfig::default() };
        let link =
            self.add_link([end, End::Medium { medium, station }], address.is_some(), at_once.into(), 0);
        self.links[link].directions[0].medium = Some(MediumQueue { limit: queue_frames.max(1), held: 0 });
        Ok((link, id))
    }
    /// Counters of a medium, by name.
    pub fn medium_counters(&self, medium: usize) -> Vec<(&'static str, u64)> {
        self.media[medium].medium.counters()
    }
    /// Octets that have moved at the stations of a host.
    pub(super) fn octets(&self, host: usize) -> u64 {
        let of_port = |&(link, end): &(usize, usize)| match self.links[link].ends[1 - end] {
            End::Medium { medium, station } => self.media[medium].medium.octets(station),
            End::Host { .. } | End::Switch { .. } => 0,
        };
        self.hosts[host].ports.iter().map(of_port).sum()
    }
    /// Frames that have left a host go on to its medium.
    pub(super) fn pass_to_medium(&mut self, link: usize, end: usize) {
        let End::Medium { medium, station } = self.links[link].ends[1 - end] else { return };
        while let Some(flying) = self.links[link].directions[end].arrived(self.now, &mut self.buffers) {
            let frame = flying.frame.bytes().to_vec();
            self.buffers.give(flying.frame);
            if let Some(queue) = &mut self.links[link].directions[end].medium {
                queue.held += 1;
            }
            self.media[medium].medium.offer(station, frame, flying.at);
        }
        self.look_again(link, end);
    }
    /// Lets time pass inside media until a station notices something, but at most to `limit`; gives when something
    /// happens next.
    pub(super) fn run_media(&mut self, mut limit: Instant) -> Instant {
        let mut happened = Vec::new();
        while let Some((number, at)) = self.next_of_media()
            && at < limit
            && at <= self.horizon
        {
            self.media[number].medium.step(at, &mut happened);
            for what in happened.drain(..) {
                limit = limit.min(at);
                self.notice(number, what, at);
            }
        }
        // A run that ends before the medium's next event goes on from there.
        match self.next_of_media() {
            Some((_, at)) => limit.min(at),
            None => limit,
        }
    }
    fn next_of_media(&self) -> Option<(usize, Instant)> {
        let all = self.media.iter().enumerate().map(|(number, place)| (number, place.medium.next()));
        all.filter(|&(_, at)| at != Instant::FAR_FUTURE).min_by_key(|&(_, at)| at)
    }
    fn notice(&mut self, medium: usize, what: Happened, at: Instant) {
        match what {
            Happened::Delivered { station, frame } => {
                let link = self.media[medium].links[station];
                let frame = self.buffers.copy(&frame);
                self.links[link].directions[1].send(frame, at, &mut self.buffers);
                self.look_again(link, 1);
            }
            Happened::Released { station } => {
                let link = self.media[medium].links[station];
                if let Some(queue) = &mut self.links[link].directions[0].medium {
                    queue.held = queue.held.saturating_sub(1);
                }
                if let End::Host { host, .. } = self.links[link].ends[0] {
                    self.medium_has_room(host, link, at);
                }
            }
        }
    }
}
