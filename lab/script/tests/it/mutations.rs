//! Mistakes of `mistakes.toml`, put into the stack one at a time: each must still have its place, and the judge must find
//! it by a difference that the stack has not without it. `make differ-mutations` tries all of them.

use crate::mistakes::Mistake;
use inhost_script::differ::{self, Classes, Plan};

const TABLE: &str = "lab/script/mistakes.toml";
/// Mistakes at the least.
const LEAST_MISTAKES: usize = 6;
/// Seeds within which each must be found.
const SEEDS: &str = "400";
/// Exchanges at a time.
const JOBS: &str = "32";

/// What the judge finds in the mistaken stack: signatures and seeds.
fn judge(mistake: &Mistake) -> Vec<(String, u64)> {
    let judged = mistake.run(&[
        "run",
        "--quiet",
        "-p",
        "inhost-script",
        "--",
        "differ",
        "--open",
        "--json",
        "--seeds",
        SEEDS,
        "--jobs",
        JOBS,
        "--as-drawn",
    ]);
    let report: serde_json::Value = serde_json::from_slice(&judged.stdout).expect("it does not build");
    let found = report["found"].as_array().unwrap().iter();
    let mut found: Vec<(String, u64)> = found
        .map(|found| (found["signature"].as_str().unwrap().to_owned(), found["seed"].as_u64().unwrap()))
        .collect();
    found.sort_by_key(|(_, seed)| *seed);
    found
}

/// What the stack itself does differently in this seed.
fn differs_anyway(seed: u64) -> bool {
    let plan = Plan { first: seed, count: 1, every: 1, jobs: 1, time: None, without: None, as_drawn: true };
    let report = differ::judge(&Classes::committed().unwrap().without_open(), plan).unwrap();
    !report.found.is_empty() || report.played == 0
}

#[test]
fn each_mistake_still_has_its_place() {
    let mistakes = crate::mistakes::of(TABLE);
    assert!(mistakes.len() >= LEAST_MISTAKES);
    mistakes.iter().for_each(|mistake| assert_ne!(mistake.made(), ""));
}

#[test]
#[ignore = "long run: make differ-mutations"]
fn every_mistake_is_found() {
    let mut missed = Vec::new();
    let mistakes = crate::mistakes::of(TABLE);
    for mistake in &mistakes {
        // It is the mistake that was found, and not a difference that the stack has anyway.
        match judge(mistake).into_iter().find(|(_, seed)| !differs_anyway(*seed)) {
            Some((signature, seed)) => println!("{}: seed {seed}: {signature}", mistake.name),
            None => missed.push(mistake.name.as_str()),
        }
    }
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
}
