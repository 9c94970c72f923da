//! A shell in a pty, and the little that a session needs to know of one.

mod processes;
mod pump;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use pty_process::blocking as raw;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit};
use rustix::termios::{InputModes, LocalModes, SpecialCodeIndex};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub use pump::PUMP_BYTES;
pub(crate) use pump::{Ends, Pump};

/// Where a session's data goes once the user is logged in: a pty, or in a simulation something like one.
/// Reading gives end of file when the shell has ended.
pub trait Shell: AsyncRead + AsyncWrite + Unpin {
    /// The user's window has this size.
    fn resize(&self, columns: u16, rows: u16);
    /// What keys mean at this moment.
    fn keys(&self) -> TerminalKeys;
    /// Interrupts the process in the foreground, though its input be full or raw.
    fn interrupt(&self);
    /// Drops output that was not yet read.
    fn discard_output(&self);
    /// Octets of input that the shell has not taken yet.
    fn unread_input(&self) -> usize;
    /// Hangs up. Every process of the session is gone within the grace time. Dropping does the same.
    fn end(&mut self);
}

/// The control characters of a terminal as its program has set them; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminalKeys {
    /// Interrupts the process.
    pub interrupt: u8,
    /// Ends it with a core.
    pub quit: u8,
    /// Stops it.
    pub suspend: u8,
    /// Erases a character.
    pub erase: u8,
    /// Erases the line.
    pub kill: u8,
    /// Ends the input.
    pub end_of_file: u8,
    /// Whether the first three raise signals, and flush the output as they do.
    pub signals: bool,
    /// Whether XOFF stops the output.
    pub flow_control: bool,
}

impl Default for TerminalKeys {
    fn default() -> Self {
        TerminalKeys {
            interrupt: 3,
            quit: 28,
            suspend: 26,
            erase: 127,
            kill: 21,
            end_of_file: 4,
            signals: true,
            flow_control: true,
        }
    }
}

/// What to run, and as whom. The environment is this and nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShellCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, after the name.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Where it starts; `None` is where the host was started.
    pub directory: Option<PathBuf>,
    /// The user and group it runs as, if the host may change that; supplementary groups are dropped.
    pub identity: Option<(u32, u32)>,
    /// How many descriptors it may have open, where that differs from the host's own limit.
    pub descriptor_limit: Option<u64>,
    /// The window at the start: columns and rows.
    pub window: (u16, u16),
}

/// The first descriptor that is none of the three that a program is given.
const FIRST_OWN_DESCRIPTOR: i32 = 3;

/// Sessions whose threads still run, and who waits for them.
static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// One of [`RUNNING`].
struct Counted;

impl Counted {
    fn new() -> Counted {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Counted
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_all();
    }
}

/// Waits until the processes of all sessions that were ended are gone, for `limit` at most; false when some are left. A
/// process that ends before that leaves them behind, hung up but not killed.
pub fn wait_for_sessions(limit: Duration) -> bool {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = ENDED.wait_timeout_while(running, limit, |running| *running > 0);
    *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
}

/// Opening a pty marks its descriptor close-on-exec in a second step; no other shell is started between.
static OPENING: Mutex<()> = Mutex::new(());

/// A shell on a pty of its own, the leader of its session. One side thread carries its octets, with at most
/// [`PUMP_BYTES`] each way; the same thread ends the session's processes.
pub struct Pty {
    pump: Pump,
    master: Weak<raw::Pty>,
    leader: Pid,
}

impl Pty {
    /// Opens a pty and starts the command on it.
    pub fn spawn(command: &ShellCommand) -> io::Result<Pty> {
        let (columns, rows) = command.window;
        // Ours are closed on exec as they are made; those that the host was started with may not be.
        close_fds::set_fds_cloexec_threadsafe(FIRST_OWN_DESCRIPTOR, &[]);
        let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        let (master, terminal) = raw::open().map_err(other)?;
        master.resize(pty_process::Size::new(rows, columns)).map_err(other)?;
        let mut shell = raw::Command::new(&command.program).args(&command.arguments).env_clear();
        shell = shell.envs(command.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &command.directory {
            shell = shell.current_dir(directory);
        }
        if let Some((user, group)) = command.identity {
            shell = shell.uid(user).gid(group);
        }
        let child = shell.spawn(terminal).map_err(other)?;
        let leader = Pid::from_child(&child);
        if let Some(descriptors) = command.descriptor_limit {
            let maximum = getrlimit(Resource::Nofile).maximum;
            let limit = Rlimit { current: Some(descriptors), maximum };
            rustix::process::prlimit(Some(leader), Resource::Nofile, limit)?;
        }
        let flags = rustix::fs::fcntl_getfl(&master)?;
        rustix::fs::fcntl_setfl(&master, flags | rustix::fs::OFlags::NONBLOCK)?;
        let exit = rustix::process::pidfd_open(leader, PidfdFlags::empty()).ok();
        let master = Arc::new(master);
        let weak = Arc::downgrade(&master);
        let ends = Session { master, child, leader, exit, _counted: Counted::new() };
        Ok(Pty { pump: Pump::start("telnet-pty", ends)?, master: weak, leader })
    }
    /// The process id of the shell, which is also that of its session.
    pub fn session_id(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }
}

impl Shell for Pty {
    fn resize(&self, columns: u16, rows: u16) {
        if let Some(master) = self.master.upgrade() {
            let _ = master.resize(pty_process::Size::new(rows, columns));
        }
    }
    fn keys(&self) -> TerminalKeys {
        let attributes = self.master.upgrade().and_then(|master| rustix::termios::tcgetattr(&*master).ok());
        let Some(attributes) = attributes else { return TerminalKeys::default() };
        let codes = &attributes.special_codes;
        TerminalKeys {
            interrupt: codes[SpecialCodeIndex::VINTR],
            quit: codes[SpecialCodeIndex::VQUIT],
            suspend: codes[SpecialCodeIndex::VSUSP],
            erase: codes[SpecialCodeIndex::VERASE],
            kill: codes[SpecialCodeIndex::VKILL],
            end_of_file: codes[SpecialCodeIndex::VEOF],
            signals: attributes.local_modes.contains(LocalModes::ISIG)
                && !attributes.local_modes.contains(LocalModes::NOFLSH),
            flow_control: attributes.input_modes.contains(InputModes::IXON),
        }
    }
    fn interrupt(&self) {
        if let Some(master) = self.master.upgrade() {
            signal_foreground(&master, Signal::INT);
        }
    }
    fn discard_output(&self) {
        self.pump.discard();
    }
    fn unread_input(&self) -> usize {
        self.pump.unwritten()
    }
    fn end(&mut self) {
        self.pump.stop();
    }
}

impl AsyncRead for Pty {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.pump.poll_read(cx, buf)
    }
}

impl AsyncWrite for Pty {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.pump.poll_write(cx, bytes)
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pump.poll_flush(cx)
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pump.stop();
        Poll::Ready(Ok(()))
    }
}

/// What the pump's thread owns.
struct Session {
    master: Arc<raw::Pty>,
    child: Child,
    leader: Pid,
    exit: Option<OwnedFd>,
    _counted: Counted,
}

impl Ends for Session {
    fn source(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
    fn sink(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
    fn exit(&self) -> Option<BorrowedFd<'_>> {
        self.exit.as_ref().map(AsFd::as_fd)
    }
    fn outlives_source(&self) -> bool {
        false
    }
    /// Hangs up: the foreground and the leader are told, the pty is freed, and who stays is killed.
    fn finish(mut self) {
        signal_foreground(&self.master, Signal::HUP);
        for signal in [Signal::HUP, Signal::CONT] {
            let _ = rustix::process::kill_process_group(self.leader, signal);
        }
        drop(self.master);
        processes::end_session(self.leader, &mut self.child);
    }
}

fn signal_foreground(master: &raw::Pty, signal: Signal) {
    if let Ok(group) = rustix::termios::tcgetpgrp(master) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

fn other(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "real shells need real time")]
mod tests;
