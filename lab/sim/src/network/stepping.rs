//! A network that is stepped: one frame, timer or call at a time, for those who look at what each does.

use inhost_base::Instant;

use super::Network;

impl Network {
    /// Lets time pass to when something happens next, and does that alone: one host's round, with one frame at most.
    /// Gives the host, or none when nothing will ever happen again. A round takes a host a microsecond, as
    /// in a run, so frames of one instant are taken one after the other. A round may find nothing to do, because hosts
    /// arm timers lazily.
    pub fn step_once(&mut self) -> Option<usize> {
        self.horizon = Instant::FAR_FUTURE;
        let host = self.next_host()?;
        self.round_with(host, 1);
        Some(host)
    }
    /// Gives a host a round now, without a frame: for a call that was made on it.
    pub fn step_host(&mut self, host: usize) {
        self.round_with(host, 0);
    }
    /// When [`Network::step_once`] does something; none for never.
    pub fn next_step(&mut self) -> Option<Instant> {
        self.horizon = Instant::FAR_FUTURE;
        match self.is_busy() {
            true => Some(self.now),
            false => self.next(),
        }
    }

    fn round_with(&mut self, host: usize, frames: usize) {
        self.rounds += 1;
        self.tasks.now.set(self.now);
        self.frames_a_round = frames;
        self.round(host);
        self.tell_losses();
        if self.watch.checks {
            let hosts = &self.hosts;
            self.watch.checker.passes(self.now, &|host| hosts[host].host.clone());
        }
    }
    /// Whether a host has something to do at this instant.
    fn is_busy(&mut self) -> bool {
        self.wake_called();
        while let Some(change) = self.changes.first_entry()
            && change.key().0 <= self.now
        {
            change.remove()(self);
        }
        self.switch_frames();
        self.wakes.earliest() <= self.now
    }
    fn next_host(&mut self) -> Option<usize> {
        while !self.is_busy() {
            self.now = self.next()?;
        }
        self.wakes.due(0, self.now)
    }
    /// Somebody may have called a host since its last round.
    fn wake_called(&mut self) {
        for number in 0..self.hosts.len() {
            let host = &self.hosts[number].host;
            let sends = host.with_stack(|stack, _| stack.links().any(|link| stack.wants_transmit(link)));
            let is_idle = self.wakes.of(number) == Instant::FAR_FUTURE && !self.is_working(number);
            if is_idle && (sends || host.has_runnable()) {
                self.wake(number, self.now);
            }
        }
    }
}
