//! Twelve mistakes of `mistakes.toml`, put into the stack one at a time: each must still have its place, and the checker
//! must find it within a thousand seeds. `make mutations` tries all; an ordinary test run tries one.

use crate::mistakes::Mistake;

const TABLE: &str = "lab/sim/mistakes.toml";
/// Mistakes.
const MISTAKES: usize = 12;
/// Seeds within which each must be found.
const SEEDS: u64 = 1000;
/// The one that an ordinary test run builds.
const SAMPLE: &str = "SACK block one byte too long";

/// Soaks the mistaken stack; what the checker said first.
fn soak(mistake: &Mistake) -> String {
    let name = &mistake.name;
    let seeds = SEEDS.to_string();
    let soaked = mistake.run(&["run", "--quiet", "-p", "inhost-sim", "--", "soak", "--seeds", &seeds]);
    let said = String::from_utf8_lossy(&soaked.stdout);
    let found = said.lines().find(|line| line.starts_with("FAILED "));
    assert!(!soaked.status.success(), "{name} is not found within {SEEDS} seeds");
    let found = found.unwrap_or_else(|| panic!("{name} does not build, or fails in another way: {said}"));
    // It is the mistake that was found, and not one that the stack has anyway.
    let seed = found.trim_start_matches("FAILED seed ").split(':').next().and_then(|seed| seed.parse().ok());
    let without = inhost_sim::soak::run(seed.unwrap(), None);
    assert!(without.is_ok(), "the stack itself is at fault: {without:?}");
    found.to_owned()
}

#[test]
fn each_mistake_still_has_its_place() {
    let mistakes = crate::mistakes::of(TABLE);
    assert_eq!(mistakes.len(), MISTAKES);
    mistakes.iter().for_each(|mistake| assert_ne!(mistake.made(), ""));
}

#[test]
fn one_mistake_is_found() {
    let mistakes = crate::mistakes::of(TABLE);
    let sample = mistakes.iter().find(|mistake| mistake.name == SAMPLE).unwrap();
    let said = soak(sample);
    assert!(said.contains("reports by SACK"), "{said}");
}

#[test]
#[ignore = "long run: make mutations"]
fn every_mistake_is_found() {
    for mistake in crate::mistakes::of(TABLE) {
        println!("{}: {}", mistake.name, soak(&mistake));
    }
}
