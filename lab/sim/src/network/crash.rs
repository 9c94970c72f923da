//! Machines that lose their power, and begin again.

use inhost_base::Instant;

use super::Network;

impl Network {
    /// Takes the power from a host: its tasks are dropped, and of its connections and its memory nothing is left. Nobody
    /// is told. What it has given to its links still arrives; what comes is lost until [`Network::restart`].
    ///
    /// Its clock goes on, and its interfaces stay as they are.
    pub fn crash(&mut self, host: usize) {
        self.boot(host);
        let place = &mut self.hosts[host];
        place.is_down = true;
        place.paused_until = Some(Instant::FAR_FUTURE);
        self.wakes.set(host, Instant::FAR_FUTURE);
        self.note_host(host, format_args!("crashed"));
    }
    /// Gives a host its power: it begins with the configuration and the interfaces that it was given, other random
    /// numbers, and without tasks. One that runs crashes before. What the caller set at its [`Network::host`] is to be set
    /// again, and programs to be started.
    pub fn restart(&mut self, host: usize) {
        self.boot(host);
        let place = &mut self.hosts[host];
        place.is_down = false;
        place.paused_until = None;
        self.wakes.set(host, self.now);
        self.note_host(host, format_args!("restarted"));
    }
    /// Whether a host has no power.
    pub fn is_down(&self, host: usize) -> bool {
        self.hosts[host].is_down
    }
    fn boot(&mut self, number: usize) {
        let place = &mut self.hosts[number];
        place.host.stop();
        let now = place.clock.shows(self.now);
        place.host = place.machine.boot(now);
        place.host.observe_tasks(place.observer.clone());
        for (id, config) in &place.machine.interfaces {
            let given = place.host.with_stack(|stack, _| stack.add_link(config.clone(), now));
            assert_eq!(given.as_ref(), Ok(id), "an interface is what it was before");
        }
        if let Some(cpu) = &mut place.cpu {
            cpu.forget();
        }
        for port in 0..self.hosts[number].ports.len() {
            let (link, end) = self.hosts[number].ports[port];
            self.lose_arrived(link, 1 - end);
        }
    }
    /// What has arrived of a direction is lost.
    pub(super) fn lose_arrived(&mut self, link: usize, end: usize) {
        self.links[link].directions[end].overflow(0, self.now, &mut self.buffers);
        self.look_again(link, end);
    }
}
