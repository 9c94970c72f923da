//! Checks of the house itself: `arrows` (dependencies run downward only, and which files know each other in a circle),
//! `measures` (how wide, open, tangled and long it is, each of which may only fall), `spec` (each requirement of an RFC has its branch and its test) and `tests` (every test
//! runs, each by `confine`, or is listed with the reason); the crates that a registry would get: `publish-order`, and `package` (each packs); and
//! `tokio` (its sockets beside ours); the pages: `links` (each points at a file and a heading that exist) and `book` (what mdBook makes a book of).
#![forbid(unsafe_code)]

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

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["confine", program, arguments @ ..] = &words[..] {
        return confine::run(program, arguments).unwrap_or_else(|error| {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        });
    }
    let result = match &words[..] {
        ["arrows"] => arrows::check(),
        ["book"] => book::assemble(),
        ["limits"] => limits::check(),
        ["links"] => links::check(),
        ["measures"] => measures::check(true),
        ["measures", "--quiet"] => measures::check(false),
        ["measures", "--write"] => measures::write(),
        ["measures", "--list", name @ ..] if !name.is_empty() => measures::list(&name.join(" ")),
        ["tests", filters @ ..] => testing::run(filters),
        ["publish-order"] => publishing::order(),
        ["package"] => publishing::package(),
        ["tokio"] => tokio::check(false),
        ["tokio", "--write"] => tokio::check(true),
        ["spec"] => spec::check(true),
        ["spec", "--quiet"] => spec::check(false),
        _ => {
            eprintln!(
                "usage: inhost-audit arrows | book | confine PROGRAM … | limits | links | measures [--quiet | --write | --list NAME] | package | publish-order | spec [--quiet] | tests [NAME …] | tokio [--write]   (run from the root of the workspace)"
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
