//! Runs one test so that it ends: with a limit of memory, and with the end of all that it started.
//!
//! Whatever a test leaves behind becomes a child of this process (a subreaper), also what has left its process group or
//! session. When the test has ended, or its time is over, all of that is killed; and a test that left something running
//! has failed, even if it passed otherwise.

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

/// Most that each process of a test may allocate.
const MEMORY_BYTES: u64 = 4 << 30;
/// How long what a test started may take to end after it.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two looks whether it has.
const POLL: Duration = Duration::from_millis(5);

/// Runs a program with its arguments, and gives its exit status: 1 when it left something running, 128 and the number of a
/// signal that ended it.
pub fn run(words: &[String]) -> io::Result<ExitCode> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut signals = signal_hook::iterator::Signals::new([SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    // Written memory of the process alone counts, not addresses that are reserved.
    let limit = Rlimit { current: Some(MEMORY_BYTES), maximum: Some(MEMORY_BYTES) };
    rustix::process::setrlimit(Resource::Data, limit)?;
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    let test = Command::new(program).args(arguments).spawn()?;
    let test = Pid::from_child(&test);
    for signal in signals.forever() {
        match signal {
            SIGCHLD => {
                if let Some(status) = reap(test)? {
                    return Ok(after(status, words));
                }
            }
            // The time of the test is over, or a person has had enough.
            _ => {
                let _ = rustix::process::kill_process(test, Signal::KILL);
                let left = children();
                sweep()?;
                eprintln!("{program}: ended by signal {signal}, with all that it started: {}", names(&left));
                return Ok(ExitCode::from(128 + signal as u8));
            }
        }
    }
    Ok(ExitCode::FAILURE)
}

/// Reaps who has ended; the status of `test` if it is among them.
fn reap(test: Pid) -> io::Result<Option<ExitStatus>> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == test => {
                return Ok(Some(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// What the test comes to after its end, when all that it started has been given its time.
#[allow(clippy::disallowed_methods, reason = "processes take real time")]
fn after(status: ExitStatus, words: &[String]) -> ExitCode {
    let began = std::time::Instant::now();
    let mut left = children();
    while !left.is_empty() && began.elapsed() < GRACE {
        std::thread::sleep(POLL);
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        left = children();
    }
    if !left.is_empty() {
        eprintln!("{}: left running: {}", words.join(" "), names(&left));
        if let Err(error) = sweep() {
            eprintln!("and it could not be ended: {error}");
        }
        return ExitCode::FAILURE;
    }
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(code as u8),
        (None, Some(signal)) => ExitCode::from(128 + signal as u8),
        (None, None) => ExitCode::FAILURE,
    }
}

/// Kills all descendants: those of a killed one become children of this process, and are killed next.
fn sweep() -> io::Result<()> {
    for _ in 0..1000 {
        for (child, _) in children() {
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        match rustix::process::wait(WaitOptions::NOHANG) {
            Err(rustix::io::Errno::CHILD) => return Ok(()),
            Ok(None) => std::thread::park_timeout(POLL),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("processes start faster than they are ended"))
}

fn names(processes: &[(Pid, String)]) -> String {
    let names: Vec<&str> = processes.iter().map(|(_, name)| name.as_str()).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// The living children of this process, each with its name.
fn children() -> Vec<(Pid, String)> {
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: std::fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        // `123 (name) S parent …`, and a name may hold anything.
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (head, tail) = stat.rsplit_once(") ")?;
        let (_, name) = head.split_once('(')?;
        let mut words = tail.split(' ');
        let (state, parent) = (words.next()?, words.next()?);
        (parent.parse() == Ok(own) && state != "Z").then(|| (pid, name.to_owned()))
    };
    processes.filter_map(child).collect()
}
