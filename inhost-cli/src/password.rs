//! Passwords that a command needs at another host.

use crate::failure::Failure;
use std::path::Path;

/// The password in the file of `--password-file`, or one that is asked for on the terminal.
pub fn password(file: Option<&Path>) -> Result<String, Failure> {
    match file {
        Some(path) => std::fs::read_to_string(path)
            .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
            .map_err(|e| Failure::operation(format!("cannot read {}: {e}", path.display()))),
        None => rpassword::prompt_password("Password: ").map_err(|e| {
            Failure::operation(format!("cannot ask for the password: {e}; give --password-file"))
        }),
    }
}
