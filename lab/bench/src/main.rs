//! What inhost costs: instructions on the main paths, counted by callgrind and gated against a committed baseline; the
//! bytes of idle connections, counted at the allocator; and all of it beside other stacks, in the same run.
#![forbid(unsafe_code)]

mod arguments;
mod compare;
mod explain;
mod figures;
mod holes;
mod instructions;
mod memory;
mod pair;
mod paths;

use arguments::{Arguments, Command};
use clap::Parser;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Instructions { write: false } => instructions::compare(),
        Command::Instructions { write: true } => instructions::write(),
        Command::Memory { json: Some(word), .. } => memory::answer(&word),
        Command::Memory { connections: Some(count), .. } => memory::report(&[count]),
        Command::Memory { .. } => memory::report(&[1_000, 100_000]),
        Command::Path { name, times } => paths::run(&name, times),
        Command::Compare(options) => compare::command(options),
        Command::Explain(options) => explain::command(options),
        Command::Figures(figure) => figures::command(figure),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("inhost-bench: {why}");
            ExitCode::FAILURE
        }
    }
}
