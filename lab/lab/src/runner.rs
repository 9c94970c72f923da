//! Runs points on all cores, and writes each down as it ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use crate::experiment::{Experiment, Point};
use crate::kinds::{is_not_here, is_parallel, measure};
use crate::store::{PROGRAM, Row, Store, StoreError};

/// Results that may wait to be written.
const WAITING: usize = 64;

/// How to run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOptions {
    /// Runs at a time. Default: one a core.
    pub workers: usize,
    /// Whether what was measured before is measured again. Default: no.
    pub is_again: bool,
    /// Which part of the points, and of how many. Default: all.
    pub shard: (usize, usize),
}

impl Default for RunOptions {
    fn default() -> Self {
        let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        RunOptions { workers, is_again: false, shard: (0, 1) }
    }
}

/// What the caller is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// How much there is to do, and how much was done before.
    #[allow(missing_docs)]
    Begins { runs: usize, done: usize },
    /// A run is over.
    Done(&'a Point, &'a Row),
}

/// How it went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Runs that were made.
    pub runs: usize,
    /// Of them, those that failed, without those that cannot be made here.
    pub failed: usize,
    /// Whether it was stopped before the end.
    pub is_stopped: bool,
}

/// Runs what the store does not have.
///
/// # Errors
/// The store fails.
#[allow(clippy::disallowed_methods, reason = "a run's time is the wall clock's")]
pub fn run(
    experiment: &Experiment,
    store: &Store,
    options: &RunOptions,
    is_stopped: &AtomicBool,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Summary, StoreError> {
    let seeds = experiment.seeds as usize;
    let (shard, shards) = (options.shard.0, options.shard.1.max(1));
    let own = || (0..experiment.points() * seeds).filter(move |run| run % shards == shard);
    // Numbers alone: points are made when it is their turn.
    let (mut todo, mut done) = (Vec::new(), 0);
    for number in own() {
        let point = experiment.point(number / seeds);
        match !options.is_again && store.has(experiment, &point, (number % seeds) as u64 + 1)? {
            true => done += 1,
            false => todo.push(number),
        }
    }
    told(Progress::Begins { runs: todo.len(), done });
    let next = AtomicUsize::new(0);
    let workers = if is_parallel(experiment.kind) { options.workers.clamp(1, todo.len().max(1)) } else { 1 };
    let (give, take) = sync_channel::<(Point, Row)>(WAITING);
    thread::scope(|scope| {
        for _ in 0..workers {
            let give = give.clone();
            let (next, todo) = (&next, &todo);
            scope.spawn(move || {
                while !is_stopped.load(Ordering::Relaxed) {
                    let Some(&number) = todo.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let (point, seed) = (experiment.point(number / seeds), (number % seeds) as u64 + 1);
                    let began = Instant::now();
                    let result = measure(experiment.kind, &point.setup, seed).map_err(|e| e.to_string());
                    let took_ms = began.elapsed().as_millis() as u64;
                    let row = Row { point: point.number, seed, result, took_ms, version: PROGRAM.to_owned() };
                    if give.send((point, row)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(give);
        let mut summary = Summary::default();
        for (point, row) in take {
            store.write(experiment, &point, &row)?;
            summary.runs += 1;
            summary.failed += usize::from(row.result.as_ref().is_err_and(|why| !is_not_here(why)));
            told(Progress::Done(&point, &row));
        }
        summary.is_stopped = summary.runs < todo.len();
        Ok(summary)
    })
}
