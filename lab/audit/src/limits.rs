//! Whether tests that misbehave are ended, named, and leave nothing behind: `lab/interop/tests/limits.rs`.

use crate::testing;
use std::fs::File;

/// Each test that misbehaves, and what nextest says of it.
const EXPECTED: &[(&str, &str, &str)] = &[
    ("sleeps_for_ever", "TIMEOUT", "ended by signal 15"),
    ("leaves_a_child_that_holds_its_output", "FAIL", "left running: sleep"),
    ("leaves_a_child_with_a_session_of_its_own", "FAIL", "left running: sleep"),
    ("waits_for_a_child_with_a_session_of_its_own", "TIMEOUT", "ended by signal 15"),
    ("fills_ten_gigabytes", "FAIL", "memory allocation of 1048576 bytes failed"),
];
/// The variable by which the processes of this run are known.
const MARK: &str = "INHOST_LIMITS";

/// Runs them, and fails unless all is as expected.
pub fn check() -> Result<String, String> {
    let path = std::path::Path::new("target/limits.log");
    let file = |e: std::io::Error| format!("{}: {e}", path.display());
    let log = File::create(path).map_err(file)?;
    let mark = std::process::id().to_string();
    let mut nextest = testing::nextest()?;
    nextest.args([
        "-p",
        "inhost-interop",
        "--test",
        "limits",
        "--profile",
        "limits",
        "--run-ignored",
        "only",
    ]);
    nextest.env(MARK, &mark).stdout(log.try_clone().map_err(file)?).stderr(log);
    nextest.status().map_err(|e| format!("cargo nextest did not start: {e}"))?;
    let said = std::fs::read_to_string(path).map_err(file)?;
    let mut wrong = Vec::new();
    for (name, verdict, why) in EXPECTED {
        // The last word on a test is followed by its output.
        let told = said
            .lines()
            .rev()
            .any(|line| line.contains(verdict) && line.ends_with(&format!("limits {name}")));
        let of_it = said.split(&format!("limits {name}\n")).last().unwrap_or_default();
        if !told || !of_it.contains(why) {
            wrong.push(format!("{name}: not {verdict} with \"{why}\""));
        }
    }
    wrong.extend(left(&mark).into_iter().map(|name| format!("still there: {name}")));
    match wrong.is_empty() {
        true => Ok(format!(
            "limits: {} tests that misbehave are ended and named, and nothing is left",
            EXPECTED.len()
        )),
        false => Err(format!("{}\nlimits: see {}", wrong.join("\n"), path.display())),
    }
}

/// The processes with this mark in their environment.
fn left(mark: &str) -> Vec<String> {
    let mark = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let marked = processes.filter(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    });
    marked.filter_map(|entry| std::fs::read_to_string(entry.path().join("comm")).ok()).collect()
}
