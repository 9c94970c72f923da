//! Where a run comes from: what somebody needs to see it again.

use std::process::Command;

/// The seed, in place of a program's own choice.
pub const SEED_VARIABLE: &str = "INHOST_SIM_SEED";
/// Where to write what crossed the links.
pub const CAPTURE_VARIABLE: &str = "INHOST_SIM_PCAPNG";

/// The commit of the working directory, with `+` when files differ from it, or "unknown".
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|files| !files.is_empty());
    if is_changed { commit + "+" } else { commit }
}

/// The command that runs this process again under `seed` and writes `capture`; a test runs alone.
pub fn command(seed: u64, capture: &str) -> String {
    let mut words = vec![format!("{SEED_VARIABLE}={seed}"), format!("{CAPTURE_VARIABLE}={capture}")];
    let mut arguments = std::env::args();
    words.extend(arguments.next());
    // The test harness names a test's thread after the test.
    match std::thread::current().name() {
        Some(test) if test != "main" => {
            words.extend([test.to_owned(), "--exact".to_owned(), "--nocapture".to_owned()]);
        }
        _ => words.extend(arguments),
    }
    words.join(" ")
}

/// The seed that the environment asks for.
pub(crate) fn asked_seed() -> Option<u64> {
    std::env::var(SEED_VARIABLE).ok()?.parse().ok()
}

/// The capture that the environment asks for.
pub(crate) fn asked_capture() -> Option<std::path::PathBuf> {
    std::env::var_os(CAPTURE_VARIABLE).map(Into::into)
}
