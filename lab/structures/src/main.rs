//! `inhost-structures`: the comparison as a command. Memory and instructions are measured in processes of their own.
#![forbid(unsafe_code)]

mod child;

use inhost_structures::measure::{Figure, Plan, Samples};
use inhost_structures::{Load, Structure};
use std::process::ExitCode;

const USAGE: &str = "\
usage: inhost-structures [--quick] [--repetitions N] [--instructions] [--json]
           all four control structures in turns; with --instructions under valgrind, too
       inhost-structures run STRUCTURE echo|bulk COUNT
           one run; prints the resident memory that it added, in bytes";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        ["run", structure, load, count] => child::run(structure, load, count),
        options => Options::parse(options).and_then(|options| compare(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("inhost-structures: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    plan: Plan,
    instructions: bool,
    json: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Options, String> {
        let mut options = Options { plan: Plan::FULL, instructions: false, json: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--quick" => options.plan = Plan::QUICK,
                "--instructions" => options.instructions = true,
                "--json" => options.json = true,
                "--repetitions" => {
                    let count = words.next().and_then(|count| count.parse().ok());
                    options.plan.repetitions = count.ok_or("--repetitions wants a number")?;
                }
                other => return Err(format!("{other:?} is not understood\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

/// Characters after which resident memory is read.
const RESIDENT_ECHOES: u64 = 200;
/// Units of the shorter of two runs whose instructions are counted.
const COUNTED_ECHOES: u64 = 2_000;
const COUNTED_WRITES: u64 = 400;

fn compare(options: &Options) -> Result<(), String> {
    // The first repetition touches memory and code for the first time, and does not count.
    Samples::default().repeat(&options.plan, 0)?;
    let mut samples = Samples::default();
    for turn in 0..options.plan.repetitions {
        samples.repeat(&options.plan, turn as usize)?;
        for structure in Structure::ALL {
            let bytes = child::resident_bytes(structure, Load::Echo(RESIDENT_ECHOES))?;
            samples.add(Figure::Resident, structure, bytes / 2.0 / 1024.0);
        }
        eprintln!("{} of {}", turn + 1, options.plan.repetitions);
    }
    if options.instructions {
        for structure in Structure::ALL {
            let echo = child::instructions(structure, Load::Echo(COUNTED_ECHOES))?;
            samples.add(Figure::EchoInstructions, structure, echo);
            let segment = child::instructions(structure, Load::Bulk(COUNTED_WRITES))?;
            samples.add(Figure::SegmentInstructions, structure, segment);
        }
    }
    match options.json {
        true => println!("{}", samples.json(options.plan)?),
        false => print!("{}\n{}", samples.table(), samples.ratios()),
    }
    Ok(())
}
