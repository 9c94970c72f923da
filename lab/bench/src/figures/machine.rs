//! Where and when a figure was taken.

use std::process::Command;

/// The day by UTC: `2026-11-21`.
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%F").to_string()
}

/// The kernel's release.
pub fn kernel() -> String {
    read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into())
}

/// Our commit, marked where the tree differs from it.
pub fn commit() -> String {
    let git = |words: &[&str]| {
        let output =
            Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=9", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let is_changed = git(&["status", "--porcelain", "--untracked-files=no", "core", "host"])
        .is_some_and(|s| !s.is_empty());
    if is_changed { commit + "+" } else { commit }
}

/// Processor, its cores and the kernel, in a line.
pub fn describe() -> String {
    let processor = read("/proc/cpuinfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = processor.unwrap_or_else(|| std::env::consts::ARCH.into());
    format!("{cores} cores of {processor}, Linux {}", kernel())
}

/// Time that a core has spent on this thread, in seconds: unlike the clock on the wall it does not count what else
/// the machine does.
pub fn core_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Lets a thread run before all ordinary ones, and in turn with others of the same priority; what it starts from then
/// on inherits this. On a machine with nothing else to do it changes nothing, and without the right to it, or without
/// util-linux, it is left out.
pub fn run_in_real_time(thread: rustix::thread::Pid, priority: u32) {
    let words = ["--rr".into(), "--pid".into(), priority.to_string(), thread.as_raw_nonzero().to_string()];
    let _ = Command::new("chrt").args(words).output();
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
