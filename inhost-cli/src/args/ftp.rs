//! Command-line arguments of `inhost ftp`.

use super::Reach;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `inhost ftp`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Ftp {
    /// One thing to do; without it, commands are typed
    #[command(subcommand)]
    pub command: Option<FtpCommand>,
    /// [user@]host[:port] or ftp:// URL; without it, start at the command level
    pub host: Option<String>,
    #[command(flatten)]
    pub options: FtpOptions,
}

/// One thing to do.
#[derive(Subcommand, Debug)]
pub enum FtpCommand {
    /// Fetch a file
    #[command(after_help = GET_EXAMPLES)]
    Get {
        /// The file, as [user@]host[:port]/path or ftp://ada@host/path
        url: String,
        /// Where to put it [default: its own name, here]
        file: Option<PathBuf>,
        #[command(flatten)]
        options: FtpOptions,
    },
    /// Send a file
    #[command(after_help = PUT_EXAMPLES)]
    Put {
        /// The file
        file: PathBuf,
        /// Where to put it: a name, or with / at its end a directory
        url: String,
        #[command(flatten)]
        options: FtpOptions,
    },
    /// Fetch, or with --reverse send, what differs of a directory and all below it
    #[command(after_help = MIRROR_EXAMPLES)]
    Mirror {
        /// The directory there
        url: String,
        /// The directory here
        folder: PathBuf,
        /// Send instead of fetching
        #[arg(long, short = 'R')]
        reverse: bool,
        /// Connections at once
        #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
        connections: u8,
        #[command(flatten)]
        options: FtpOptions,
    },
    /// Have one server send a file to another (third-party transfer)
    #[command(after_help = COPY_EXAMPLES)]
    Copy {
        /// The file, such as ftp://ada@one/path
        from: String,
        /// Where to, such as ftp://ada@other/path
        to: String,
        #[command(flatten)]
        options: FtpOptions,
    },
}

/// How it is done.
#[derive(Args, Debug, Clone, Default)]
pub struct FtpOptions {
    #[command(flatten)]
    pub reach: Reach,
    /// Log in as this user [default: that of the URL, else anonymous]
    #[arg(long, short, visible_alias = "login", short_alias = 'l', value_name = "NAME")]
    pub user: Option<String>,
    /// Account for ACCT, if the server asks for one
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
    /// Encrypt everything (AUTH TLS; ftps:// begins with TLS), or give up
    #[arg(long)]
    pub tls: bool,
    /// PEM file of the authorities that count [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Take any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Have the server connect to us for data
    #[arg(long)]
    pub active: bool,
    /// Begin anew what was broken off
    #[arg(long)]
    pub no_resume: bool,
    /// Compare sizes only, and not hashes
    #[arg(long)]
    pub no_hash: bool,
    /// Upload under the final name, where a server lets nobody rename
    #[arg(long)]
    pub in_place: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Print one JSON object of what was moved
    #[arg(long)]
    pub json: bool,
}

/// Commands that work as they stand.
pub const FTP_EXAMPLES: &str = "\
Examples:
  inhost ftp ftp.example.org
      commands at a prompt; help lists them
  inhost ftp get ftp://ftp.example.org/pub/file.tar.gz
      fetched beside its name, verified, renamed; the same again goes on where it was broken off
  inhost ftp put --tls report.pdf ada@10.9.0.2/inbox/
      a URL and user@host:port/path are the same
  inhost ftp mirror -n 8 ftp://ada@10.9.0.2/photos photos
      with eight connections; --reverse sends
  inhost ftp copy ftp://ada@10.9.0.2/big ftp://ada@10.9.0.3/big
      from one server to the other; one of them has to allow it
The password is that of the URL, of $INHOST_FTP_PASSWORD, or asked for. --timeout is for a connection
to be made; -v shows what is said on the control connection.";

/// The same for each thing to do.
const GET_EXAMPLES: &str = "\
Examples:
  inhost ftp get ftp://ftp.example.org/pub/file.tar.gz
      fetched beside its name, verified, renamed; the same again goes on where it was broken off
  inhost ftp get --tls --ca cert.pem ftp://ada@10.9.0.2/report.pdf today.pdf
  inhost ftp get --link user ftp://ada@127.0.0.1:2121/report.pdf
      by a host of its own, where none runs";
const PUT_EXAMPLES: &str = "\
Examples:
  inhost ftp put --tls report.pdf ftp://ada@10.9.0.2/inbox/
      sent beside its name, verified, renamed; the same again goes on where it was broken off
  inhost ftp put --in-place report.pdf ftp://ftp.example.org/incoming/report.pdf
      where a server lets nobody rename";
const MIRROR_EXAMPLES: &str = "\
Examples:
  inhost ftp mirror -n 8 ftp://ada@10.9.0.2/photos photos
      what differs by size or time, with eight connections
  inhost ftp mirror --reverse ftp://ada@10.9.0.2/photos photos
      the other way";
const COPY_EXAMPLES: &str = "\
Examples:
  inhost ftp copy ftp://ada@10.9.0.2/big ftp://ada@10.9.0.3/big
      data goes from server to server, in clear text; one of them has to allow that: third_party = true under [ftp]";
