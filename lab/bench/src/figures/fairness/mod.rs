//! Fairness: ten of ours among themselves, in simulation; and five of ours beside five of the kernel's on one
//! bottleneck of the emulator.

mod mixed;

use super::machine;
use super::options::Options;

/// Seconds that connections live; the first ones, in which they find their places, are not counted.
const SECONDS: u64 = 40;
/// Seconds that are not counted.
const SETTLING_S: u64 = 10;
/// Repetitions of each condition.
const REPEATS: u32 = 3;

/// `inhost-bench figures fairness …`
pub fn command(mut options: Options) -> Result<(), String> {
    let repeats = options.value("--repeats")?.unwrap_or(REPEATS);
    let seconds = options.value("--seconds")?.unwrap_or(SECONDS).max(SETTLING_S + 1);
    let json = options.flag("--json");
    options.end()?;
    eprintln!("{}, {}", machine::describe(), machine::today());
    let shares = mixed::measure(repeats, seconds)?;
    match json {
        true => println!("{}", mixed::to_json(&shares)?),
        false => print!("{}", mixed::to_table(&shares)),
    }
    mixed::draw(&shares)
}
