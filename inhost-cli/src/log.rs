//! The log of a running host: `tracing` events as lines of standard error.
//!
//! Its own thread writes them, from a queue with a limit. So a terminal that has stopped, or a pipe that nobody reads,
//! holds nothing up: lines that find the queue full are lost, and the next line that can be written says how many.

use crate::config::Log;
use crate::failure::Failure;
use crate::registry::SERVICES;
use inhost_dashboard::{Level, Log as Kept};
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Lines that may wait to be written.
const LINES: usize = 4096;

/// Starts the log. What waits is written when the guard is dropped, for a second at most. The latest lines are kept in
/// `kept`.
pub fn start(log: &Log, is_quiet: bool, kept: &Kept) -> Result<WorkerGuard, Failure> {
    let targets = targets(log, is_quiet)?;
    let lost = Arc::new(OnceLock::new());
    let output = SaysLosses { output: io::stderr(), lost: lost.clone(), said: 0, is_json: log.json };
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).thread_name("log");
    let (writer, guard) = builder.finish(output);
    lost.get_or_init(|| writer.error_counter());
    let layer = fmt::layer().with_writer(writer).with_ansi(false);
    let layer = if log.json { layer.json().flatten_event(true).boxed() } else { layer.boxed() };
    let kept = kept.clone();
    tracing_subscriber::registry()
        .with(layer.and_then(Keeps(kept)).with_filter(targets))
        .try_init()
        .map_err(|e| Failure::operation(format!("the log cannot start: {e}")))?;
    Ok(guard)
}

/// Keeps lines for the dashboard.
struct Keeps(Kept);

impl<S: Subscriber> Layer<S> for Keeps {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let level = match *metadata.level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        };
        let mut words = Words::default();
        event.record(&mut words);
        self.0.add(unix_ms(), level, metadata.target(), words.message + &words.fields);
    }
}

// The time of day of a line.
#[allow(clippy::disallowed_methods)]
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The message of an event, and its fields behind it.
#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &value);
    }
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        use std::fmt::Write;
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// The parts of a host that log, the targets of its events: those that are not services.
const PARTS: &[&str] = &["host", "link", "gateway", "dhcp", "record", "packet", "history"];

/// The parts of a host that log.
fn parts() -> impl Iterator<Item = &'static str> {
    PARTS.iter().copied().chain(SERVICES.iter().map(|kind| kind.name))
}

/// Log filter: a level, and other levels for parts, as in `info,telnet=debug`.
pub fn targets(log: &Log, is_quiet: bool) -> Result<Targets, Failure> {
    let level = log.level.as_deref().unwrap_or(if is_quiet { "warn" } else { "info" });
    let parsed = level.split(',').try_fold(Targets::new(), |targets, word| match word.split_once('=') {
        None => Some(targets.with_default(word.parse::<LevelFilter>().ok()?)),
        Some((part, level)) if parts().any(|known| known == part) => {
            Some(targets.with_target(part, level.parse::<LevelFilter>().ok()?))
        }
        Some(_) => None,
    });
    parsed.ok_or_else(|| {
        let expected = format!(
            "give off, error, warn, info, debug or trace, and levels of parts behind it, such as \
             info,telnet=debug; the parts are {}",
            parts().collect::<Vec<_>>().join(", ")
        );
        Failure::setting("log.level", level, expected)
    })
}

/// Writes lines, and before the first that follows a loss, how many were lost.
struct SaysLosses<W> {
    output: W,
    lost: Arc<OnceLock<ErrorCounter>>,
    said: usize,
    is_json: bool,
}

impl<W: Write> Write for SaysLosses<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lost = self.lost.get().map_or(0, ErrorCounter::dropped_lines);
        if lost > self.said {
            let count = lost - self.said;
            self.said = lost;
            let said = if self.is_json {
                format!(
                    "{{\"level\":\"WARN\",\"target\":\"log\",\"message\":\"lines were lost\",\"lines\":{count}}}\n"
                )
            } else {
                format!("WARN log: {count} lines were lost: they came faster than they could be written\n")
            };
            self.output.write_all(said.as_bytes())?;
        }
        self.output.write_all(line)?;
        Ok(line.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};

    /// A writer that blocks until released, and keeps its input.
    struct Blocked {
        go_on: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // The sender's end is dropped: nothing blocks from then on.
            let _ = self.go_on.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_output_holds_nobody_up_and_the_lines_lost_are_counted() {
        let (hold, go_on) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let lost = Arc::new(OnceLock::new());
        let output = Blocked { go_on, written: written.clone() };
        let output = SaysLosses { output, lost: lost.clone(), said: 0, is_json: false };
        let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(8);
        let (mut writer, guard) = builder.finish(output);
        lost.get_or_init(|| writer.error_counter());
        for line in 0..100 {
            // One call is one line for the queue.
            writer.write_all(format!("line {line}\n").as_bytes()).unwrap();
        }
        let missing = writer.error_counter().dropped_lines();
        assert!(missing >= 90, "{missing} of 100 lines were lost, with room for 8");
        drop(hold);
        drop(guard);
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        // Some may be counted before the others are lost.
        let count =
            |line: &str| line.split_once(" lines were lost")?.0.rsplit(' ').next()?.parse::<usize>().ok();
        let counts = text.lines().filter_map(count);
        assert_eq!(counts.sum::<usize>(), missing, "{text}");
        assert_eq!(text.lines().filter(|l| l.starts_with("line ")).count(), 100 - missing, "{text}");
    }

    #[test]
    fn levels_are_words_and_others_are_refused() {
        let log = |level: &str| Log { level: Some(level.into()), json: false };
        assert!(targets(&log("info,telnet=debug"), false).is_ok());
        for wrong in ["loud", "info,telnet", "info,telent=debug", "telnet=loud"] {
            let said = targets(&log(wrong), false).unwrap_err().to_string();
            assert!(said.contains("debug") && said.contains(wrong) && said.contains("gateway"), "{said}");
        }
    }
}
