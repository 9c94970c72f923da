//! Errors and exit codes of commands.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use inhost_common::Cleaner;
use inhost_common::service::Problem;

use crate::config::line_of;

/// One line that says what failed, where, and what to try; and the exit status that goes with it.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
    /// The configuration's key that has a wrong value, and the value.
    setting: Option<(String, String)>,
}

impl Failure {
    /// The operation failed: exit status 1.
    pub fn operation(message: impl Into<String>) -> Self {
        Failure { message: message.into(), status: 1, setting: None }
    }
    /// Usage error: exit status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { message: message.into(), status: 2, setting: None }
    }
    /// The configuration's `key` has a `value` that cannot be acted on; `expected` says what to give instead.
    pub fn setting(key: &str, value: impl fmt::Display, expected: impl fmt::Display) -> Self {
        let value = value.to_string();
        let message = format!("{key} = {value:?}: {expected}");
        Failure { message, status: 2, setting: Some((key.to_owned(), value)) }
    }
    /// The same failure, with the line of `text`, the contents of the configuration file `path`, in which the wrong value
    /// stands.
    pub fn at(self, path: &Path, text: &str) -> Self {
        let path = path.display();
        // What is not a wrong value often begins with its key.
        let first = || (self.message.split([' ', ':']).next().unwrap_or_default().to_owned(), String::new());
        let (key, value) = self.setting.clone().unwrap_or_else(first);
        match line_of(text, &key, &value) {
            Some(line) => Failure { message: format!("{path}, line {line}: {}", self.message), ..self },
            None => Failure { message: format!("{path}: {}", self.message), ..self },
        }
    }
    /// The line.
    pub fn text(&self) -> String {
        self.message.clone()
    }
    /// Prints the line and gives the status.
    pub fn report(&self) -> ExitCode {
        print_error(&self.message);
        ExitCode::from(self.status)
    }
}

/// Prints a line on standard error. If that is closed, nobody wants to read it: the command goes on.
pub fn print_error(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "inhost: {}", shown(&message.to_string()));
}

/// A message cleaned for a terminal: parts of it may be untrusted. What says where in a file an error is has several
/// lines.
fn shown(message: &str) -> String {
    let (mut text, mut cleaner) = (String::new(), Cleaner::default());
    cleaner.take(message.as_bytes(), &mut text);
    cleaner.end(&mut text);
    text
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        match problem {
            Problem::Setting { key, value, expected } => Failure::setting(&key, value, expected),
            Problem::Usage(message) => Failure::usage(message),
            other => Failure::operation(other.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_in_no_message() {
        assert_eq!(
            shown("far: \x1b[2J\x07gone \u{202e}x\nline 2"),
            "far: \u{fffd}[2J\u{fffd}gone \u{fffd}x\nline 2"
        );
    }
}
