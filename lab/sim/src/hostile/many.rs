//! Many frames at once: one world after another on every core, so that a hundred million take minutes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::{Report, peers, run};

/// Frames thrown into one world; then comes the next, with the next seed.
pub const FRAMES_A_WORLD: u64 = 1_000_000;

/// Of so many worlds one is besieged by hostile peers; the frames of the others are forged.
const WORLDS_A_SIEGE: u64 = 4;

/// Whether the world of `seed` is besieged by hostile peers.
pub(super) fn is_siege(seed: u64) -> bool {
    seed.is_multiple_of(WORLDS_A_SIEGE)
}

/// Throws `frames` frames into as many worlds as it takes, the first drawn from `seed`, the next from `seed + 1`, on all
/// cores. `progress` hears now and then how many were thrown in all. The error names the seed of its world and the
/// frame; with that seed as the first it is seen again.
pub fn run_many(seed: u64, frames: u64, progress: &(dyn Fn(u64) + Sync)) -> Result<Report, String> {
    let worlds = frames.div_ceil(FRAMES_A_WORLD);
    let (next, thrown, stops) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        let mut report = Report::default();
        while !stops.load(Ordering::Relaxed) {
            let world = next.fetch_add(1, Ordering::Relaxed);
            if world >= worlds {
                break;
            }
            let share = FRAMES_A_WORLD.min(frames - world * FRAMES_A_WORLD);
            let mut reported = 0;
            let mut tell = |count| {
                let all = thrown.fetch_add(count - reported, Ordering::Relaxed) + count - reported;
                reported = count;
                progress(all);
            };
            let seed = seed + world;
            let done = match is_siege(seed) {
                true => peers::run(seed, share, &mut tell),
                false => run(seed, share, &mut tell),
            };
            match done {
                Ok(done) => report.add(done),
                Err(why) => {
                    stops.store(true, Ordering::Relaxed);
                    return Err(why);
                }
            }
        }
        Ok(report)
    };
    let cores = thread::available_parallelism().map_or(1, usize::from).min(worlds as usize);
    let results: Vec<Result<Report, String>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned())))
            .collect()
    });
    results.into_iter().try_fold(Report::default(), |mut all, result| {
        all.add(result?);
        Ok(all)
    })
}

impl Report {
    /// Counts another run's figures in.
    fn add(&mut self, other: Report) {
        let Report {
            thrown,
            void,
            answerable,
            stream_bytes,
            most_memory_bytes,
            most_resets_a_second,
            most_errors_a_second,
            sent,
            virtual_time,
        } = other;
        for (name, count) in thrown {
            *self.thrown.entry(name).or_default() += count;
        }
        self.void += void;
        self.answerable += answerable;
        self.stream_bytes += stream_bytes;
        self.most_memory_bytes = self.most_memory_bytes.max(most_memory_bytes);
        self.most_resets_a_second = self.most_resets_a_second.max(most_resets_a_second);
        self.most_errors_a_second = self.most_errors_a_second.max(most_errors_a_second);
        self.sent += sent;
        self.virtual_time += virtual_time;
    }
}
