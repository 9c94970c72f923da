//! `inhost-script`: plays scripts against our stack, and against the kernel.
#![forbid(unsafe_code)]

mod arguments;

use arguments::{Arguments, Command, Differ, Run};
use clap::Parser;
use inhost_script::differ::{Classes, Plan, judge};
use inhost_script::language::{Profile, Script};
use inhost_script::suite::{self, Verdict};
use inhost_script::{Offloads, digest};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints a line; a closed pipe, as by `head`, is not a failure.
macro_rules! say {
    ($($text:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Where the scripts lie, and the page about them, from the project's root.
const SCRIPTS: &str = "lab/script/scripts";
const PAGE: &str = "docs/scripts.md";

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Table { paths } => table(&paths),
        Command::Digest { exchanges, paths } => {
            digests(exchanges, &paths);
            Ok(true)
        }
        Command::Differ(arguments) => differ(&arguments),
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

/// Plays a script on each device in turn: the first verdict that is not good, or the last.
fn on_devices(script: &Script, devices: &[Offloads]) -> Verdict {
    let mut verdict = Verdict::Passed;
    for &offloads in devices {
        verdict = suite::on_ours_with(script, offloads);
        if let Verdict::Failed(failed) = &mut verdict {
            if offloads != Offloads::default() {
                failed.reason = format!("with offload {}: {}", offloads.text(), failed.reason);
            }
            break;
        }
    }
    verdict
}

/// Plays the scripts; whether all went as they should.
fn run(arguments: &Run) -> Result<bool, String> {
    let files = suite::find(&arguments.paths)?;
    let on_kernel = arguments.kernel;
    let devices = arguments.offload.unwrap_or(&[Offloads::Software]);
    let mut rows = Vec::new();
    let mut scripts = Vec::new();
    for file in &files {
        match suite::read(file) {
            Ok(script) if arguments.linux => scripts.push(Script { profile: Profile::Linux, ..script }),
            Ok(script) => scripts.push(script),
            Err(verdict) => {
                rows.push(Row { file: file.display().to_string(), verdict, wrong: true, note: "" })
            }
        }
    }
    let verdicts = match on_kernel {
        true => suite::all_on_kernel(&scripts),
        false => scripts.iter().map(|script| on_devices(script, devices)).collect(),
    };
    for (script, verdict) in scripts.iter().zip(verdicts) {
        let note = if on_kernel { suite::contradiction(&script.kernel, &verdict) } else { None };
        let wrong = if on_kernel { note.is_some() } else { !verdict.passed() };
        rows.push(Row { file: script.file.clone(), verdict, wrong, note: note.unwrap_or("") });
    }
    let wrong = rows.iter().filter(|row| row.wrong).count();
    if arguments.json {
        say!("{}", Value::Array(rows.iter().map(Row::json).collect()));
        return Ok(wrong == 0);
    }
    for row in rows.iter().filter(|row| row.wrong) {
        say!("FAILED {}", row.text());
    }
    let passed = rows.iter().filter(|row| row.verdict.passed()).count();
    let not_run = rows.iter().filter(|row| matches!(row.verdict, Verdict::NotRun(_))).count();
    let differ = rows.len() - passed - not_run - wrong.min(rows.len() - passed - not_run);
    if on_kernel {
        say!(
            "{} scripts, {passed} passed, {differ} differ with a reason, {not_run} not run, {wrong} wrong",
            rows.len()
        );
    } else {
        say!("{} scripts, {passed} passed, {wrong} failed", rows.len());
    }
    Ok(wrong == 0)
}

/// Prints a digest for each script and profile, and for each exchange.
fn digests(exchanges: u64, files: &[PathBuf]) {
    let shown = |result: Result<u64, String>| {
        result.map_or_else(|why| why.replace('\n', "; "), |value| format!("{value:016x}"))
    };
    for file in suite::find(files).unwrap_or_default() {
        let Ok(script) = suite::read(&file) else { continue };
        let [rfc, linux] =
            [Profile::Rfc, Profile::Linux].map(|profile| shown(digest::digest(&script, profile)));
        say!("script {} {rfc} {linux}", file.display());
    }
    for seed in 0..exchanges {
        match digest::digest_of_exchange(seed).transpose() {
            Some(result) => say!("exchange {seed} {}", shown(result)),
            None => say!("exchange {seed} none"),
        }
    }
}

/// Plays drawn exchanges on both sides; whether every difference is of a known class.
fn differ(arguments: &Differ) -> Result<bool, String> {
    let classes = match arguments.without {
        // What undoing a choice makes has no class.
        Some(_) => Classes::read("")?,
        None if arguments.open => Classes::committed()?.without_open(),
        None => Classes::committed()?,
    };
    let plan = Plan {
        first: arguments.from,
        count: arguments.seeds,
        every: arguments.every,
        jobs: usize::try_from(arguments.jobs).unwrap_or(usize::MAX),
        time: arguments.seconds.map(std::time::Duration::from_secs),
        without: arguments.without,
        as_drawn: arguments.as_drawn,
    };
    let report = judge(&classes, plan)?;
    say!("{}", if arguments.json { report.json().to_string() } else { report.text() });
    Ok(report.is_clean())
}

/// Writes the table of differences; whether every difference has its reason.
fn table(paths: &[PathBuf]) -> Result<bool, String> {
    let all = [PathBuf::from(SCRIPTS)];
    let files = suite::find(if paths.is_empty() { &all } else { paths })?;
    let mut scripts = Vec::new();
    for file in &files {
        scripts.push(inhost_script::language::parse_file(file).map_err(|error| error.to_string())?);
    }
    say!("{}", inhost_script::table::write(&scripts, Path::new(PAGE))?);
    Ok(true)
}

/// Result of one script.
struct Row {
    file: String,
    verdict: Verdict,
    wrong: bool,
    /// Contradictions of the script's note about the kernel.
    note: &'static str,
}

impl Row {
    fn text(&self) -> String {
        match &self.verdict {
            Verdict::Failed(failed) => format!("{}\n    {}", suite::report(failed).trim_end(), self.note),
            _ => format!("{}: {}", self.file, self.note),
        }
    }
    fn json(&self) -> Value {
        let Row { file, verdict, wrong, note } = self;
        let ok = !wrong;
        match verdict {
            Verdict::Passed => json!({ "script": file, "ok": ok, "verdict": "passed", "note": note }),
            Verdict::NotRun(why) => json!({ "script": file, "ok": ok, "verdict": "not run", "reason": why }),
            Verdict::Failed(failed) => json!({
                "script": file, "ok": ok, "verdict": "failed", "note": note, "place": failed.place,
                "line": failed.line, "reason": failed.reason, "trace": failed.trace,
            }),
        }
    }
}
