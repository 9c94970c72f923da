//! `inhost-sim`: many seeds of simulated networks, or one of them in detail.

mod arguments;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arguments::{Arguments, Command};
use clap::Parser;
use inhost_sim::soak::{self, Failure, Summary};
use inhost_sim::{Capture, Offloads, Scenario, Seen, Takes, Watcher, bulk, describe, hostile, provenance};

/// Bytes of each transfer of `bench`.
const BENCH_BYTES: u64 = 1 << 30;
/// Seeds between two lines of progress.
const SEEDS_A_LINE: u64 = 500;
/// Frames thrown into each hostile world of a digest.
const FRAMES_A_DIGEST: u64 = 20_000;
/// Failures after which no more seeds are tried.
const FAILURES_LIMIT: usize = 10;

fn main() -> ExitCode {
    let is_good = match Arguments::parse().command {
        Command::Soak { seeds, from, freeze: true, .. } => freeze_seeds(from, seeds),
        Command::Soak { seeds, from, offload, .. } => {
            let offload = offload.unwrap_or(&[Offloads::Drawn]);
            offload.iter().all(|&offloads| soak_seeds(from, seeds, offloads))
        }
        Command::Replay { seed, file, offload } => replay(seed, offload.unwrap_or_default(), file.as_deref()),
        Command::Hostile { frames, seed } => throw(seed, frames),
        Command::Digest { seeds, worlds } => digests(seeds, worlds),
        Command::Bench => bench(),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The command that shows a run again and writes what crossed its links.
fn again(seed: u64, offloads: Offloads) -> String {
    let switch = match offloads {
        Offloads::Drawn => "",
        Offloads::Off => " --offload off",
        Offloads::On => " --offload on",
    };
    format!("cargo run --release -p inhost-sim -- replay {seed} seed-{seed}.pcapng{switch}")
}

/// Runs a seed; a panic is a failure like any other.
fn run(seed: u64, offloads: Offloads, tap: Option<Box<dyn Watcher>>) -> Result<Summary, Failure> {
    catch_unwind(AssertUnwindSafe(|| soak::run_with(seed, offloads, tap))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of an unknown kind");
        Err(Failure { seed, why: format!("a panic: {text}") })
    })
}

#[derive(Default)]
struct Tally {
    done: u64,
    failed: BTreeSet<u64>,
    total: Summary,
}

fn soak_seeds(from: u64, seeds: u64, offloads: Offloads) -> bool {
    // Elapsed time, for display only; no run depends on it.
    #[allow(clippy::disallowed_methods)]
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let how = match offloads {
        Offloads::Drawn => "",
        Offloads::Off => ", every offload off",
        Offloads::On => ", every offload on",
    };
    println!("soak: seeds {from}..{} on {threads} threads{how}", from + seeds);
    let (next, tally) = (AtomicU64::new(from), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds {
                        return;
                    }
                    let result = run(seed, offloads, None);
                    let again = again(seed, offloads);
                    if !add(&tally, (seed, &again), result, began, seeds) {
                        return;
                    }
                }
            });
        }
    });
    let Ok(tally) = tally.into_inner() else { return false };
    let Summary { segments, stream_bytes, rounds, jumps, virtual_time } = tally.total;
    println!(
        "soak: {} seeds, {} failed; {segments} segments, {stream_bytes} stream bytes, {rounds} rounds, \
         {jumps} jumps in sequence space, {} h of virtual time in {:.1} s",
        tally.done,
        tally.failed.len(),
        virtual_time.as_secs() / 3600,
        began.elapsed().as_secs_f64()
    );
    if !tally.failed.is_empty() {
        println!("commit {}", provenance::commit());
    }
    for &seed in &tally.failed {
        println!("again: {}", again(seed, offloads));
    }
    tally.failed.is_empty()
}

#[cfg(not(feature = "freeze"))]
fn freeze_seeds(_from: u64, _seeds: u64) -> bool {
    eprintln!(
        "inhost-sim: built without the feature `freeze`; cargo run --release -p inhost-sim --features freeze -- soak --freeze …"
    );
    false
}

/// Runs each seed with and without freezing, and compares.
#[cfg(feature = "freeze")]
fn freeze_seeds(from: u64, seeds: u64) -> bool {
    let (next, freezings, failed) = (AtomicU64::new(from), AtomicU64::new(0), AtomicU64::new(0));
    let compare = |seed: u64| {
        // At nearly every moment, often, and seldom, so that much happens between.
        let one_in = [2, 30, 500][(seed % 3) as usize];
        let plain = soak::digest(seed, Takes::FramesAndEvents).map_err(|failure| failure.to_string())?;
        let frozen = soak::digest_frozen(seed, Takes::FramesAndEvents, one_in);
        let (frozen, done) = frozen.map_err(|failure| failure.to_string())?;
        freezings.fetch_add(done, Ordering::Relaxed);
        if plain == frozen { Ok(()) } else { Err(format!("seed {seed}: a thawed host did something else")) }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < from + seeds
                    && failed.load(Ordering::Relaxed) < FAILURES_LIMIT as u64
                {
                    let done = catch_unwind(AssertUnwindSafe(|| compare(seed)));
                    if let Err(why) = done.unwrap_or_else(|_| Err(format!("seed {seed}: a panic"))) {
                        failed.fetch_add(1, Ordering::Relaxed);
                        println!("FAILED {why}");
                    }
                    if (seed - from + 1).is_multiple_of(SEEDS_A_LINE) {
                        println!("soak: {} of {seeds} seeds", seed - from + 1);
                    }
                }
            });
        }
    });
    let (freezings, failed) = (freezings.into_inner(), failed.into_inner());
    println!("soak: {seeds} seeds twice, {failed} failed; {freezings} times a host was frozen and thawed");
    failed == 0 && freezings > 0
}

/// Adds a result and tells of it; false when enough has failed.
fn add(
    tally: &Mutex<Tally>,
    (seed, again): (u64, &str),
    result: Result<Summary, Failure>,
    began: Instant,
    seeds: u64,
) -> bool {
    let Ok(mut tally) = tally.lock() else { return false };
    tally.done += 1;
    match result {
        Ok(summary) => {
            let total = &mut tally.total;
            total.segments += summary.segments;
            total.stream_bytes += summary.stream_bytes;
            total.rounds += summary.rounds;
            total.jumps += summary.jumps;
            total.virtual_time += summary.virtual_time;
        }
        Err(failure) => {
            tally.failed.insert(seed);
            println!("FAILED {failure}");
            println!("again: {again}");
        }
    }
    if tally.done % SEEDS_A_LINE == 0 {
        let (done, failed) = (tally.done, tally.failed.len());
        println!("soak: {done} of {seeds} seeds, {failed} failed, {:.0} s", began.elapsed().as_secs_f64());
        let _ = std::io::stdout().flush();
    }
    tally.failed.len() < FAILURES_LIMIT
}

/// Prints every frame.
struct Print;

impl Watcher for Print {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        println!("{:?} {host} sends    {}", frame.at, describe(frame));
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        let how = if frame.is_intact { "" } else { " (spoilt)" };
        println!("{:?} {host} receives {}{how}", frame.at, describe(frame));
    }
}

fn replay(seed: u64, offloads: Offloads, file: Option<&Path>) -> bool {
    let tap: Box<dyn Watcher> = match file.map(Capture::create) {
        None => {
            println!("{:#?}", Scenario::draw(seed).with_offloads(offloads));
            Box::new(Print)
        }
        Some(Ok(capture)) => Box::new(capture),
        Some(Err(why)) => {
            eprintln!("inhost-sim: cannot write the capture: {why}");
            return false;
        }
    };
    match run(seed, offloads, Some(tap)) {
        Ok(summary) => println!("seed {seed} is clean: {summary:?}"),
        Err(failure) => {
            println!("FAILED {failure}");
            println!("commit {}", provenance::commit());
            return false;
        }
    }
    true
}

/// What this thread has had of a processor, in seconds: on a machine that is busy otherwise, wall time says little.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Segments in a second of one processor's time in one long transfer, over lines of several rates.
fn bench() -> bool {
    println!("line             checker   segments      rounds   virtual s    cpu s   segments/s");
    let mut all = true;
    for (name, rate) in
        [("any rate", None), ("10 Gbit/s", Some(10_000_000_000)), ("1 Gbit/s", Some(1_000_000_000))]
    {
        for checks in [true, false] {
            let began = processor_seconds();
            match bulk::transfer(BENCH_BYTES, rate, checks) {
                Ok(done) => {
                    let spent = processor_seconds() - began;
                    println!(
                        "{name:<16} {:<7} {:>10}  {:>10}  {:>10.3}  {spent:>7.3}  {:>11.0}",
                        if checks { "on" } else { "off" },
                        done.segments,
                        done.rounds,
                        done.virtual_time.as_secs_f64(),
                        done.segments as f64 / spent
                    );
                }
                Err(why) => {
                    println!("FAILED {name}: {why}");
                    all = false;
                }
            }
        }
    }
    all
}

/// Prints the digests of the first `seeds` networks, and of `worlds` hostile ones.
fn digests(seeds: u64, worlds: u64) -> bool {
    let next = AtomicU64::new(0);
    let lines = Mutex::new(BTreeMap::new());
    let line = |number: u64| {
        let both = |digest: &dyn Fn(Takes) -> Result<u64, String>| {
            let [frames, events] = [Takes::Frames, Takes::FramesAndEvents].map(|takes| {
                digest(takes).map_or_else(|why| why.replace('\n', "; "), |value| format!("{value:016x}"))
            });
            format!("{frames} {events}")
        };
        match number.checked_sub(seeds) {
            None => {
                let of = |takes| soak::digest(number, takes).map_err(|failure| failure.to_string());
                format!("network {number} {}", both(&of))
            }
            Some(world) => {
                format!("hostile {world} {}", both(&|takes| hostile::digest(world, FRAMES_A_DIGEST, takes)))
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= seeds + worlds {
                        return;
                    }
                    let line = line(number);
                    if let Ok(mut lines) = lines.lock() {
                        lines.insert(number, line);
                    }
                }
            });
        }
    });
    let Ok(lines) = lines.into_inner() else { return false };
    lines.values().for_each(|line| println!("{line}"));
    lines.len() as u64 == seeds + worlds
}

fn throw(seed: u64, frames: u64) -> bool {
    // As above: for display only.
    #[allow(clippy::disallowed_methods)]
    let began = Instant::now();
    let reported = AtomicU64::new(0);
    let result = hostile::run_many(seed, frames, &|thrown| {
        let last = reported.load(Ordering::Relaxed);
        let next = last + frames.div_ceil(20);
        // The first worker reports it.
        if thrown >= next
            && reported.compare_exchange(last, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            println!("hostile: {thrown} of {frames} frames, {:.0} s", began.elapsed().as_secs_f64());
        }
    });
    match result {
        Ok(report) => {
            println!("{report:#?}");
            println!(
                "hostile: {frames} frames, seed {seed}: clean in {:.1} s",
                began.elapsed().as_secs_f64()
            );
            true
        }
        Err(why) => {
            println!("FAILED {why}");
            println!("again: cargo run --release -p inhost-sim -- hostile --frames {frames} --seed {seed}");
            false
        }
    }
}
