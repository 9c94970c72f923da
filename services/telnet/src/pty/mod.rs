//! A shell in a pty, and the little that a session needs to know of one.

pub mod processes;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Child;
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::codec::{Function, Setting};
use inhost_runtime::{AsyncFd, Interest, Reactor};
use processes::Together;
use pty_process::blocking as raw;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit};
use rustix::pty::OpenptFlags;
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The program behind a session after login: a pty, or in a simulation something like one. Reading gives end of file
/// when the shell has ended.
pub trait Shell: AsyncRead + AsyncWrite + Unpin {
    /// The user's window has this size.
    fn resize(&self, columns: u16, rows: u16);
    /// Current terminal modes.
    fn keys(&self) -> TerminalKeys;
    /// Interrupts the process in the foreground, though its input be full or raw.
    fn interrupt(&self);
    /// Raises a signal in the foreground.
    fn signal(&self, signal: TerminalSignal) {
        if signal == TerminalSignal::Interrupt {
            self.interrupt();
        }
    }
    /// Sets special characters; 0 is none.
    fn set_characters(&self, _: &[(Function, u8)]) {}
    /// Whether lines are edited, echoed, and signals raised, at the client: the terminal then does none of it.
    fn edit_externally(&self, _: bool) {}
    /// Whether the program has input that it has not read yet, while lines are edited at the client.
    fn input_waits(&self) -> bool {
        false
    }
    /// Drops output that was not yet read.
    fn discard_output(&self);
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
    /// Erases a word.
    pub word_erase: u8,
    /// Shows the line again.
    pub reprint: u8,
    /// Takes the next character as it is.
    pub literal: u8,
    /// Restarts the output.
    pub start: u8,
    /// Stops the output.
    pub stop: u8,
    /// Whether the terminal edits lines (canonical mode).
    pub canonical: bool,
    /// Whether it echoes.
    pub echo: bool,
    /// Whether the first three raise signals, though output may not be flushed.
    pub traps: bool,
    /// Whether CR comes to the program as LF.
    pub return_is_newline: bool,
    /// Whether the terminal leaves lines to somebody else (EXTPROC).
    pub external: bool,
}

/// A signal that a terminal raises.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TerminalSignal {
    /// SIGINT.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGTSTP.
    Suspend,
}

/// The place of a special character of LINEMODE among those of a terminal, for the functions that both have.
pub(crate) fn key_mut(keys: &mut TerminalKeys, function: Function) -> Option<&mut u8> {
    Some(match function {
        Function::Interrupt => &mut keys.interrupt,
        Function::Abort => &mut keys.quit,
        Function::Suspend => &mut keys.suspend,
        Function::EndOfFile => &mut keys.end_of_file,
        Function::EraseCharacter => &mut keys.erase,
        Function::EraseLine => &mut keys.kill,
        Function::EraseWord => &mut keys.word_erase,
        Function::Reprint => &mut keys.reprint,
        Function::LiteralNext => &mut keys.literal,
        Function::Start => &mut keys.start,
        Function::Stop => &mut keys.stop,
        _ => return None,
    })
}

/// The special characters of a terminal as LINEMODE has them.
pub(crate) fn characters(mut keys: TerminalKeys) -> Vec<(Function, Setting)> {
    let of = |function| {
        let character = key_mut(&mut keys, function).map(|key| *key)?;
        let raises = matches!(function, Function::Interrupt | Function::Abort | Function::Suspend);
        let setting = Setting::new((character != 0).then_some(character));
        Some((function, Setting { flushes_input: raises, flushes_output: raises, ..setting }))
    };
    Function::ALL.into_iter().filter_map(of).collect()
}

fn special_code(function: Function) -> Option<SpecialCodeIndex> {
    Some(match function {
        Function::Interrupt => SpecialCodeIndex::VINTR,
        Function::Abort => SpecialCodeIndex::VQUIT,
        Function::Suspend => SpecialCodeIndex::VSUSP,
        Function::EndOfFile => SpecialCodeIndex::VEOF,
        Function::EraseCharacter => SpecialCodeIndex::VERASE,
        Function::EraseLine => SpecialCodeIndex::VKILL,
        Function::EraseWord => SpecialCodeIndex::VWERASE,
        Function::Reprint => SpecialCodeIndex::VREPRINT,
        Function::LiteralNext => SpecialCodeIndex::VLNEXT,
        Function::Start => SpecialCodeIndex::VSTART,
        Function::Stop => SpecialCodeIndex::VSTOP,
        _ => return None,
    })
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
            word_erase: 23,
            reprint: 18,
            literal: 22,
            start: 17,
            stop: 19,
            canonical: true,
            echo: true,
            traps: true,
            return_is_newline: true,
            external: false,
        }
    }
}

/// Program, arguments and user. The environment contains nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShellCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, after the name.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Working directory; `None` for the host's.
    pub directory: Option<PathBuf>,
    /// The user and group it runs as, if the host may change that; supplementary groups are dropped.
    pub identity: Option<(u32, u32)>,
    /// Descriptor limit, where that differs from the host's own limit.
    pub descriptor_limit: Option<u64>,
    /// The window at the start: columns and rows.
    pub window: (u16, u16),
}

/// The first descriptor that is none of the three that a program is given.
const FIRST_OWN_DESCRIPTOR: i32 = 3;

/// Sessions whose processes are not all known to be gone.
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

/// Longest wait for output in the kernel after its writer's end.
const LAST_OUTPUT_NS: i64 = 20_000_000;
/// Octets dropped at a time.
const DISCARD_BYTES: usize = 4096;

/// Opening a pty marks its descriptor close-on-exec in a second step; no other shell is started between.
static OPENING: Mutex<()> = Mutex::new(());

/// A shell on its own pty, the leader of its session. The task that reads and writes it waits by the reactor of its
/// thread. Nothing is queued here: what waits in between is what an interrupt cannot stop.
pub struct Pty {
    leader: Pid,
    /// `None` once the session has ended.
    session: Option<Session>,
}

impl Pty {
    /// Opens a pty, watched by `reactor`, and starts the command on it.
    pub fn spawn(command: &ShellCommand, reactor: &Reactor) -> io::Result<Pty> {
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
        let exit = rustix::process::pidfd_open(leader, PidfdFlags::empty())?;
        let session = Session {
            child,
            leader,
            master: AsyncFd::new(reactor, master)?,
            exit: AsyncFd::new(reactor, exit)?,
            last_output: None,
            _counted: Counted::new(),
        };
        Ok(Pty { leader, session: Some(session) })
    }
    /// The process id of the shell, which is also that of its session.
    pub fn session_id(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }
}

impl Pty {
    fn change(&self, change: impl FnOnce(&mut Termios)) {
        let Some(session) = &self.session else { return };
        if let Ok(mut attributes) = rustix::termios::tcgetattr(&session.master) {
            change(&mut attributes);
            let _ = rustix::termios::tcsetattr(&session.master, OptionalActions::Now, &attributes);
        }
    }
}

impl Shell for Pty {
    fn resize(&self, columns: u16, rows: u16) {
        if let Some(session) = &self.session {
            let _ = session.master.inner().resize(pty_process::Size::new(rows, columns));
        }
    }
    fn keys(&self) -> TerminalKeys {
        let session = self.session.as_ref();
        let attributes = session.and_then(|session| rustix::termios::tcgetattr(&session.master).ok());
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
            word_erase: codes[SpecialCodeIndex::VWERASE],
            reprint: codes[SpecialCodeIndex::VREPRINT],
            literal: codes[SpecialCodeIndex::VLNEXT],
            start: codes[SpecialCodeIndex::VSTART],
            stop: codes[SpecialCodeIndex::VSTOP],
            canonical: attributes.local_modes.contains(LocalModes::ICANON),
            echo: attributes.local_modes.contains(LocalModes::ECHO),
            traps: attributes.local_modes.contains(LocalModes::ISIG),
            return_is_newline: attributes.input_modes.contains(InputModes::ICRNL),
            external: attributes.local_modes.contains(LocalModes::EXTPROC),
        }
    }
    fn interrupt(&self) {
        if let Some(session) = &self.session {
            signal_foreground(session.master.inner(), Signal::INT);
        }
    }
    fn signal(&self, signal: TerminalSignal) {
        let signal = match signal {
            TerminalSignal::Interrupt => Signal::INT,
            TerminalSignal::Quit => Signal::QUIT,
            TerminalSignal::Suspend => Signal::TSTP,
        };
        if let Some(session) = &self.session {
            signal_foreground(session.master.inner(), signal);
        }
    }
    fn set_characters(&self, characters: &[(Function, u8)]) {
        self.change(|attributes| {
            for &(function, character) in characters {
                if let Some(code) = special_code(function) {
                    attributes.special_codes[code] = character;
                }
            }
        });
    }
    fn edit_externally(&self, on: bool) {
        self.change(|attributes| attributes.local_modes.set(LocalModes::EXTPROC, on));
    }
    fn input_waits(&self) -> bool {
        let Some(session) = &self.session else { return false };
        // The other end is opened for the question only: while it is open, the terminal has no end.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let other = rustix::pty::ioctl_tiocgptpeer(session.master.inner(), flags);
        other.and_then(rustix::io::ioctl_fionread).is_ok_and(|count| count > 0)
    }
    fn discard_output(&self) {
        if let Some(session) = &self.session {
            let mut bytes = [0; DISCARD_BYTES];
            let _ = session.master.try_io(Interest::Read, |master| {
                rustix::io::read(master, &mut bytes[..]).map_err(io::Error::from)
            });
        }
    }
    fn end(&mut self) {
        if let Some(session) = self.session.take() {
            session.end();
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.end();
    }
}

impl AsyncRead for Pty {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(session) = &mut self.session else { return Poll::Ready(Ok(())) };
        match ready!(session.poll_read(cx, buf.initialize_unfilled())) {
            0 => self.end(),
            count => buf.advance(count),
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pty {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &self.session {
            Some(session) => session.master.poll_io(Interest::Write, cx, |master| {
                rustix::io::write(master, bytes).map_err(io::Error::from)
            }),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end();
        Poll::Ready(Ok(()))
    }
}

/// A session that goes on.
struct Session {
    child: Child,
    leader: Pid,
    master: AsyncFd<raw::Pty>,
    /// Readable once the leader has ended.
    exit: AsyncFd<OwnedFd>,
    /// Readable once the leader's last output must have come; it is there after the leader has ended.
    last_output: Option<AsyncFd<OwnedFd>>,
    _counted: Counted,
}

impl Session {
    /// Reads output. 0 is the end: the terminal was closed, or the leader has ended and its last output has come, though
    /// others may hold the terminal.
    fn poll_read(&mut self, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<usize> {
        let mut is_last = false;
        loop {
            let read = self.master.poll_io(Interest::Read, cx, |master| {
                rustix::io::read(master, &mut *bytes).map_err(io::Error::from)
            });
            match read {
                Poll::Ready(Ok(count)) => {
                    self.last_output = None;
                    return Poll::Ready(count);
                }
                // A pty whose other end is closed gives EIO.
                Poll::Ready(Err(_)) => return Poll::Ready(0),
                Poll::Pending if is_last => return Poll::Ready(0),
                Poll::Pending => {}
            }
            ready!(self.exit.poll_ready(Interest::Read, cx));
            let timer = match &mut self.last_output {
                Some(timer) => timer,
                none => match last_output_timer(self.exit.reactor()) {
                    Ok(timer) => none.insert(timer),
                    Err(_) => return Poll::Ready(0),
                },
            };
            ready!(timer.poll_ready(Interest::Read, cx));
            // What came meanwhile is read first.
            is_last = true;
        }
    }
    /// Hangs up: foreground group and leader get SIGHUP, the pty is closed, and a thread kills the processes that stay.
    fn end(self) {
        let Session { mut child, leader, master, exit, last_output, _counted } = self;
        signal_foreground(master.inner(), Signal::HUP);
        for signal in [Signal::HUP, Signal::CONT] {
            let _ = rustix::process::kill_process_group(leader, signal);
        }
        drop((master, exit, last_output));
        let end = move || {
            processes::end(Together::Session(leader), &mut child);
            drop(_counted);
        };
        if std::thread::Builder::new().name("telnet-pty-end".into()).spawn(end).is_err() {
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
    }
}

/// A timer that runs out when the last output of a process that has ended must have come through the kernel.
fn last_output_timer(reactor: &Reactor) -> io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Itimerspec { it_interval: never, it_value: Timespec { tv_sec: 0, tv_nsec: LAST_OUTPUT_NS } };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    AsyncFd::new(reactor, timer)
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
