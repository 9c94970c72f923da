//! Checks of the house itself: `arrows` (dependencies run downward only, and which files know each other in a circle),
//! `shape` (the core in figures), `spec` (each requirement of an RFC has its branch and its test) and `tests` (every test
//! runs, or is listed with the reason); the crates that a registry would get: `publish-order`, and `package` (each packs); and
//! the pages: `links` (each points at a file and a heading that exist) and `book` (what mdBook makes a book of).
#![forbid(unsafe_code)]

mod arrows;
mod book;
mod files;
mod links;
mod publishing;
mod shape;
mod spec;
mod testing;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["arrows"] => arrows::check(),
        ["book"] => book::assemble(),
        ["links"] => links::check(),
        ["shape"] => shape::table(),
        ["tests"] => testing::run(),
        ["publish-order"] => publishing::order(),
        ["package"] => publishing::package(),
        ["spec"] => spec::check(true),
        ["spec", "--quiet"] => spec::check(false),
        _ => {
            eprintln!(
                "usage: inhost-audit arrows | book | links | package | publish-order | shape | spec [--quiet] | tests   (run from the root of the workspace)"
            );
            return ExitCode::from(2);
        }
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
