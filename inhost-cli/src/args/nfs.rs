//! Command-line arguments of `inhost nfs`.

use super::Reach;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `inhost nfs`.
#[derive(Args, Debug)]
pub struct Nfs {
    /// What to do
    #[command(subcommand)]
    pub command: NfsCommand,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum NfsCommand {
    /// List a directory
    #[command(visible_alias = "list", after_help = LS_EXAMPLES)]
    Ls {
        /// The directory or file, as HOST:/PATH, host[:port]/path or nfs://host/path
        #[arg(value_name = "HOST:/PATH")]
        remote: String,
        /// Show type, permissions, owner, size and time
        #[arg(long, short)]
        long: bool,
        #[command(flatten)]
        options: NfsOptions,
    },
    /// Fetch a file, or a directory with all in it
    #[command(after_help = GET_EXAMPLES)]
    Get {
        /// What to fetch
        #[arg(value_name = "HOST:/PATH")]
        remote: String,
        /// Where to put it: a name, or a folder [default: its own name, here]
        #[arg(value_name = "PATH")]
        file: Option<PathBuf>,
        /// Fetch directories with all in them
        #[arg(long, short)]
        recursive: bool,
        #[command(flatten)]
        options: NfsOptions,
    },
    /// Send a file, or a folder with all in it
    #[command(after_help = PUT_EXAMPLES)]
    Put {
        /// What to send
        #[arg(value_name = "PATH")]
        file: PathBuf,
        /// Where to put it; with / at its end, under its own name there
        #[arg(value_name = "HOST:/PATH")]
        remote: String,
        /// Send folders with all in them
        #[arg(long, short)]
        recursive: bool,
        #[command(flatten)]
        options: NfsOptions,
    },
    /// Make a directory
    #[command(after_help = MKDIR_EXAMPLES)]
    Mkdir {
        /// Its name
        #[arg(value_name = "HOST:/PATH")]
        remote: String,
        #[command(flatten)]
        options: NfsOptions,
    },
    /// Remove a file or an empty directory
    #[command(after_help = RM_EXAMPLES)]
    Rm {
        /// What to remove
        #[arg(value_name = "HOST:/PATH")]
        remote: String,
        #[command(flatten)]
        options: NfsOptions,
    },
    /// Give a file or directory another name on the same export
    #[command(after_help = MV_EXAMPLES)]
    Mv {
        /// What to rename
        #[arg(value_name = "HOST:/PATH")]
        remote: String,
        /// Its new name within the export: a name beside the old one, a path, or HOST:/PATH of the same server
        #[arg(value_name = "PATH")]
        to: String,
        #[command(flatten)]
        options: NfsOptions,
    },
    /// Show what a server exports, and to whom
    #[command(after_help = EXPORTS_EXAMPLES)]
    Exports {
        /// The server
        #[arg(value_name = "HOST")]
        remote: String,
        #[command(flatten)]
        options: NfsOptions,
    },
}

/// How it is done.
#[derive(Args, Debug, Clone, Default)]
pub struct NfsOptions {
    #[command(flatten)]
    pub reach: Reach,
    /// Port of NFS and MOUNT at the server [default: 2049, or what its portmapper says]
    #[arg(long, short, value_name = "PORT")]
    pub port: Option<u16>,
    /// The export that is mounted [default: the longest of the server's that the path begins with]
    #[arg(long, short = 'e', value_name = "PATH")]
    pub export: Option<String>,
    /// The user and group to be there, as numbers [default: your own]
    #[arg(long, value_name = "UID:GID", value_parser = ids)]
    pub user: Option<(u32, u32)>,
    /// Call from a port below 1024, which some servers want [not through the link user: there the system chooses]
    #[arg(long)]
    pub reserved_port: bool,
    /// Show no progress, and say nothing of what went well
    #[arg(long, short)]
    pub quiet: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn ids(text: &str) -> Result<(u32, u32), String> {
    let found =
        text.split_once(':').and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
    found.ok_or_else(|| "give two numbers with a colon, such as 1000:1000".into())
}

/// Commands that work as they stand.
pub const NFS_EXAMPLES: &str = "\
Examples:
  inhost nfs exports 10.9.0.2
  inhost nfs ls -l 10.9.0.2:/files
  inhost nfs get 10.9.0.2:/files/disk.img
      fetched beside its name, renamed when it is whole
  inhost nfs put -r pictures 10.9.0.2:/files/
  inhost nfs get --port 12049 --link user 127.0.0.1:/files/hello.txt
NFS version 3 by TCP. --timeout is how long the server may take to answer, 120 s by default. AUTH_SYS proves nothing: use it
on networks that you trust.";

/// The same for each thing to do.
const LS_EXAMPLES: &str = "\
Examples:
  inhost nfs ls -l 10.9.0.2:/files/src
  inhost nfs ls --json nfs://10.9.0.2/files";
const GET_EXAMPLES: &str = "\
Examples:
  inhost nfs get 10.9.0.2:/files/disk.img /tmp/
  inhost nfs get -r 10.9.0.2:/files/src";
const PUT_EXAMPLES: &str = "\
Examples:
  inhost nfs put notes.txt 10.9.0.2:/files/
  inhost nfs put -r src 10.9.0.2:/files/copy-of-src";
const EXPORTS_EXAMPLES: &str = "\
Examples:
  inhost nfs exports 10.9.0.2
  inhost nfs exports --json '[fd09::2]'";
const MKDIR_EXAMPLES: &str = "\
Examples:
  inhost nfs mkdir 10.9.0.2:/files/new";
const RM_EXAMPLES: &str = "\
Examples:
  inhost nfs rm 10.9.0.2:/files/old.txt";
const MV_EXAMPLES: &str = "\
Examples:
  inhost nfs mv 10.9.0.2:/files/old.txt new.txt
  inhost nfs mv 10.9.0.2:/files/old.txt 10.9.0.2:/files/archive/old.txt";
