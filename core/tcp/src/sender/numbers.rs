//! The sequence numbers that a sender keeps ([`crate::numbers`]).

use super::Sender;
use crate::numbers::{LAG_BYTES, Visit};

impl Sender {
    /// Visits every number of the send space that means something now.
    pub fn visit_send_space(&mut self, visit: Visit<'_>) {
        let Sender {
            buffers,
            history,
            timer,
            space,
            recovery,
            // The rest holds no number: times, counts and sizes.
            congestion: _,
            sent_at: _,
            acknowledged_bytes: _,
            least_echo: _,
            keep_alive_probes: _,
            flags: _,
            scale: _,
        } = self;
        space.numbers(visit);
        recovery.numbers(visit);
        timer.round_trip.numbers(visit);
        if let Some(buffers) = buffers {
            buffers.numbers(visit);
        }
        if let Some(search) = history.as_mut().and_then(|history| history.search.as_mut()) {
            search.numbers(visit);
        }
    }
    /// Brings numbers that have fallen far behind `SND.UNA` nearer. It is called once for each [`STEP_BYTES`](crate::numbers)
    /// acknowledged.
    #[cold]
    pub fn pull_numbers_along(&mut self) {
        let least = self.space.unacknowledged.back(LAG_BYTES);
        self.visit_send_space(&mut |_, number| *number = least.later(*number));
    }
}
