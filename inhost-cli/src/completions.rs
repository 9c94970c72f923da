//! `inhost completions`: what shells complete, from the same arguments that are parsed.

use crate::args::{Arguments, Completions};
use crate::failure::Failure;
use crate::output::{show_octets, told};
use clap::CommandFactory;

/// Prints the completions of a shell.
pub fn run(arguments: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "inhost", &mut text);
    show_octets(&text);
    told()
}
