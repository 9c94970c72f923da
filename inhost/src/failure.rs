//! How a command ends when it does not end well.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// One line that says what failed, where, and what to try; and the exit status that goes with it.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// The operation failed: exit status 1.
    pub fn operation(message: impl Into<String>) -> Self {
        Failure { message: message.into(), status: 1 }
    }
    /// The command was told something it cannot act on: exit status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { message: message.into(), status: 2 }
    }
    /// Prints the line and gives the status.
    pub fn report(&self) -> ExitCode {
        print_error(&self.message);
        ExitCode::from(self.status)
    }
}

/// Prints a line on standard error. If that is closed, nobody wants to read it: the command goes on.
pub fn print_error(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "inhost: {message}");
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Failure {}
