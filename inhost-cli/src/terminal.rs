//! A terminal whose attributes are put back before a signal ends the process.

use inhost_runtime::{HeldSignals, Signal};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::iterator::{Handle, Signals};
use std::fs::File;
use std::io;
use std::thread::JoinHandle;

/// The signals that end a process from outside. rustyline has its own handler of SIGINT while it reads.
pub const ENDING: &[Signal] = &[Signal::Terminate, Signal::Hangup];
/// Those, and what the interrupt key sends.
pub const INTERRUPTING: &[Signal] = &[Signal::Terminate, Signal::Hangup, Signal::Interrupt];

/// Does what changes the terminal's attributes for a while. One of `signals` meanwhile puts them back and ends the process.
pub fn kept<T>(signals: &[Signal], work: impl FnOnce() -> T) -> T {
    // Without a terminal there are no attributes.
    let _kept = Kept::new(signals).ok();
    work()
}

/// While it lives the terminal does not echo. What had been typed and not read is gone.
pub struct Silent {
    terminal: File,
    before: Termios,
}

impl Silent {
    pub fn new() -> io::Result<Silent> {
        let terminal = File::open("/dev/tty")?;
        let before = tcgetattr(&terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
        Ok(Silent { terminal, before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

struct Kept {
    _held: HeldSignals,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Kept {
    fn new(signals: &[Signal]) -> io::Result<Kept> {
        let terminal = File::open("/dev/tty")?;
        let before = tcgetattr(&terminal)?;
        let held = HeldSignals::new(signals)?;
        let mut arrivals = Signals::new(signals.iter().map(|signal| signal.number()))?;
        let handle = arrivals.handle();
        let thread = std::thread::Builder::new().name("terminal-signals".into()).spawn(move || {
            for signal in arrivals.forever() {
                let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        })?;
        Ok(Kept { _held: held, handle, thread: Some(thread) })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.handle.close();
        // It ends once what came before is dealt with.
        self.thread.take().map(JoinHandle::join);
    }
}
