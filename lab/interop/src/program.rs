//! Programs that a test starts.

use crate::waiting::{DEADLINE, within};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// A program of a test, with a process group of its own. It is killed with all of its group when this is dropped, and when
/// the thread that started it ends, however that ends.
pub struct Running {
    /// The process.
    pub child: Child,
    command: String,
    printed: Option<File>,
}

impl Running {
    /// Starts a program. What it prints goes where `command` says.
    #[track_caller]
    pub fn spawn(command: &mut Command) -> Running {
        let shown = format!("{command:?}");
        command.process_group(0);
        die_with_this_thread(command);
        let child = command.spawn();
        let child =
            child.unwrap_or_else(|e| panic!("{shown} is needed ({e}); lab/interop/peers installs it"));
        Running { child, command: shown, printed: None }
    }
    /// Starts a program with no input, whose output and errors are kept for [`Running::printed`].
    #[track_caller]
    pub fn start(command: &mut Command) -> Running {
        let file = nameless();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file.try_clone().unwrap());
        let mut running = Running::spawn(command);
        running.printed = Some(file);
        running
    }
    /// Starts a program with no input, whose output is kept for [`Running::printed`]; errors go where the test's go.
    #[track_caller]
    pub fn start_showing_errors(command: &mut Command) -> Running {
        let file = nameless();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap());
        let mut running = Running::spawn(command);
        running.printed = Some(file);
        running
    }
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
    /// What it has printed; for programs that were started with [`Running::start`].
    pub fn printed(&self) -> String {
        self.printed
            .as_ref()
            .map(|file| String::from_utf8_lossy(&contents(file)).into_owned())
            .unwrap_or_default()
    }
    /// Waits until it has printed `text`, and gives all that it has printed.
    ///
    /// # Panics
    /// When it ends before, or when [`DEADLINE`] is over; both with what it printed.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let found = within(DEADLINE, || {
            let ended = self.child.try_wait().unwrap();
            let printed = self.printed();
            match (printed.contains(text), ended) {
                (true, _) => Some(Ok(printed)),
                (false, Some(status)) => Some(Err(status)),
                (false, None) => None,
            }
        });
        match found {
            Some(Ok(printed)) => printed,
            Some(Err(status)) => {
                panic!("{} ended ({status}) before {text:?}: {}", self.command, self.printed())
            }
            None => panic!("{} did not print {text:?} within {DEADLINE:?}: {}", self.command, self.printed()),
        }
    }
    /// Waits for its end.
    ///
    /// # Panics
    /// When [`DEADLINE`] is over.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        self.wait_within(DEADLINE)
    }
    /// Waits for its end.
    ///
    /// # Panics
    /// When `time` is over.
    #[track_caller]
    pub fn wait_within(&mut self, time: Duration) -> ExitStatus {
        let ended = within(time, || self.child.try_wait().unwrap());
        ended.unwrap_or_else(|| panic!("{} did not end within {time:?}: {}", self.command, self.printed()))
    }
    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whether or not the process itself has ended: others of its group may not have.
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Runs a program to its end and gives what it printed. Its input is what `command` says, else the test's own.
///
/// # Panics
/// When it cannot be started, and when it has not ended after [`DEADLINE`].
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    output_within(DEADLINE, command)
}

/// Runs a program to its end and gives what it printed.
///
/// # Panics
/// When it cannot be started, and when it has not ended after `time`.
#[track_caller]
pub fn output_within(time: Duration, command: &mut Command) -> Output {
    // Files, and no pipes: what the program leaves running does not hold them open.
    let (stdout, stderr) = (nameless(), nameless());
    command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
    let mut running = Running::spawn(command);
    let Some(status) = within(time, || running.child.try_wait().unwrap()) else {
        let said = [contents(&stdout), contents(&stderr)].concat();
        panic!("{} did not end within {time:?}: {}", running.command, String::from_utf8_lossy(&said));
    };
    Output { status, stdout: contents(&stdout), stderr: contents(&stderr) }
}

/// Runs a program with no input, which must succeed, and gives what it printed.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let done = output(command.stdin(Stdio::null()));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

/// The lines that a program prints to a pipe, as they come, read on a thread of their own; [`crate::receive`] takes one.
pub fn lines(output: impl Read + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    use std::io::{BufRead, BufReader};
    let (to, from) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    from
}

/// A file that no name leads to.
fn nameless() -> File {
    rustix::fs::memfd_create("printed", MemfdFlags::CLOEXEC).expect("a file in memory").into()
}

/// All that is in a file, wherever its writers are.
fn contents(file: &File) -> Vec<u8> {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0).expect("a file in memory is read");
    bytes
}

/// Has the kernel kill the program when the thread that starts it ends, so that nothing outlives a test that is killed.
#[allow(unsafe_code)]
fn die_with_this_thread(command: &mut Command) {
    let die = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: one system call, which is safe between fork and exec.
    unsafe { command.pre_exec(die) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until;

    fn is_alive(id: u32) -> bool {
        std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn a_group_ends_with_its_test() {
        let script = "sleep 1000 & echo child $!; wait";
        let mut shell = Running::start(Command::new("sh").args(["-c", script]));
        let printed = shell.wait_for("child ");
        let child: u32 = until("a number", || shell.printed().split_whitespace().nth(1)?.parse().ok());
        assert!(is_alive(child), "{printed}");
        drop(shell);
        until("the end of the child", || (!is_alive(child)).then_some(()));
    }

    #[test]
    fn output_does_not_wait_for_who_holds_it() {
        let script = "sleep 1000 & echo done; echo wrong >&2; exit 3";
        let done = output(Command::new("sh").args(["-c", script]));
        assert_eq!(
            (done.status.code(), &done.stdout[..], &done.stderr[..]),
            (Some(3), &b"done\n"[..], &b"wrong\n"[..])
        );
    }

    #[test]
    #[should_panic(expected = "did not end within")]
    fn a_program_that_does_not_end_is_told() {
        output_within(Duration::from_millis(50), Command::new("sleep").arg("1000"));
    }

    #[test]
    fn a_program_dies_with_its_thread() {
        let thread = std::thread::spawn(|| {
            let running = Running::start(Command::new("sleep").arg("1000"));
            let id = running.id();
            std::mem::forget(running);
            id
        });
        let id = crate::join(thread);
        until("the end of the program", || (!is_alive(id)).then_some(()));
    }
}
