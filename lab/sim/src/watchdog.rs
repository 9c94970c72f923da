//! A watchdog on processor time, for a poll that never returns.
//!
//! A task that loops without using its host cannot be ended by the thread that it holds. Another thread looks at the
//! pulse of the run; when one poll has used too much of the processor, it says whose, and ends the process.

use std::io::Write;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as RealDuration;

use inhost_base::{Duration, Instant};

/// Time between two looks.
const LOOK_EVERY: RealDuration = RealDuration::from_millis(50);

/// The task that is being polled.
#[derive(Clone, Copy, Debug)]
struct Polled {
    host: usize,
    now: Instant,
    task: &'static Location<'static>,
}

/// What the thread of a run is at, for another thread to read.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Odd within a poll.
    beats: AtomicU64,
    polled: Mutex<Option<Polled>>,
}

impl Pulse {
    pub fn poll_begins(&self, host: usize, now: Instant, task: &'static Location<'static>) {
        *self.polled.lock().unwrap_or_else(PoisonError::into_inner) = Some(Polled { host, now, task });
        self.beats.fetch_add(1, Ordering::Release);
    }
    pub fn poll_ends(&self) {
        self.beats.fetch_add(1, Ordering::Release);
    }
    fn polled(&self) -> Option<Polled> {
        *self.polled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches the thread that made it, until it is dropped.
pub(crate) struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Ends the process when a poll takes longer than `limit`. `names` are the hosts', and `again` says how to see the
    /// run once more.
    pub fn start(pulse: Arc<Pulse>, limit: Duration, names: Vec<String>, again: String) -> Watchdog {
        let (stop, stopped) = channel();
        let watched = Watched { clock: ProcessorClock::of_this_thread(), pulse, limit, names, again };
        // Without a thread to spare the run goes on unwatched.
        let thread = std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watched.look(&stopped))
            .ok();
        Watchdog { stop: Some(stop), thread }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watched {
    clock: ProcessorClock,
    pulse: Arc<Pulse>,
    limit: Duration,
    names: Vec<String>,
    again: String,
}

impl Watched {
    fn look(&self, stopped: &Receiver<()>) {
        let (mut beat, mut since, mut looks) = (0, self.clock.used(), 0);
        while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            let now = self.pulse.beats.load(Ordering::Acquire);
            if now != beat || now.is_multiple_of(2) {
                (beat, since, looks) = (now, self.clock.used(), 0);
                continue;
            }
            looks += 1;
            let used = match (since, self.clock.used()) {
                (Some(since), Some(used)) => used - since,
                _ => Duration::from_millis(LOOK_EVERY.as_millis() as u64).times(looks),
            };
            if used >= self.limit {
                self.end(used);
            }
        }
    }
    fn end(&self, used: Duration) -> ! {
        let words = match self.pulse.polled() {
            None => String::new(),
            Some(Polled { host, now, task }) => {
                let name = self.names.get(host).map_or("a host", String::as_str);
                let at = now.since(Instant::ZERO);
                format!(
                    "{name}: a task spins at {at}: one poll has taken {used} of the processor, and uses nothing of \
                     its host that could end it (spawned at {task}); Simulation::set_poll_limit allows more\n"
                )
            }
        };
        // Not what the test harness catches, for it will say nothing any more.
        let _ = std::io::stderr().write_all(format!("{words}{}\n", self.again).as_bytes());
        std::process::abort()
    }
}

/// The processor time of one thread, where the system tells of it.
struct ProcessorClock(Option<PathBuf>);

impl ProcessorClock {
    fn of_this_thread() -> ProcessorClock {
        let thread = std::fs::read_link("/proc/thread-self").ok();
        ProcessorClock(thread.map(|thread| PathBuf::from("/proc").join(thread).join("schedstat")))
    }
    fn used(&self) -> Option<Duration> {
        let text = std::fs::read_to_string(self.0.as_ref()?).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }
}
