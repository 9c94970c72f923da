//! Many runs at a time, as far as the machine's share for them goes.

use super::cell::Cell;
use super::emulator::Emulator;
use super::run::{Row, run};
use super::subject::Subject;
use std::path::Path;
use std::sync::mpsc::channel;

/// The emulator is trusted while it hands 99 of 100 packets over by so much after their time.
const LATE_US: f64 = 2_000.0;
/// Tries of one run in which the emulator was late.
const TRIES: u32 = 3;

/// One run that is wanted.
#[derive(Clone)]
pub struct Job {
    /// Where.
    pub cell: Cell,
    /// Which of the cell.
    pub pair: u32,
    /// The sender.
    pub subject: Subject,
}

/// What may run at a time.
#[derive(Clone, Copy)]
pub struct Share {
    /// Bits a second that all runs together are expected to carry.
    pub bits_per_second: f64,
    /// Runs.
    pub runs: usize,
}

/// Runs all jobs, and gives each row to `done` as it comes. What enters a path is written into `captures`.
pub fn run_all(
    emulator: &Emulator,
    mut jobs: Vec<Job>,
    share: Share,
    captures: Option<&Path>,
    mut done: impl FnMut(Row) -> Result<(), String>,
) -> Result<(), String> {
    let (ended, ends) = channel();
    std::thread::scope(|scope| {
        let (mut running, mut load) = (0, 0.0);
        loop {
            // The first job that fits beside the others; alone, any fits.
            let fits = |job: &Job| {
                running == 0
                    || running < share.runs
                        && load + job.cell.expected_bits_per_second() <= share.bits_per_second
            };
            if let Some(place) = jobs.iter().position(fits) {
                let job = jobs.remove(place);
                running += 1;
                load += job.cell.expected_bits_per_second();
                let ended = ended.clone();
                scope.spawn(move || {
                    let row = try_run(emulator, &job, captures);
                    // Nobody listens any more after a failure.
                    let _ = ended.send((job, row));
                });
                continue;
            }
            if running == 0 {
                return Ok(());
            }
            let (job, row) = ends.recv().map_err(|e| e.to_string())?;
            running -= 1;
            load -= job.cell.expected_bits_per_second();
            let name = || format!("{} pair {} of {}", job.cell.name(), job.pair, job.subject.name());
            done(row.map_err(|why| format!("{}: {why}", name()))?)?;
        }
    })
}

/// A run during which the emulator kept its time, or the last of several tries.
fn try_run(emulator: &Emulator, job: &Job, captures: Option<&Path>) -> Result<Row, String> {
    let mut row = run(emulator, &job.cell, job.pair, &job.subject, captures)?;
    for _ in 1..TRIES {
        if row.late_p99_us <= LATE_US {
            break;
        }
        row = run(emulator, &job.cell, job.pair, &job.subject, captures)?;
    }
    Ok(row)
}
