//! Passwords that a command needs at another host.

use crate::failure::Failure;
use crate::terminal::{INTERRUPTING, Silent, kept};
use std::io;
use std::path::Path;

/// The password in the file of `--password-file`, or one that is asked for on the terminal.
pub fn password(file: Option<&Path>) -> Result<String, Failure> {
    match file {
        Some(path) => std::fs::read_to_string(path)
            .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
            .map_err(|e| Failure::operation(format!("cannot read {}: {e}", path.display()))),
        None => ask("Password: ").map_err(|e| {
            Failure::operation(format!("cannot ask for the password: {e}; give --password-file"))
        }),
    }
}

/// Asks for a password on the terminal, without echo. What was typed before the question is no answer to it.
pub fn ask(prompt: &str) -> io::Result<String> {
    kept(INTERRUPTING, || {
        // rpassword shows the prompt while the terminal still echoes.
        let _silent = Silent::new().ok();
        rpassword::prompt_password(prompt)
    })
}
