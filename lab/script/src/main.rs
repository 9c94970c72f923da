//! `inhost-script`: plays scripts against our stack, and against the kernel.
#![forbid(unsafe_code)]

use inhost_script::suite::{self, Verdict};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: inhost-script run [--kernel] [--json] FILE-OR-FOLDER…   play scripts
       inhost-script table [FOLDER…]                           print the table of differences from the kernel";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (switches, rest): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.starts_with("--"));
    let has = |name: &str| switches.iter().any(|switch| switch == name);
    let known = switches.iter().all(|switch| matches!(switch.as_str(), "--kernel" | "--json"));
    let paths = |words: &[String]| words.iter().map(PathBuf::from).collect::<Vec<_>>();
    let done = match rest.split_first() {
        Some((command, files)) if command == "run" && known && !files.is_empty() => {
            run(&paths(files), has("--kernel"), has("--json"))
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(wrong) => {
            eprintln!("inhost-script: {wrong}");
            ExitCode::from(1)
        }
    }
}

/// Plays the scripts; whether all went as they should.
fn run(paths: &[PathBuf], _kernel: bool, as_json: bool) -> Result<bool, String> {
    let mut failures = 0;
    let mut rows = Vec::new();
    let files = suite::find(paths)?;
    for file in &files {
        let verdict = match suite::read(file) {
            Ok(script) => suite::on_ours(&script),
            Err(verdict) => verdict,
        };
        failures += usize::from(!verdict.passed());
        if as_json {
            rows.push(row(&file.display().to_string(), &verdict));
        } else if let Verdict::Failed(failed) = &verdict {
            println!("FAILED {}", suite::report(failed));
        }
    }
    if as_json {
        println!("{}", Value::Array(rows));
    } else {
        println!("{} scripts, {} passed, {failures} failed", files.len(), files.len() - failures);
    }
    Ok(failures == 0)
}

fn row(file: &str, verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Passed => json!({ "script": file, "verdict": "passed" }),
        Verdict::NotRun(why) => json!({ "script": file, "verdict": "not run", "reason": why }),
        Verdict::Failed(failed) => json!({
            "script": file, "verdict": "failed", "place": failed.place, "line": failed.line,
            "reason": failed.reason, "trace": failed.trace,
        }),
    }
}
