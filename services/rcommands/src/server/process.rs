//! A program on pipes, with all that it starts.

use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Mutex, PoisonError};

use inhost_runtime::{AsyncFd, Reactor};
use inhost_telnet::pty::processes::{self, Together};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit};

/// The first descriptor behind the three that a program is given.
const FIRST_OWN_DESCRIPTOR: i32 = 3;

/// Pipes are made and marked close-on-exec one program after another.
static STARTING: Mutex<()> = Mutex::new(());

/// A program, its arguments and its surroundings. The environment has nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Working directory; `None` for the host's.
    pub directory: Option<PathBuf>,
    /// Descriptor limit, where that differs from the host's own.
    pub descriptor_limit: Option<u64>,
}

/// A program that runs, in a process group of its own. Dropped, the group is hung up, and killed after a grace time.
pub struct Program {
    child: Option<Child>,
    group: Pid,
    /// Its standard input and output: one socket for both, since rcp writes to what it reads.
    pub(super) terminal: Option<AsyncFd<UnixStream>>,
    /// Its standard error, where that was asked for by itself.
    pub(super) error: Option<AsyncFd<File>>,
}

impl Program {
    /// Starts it. `has_error` says whether standard error is by itself, or joined with the output.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(command: &Command, has_error: bool, reactor: &Reactor) -> io::Result<Program> {
        use std::os::unix::process::CommandExt;
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        close_fds::set_fds_cloexec_threadsafe(FIRST_OWN_DESCRIPTOR, &[]);
        let (terminal, its_terminal) = UnixStream::pair()?;
        let its = || its_terminal.try_clone().map(OwnedFd::from);
        let (error, its_error) = match has_error {
            true => io::pipe().map(|(error, its)| (Some(error), OwnedFd::from(its)))?,
            false => (None, its()?),
        };
        let mut child = std::process::Command::new(&command.program);
        child.args(&command.arguments).env_clear().process_group(0);
        child.envs(command.environment.iter().map(|(name, value)| (name, value)));
        child.stdin(its()?).stdout(its()?).stderr(its_error);
        drop(its_terminal);
        if let Some(directory) = &command.directory {
            child.current_dir(directory);
        }
        let running = child.spawn()?;
        // These ends are the program's alone.
        drop(child);
        let group = Pid::from_child(&running);
        // From here on a failure drops the program, which ends what was started.
        let mut program = Program { child: Some(running), group, terminal: None, error: None };
        if let Some(descriptors) = command.descriptor_limit {
            let maximum = getrlimit(Resource::Nofile).maximum;
            let limit = Rlimit { current: Some(descriptors), maximum };
            rustix::process::prlimit(Some(group), Resource::Nofile, limit)?;
        }
        program.error = error.map(|end| AsyncFd::new(reactor, File::from(OwnedFd::from(end)))).transpose()?;
        program.terminal = Some(AsyncFd::new(reactor, terminal)?);
        Ok(program)
    }
    /// Ends its input.
    pub(super) fn end_input(&self) {
        if let Some(terminal) = &self.terminal {
            let _ = terminal.inner().shutdown(Shutdown::Write);
        }
    }
    /// Signals the group; false for what is not a signal.
    pub(super) fn signal(&self, number: u8) -> bool {
        let signal = Signal::from_named_raw(i32::from(number));
        signal.is_some_and(|signal| rustix::process::kill_process_group(self.group, signal).is_ok())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        (self.terminal, self.error) = (None, None);
        let Some(mut child) = self.child.take() else { return };
        let group = self.group;
        // At once: a host that ends does not wait for the thread.
        for signal in [Signal::HUP, Signal::CONT] {
            let _ = rustix::process::kill_process_group(group, signal);
        }
        let end = move || processes::end(Together::Group(group), &mut child);
        if std::thread::Builder::new().name("rsh-end".into()).spawn(end).is_err() {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_interop::until;

    /// Children of this process that sleep, or are dead and not reaped.
    fn sleeping_children() -> usize {
        let own = std::process::id().to_string();
        let is_child = |entry: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(&own)
                && stat.contains("(sleep)")
        };
        std::fs::read_dir("/proc").unwrap().flatten().map(is_child).filter(|&is| is).count()
    }

    /// The limit is more than the system allows, which is found out when the program runs already.
    #[test]
    fn a_program_whose_start_fails_late_is_ended() {
        let command = Command {
            program: "/bin/sleep".into(),
            arguments: vec!["600".into()],
            environment: Vec::new(),
            directory: None,
            descriptor_limit: Some(u64::MAX - 1),
        };
        assert!(Program::start(&command, true, &Reactor::new().unwrap()).is_err());
        until("the program is reaped", || (sleeping_children() == 0).then_some(()));
    }
}
