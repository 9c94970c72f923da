//! turmoil-net and inhost's simulator beside each other: three mistakes that only a TCP shows, and segments a second.

// The same programs stand in both worlds.
#[allow(clippy::duplicate_mod)]
mod emulated;
#[allow(clippy::duplicate_mod)]
mod real;

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::time::Duration;

use emulated::Repeats;
use rustix::time::{ClockId, clock_gettime};

/// One way between two hosts.
const DELAY: Duration = Duration::from_millis(1);
/// When nothing gets through, from the start.
const PARTITION: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(11);
/// Virtual time after which a program counts as stuck.
const LIMIT: Duration = Duration::from_secs(600);
/// Measurements of each load, in turns with the others.
const RUNS: usize = 9;

/// What runs on the host whose end is waited for.
type Client = Pin<Box<dyn Future<Output = Result<(), String>>>>;

/// Whether a program is as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    Right,
    Wrong,
}

#[derive(Clone, Copy)]
enum Case {
    HalfClose,
    /// With the bytes that both ends read at once.
    Window(usize),
    Partition,
}

#[derive(Clone, Copy)]
enum Load {
    /// Bytes of one stream.
    Bulk(usize),
    /// Questions and answers of 100 bytes.
    Exchanges(usize),
    /// A connection on which nothing is said.
    Idle(Duration),
}

fn main() {
    show_cases();
    println!();
    show_speed();
}

fn show_cases() {
    type Run = fn(Case, Variant) -> Result<(), String>;
    let simulators: [(&str, Run); 3] = [
        ("turmoil-net 0.1.0", |case, variant| emulated::run(case, variant, Repeats::Default)),
        ("turmoil-net, repeats without limit", |case, variant| emulated::run(case, variant, Repeats::Many)),
        ("inhost-sim", real::run),
    ];
    let cases = [
        ("half-close handled wrongly", Case::HalfClose),
        ("window that never reopens, read by 8 KiB", Case::Window(8 << 10)),
        ("window that never reopens, read by 64 KiB", Case::Window(64 << 10)),
        ("retransmission after a partition", Case::Partition),
    ];
    for (case_name, case) in cases {
        println!("{case_name}");
        for (name, run) in simulators {
            let (right, wrong) = (run(case, Variant::Right), run(case, Variant::Wrong));
            let verdict = match (&right, &wrong) {
                (Ok(()), Err(_)) => "found",
                (Ok(()), Ok(())) => "missed",
                (Err(_), _) => "alarm without a mistake",
            };
            let shown = |result: Result<(), String>| result.map_or_else(|why| why, |()| "passes".to_owned());
            println!("  {name:<35} {verdict:<24} right: {}; wrong: {}", shown(right), shown(wrong));
        }
    }
}

fn show_speed() {
    type Carry = fn(Load) -> u64;
    let simulators: [(&str, Carry); 3] = [
        ("turmoil-net 0.1.0", emulated::carry),
        ("inhost-sim, checker on", |load| real::carry(load, true)),
        ("inhost-sim, checker off", |load| real::carry(load, false)),
    ];
    let loads = [
        ("64 MiB in one stream", Load::Bulk(64 << 20)),
        ("20,000 exchanges of 100 bytes", Load::Exchanges(20_000)),
        ("a connection idle for half an hour", Load::Idle(Duration::from_secs(1800))),
    ];
    println!(
        "processor time of {RUNS} runs: the median, and segments a second with the slowest and the fastest run"
    );
    for (load_name, load) in loads {
        println!("{load_name}");
        let mut measured: Vec<Vec<(Duration, u64)>> = vec![Vec::new(); simulators.len()];
        for _ in 0..RUNS {
            for ((_, carry), measured) in simulators.iter().zip(&mut measured) {
                let start = processor_time();
                let segments = carry(load);
                measured.push((processor_time() - start, segments));
            }
        }
        for ((name, _), mut measured) in simulators.iter().zip(measured) {
            measured.sort();
            let rate = |(took, segments): (Duration, u64)| segments as f64 / took.as_secs_f64();
            let (fastest, middle, slowest) = (measured[0], measured[RUNS / 2], measured[RUNS - 1]);
            println!(
                "  {name:<25} {:>7.2} ms  {:>9.0} segments/s ({:.0} to {:.0}) of {}",
                middle.0.as_secs_f64() * 1e3,
                rate(middle),
                rate(slowest),
                rate(fastest),
                middle.1,
            );
        }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
