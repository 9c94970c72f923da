//! Command-line arguments of `inhost rlogin`, `inhost rsh` and `inhost rcp`.

use super::Reach;
use clap::Args;

/// Arguments of `inhost rlogin`.
#[derive(Args, Debug)]
pub struct Rlogin {
    /// [user@]host[:port] or rlogin:// URL
    pub host: String,
    /// The user there [default: the same as here]
    #[arg(long, short, visible_alias = "login", short_alias = 'l', value_name = "NAME")]
    pub user: Option<String>,
    /// Character that, at the beginning of a line, leads to commands: with . it ends, with ^Z it suspends; or none
    #[arg(long, short, value_name = "CHARACTER", default_value = "~")]
    pub escape: String,
    #[command(flatten)]
    pub common: Calling,
}

/// Arguments of `inhost rsh`.
#[derive(Args, Debug)]
pub struct Rsh {
    /// [user@]host[:port] or rsh:// URL
    pub host: String,
    /// The command, for a shell there
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// The user there [default: the same as here]
    #[arg(long, short, visible_alias = "login", short_alias = 'l', value_name = "NAME")]
    pub user: Option<String>,
    /// Give the command no input
    #[arg(long, short)]
    pub no_input: bool,
    /// Have the command's errors come with its output, where the server cannot call back
    #[arg(long)]
    pub one_channel: bool,
    #[command(flatten)]
    pub common: Calling,
}

/// Arguments of `inhost rcp`.
#[derive(Args, Debug)]
pub struct Rcp {
    /// Files, and last where to: a path here, or [user@]host:path, or an rcp:// URL; one of both sides is here
    #[arg(required = true, num_args = 2..)]
    pub paths: Vec<String>,
    /// Folders with all in them
    #[arg(long, short)]
    pub recursive: bool,
    /// Keep times and permissions
    #[arg(long, short)]
    pub preserve: bool,
    /// The user there, where no path names one [default: the same as here]
    #[arg(long, short, visible_alias = "login", short_alias = 'l', value_name = "NAME")]
    pub user: Option<String>,
    /// Print one JSON object of what was copied
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Calling,
}

/// Arguments common to the three commands.
#[derive(Args, Debug)]
pub struct Calling {
    #[command(flatten)]
    pub reach: Reach,
    /// Port [default: the service's own]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Local user name sent to the server [default: your login name]
    #[arg(long, value_name = "NAME")]
    pub local_user: Option<String>,
}

pub const RLOGIN_EXAMPLES: &str = "\
Examples:
  inhost rlogin 10.9.0.1 --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24
  inhost rlogin ada@vax.example
      --user ada is the same
Type ~. at the beginning of a line to end, ~^Z to suspend.
Everything goes in clear text. Servers want calls from a reserved port: the link user has none, others do.";

pub const RSH_EXAMPLES: &str = "\
Examples:
  inhost rsh --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24 10.9.0.1 uname -a
  inhost rsh -n ada@vax.example 'ls *.c'
      quotes keep the pattern from the shell here
Options go before the host. ^C interrupts the command there. Everything goes in clear text, and the command's exit
status is not reported.";

pub const RCP_EXAMPLES: &str = "\
Examples:
  inhost rcp --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24 ada@10.9.0.1:notes .
  inhost rcp -r -p src vax.example:backup
  inhost rcp 'ada@vax.example:*.c' folder
  inhost rcp rcp://ada@vax.example:514/notes .
A path here may have slashes, so that host:path is the short form, and a port needs a URL or --port. A file has its name only once it is whole. Names with slashes, and names that were not asked for, are refused.";
