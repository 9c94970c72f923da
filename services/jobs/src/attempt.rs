//! An attempt to run a job: the files that the wrapper is given, and what it leaves. Back ends differ in who starts it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use crate::codec::{Limits, status_text};
use crate::store::{Outcome, Task};

/// The wrapper. `$1` is the time limit or empty, `$2` the grace, `$3` the output's limit, `$4` the cgroup or empty, `$5`
/// the limits as words for `ulimit`, `$6` whether the script has a `#!` line, `$7` how many variables the user adds.
const WRAPPER: &str = include_str!("wrapper.sh");
/// Octets of a file that tells something.
const FACT_BYTES: u64 = 4096;

/// Makes the folder of an attempt, with the script and the working folder.
pub(crate) fn prepare(task: &Task) -> io::Result<()> {
    let folder = &task.folder;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder.join("work"))?;
    private(&folder.join("script"), 0o700)?.write_all(task.submission.script.as_bytes())
}

/// A new file that its owner alone may read.
pub(crate) fn private(path: &Path, mode: u32) -> io::Result<File> {
    fs::OpenOptions::new().create_new(true).write(true).mode(mode).open(path)
}

/// How the wrapper of an attempt is started, in the attempt's folder.
pub(crate) struct Launch {
    arguments: Vec<OsString>,
    environment: Vec<(String, OsString)>,
}

impl Launch {
    pub fn new(task: &Task, limits: &Limits, grace_s: u64, cgroup: Option<&Path>, path: &str) -> Launch {
        let submission = &task.submission;
        let seconds = limits.wall_s.map(|limit| limit.to_string()).unwrap_or_default();
        let arguments = vec![
            seconds.into(),
            grace_s.to_string().into(),
            limits.output_bytes.unwrap_or(u64::MAX >> 1).to_string().into(),
            cgroup.unwrap_or(Path::new("")).into(),
            rlimits(limits).into(),
            if submission.script.starts_with("#!") { "own" } else { "sh" }.into(),
            submission.environment.len().to_string().into(),
        ];
        let mut environment = vec![("PATH".to_owned(), OsString::from(path))];
        for name in ["HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ"] {
            environment.extend(std::env::var_os(name).map(|value| (name.to_owned(), value)));
        }
        // The script gets the user's variables, and the wrapper does not: they could replace its programs.
        for (number, (name, value)) in submission.environment.iter().enumerate() {
            environment.push((format!("INHOST_USER_{number}"), format!("{name}={value}").into()));
        }
        let mut own = |name: &str, value: String| environment.push((format!("INHOST_{name}"), value.into()));
        own("JOB_ID", task.id.to_string());
        own("JOB_NAME", submission.name.clone());
        own("JOB_USER", task.user.clone());
        own("JOB_ATTEMPT", task.attempt.to_string());
        if let (Some(array), Some(index)) = (task.array, task.index) {
            own("ARRAY_ID", array.to_string());
            own("ARRAY_INDEX", index.to_string());
        }
        Launch { arguments, environment }
    }
    /// As a process of this host.
    pub fn command(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(WRAPPER).arg("job").args(&self.arguments);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
    /// As a file for `/bin/sh`, which adds to the environment that it finds.
    pub fn file(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, value) in &self.environment {
            text.extend(format!("export {name}=").into_bytes());
            quote(&mut text, &value.clone().into_vec());
            text.push(b'\n');
        }
        text.extend(b"exec /bin/sh -c ");
        quote(&mut text, WRAPPER.as_bytes());
        text.extend(b" job");
        for argument in &self.arguments {
            text.push(b' ');
            quote(&mut text, &argument.clone().into_vec());
        }
        text.push(b'\n');
        text
    }
}

/// Appends a word as the shell reads it.
pub(crate) fn quote(text: &mut Vec<u8>, word: &[u8]) {
    text.push(b'\'');
    for &octet in word {
        match octet {
            b'\'' => text.extend(b"'\\''"),
            octet => text.push(octet),
        }
    }
    text.push(b'\'');
}

/// What `ulimit` is told: a letter and a number each.
fn rlimits(limits: &Limits) -> String {
    let kib = |bytes: u64| bytes.div_ceil(1024);
    // POSIX counts files in blocks of 512 bytes.
    let words = [
        ("t", limits.cpu_s),
        ("v", limits.memory_bytes.map(kib)),
        ("f", limits.file_bytes.map(|bytes| bytes.div_ceil(512))),
        ("n", limits.open_files),
        ("u", limits.processes),
    ];
    let words = words.iter().filter_map(|(letter, value)| value.map(|value| format!("{letter} {value}")));
    words.collect::<Vec<_>>().join(" ")
}

/// A file that tells something, without its line end.
pub(crate) fn fact(folder: &Path, name: &str) -> Option<String> {
    let mut text = String::new();
    let file = File::open(folder.join(name)).ok()?;
    io::Read::read_to_string(&mut io::Read::take(file, FACT_BYTES), &mut text).ok()?;
    Some(text.trim_end().to_owned())
}

/// Whether the script of the attempt in `folder` never runs, which is decided here unless its wrapper has begun: `started` is
/// a folder where the wrapper made it, and a file where a host did. A wrapper that comes later does not run the script, and a
/// host that comes later knows what an earlier one decided.
pub(crate) fn never_starts(folder: &Path) -> bool {
    let started = folder.join("started");
    private(&started, 0o600).is_ok() || fs::symlink_metadata(started).is_ok_and(|file| file.is_file())
}

/// Octets of output so far.
pub(crate) fn output_bytes(task: &Task) -> u64 {
    let bytes = |name: &str| fs::metadata(task.folder.join(name)).map_or(0, |file| file.len());
    bytes("stdout") + bytes("stderr")
}

/// The end of the script, if its wrapper has written it.
pub(crate) fn status(task: &Task, defaults: &Limits) -> Option<Outcome> {
    let status: i32 = fact(&task.folder, "status")?.parse().ok()?;
    let limits = task.submission.limits.or(*defaults);
    let is_there = |name: &str| task.folder.join(name).exists();
    let cut = match limits.output_bytes {
        _ if is_there("unwritten") => "; its output could not be written: is the disk full?".to_owned(),
        Some(most) if is_there("cut") => format!("; its output was cut at {most} bytes (--output)"),
        _ => String::new(),
    };
    let ended = fs::metadata(task.folder.join("status")).and_then(|file| file.modified()).ok();
    let ended =
        ended.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()).map_or(0, |at| at.as_secs());
    let is_late = |wall_s| matches!(status, 124 | 137) && ended >= task.started_s.saturating_add(wall_s);
    let reason = match limits.wall_s {
        Some(wall_s) if is_late(wall_s) => format!("its time limit of {wall_s} s has passed{cut}"),
        _ if status == 0 => cut.trim_start_matches("; ").to_owned(),
        _ => {
            let is_killed = is_there("killed");
            let why = limit_reached(status, &limits, is_killed).unwrap_or_else(|| status_text(status));
            format!("{why}{cut}")
        }
    };
    Some(Outcome::Exit(status, reason))
}

/// Which limit a job has reached, where its status tells. `is_killed` says that its cgroup had no memory left.
fn limit_reached(status: i32, limits: &Limits, is_killed: bool) -> Option<String> {
    const XCPU: i32 = 128 + 24;
    const XFSZ: i32 = 128 + 25;
    // A program that is given no more memory aborts, or uses what it was not given.
    const NO_MEMORY: [i32; 3] = [128 + 6, 128 + 7, 128 + 11];
    let text = status_text(status);
    Some(match (limits, status) {
        (Limits { memory_bytes: Some(most), .. }, _) if is_killed => {
            format!("{text}: its memory has reached the limit of {most} bytes (--memory)")
        }
        (Limits { cpu_s: Some(most), .. }, XCPU) => {
            format!("its processor time has reached the limit of {most} s (--cpu)")
        }
        (Limits { file_bytes: Some(most), .. }, XFSZ) => {
            format!("a file has reached the limit of {most} bytes (--file-size)")
        }
        (Limits { memory_bytes: Some(most), .. }, status) if NO_MEMORY.contains(&status) => {
            format!("{text}: its memory may have reached the limit of {most} bytes (--memory)")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Submission;
    use std::sync::Arc;

    #[test]
    fn limits_are_words_of_ulimit() {
        let limits =
            Limits { cpu_s: Some(3), memory_bytes: Some(1500), file_bytes: Some(513), ..Limits::default() };
        assert_eq!(rlimits(&limits), "t 3 v 2 f 2");
    }

    #[test]
    fn output_that_a_disk_does_not_take_is_told() {
        let folder = std::env::temp_dir().join(format!("inhost-attempt-{}", std::process::id()));
        let task = Task {
            id: 1,
            attempt: 1,
            array: None,
            index: None,
            user: "ada".into(),
            submission: Arc::new(Submission::new("a", "echo high; exit 3")),
            folder: folder.clone(),
            handle: None,
            is_cancelling: false,
            started_s: 0,
            reason: String::new(),
            key: "k".into(),
        };
        prepare(&task).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.join("stdout")).unwrap();
        let limits = Limits::default();
        let mut wrapper = Launch::new(&task, &limits, 5, None, "/usr/bin:/bin").command();
        assert!(wrapper.current_dir(&folder).status().unwrap().success());
        let reason = "exit status 3; its output could not be written: is the disk full?".to_owned();
        assert_eq!(status(&task, &limits), Some(Outcome::Exit(3, reason)));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_status_tells_which_limit_was_reached() {
        let limits =
            Limits { cpu_s: Some(3), memory_bytes: Some(99), file_bytes: Some(513), ..Limits::default() };
        let told = |status, is_killed| limit_reached(status, &limits, is_killed).unwrap_or_default();
        let words = [(152, "--cpu"), (153, "--file-size"), (139, "--memory"), (134, "--memory")];
        for (status, word) in words {
            assert!(told(status, false).contains(word), "{status}");
            assert_eq!(limit_reached(status, &Limits::default(), false), None);
        }
        assert!(told(137, true).starts_with("signal 9: its memory has reached the limit of 99 bytes"));
        assert_eq!((told(137, false), told(1, false)), (String::new(), String::new()));
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        for word in ["", "a b", "it's", "'", "$HOME `id` \\", "two\nlines", "*"] {
            let mut text = b"printf %s ".to_vec();
            quote(&mut text, word.as_bytes());
            let shown = Command::new("/bin/sh").arg("-c").arg(OsString::from_vec(text)).output().unwrap();
            assert_eq!(String::from_utf8(shown.stdout).unwrap(), word);
        }
    }
}
