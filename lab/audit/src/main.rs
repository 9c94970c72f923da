//! Checks of the house itself: `arrows` (dependencies run downward only) and `spec` (each requirement of an RFC has
//! its branch and its test).
#![forbid(unsafe_code)]

mod arrows;
mod spec;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["arrows"] => arrows::check(),
        ["spec"] => spec::check(true),
        ["spec", "--quiet"] => spec::check(false),
        _ => {
            eprintln!("usage: inhost-audit arrows | spec [--quiet]   (run from the root of the workspace)");
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
