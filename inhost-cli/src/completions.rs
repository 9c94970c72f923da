//! `inhost completions`: what shells complete, from the same arguments that are parsed.

use crate::args::{Arguments, Completions};
use crate::failure::Failure;
use clap::CommandFactory;
use std::io::{ErrorKind, Write};

/// Prints the completions of a shell.
pub fn run(arguments: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "inhost", &mut text);
    let mut out = std::io::stdout().lock();
    match out.write_all(&text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::operation(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
