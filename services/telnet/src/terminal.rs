//! The real terminal, raw while the client has it, and restored however the client ends: on return, on a
//! panic, on SIGTERM, SIGHUP, SIGINT and SIGQUIT, and while it is suspended.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::driver::{TerminalChange, TerminalUi};
use crate::pump::{Ends, Pump};

/// Standard input and output, raw. Dropping it restores the terminal. Where standard input is not a terminal,
/// nothing is changed, and the window is 80 by 24.
pub struct Terminal {
    pump: Pump,
    changes: Arc<Mutex<Changes>>,
    signals: Handle,
}

#[derive(Default)]
struct Changes {
    resized: bool,
    waker: Option<Waker>,
}

/// Saved terminal attributes, while it is to be raw. One for the process, because a signal or a panic has to find it.
static ORIGINAL: Mutex<Option<Termios>> = Mutex::new(None);
static PANIC_HOOK: Once = Once::new();

impl Terminal {
    /// Makes the terminal raw.
    pub fn enter() -> io::Result<Terminal> {
        let mut signals = Signals::new([SIGWINCH, SIGCONT, SIGTERM, SIGHUP, SIGINT, SIGQUIT])?;
        let handle = signals.handle();
        let changes = Arc::new(Mutex::new(Changes::default()));
        let theirs = changes.clone();
        std::thread::Builder::new().name("telnet-signals".into()).spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGWINCH => resized(&theirs),
                    // A shell brought the client to the front, with the terminal as the shell likes it.
                    SIGCONT => {
                        let _ = make_raw();
                        resized(&theirs);
                    }
                    _ => {
                        give_back();
                        let _ = signal_hook::low_level::emulate_default_handler(signal);
                    }
                }
            }
        })?;
        PANIC_HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        let ends =
            Standard { input: owned(rustix::stdio::stdin())?, output: owned(rustix::stdio::stdout())? };
        let pump = Pump::start("telnet-terminal", ends)?;
        let terminal = Terminal { pump, changes, signals: handle };
        take_over()?;
        Ok(terminal)
    }
    /// Whether standard input is a terminal at all.
    pub fn is_terminal() -> bool {
        rustix::termios::isatty(rustix::stdio::stdin())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.signals.close();
        give_back();
    }
}

fn owned(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    fd.try_clone_to_owned()
}

/// Begins to have the terminal raw.
fn take_over() -> io::Result<()> {
    if Terminal::is_terminal() {
        *original() = Some(tcgetattr(rustix::stdio::stdin())?);
    }
    make_raw()
}

/// Keys one by one and unchanged, no echo, no signals, output unchanged.
fn make_raw() -> io::Result<()> {
    let Some(mut raw) = original().clone() else { return Ok(()) };
    raw.make_raw();
    tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &raw)?;
    Ok(())
}

/// Puts the terminal back as it was, for now.
fn restore() {
    if let Some(original) = original().clone() {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &original);
    }
}

/// Puts the terminal back for good: a signal later changes nothing.
fn give_back() {
    restore();
    *original() = None;
}

fn original() -> MutexGuard<'static, Option<Termios>> {
    ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn resized(changes: &Mutex<Changes>) {
    let waker = {
        let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.resized = true;
        changes.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl TerminalUi for Terminal {
    fn window(&self) -> (u16, u16) {
        let known = |size: u16, usual: u16| if size == 0 { usual } else { size };
        rustix::termios::tcgetwinsize(rustix::stdio::stdout())
            .map_or((80, 24), |size| (known(size.ws_col, 80), known(size.ws_row, 24)))
    }
    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<TerminalChange> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if core::mem::take(&mut changes.resized) {
            return Poll::Ready(TerminalChange::Resized);
        }
        changes.waker = Some(cx.waker().clone());
        Poll::Pending
    }
    /// Stops the whole process group, as the suspend key of a shell would.
    fn suspend(&mut self) -> io::Result<()> {
        restore();
        rustix::process::kill_current_process_group(Signal::TSTP)?;
        make_raw()
    }
}

impl AsyncRead for Terminal {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.pump.poll_read(cx, buf)
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.pump.poll_write(cx, bytes)
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pump.poll_flush(cx)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pump.poll_flush(cx)
    }
}

struct Standard {
    input: OwnedFd,
    output: OwnedFd,
}

impl Ends for Standard {
    fn source(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
    fn sink(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}
