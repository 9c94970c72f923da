//! The client while a test runs: warm-up, reports, the end.

use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use inhost_base::{Duration, Instant};

use super::client::Progress;
use super::control::Control;
use super::counters::{Counter, Total};
use super::datagrams::Worker;
use super::report::Side;
use super::stream::Ended;
use super::transactions::Tally;
use super::{RunError, SILENT_MAX, Stop};
use crate::face::{Face, Processor};
use crate::iperf3::Client;
use crate::plan::{INTERVALS_MAX, Plan};
use crate::result::Interval;

/// A test that runs.
pub struct Running<'a, F: Face> {
    pub face: &'a F,
    pub plan: &'a Plan,
    pub stop: &'a Stop,
    pub counters: &'a [Rc<Counter>],
    pub sides: &'a [Side],
    pub total: &'a Total,
    pub tally: &'a Tally,
}

/// How it ran.
#[derive(Clone, Debug)]
pub struct Ran {
    /// When it began, warm-up included.
    pub began: Instant,
    /// When the warm-up was over.
    pub measured_from: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Reports.
    pub intervals: Vec<Interval>,
    /// Whether the user ended it.
    pub is_aborted: bool,
    /// Processor time after the warm-up.
    pub processor: Option<Processor>,
}

impl Ran {
    /// Seconds after the warm-up.
    pub fn seconds(&self) -> f64 {
        self.ended.since(self.measured_from).as_secs_f64()
    }
}

/// Sent bytes, received bytes, transactions.
type Counts = [u64; 3];

struct Clockwork {
    ran: Ran,
    warm_up_ends: Option<Instant>,
    ends: Option<Instant>,
    interval: Duration,
    next_report: Option<Instant>,
    reported: (Instant, Counts),
    /// When something last went, and what there was then.
    heard: (Instant, Counts),
    processor: Option<Processor>,
}

impl<F: Face> Running<'_, F> {
    /// Runs until the plan's end, so many ends of workers, or the user's word.
    pub async fn run(
        &self,
        control: &mut Control<F, Client>,
        workers: &mut FuturesUnordered<Worker<'_>>,
        ends: usize,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Ran, RunError> {
        let mut clockwork = self.begin();
        let mut ended = 0;
        loop {
            let now = self.face.now();
            if self.tick(&mut clockwork, now, told)? {
                break;
            }
            let wake = clockwork.wake();
            tokio::select! {
                biased;
                () = self.stop.stopped() => {
                    clockwork.ran.is_aborted = true;
                    break;
                }
                () = self.face.sleep_until(wake) => {}
                event = control.event() => {
                    event?;
                    // Nothing has a place here.
                    return Err(RunError::Closed);
                }
                Some(result) = workers.next(), if !workers.is_empty() => match result {
                    Ok(Ended::Total) => {
                        ended += 1;
                        if ended >= ends {
                            break;
                        }
                    }
                    Ok(Ended::Closed) => return Err(self.why_closed(control).await),
                    Err(why) => return Err(RunError::Stream(why)),
                },
            }
        }
        Ok(self.finish(clockwork, told))
    }
    /// A stream was closed: the control connection may say why.
    async fn why_closed(&self, control: &mut Control<F, Client>) -> RunError {
        let waits = super::within(self.face, super::control::LINGER, control.event()).await;
        match waits {
            Some(Err(why)) => why.into(),
            _ => RunError::Closed,
        }
    }
    fn begin(&self) -> Clockwork {
        let now = self.face.now();
        let warm_up = Duration::from_millis(self.plan.warm_up_ms);
        let measured_from = now + warm_up;
        let interval = Duration::from_millis(self.plan.interval_ms);
        let ran = Ran {
            began: now,
            measured_from,
            ended: now,
            intervals: Vec::new(),
            is_aborted: false,
            processor: None,
        };
        Clockwork {
            ran,
            warm_up_ends: (warm_up > Duration::ZERO).then_some(measured_from),
            ends: self.plan.time().map(|time| measured_from + time),
            interval,
            next_report: (interval > Duration::ZERO).then_some(now + interval),
            reported: (now, [0; 3]),
            heard: (now, [0; 3]),
            processor: self.face.processor(),
        }
    }
    /// What is due at `now`; true at the end.
    fn tick(
        &self,
        clockwork: &mut Clockwork,
        now: Instant,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<bool, RunError> {
        if clockwork.next_report.is_some_and(|at| now >= at) {
            self.report(clockwork, now, told);
        }
        if clockwork.warm_up_ends.is_some_and(|at| now >= at) {
            clockwork.warm_up_ends = None;
            clockwork.ran.measured_from = now;
            clockwork.processor = self.face.processor();
            self.counters.iter().for_each(|counter| counter.omit());
            self.total.is_warming.set(false);
            self.tally.is_warming.set(false);
        }
        let counts = self.counts();
        if counts != clockwork.heard.1 {
            clockwork.heard = (now, counts);
        } else if now.since(clockwork.heard.0) >= SILENT_MAX {
            return Err(RunError::Silent);
        }
        Ok(clockwork.ends.is_some_and(|at| now >= at))
    }
    fn counts(&self) -> Counts {
        let mut counts = [0, 0, self.tally.done.get()];
        for (counter, side) in self.counters.iter().zip(self.sides) {
            counts[usize::from(*side == Side::Receives)] += counter.bytes.get();
        }
        counts
    }
    fn report(&self, clockwork: &mut Clockwork, now: Instant, told: &mut dyn FnMut(Progress<'_>)) {
        let (before, counts_before) = clockwork.reported;
        let counts = self.counts();
        let seconds = now.since(before).as_secs_f64();
        let rate = |which: usize| match seconds > 0.0 {
            true => (counts[which] - counts_before[which]) as f64 / seconds,
            false => 0.0,
        };
        let interval = Interval {
            from_s: before.since(clockwork.ran.began).as_secs_f64(),
            to_s: now.since(clockwork.ran.began).as_secs_f64(),
            is_warm_up: clockwork.warm_up_ends.is_some(),
            sent_bits_per_second: rate(0) * 8.0,
            received_bits_per_second: rate(1) * 8.0,
            transactions_per_second: rate(2),
        };
        told(Progress::Interval(&interval));
        if (clockwork.ran.intervals.len() as u64) < INTERVALS_MAX {
            clockwork.ran.intervals.push(interval);
        }
        clockwork.reported = (now, counts);
        clockwork.next_report = Some(now + clockwork.interval);
    }
    fn finish(&self, mut clockwork: Clockwork, told: &mut dyn FnMut(Progress<'_>)) -> Ran {
        let now = self.face.now();
        // What is left of an interval is told if it is not a mere remainder.
        if clockwork.next_report.is_some() && now.since(clockwork.reported.0).times(10) >= clockwork.interval
        {
            self.report(&mut clockwork, now, told);
        }
        let mut ran = clockwork.ran;
        ran.ended = now;
        ran.measured_from = ran.measured_from.min(now);
        if let (Some(before), Some(after)) = (clockwork.processor, self.face.processor()) {
            ran.processor = Some(after.since(before));
        }
        ran
    }
}

impl Clockwork {
    /// When something is due next.
    fn wake(&self) -> Instant {
        let silent = self.heard.0 + SILENT_MAX;
        [self.warm_up_ends, self.ends, self.next_report].into_iter().flatten().fold(silent, Instant::min)
    }
}
