//! The interfaces of this machine and of a host of inhost beside each other, as VPI put sockets beside TLI: both ends in
//! this process, over the loopback, interleaved, with 95 % confidence intervals.
//!
//! ```text
//! cargo run --release -p inhost-inett --example faces
//! cargo run --release -p inhost-inett --example faces -- 20 500
//! ```
//!
//! The first number is how many rounds there are, the second how many milliseconds each measurement takes.

use inhost_inett::here::{FaceName, measure};
use inhost_inett::plan::Plan;
use inhost_inett::statistics::Estimate;

/// What is measured: its name with its unit, the plan, and the value of the figure that inett gives.
type Task = (&'static str, &'static str, fn(f64) -> f64);

const TASKS: [Task; 5] = [
    ("bulk, Gbit/s", "", |bits| bits / 1e9),
    ("write of 1 byte, ns", "write_bytes = 1", |bits| 8e9 / bits),
    ("write of 1,024 bytes, ns", "write_bytes = 1024", |bits| 8192e9 / bits),
    ("echo of 1 byte, µs", "kind = 'echo'", |us| us),
    ("connect and close, µs", "kind = 'connect'", |a_second| 1e6 / a_second),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (rounds, time_ms) = (number(0, 10)?, number(1, 400)?);
    let faces = FaceName::ALL;
    let mut values = vec![vec![Vec::new(); faces.len()]; TASKS.len()];
    for round in 0..rounds as usize {
        for (task, (_, plan, value)) in TASKS.iter().enumerate() {
            let mut plan: Plan = toml::from_str(&format!("{plan}\ntime_ms = {time_ms}\ninterval_ms = 0"))?;
            plan.seed = round as u64;
            for place in 0..faces.len() {
                // Each round begins with another face.
                let face = (place + round) % faces.len();
                let outcome = measure(faces[face], &plan)?;
                let figure = outcome.summary.ok_or("nothing was measured")?.mean;
                values[task][face].push(value(figure));
            }
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    print!("{:26}", "");
    faces.iter().for_each(|face| print!("{:>19}", face.text()));
    println!();
    for ((name, ..), row) in TASKS.iter().zip(&values) {
        print!("{name:26}");
        for values in row {
            let estimate = Estimate::of(values).ok_or("nothing was measured")?;
            let half = estimate.half_width.map_or(String::from("?"), |half| format!("{half:.2}"));
            print!("{:>19}", format!("{:.2} ± {half}", estimate.mean));
        }
        println!();
    }
    println!(
        "({rounds} rounds of {time_ms} ms for each cell, interleaved; means with 95 % intervals, Student's t)"
    );
    Ok(())
}
