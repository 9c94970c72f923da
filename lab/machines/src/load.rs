//! Programs that only compute beside the one that is measured: VPI's artificial load (§2.5).
//!
//! The scheduler is that of System V (Bach, The Design of the UNIX Operating System, 1986, chapter 8): a clock of 60 ticks
//! a second counts against the program that runs, all counts are halved each second, and the program with the lowest count runs next. A program
//! that has just started is ahead of those that have computed for long, until it has used about a second.

use std::cell::Cell;

use inhost_base::{Duration, Instant};

const TICKS_A_SECOND: f64 = 60.0;
/// How far a program may be above the others before they run: a tenth of a second, which is assumed.
const SLICE_TICKS: f64 = 6.0;

/// The counts of the measured program and of its competitors. All programs of a host share it.
#[derive(Debug)]
pub(crate) struct Load {
    competitors: f64,
    state: Cell<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Ticks of the program, and of each competitor.
    own: f64,
    others: f64,
    /// Until when they are counted, and how long the processor was busy then with the network and the program.
    at: Instant,
    busy: Duration,
}

impl Load {
    /// So many competitors, which have computed for long at `now`.
    pub(crate) fn new(competitors: u32, now: Instant) -> Load {
        let competitors = f64::from(competitors);
        // Each has 1 / N of a second's ticks, and half of what it had.
        let state = State { own: 0.0, others: TICKS_A_SECOND / competitors, at: now, busy: Duration::ZERO };
        Load { competitors, state: Cell::new(state) }
    }
    /// For how long the others run first at `now`, when the network and the program have taken `busy` in all. As in System V,
    /// the network's work counts against the program that it interrupts or works for.
    pub(crate) fn pause(&self, busy: Duration, now: Instant) -> Duration {
        let mut state = self.state.get();
        let elapsed_s = now.since(state.at).as_secs_f64();
        let used_s = (busy - state.busy).as_secs_f64().min(elapsed_s);
        state.own += used_s * TICKS_A_SECOND;
        state.others += (elapsed_s - used_s) * TICKS_A_SECOND / self.competitors;
        let whole_s = |at: Instant| at.as_nanos() / 1_000_000_000;
        for _ in whole_s(state.at)..whole_s(now).min(whole_s(state.at) + 64) {
            (state.own, state.others) = (state.own / 2.0, state.others / 2.0);
        }
        (state.at, state.busy) = (now, busy);
        self.state.set(state);
        let ahead = state.own - state.others;
        match ahead > SLICE_TICKS {
            true => Duration::from_nanos((ahead * self.competitors / TICKS_A_SECOND * 1e9) as u64),
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a program takes that uses the processor for so long, in pieces of a millisecond.
    fn takes_s(own_ms: u64, competitors: u32) -> f64 {
        let begin = Instant::from_millis(1000);
        let (load, mut now) = (Load::new(competitors, begin), begin);
        for ms in 1..=own_ms {
            now += Duration::from_millis(1);
            now += load.pause(Duration::from_millis(ms), now);
        }
        now.since(begin).as_secs_f64()
    }

    #[test]
    fn a_short_program_is_not_held_up_and_a_long_one_has_its_share() {
        for competitors in [1, 3] {
            assert!(takes_s(200, competitors) < 0.21);
            let share = takes_s(60_000, competitors) / 60.0;
            let fair = f64::from(competitors + 1);
            assert!((share / fair - 1.0).abs() < 0.1, "{share}");
        }
    }
}
