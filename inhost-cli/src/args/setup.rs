//! Command-line arguments of `inhost config`, `doctor`, `man` and `completions`.

use clap::{Args, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// Commands of `inhost config`.
#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Say whether a configuration file is right, and if not, what is wrong in which line
    Check(Check),
    /// Print the JSON Schema of host.toml
    Schema,
}

/// Arguments of `inhost config check`.
#[derive(Args, Debug)]
pub struct Check {
    /// Configuration file [default: host.toml in the current folder]
    pub file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inhost doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Seconds to wait for each thing that answers over the network
    #[arg(long, short = 'W', value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=60))]
    pub timeout: u16,
}

/// Arguments of `inhost man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Folder for the pages; it is made if it is missing
    pub folder: PathBuf,
}

/// Arguments of `inhost completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

pub const CONFIG_EXAMPLES: &str = "\
Examples:
  inhost config check
      host.toml in the current folder
  inhost config check /etc/inhost/host.toml
      also before a reload: systemctl reload inhost
  inhost config schema
      for editors; the first line of a file can name it: #:schema ./host.schema.json
Exit status: 0 when the file is right, 1 when something that it names cannot be opened, 2 when it is wrong.";

pub const DOCTOR_EXAMPLES: &str = "\
Examples:
  inhost doctor
  inhost doctor --json --timeout 2
Each line is `ok`, `limited` (something is missing that only some uses need) or `fails`, with what to do about it.
Exit status: 0 when nothing fails, 1 when something does.";

pub const MAN_EXAMPLES: &str = "\
Examples:
  inhost man ~/.local/share/man/man1
      then: man inhost-serve
Packages install these pages.";

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  inhost completions bash
      into ~/.local/share/bash-completion/completions/inhost
  inhost completions zsh
      into a file _inhost in a folder of $fpath
  inhost completions fish
      into ~/.config/fish/completions/inhost.fish
Packages install these files.";
