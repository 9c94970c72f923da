//! Instructions of a segment without those of its bytes: what callgrind counts in a side of the host, but for the functions
//! that copy and sum.

use super::result::Answer;
use crate::paths::{RECEIVE_SIDE, TRANSMIT_SIDE};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Segments of the shorter run; the longer has twice as many, and what both need to begin with does not count.
const SEGMENTS: u64 = 2_000;
/// Functions that touch payload and nothing else, by a part of their names: the C library's and each stack's own. Where
/// the compiler has put one into its caller it counts as the caller's.
const ON_BYTES: [&str; 4] = ["__mem", "inhost_buf::kernel", "checksum::data", "native_sum"];
/// Where the counts of a run are kept until they are read.
const FOLDER: &str = "target/bench";

/// The answer of `program`, whose words for so many segments are `words` and the number.
pub fn answer(program: &Path, words: &[&str]) -> Result<Answer, String> {
    let sent = beyond_bytes(program, words, TRANSMIT_SIDE)?;
    let received = beyond_bytes(program, words, RECEIVE_SIDE)?;
    let said = run(program, words, SEGMENTS, None)?;
    // Ours says nothing when a path is run.
    let settings = match said.trim() {
        "" => OURS.into(),
        answer => serde_json::from_str::<Answer>(answer).map_err(|e| format!("{answer:?}: {e}"))?.settings,
    };
    Ok(Answer { figures: [("sent".to_owned(), sent), ("received".to_owned(), received)].into(), settings })
}

const OURS: &str = "CUBIC, pacing, SACK, timestamps, RACK-TLP, both ledgers; segments of 1448 bytes";

/// Instructions for one segment in the functions that `side` names and in what they call.
fn beyond_bytes(program: &Path, words: &[&str], side: &str) -> Result<f64, String> {
    let counted = |segments: u64| {
        let file = PathBuf::from(FOLDER).join(format!("callgrind.{}", std::process::id()));
        run(program, words, segments, Some((side, &file)))?;
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        // It was for this once.
        let _ = std::fs::remove_file(&file);
        let by_function = self_costs(&text);
        let of_bytes = |name: &str| ON_BYTES.iter().any(|part| name.contains(part));
        Ok::<u64, String>(by_function.iter().filter(|(name, _)| !of_bytes(name)).map(|(_, cost)| cost).sum())
    };
    let (short, long) = (counted(SEGMENTS)?, counted(2 * SEGMENTS)?);
    Ok((long as f64 - short as f64) / SEGMENTS as f64)
}

fn run(
    program: &Path,
    words: &[&str],
    segments: u64,
    counting: Option<(&str, &Path)>,
) -> Result<String, String> {
    let mut command = match counting {
        None => Command::new(program),
        Some((side, file)) => {
            std::fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--tool=callgrind".into(), format!("--toggle-collect={side}")]);
            valgrind.arg(format!("--callgrind-out-file={}", file.display())).arg(program);
            valgrind
        }
    };
    command.args(words).arg(segments.to_string());
    let output = command
        .output()
        .map_err(|e| format!("{command:?}: {e}; counting needs valgrind (apt-get install valgrind)"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The instructions of each function itself, from the file that callgrind writes: a name is given once, with a number
/// that stands for it from then on; the line after a call has what the callee cost, which is its own.
fn self_costs(text: &str) -> HashMap<String, u64> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut costs: HashMap<String, u64> = HashMap::new();
    let (mut current, mut is_callees) = ("", false);
    for line in text.lines() {
        let named = line.strip_prefix("fn=").map(|rest| (rest, true));
        if let Some((rest, is_current)) =
            named.or_else(|| line.strip_prefix("cfn=").map(|rest| (rest, false)))
        {
            let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            if is_current {
                current = names.get(number).copied().unwrap_or(number);
            }
        } else if line.starts_with("calls=") {
            is_callees = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if !core::mem::take(&mut is_callees) {
                *costs.entry(current.to_owned()).or_default() += cost.unwrap_or(0);
            }
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_callee_costs_is_not_its_callers() {
        let text = "events: Ir\n\nfl=(1) a.rs\nfn=(1) send\n10 5\n+1 7\ncfn=(2) inhost_buf::kernel::sum\ncalls=1 3\n* 100\n\
                    fn=(2)\n3 90\n4 10\nfn=(1)\n12 1\n";
        let costs = self_costs(text);
        assert_eq!((costs["send"], costs["inhost_buf::kernel::sum"]), (13, 100));
    }
}
