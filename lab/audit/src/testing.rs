//! Runs every test of the workspace, and says what ran and what did not.
//!
//! A test that does not run is one of two kinds. A long run has a `make` target of its own, which its
//! `#[ignore = "long run: make TARGET"]` names. Every other one is left out: an ignored test, or one that found no peer
//! or no privilege and said so in the file of `INHOST_LEFT_OUT` (`lab/interop/left_out.rs`). In CI that is a failure.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Where tests say that they are left out.
const LEFT_OUT: &str = "target/left-out";

/// What the tests of the workspace came to.
#[derive(Default, PartialEq, Eq, Debug)]
struct Tally {
    passed: u64,
    failed: u64,
    /// Names of the tests that failed.
    failures: Vec<String>,
    /// Tests with a `make` target of their own, and which.
    long_runs: Vec<String>,
    /// Tests that should have run, and why they did not.
    left_out: Vec<String>,
}

/// Runs the tests, prints all that is not a test that passed, and at the end a summary.
pub fn run() -> Result<String, String> {
    let _ = std::fs::remove_file(LEFT_OUT);
    let list = std::env::current_dir().map_err(|e| format!("no current folder: {e}"))?.join(LEFT_OUT);
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--workspace", "--no-fail-fast"])
        .env("INHOST_LEFT_OUT", list)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cargo test did not start: {e}"))?;
    let mut tally = Tally::default();
    let output = cargo.stdout.take().ok_or("cargo test has no output")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|e| format!("cargo test cannot be read: {e}"))?;
        let line = String::from_utf8_lossy(&line);
        if !tally.take(&line) {
            println!("{line}");
        }
    }
    let status = cargo.wait().map_err(|e| format!("cargo test cannot be waited for: {e}"))?;
    tally.read_left_out(Path::new(LEFT_OUT));
    let summary = tally.summary();
    if !status.success() || tally.failed > 0 {
        return Err(format!("{summary}\ntests failed: {status}"));
    }
    if !tally.left_out.is_empty() && std::env::var_os("CI").is_some() {
        return Err(format!("{summary}\nin CI no test may be left out"));
    }
    Ok(summary)
}

impl Tally {
    /// Counts a line of `cargo test`. True if it tells of a test that passed or has its own target, or is empty.
    fn take(&mut self, line: &str) -> bool {
        let Some((name, verdict)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        else {
            return line.is_empty();
        };
        match verdict {
            "ok" => self.passed += 1,
            "FAILED" => {
                self.failed += 1;
                self.failures.push(name.to_owned());
                return false;
            }
            ignored if ignored.starts_with("ignored") => {
                let why = ignored.trim_start_matches("ignored").trim_start_matches(", ");
                match why.strip_prefix("long run: ") {
                    Some(target) => self.long_runs.push(format!("{name}: {target}")),
                    None => self.left_out.push(format!("{name}: ignored, {why}")),
                }
            }
            _ => return false,
        }
        true
    }
    /// Adds the cases that said themselves that they are left out. Each was counted as passed.
    fn read_left_out(&mut self, list: &Path) {
        let cases = std::fs::read_to_string(list).unwrap_or_default();
        for case in cases.lines() {
            self.left_out.push(case.to_owned());
            self.passed = self.passed.saturating_sub(1);
        }
    }
    fn summary(&self) -> String {
        let mut text = String::new();
        let mut section = |heading: &str, lines: &[String]| {
            if !lines.is_empty() {
                text += &format!("{heading}\n");
                lines.iter().for_each(|line| text += &format!("  {line}\n"));
            }
        };
        section("Long runs, each with a target of its own:", &self.long_runs);
        section("Left out here:", &self.left_out);
        section("Failed:", &self.failures);
        let skipped = self.long_runs.len() + self.left_out.len();
        text + &format!("{} passed, {} failed, {skipped} skipped", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_is_told_from_what_did_not() {
        let mut tally = Tally::default();
        let output = "\nrunning 5 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, long run: make soak\n\
                      test e ... ignored, needs a peer\ntest f - should panic ... ok\n\ntest result: FAILED. 2 passed";
        let shown: Vec<&str> = output.lines().filter(|line| !tally.take(line)).collect();
        assert_eq!(shown, ["running 5 tests", "test c ... FAILED", "test result: FAILED. 2 passed"]);
        let list = std::env::temp_dir().join(format!("inhost-left-out-{}", std::process::id()));
        std::fs::write(&list, "a::b: no network namespace\n").unwrap();
        tally.read_left_out(&list);
        std::fs::remove_file(&list).unwrap();
        assert_eq!((tally.passed, tally.failed), (1, 1), "a test that left itself out has not passed");
        assert_eq!(tally.long_runs, ["d: make soak"]);
        assert_eq!(tally.left_out, ["e: ignored, needs a peer", "a::b: no network namespace"]);
        assert!(tally.summary().ends_with("1 passed, 1 failed, 3 skipped"), "{}", tally.summary());
    }
}
