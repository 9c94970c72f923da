//! Standard output.

use std::io::{self, Write};
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
