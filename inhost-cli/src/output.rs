//! Standard output.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use crate::failure::Failure;

/// The first failure of [`show`] that somebody should know.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Puts a text on standard output. Behind `| head` nobody reads it any more, which is not a failure. Every other one is told when
/// the command is done ([`told`]).
pub fn show(text: &str) {
    show_octets(text.as_bytes());
}

/// The same for what need not be text; false when standard output takes no more.
pub fn show_octets(octets: &[u8]) -> bool {
    let mut out = io::stdout().lock();
    let done = out.write_all(octets).and_then(|()| out.flush());
    done.map_err(note).is_ok()
}

fn note(error: io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
        // The first one counts.
        let _ = FAILED.set(error);
    }
}

/// How wide it is; none where it is not a terminal.
pub fn columns() -> Option<u16> {
    // The size would be that of another terminal of the process then.
    let size = io::stdout().is_terminal().then(ratatui::crossterm::terminal::size)?;
    size.ok().map(|(width, _)| width)
}

/// The end of a last line that has none.
pub fn end_line(text: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        show("\n");
    }
}

/// Puts a text on standard output.
///
/// # Errors
/// When it takes no more. A reader that went away is not a failure.
pub fn print(text: &str) -> Result<(), Failure> {
    show(text);
    told()
}

/// Prints what the parser of arguments says in place of them: help, the version, or what is wrong.
pub fn of_parser(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        error.exit();
    }
    if let Err(why) = error.print().and_then(|()| io::stdout().flush()) {
        note(why);
    }
    told().map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// Whether everything was written that somebody reads.
///
/// # Errors
/// When standard output took no more, as on a full disk.
pub fn told() -> Result<(), Failure> {
    match FAILED.get() {
        Some(error) => Err(Failure::operation(format!("cannot write to standard output: {error}"))),
        None => Ok(()),
    }
}

/// So many of a thing, in words.
pub fn counted(count: impl Into<u64>, thing: &str) -> String {
    let count = count.into();
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
