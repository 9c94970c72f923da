//! Many scripts: found in folders, played, and judged.

use crate::kernel::Kernel;
use crate::language::{KernelNote, Script, parse_file};
use crate::ours::{Offloads, Ours};
use crate::run::{Failed, play};
use inhost_base::Duration;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most files of one run.
const FILE_LIMIT: usize = 10_000;
/// How often a script is played against the kernel before it counts as going another way than it says.
const KERNEL_ATTEMPTS: usize = 3;
/// How often it is played when the player itself was late.
const DISTURBED_ATTEMPTS: usize = 20;
/// As late as the player may be without disturbing a script.
const TOLERABLE_LATENESS: Duration = Duration::from_millis(10);
/// Scripts that are played against the kernel at a time; nearly all of their time is waiting.
const KERNEL_AT_ONCE: usize = 16;

/// Result of a script on one side.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It went as it is written.
    Passed,
    /// It went another way.
    Failed(Failed),
    /// It was not played, and why.
    NotRun(String),
}

impl Verdict {
    /// Whether it went as it is written.
    pub fn passed(&self) -> bool {
        matches!(self, Verdict::Passed)
    }
}

/// The scripts in `paths`: files themselves, and in folders every file called `*.script`, in order of names.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            walk(path, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Err("no scripts there: name files, or folders with files called *.script".into());
    }
    Ok(found)
}
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "script") {
            found.push(path);
        }
        if found.len() > FILE_LIMIT {
            return Err(format!("more than {FILE_LIMIT} scripts"));
        }
    }
    Ok(())
}

/// Reads a script, or says why not as a verdict.
pub fn read(path: &Path) -> Result<Script, Verdict> {
    parse_file(path).map_err(|error| {
        Verdict::Failed(Failed {
            place: error.place.to_string(),
            line: String::new(),
            reason: error.message,
            trace: Vec::new(),
            lateness: Duration::ZERO,
        })
    })
}

/// Plays a script against our stack on a device that offers nothing.
pub fn on_ours(script: &Script) -> Verdict {
    on_ours_with(script, Offloads::default())
}
/// Plays a script against our stack on a device that does what `offloads` says.
pub fn on_ours_with(script: &Script, offloads: Offloads) -> Verdict {
    let mut side = match Ours::new(script, offloads) {
        Ok(side) => side,
        Err(wrong) => return set_up_failed(script, wrong),
    };
    match play(script, &mut side) {
        Ok(()) => Verdict::Passed,
        Err(failed) => Verdict::Failed(failed),
    }
}
/// Plays a script against the kernel, in a thread and its own network namespace. A script that goes another way than
/// its note says is played again, for a busy machine is late.
pub fn on_kernel(script: &Script) -> Verdict {
    if let KernelNote::CannotRun(why) = &script.kernel {
        return Verdict::NotRun(why.clone());
    }
    let mut verdict = Verdict::NotRun(String::new());
    let (mut attempts, mut disturbed) = (0, 0);
    while attempts < KERNEL_ATTEMPTS && disturbed < DISTURBED_ATTEMPTS {
        verdict = once_on_kernel(script);
        if contradiction(&script.kernel, &verdict).is_none() {
            break;
        }
        match &verdict {
            Verdict::Failed(failed) if failed.lateness > TOLERABLE_LATENESS => {
                disturbed += 1;
                std::thread::park_timeout(std::time::Duration::from_millis(100));
            }
            _ => attempts += 1,
        }
    }
    verdict
}
fn once_on_kernel(script: &Script) -> Verdict {
    std::thread::scope(|scope| {
        let playing = scope.spawn(|| match Kernel::new(script) {
            Err(wrong) => set_up_failed(script, wrong),
            Ok(mut side) => match play(script, &mut side) {
                Ok(()) => Verdict::Passed,
                Err(failed) => Verdict::Failed(failed),
            },
        });
        playing
            .join()
            .unwrap_or_else(|_| set_up_failed(script, "the script's thread ended in a panic".into()))
    })
}

/// Plays `scripts` against the kernel, several at a time; verdicts in the order of the scripts.
pub fn all_on_kernel(scripts: &[Script]) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..KERNEL_AT_ONCE.min(scripts.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(script) = scripts.get(index) else { return };
                    let verdict = on_kernel(script);
                    if let Ok(mut verdicts) = verdicts.lock() {
                        verdicts.insert(index, verdict);
                    }
                }
            });
        }
    });
    verdicts.into_inner().unwrap_or_default().into_values().collect()
}
fn set_up_failed(script: &Script, reason: String) -> Verdict {
    Verdict::Failed(Failed {
        place: script.file.clone(),
        line: String::new(),
        reason,
        trace: Vec::new(),
        lateness: Duration::ZERO,
    })
}

/// What is wrong between a script's note about the kernel and what the kernel did; nothing when they agree.
pub fn contradiction(note: &KernelNote, verdict: &Verdict) -> Option<&'static str> {
    match (note, verdict) {
        (KernelNote::Same, Verdict::Failed(_)) => {
            Some("the kernel differs and the script gives no reason (`kernel: differs because …`)")
        }
        (KernelNote::Differs(_), Verdict::Passed) => {
            Some("the script gives a reason for a difference, and the kernel does not differ")
        }
        (KernelNote::CannotRun(_), _) | (_, Verdict::NotRun(_)) => None,
        (KernelNote::Same, Verdict::Passed) | (KernelNote::Differs(_), Verdict::Failed(_)) => None,
    }
}

/// A failure for a person: where, what, and the packets so far.
pub fn report(failed: &Failed) -> String {
    let mut text = format!("{}: {}\n", failed.place, failed.reason);
    if !failed.line.is_empty() {
        text.push_str(&format!("    {}\n", failed.line));
    }
    for line in &failed.trace {
        text.push_str(&format!("    | {line}\n"));
    }
    text
}
