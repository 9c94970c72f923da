//! What inhost costs: instructions on the main paths, counted by callgrind and gated against a committed baseline; the
//! bytes of idle connections, counted at the allocator; and all of it beside other stacks, in the same run.
#![forbid(unsafe_code)]

mod compare;
mod explain;
mod figures;
mod holes;
mod instructions;
mod memory;
mod pair;
mod paths;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const USAGE: &str = "\
usage: inhost-bench instructions [--write]   count, and compare with lab/bench/instructions.toml (or write it)
       inhost-bench memory [CONNECTIONS]     bytes per idle connection, beside the kernel's
       inhost-bench path NAME TIMES          run one path; what the first command measures";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words.iter().any(|word| matches!(*word, "--help" | "-h")) {
        println!("{USAGE}\n{}\n{}\n{}", compare::USAGE, figures::USAGE, explain::USAGE);
        return ExitCode::SUCCESS;
    }
    let done = match words.as_slice() {
        ["instructions"] => instructions::compare(),
        ["instructions", "--write"] => instructions::write(),
        ["memory"] => memory::report(&[1_000, 100_000]),
        ["memory", "--json", word] => memory::answer(word),
        ["memory", count] => match count.parse() {
            Ok(count) => memory::report(&[count]),
            Err(_) => Err(format!("{count:?} is no number of connections\n{USAGE}")),
        },
        ["path", name, times] => match times.parse() {
            Ok(times) => paths::run(name, times),
            Err(_) => Err(format!("{times:?} is no number of times\n{USAGE}")),
        },
        ["compare", words @ ..] => compare::command(words),
        ["explain", words @ ..] => explain::command(words),
        ["figures", words @ ..] => figures::command(words),
        _ => {
            eprintln!("{USAGE}\n{}\n{}\n{}", compare::USAGE, figures::USAGE, explain::USAGE);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("inhost-bench: {why}");
            ExitCode::FAILURE
        }
    }
}
