//! Command-line arguments of `inhost tftp`.

use super::Reach;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `inhost tftp`.
#[derive(Args, Debug)]
pub struct Tftp {
    /// What to do
    #[command(subcommand)]
    pub command: TftpCommand,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum TftpCommand {
    /// Fetch a file
    #[command(after_help = GET_EXAMPLES)]
    Get {
        /// The file, as host[:port]/file, HOST:FILE or tftp://host/file; an IPv6 address stands in brackets
        #[arg(value_name = "HOST/FILE")]
        remote: String,
        /// Where to put it: a name, or a folder [default: its own name, here]
        #[arg(value_name = "PATH")]
        file: Option<PathBuf>,
        #[command(flatten)]
        options: TftpOptions,
    },
    /// Send a file
    #[command(after_help = PUT_EXAMPLES)]
    Put {
        /// The file
        #[arg(value_name = "PATH")]
        file: PathBuf,
        /// Where to put it, as host[:port]/file; without a name, or with / at its end, under its own
        #[arg(value_name = "HOST/FILE")]
        remote: String,
        #[command(flatten)]
        options: TftpOptions,
    },
}

/// How it is done.
#[derive(Args, Debug, Clone, Default)]
pub struct TftpOptions {
    #[command(flatten)]
    pub reach: Reach,
    /// Port of the server [default: 69]
    #[arg(long, short, value_name = "PORT")]
    pub port: Option<u16>,
    /// Send the octets as they are, or as text with the line ends of the network
    #[arg(long, value_name = "MODE", value_parser = ["octet", "netascii"], default_value = "octet")]
    pub mode: String,
    /// Octets of a block to ask for; with 512 nothing is asked (RFC 2348)
    #[arg(long, value_name = "BYTES", default_value_t = 1428, value_parser = clap::value_parser!(u16).range(8..=65_464))]
    pub block_size: u16,
    /// Blocks before each acknowledgment to ask for; with 1 nothing is asked (RFC 7440)
    #[arg(long, value_name = "BLOCKS", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=16_384))]
    pub window: u16,
    /// Have both ends send again after so many seconds, instead of what the round trips say (RFC 2349)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u8).range(1..))]
    pub resend_after: Option<u8>,
    /// What follows block 65535 [default: 0 in what is sent, either in what comes]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub rollover: Option<u8>,
    /// Ask for no options at all, for servers that stumble over them
    #[arg(long, conflicts_with_all = ["resend_after", "rollover"])]
    pub no_options: bool,
    /// Show no progress and say nothing
    #[arg(long, short)]
    pub quiet: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Commands that work as they stand.
pub const TFTP_EXAMPLES: &str = "\
Examples:
  inhost tftp get 10.9.0.2/boot.img
      fetched beside its name, renamed when it is whole; 10.9.0.2:boot.img is the same
  inhost tftp get --window 64 --block-size 1468 tftp://10.9.0.2:6969/images/disk.img disk.img
  inhost tftp put startup.cfg 10.9.0.2:
  inhost tftp put --mode netascii notes.txt '[fd09::2]:notes.txt'
  inhost tftp get --port 2069 --link user 127.0.0.1:hello.txt
      from a private host to this machine, also while a host runs
--timeout is how long the other end may say nothing, 30 s by default. TFTP knows neither users nor encryption: use it on
lines you trust.";

/// The same for each thing to do.
const GET_EXAMPLES: &str = "\
Examples:
  inhost tftp get 10.9.0.2:boot.img
      fetched beside its name, renamed when it is whole
  inhost tftp get --window 64 --block-size 1468 tftp://10.9.0.2/images/disk.img disk.img";
const PUT_EXAMPLES: &str = "\
Examples:
  inhost tftp put startup.cfg 10.9.0.2:
      under its own name, where the server lets files be written
  inhost tftp put --mode netascii notes.txt '[fd09::2]:notes.txt'";
