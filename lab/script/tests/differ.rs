//! A slice of the differential judge; `make differ` plays the long run.

use inhost_script::differ::{self, Classes};
use inhost_script::language::{line_of, parse_text};
use inhost_script::suite;
use std::path::Path;
use std::time::Duration;

#[path = "../../interop/left_out.rs"]
mod left_out;

/// Exchanges of this slice, and the time that it may take.
const SEEDS: u64 = 60;
const TIME: Duration = Duration::from_secs(20);
/// Exchanges at a time: few, for other tests run beside.
const JOBS: usize = 16;
/// Fewer than this in the time prove nothing.
const LEAST: u64 = 20;

#[test]
fn the_kernel_and_the_linux_profile_differ_in_known_classes_only() {
    let allowed = std::thread::spawn(|| nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)).join();
    if let Ok(Err(error)) = allowed {
        left_out::left_out(&format!("no network namespace of its own ({error}); run as root"));
        return;
    }
    let report = differ::judge(&Classes::committed().unwrap(), 0, SEEDS, JOBS, Some(TIME)).unwrap();
    assert!(report.is_clean(), "\n{}", report.text());
    assert!(report.played >= LEAST, "too slow to prove anything: {}", report.summary());
}

/// What the judge prints can be read again: each step of every script is written as it was read.
#[test]
fn steps_are_written_as_they_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut steps = 0;
    for file in suite::find(&[folder]).unwrap() {
        for line in suite::read(&file).unwrap().lines {
            // Their times stand before them, and are no part of the step.
            if line.text.starts_with("wait") || line.text.starts_with("skip") {
                continue;
            }
            let text = line_of(&line.step);
            let again = parse_text("t.script", &format!("# p\n{text}")).unwrap();
            assert_eq!(again.lines.len(), 1, "{text}");
            assert_eq!(again.lines[0].step, line.step, "{} became {text}", line.text);
            steps += 1;
        }
    }
    assert!(steps > 1000, "{steps}");
}
