//! `inhost-script`: plays scripts against our stack, and against the kernel.
#![forbid(unsafe_code)]

use inhost_script::choices::Choice;
use inhost_script::differ::{Classes, Plan, judge};
use inhost_script::language::{Profile, Script};
use inhost_script::suite::{self, Verdict};
use inhost_script::{Offloads, digest};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: inhost-script run [--kernel | --linux] [--offload on|off|both] [--json] FILE-OR-FOLDER…
                                                               play scripts against our stack, the kernel, or our
                                                               stack in its `linux` profile; on a device that cuts
                                                               and sums for it, with nothing done for several
                                                               segments at once, or both (default: the host does it)
       inhost-script table [FILE-OR-FOLDER…]                   play them on both sides, and write the table of
                                                               differences into docs/scripts.md
       inhost-script digest --exchanges N FILE-OR-FOLDER…
                                                               print a number for each script and profile, and for
                                                               each of N exchanges of the judge: what two builds
                                                               print is equal where our stack does the same
       inhost-script differ --seeds N [--from S] [--every K] [--jobs J] [--seconds T] [--open]
                    [--without CHOICE] [--as-drawn] [--json]
                                                               draw short exchanges from seeds, play each on the
                                                               kernel and on our stack in its `linux` profile, and
                                                               print each difference of no known class, with --open
                                                               those of open classes too, with --without those that
                                                               undoing one choice of the profile makes, with
                                                               --as-drawn none made small (root)";

/// Prints a line; a closed pipe, as by `head`, is no failure.
macro_rules! say {
    ($($text:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Where the scripts lie, and the page about them, from the project's root.
const SCRIPTS: &str = "lab/script/scripts";
const PAGE: &str = "docs/scripts.md";

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|word| matches!(word.as_str(), "--help" | "-h")) {
        say!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|word| word == "differ") {
        return differ(&arguments[1..]);
    }
    if let ["digest", "--exchanges", count, files @ ..] =
        arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
        && let Ok(exchanges) = count.parse()
    {
        return digests(exchanges, &files.iter().map(PathBuf::from).collect::<Vec<_>>());
    }
    let Some(offloads) = take_offloads(&mut arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (switches, rest): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.starts_with("--"));
    let has = |name: &str| switches.iter().any(|switch| switch == name);
    let known = switches.iter().all(|switch| matches!(switch.as_str(), "--kernel" | "--linux" | "--json"));
    let paths = |words: &[String]| words.iter().map(PathBuf::from).collect::<Vec<_>>();
    let done = match rest.split_first() {
        Some((command, files)) if command == "run" && known && !files.is_empty() => {
            let side = match (has("--kernel"), has("--linux")) {
                (true, _) => Player::Kernel,
                (false, true) => Player::OursAsLinux(offloads),
                (false, false) => Player::Ours(offloads),
            };
            run(&paths(files), side, has("--json"))
        }
        Some((command, files)) if command == "table" && switches.is_empty() => table(&paths(files)),
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

/// Target of the scripts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Player {
    Ours(&'static [Offloads]),
    OursAsLinux(&'static [Offloads]),
    Kernel,
}

/// Takes `--offload WORD` out of the arguments: the devices to play on. `None` where the word is no such word.
fn take_offloads(arguments: &mut Vec<String>) -> Option<&'static [Offloads]> {
    let Some(at) = arguments.iter().position(|argument| argument == "--offload") else {
        return Some(&[Offloads::Software]);
    };
    let devices: &[Offloads] = match arguments.get(at + 1)?.as_str() {
        "on" => &[Offloads::On],
        "off" => &[Offloads::Off],
        "both" => &[Offloads::Off, Offloads::On],
        _ => return None,
    };
    arguments.drain(at..at + 2);
    Some(devices)
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
fn run(paths: &[PathBuf], player: Player, as_json: bool) -> Result<bool, String> {
    let files = suite::find(paths)?;
    let on_kernel = player == Player::Kernel;
    let devices = match player {
        Player::Ours(devices) | Player::OursAsLinux(devices) => devices,
        Player::Kernel => &[],
    };
    let mut rows = Vec::new();
    let mut scripts = Vec::new();
    for file in &files {
        match suite::read(file) {
            Ok(script) if matches!(player, Player::OursAsLinux(_)) => {
                scripts.push(Script { profile: Profile::Linux, ..script });
            }
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
    if as_json {
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
fn digests(exchanges: u64, files: &[PathBuf]) -> ExitCode {
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
    ExitCode::SUCCESS
}

/// Exchanges that are played at a time where nothing is said; nearly all of their time is waiting.
const JOBS: u64 = 48;

/// `differ …`: 0 where every difference is of a known class, 1 where one is not, 2 for words that are not known.
fn differ(arguments: &[String]) -> ExitCode {
    let (mut seeds, mut from, mut every, mut jobs, mut seconds) = (None, 0, 1, JOBS, None);
    let (mut as_json, mut with_open, mut as_drawn, mut without) = (false, false, false, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|value| value.replace('_', "").parse::<u64>().ok());
        let understood = match word.as_str() {
            "--json" => {
                as_json = true;
                true
            }
            "--open" => {
                with_open = true;
                true
            }
            "--as-drawn" => {
                as_drawn = true;
                true
            }
            "--without" => {
                without = words.next().and_then(|name| Choice::named(name)).map(|choice| choice.name);
                without.is_some()
            }
            "--seeds" => {
                seeds = number();
                seeds.is_some()
            }
            "--from" => number().map(|value| from = value).is_some(),
            "--every" => number().map(|value| every = value).is_some(),
            "--jobs" => number().map(|value| jobs = value).is_some(),
            "--seconds" => {
                seconds = number();
                seconds.is_some()
            }
            _ => false,
        };
        if !understood {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    let Some(seeds) = seeds else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let time = seconds.map(std::time::Duration::from_secs);
    let judged = Classes::committed().and_then(|classes| {
        let classes = if with_open { classes.without_open() } else { classes };
        // What undoing a choice makes has no class.
        let classes = if without.is_some() { Classes::read("")? } else { classes };
        judge(
            &classes,
            Plan { first: from, count: seeds, every, jobs: jobs as usize, time, without, as_drawn },
        )
    });
    match judged {
        Ok(report) => {
            say!("{}", if as_json { report.json().to_string() } else { report.text() });
            if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(wrong) => {
            eprintln!("inhost-script: {wrong}");
            ExitCode::from(1)
        }
    }
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
