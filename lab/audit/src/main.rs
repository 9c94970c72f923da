//! Checks of the house itself: `arrows` (dependencies run downward only, and which files know each other in a circle),
//! `measures` (how wide, open, tangled and long it is, each of which may only fall), `spec` (each requirement of an RFC has its branch and its test) and `tests` (every test
//! runs, each by `confine`, or is listed with the reason); the crates that a registry would get: `publish-order`, and `package` (each packs); and
//! `tokio` (its sockets beside ours); the pages: `links` (each points at a file and a heading that exist) and `book` (what mdBook makes a book of).
#![forbid(unsafe_code)]

mod arguments;
mod arrows;
mod book;
mod confine;
mod limits;
mod links;
mod measures;
mod publishing;
mod spec;
mod testing;
mod tokio;

use arguments::{Arguments, Command, Measures};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Confine { words } => {
            return confine::run(&words).unwrap_or_else(|error| {
                eprintln!("{}: {error}", words[0]);
                ExitCode::FAILURE
            });
        }
        Command::Arrows => arrows::check(),
        Command::Book => book::assemble(),
        Command::Limits => limits::check(),
        Command::Links => links::check(),
        Command::Measures(Measures { write: true, .. }) => measures::write(),
        Command::Measures(Measures { list, .. }) if !list.is_empty() => measures::list(&list.join(" ")),
        Command::Measures(Measures { quiet, .. }) => measures::check(!quiet),
        Command::Tests { names } => testing::run(&names),
        Command::PublishOrder => publishing::order(),
        Command::Package => publishing::package(),
        Command::Tokio { write } => tokio::check(write),
        Command::Spec { quiet } => spec::check(!quiet),
    };
    match result {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
