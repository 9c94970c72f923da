//! Command-line arguments of `inhost job`.

use super::Reach;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What `inhost job` does.
#[derive(Subcommand, Debug)]
pub enum Job {
    /// Submit a script, which runs when there is room
    #[command(after_help = SUBMIT_EXAMPLES)]
    Submit(Box<JobSubmit>),
    /// List jobs, the latest first
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// Only those of this state
        #[arg(long, value_name = "STATE")]
        state: Option<Stands>,
        /// How many
        #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        #[command(flatten)]
        at: JobQueue,
    },
    /// Show all of a job, or the elements of an array
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// Its number, or that of an array
        #[arg(value_name = "JOB")]
        id: i64,
        #[command(flatten)]
        at: JobQueue,
    },
    /// Print what a job, or each element of an array, has written
    #[command(after_help = LOG_EXAMPLES)]
    Log {
        /// Its number, or that of an array
        #[arg(value_name = "JOB")]
        id: i64,
        /// Its standard error instead of its standard output
        #[arg(long, short)]
        error: bool,
        /// Go on until the job is over
        #[arg(long, short)]
        follow: bool,
        #[command(flatten)]
        at: JobQueue,
    },
    /// Keep a job, or all elements of an array, from starting
    #[command(after_help = HOLD_EXAMPLES)]
    Hold(JobNamed),
    /// Let a held job start
    #[command(after_help = RELEASE_EXAMPLES)]
    Release(JobNamed),
    /// End a job, or take it out of the queue
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(JobNamed),
}

/// A job.
#[derive(Args, Debug)]
pub struct JobNamed {
    /// Its number, or that of an array
    #[arg(value_name = "JOB")]
    pub id: i64,
    #[command(flatten)]
    pub at: JobQueue,
}

/// Which queue is meant.
#[derive(Args, Debug, Clone, Default)]
pub struct JobQueue {
    /// The queue of this host, as user@host[:port]; http://user@host is asked without TLS [default: the queue here]
    #[arg(long, value_name = "USER@HOST")]
    pub server: Option<String>,
    /// The user's password there, in a file [default: it is asked for]
    #[arg(long, value_name = "FILE", requires = "server")]
    pub password_file: Option<PathBuf>,
    /// Certificates in PEM that are trusted, instead of the system's
    #[arg(long, value_name = "FILE", requires = "server")]
    pub ca: Option<PathBuf>,
    /// Encrypt, and trust any certificate
    #[arg(long, requires = "server", conflicts_with = "ca")]
    pub insecure: bool,
    /// Folder of the queue here [default: that of [jobs] in host.toml, or the user's own]
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    pub queue: Option<PathBuf>,
    /// Configuration file [default: host.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: Reach,
}

/// Arguments of `inhost job submit`.
#[derive(Args, Debug)]
pub struct JobSubmit {
    /// The script; - is standard input. Without a #! line it is one of /bin/sh
    #[arg(value_name = "SCRIPT")]
    pub script: PathBuf,
    /// The job's name [default: the script's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Run it at this place of [jobs.places] in host.toml: another host, or a cluster with Slurm
    #[arg(long, value_name = "PLACE")]
    pub to: Option<String>,
    /// Run it once for each of these indices, %AT_A_TIME of them at a time
    #[arg(long, value_name = "FIRST-LAST[%COUNT]", value_parser = array)]
    pub array: Option<(u32, u32, Option<u32>)>,
    /// Wait for another job: until it is done (afterok), over (afterany) or has failed (afternotok)
    #[arg(long, value_name = "HOW:JOB", value_parser = after)]
    pub after: Vec<(String, i64)>,
    /// Do not start before so long from now
    #[arg(long = "in", value_name = "TIME", value_parser = seconds)]
    pub delay_s: Option<u64>,
    /// Start before those of a lower one
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_hyphen_values = true)]
    pub priority: i32,
    /// Try it again so often when it has failed or was lost
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub retries: u32,
    /// How long the first retry waits; each that follows waits twice as long
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub retry_delay: Option<u64>,
    /// Submit it held
    #[arg(long)]
    pub hold: bool,
    /// Add a variable to its environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// End it when it has run so long
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub wall: Option<u64>,
    /// Processor time of one process
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub cpu: Option<u64>,
    /// Memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Size of a file that it writes
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub file_size: Option<u64>,
    /// Open files of one process
    #[arg(long, value_name = "COUNT")]
    pub open_files: Option<u64>,
    /// Processes
    #[arg(long, value_name = "COUNT")]
    pub processes: Option<u64>,
    /// How much of its output is kept
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub output: Option<u64>,
    /// Where its output goes at its end: a new file, as an absolute path (%j is the job's number, %a its index, one of
    /// which an array needs), an ftp:// URL or an address of mail
    #[arg(long, value_name = "WHERE")]
    pub deliver: Vec<String>,
    /// Let --deliver replace a file that is there
    #[arg(long, requires = "deliver")]
    pub replace: bool,
    /// Submitted twice with the same key, it is one job
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Print its output and errors as they come, wait for its end, and fail if it failed
    #[arg(long, short)]
    pub follow: bool,
    #[command(flatten)]
    pub at: JobQueue,
}

/// How a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Stands {
    /// Held until it is released
    Held,
    /// Waits for other jobs
    Waiting,
    /// Waits for its time or for room
    Queued,
    /// Runs
    Running,
    /// Ended with status 0
    Done,
    /// Ended otherwise
    Failed,
    /// Was cancelled
    Cancelled,
    /// Nobody knows how it ended
    Lost,
}

fn array(text: &str) -> Result<(u32, u32, Option<u32>), String> {
    let parse = || {
        let (range, at_a_time) = match text.split_once('%') {
            Some((range, count)) => (range, Some(count.parse().ok()?)),
            None => (text, None),
        };
        let (first, last) = range.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?, at_a_time))
    };
    parse().ok_or_else(|| "give FIRST-LAST, such as 1-10, or 1-10%2 for two at a time".to_owned())
}

fn after(text: &str) -> Result<(String, i64), String> {
    let found = text.split_once(':').and_then(|(how, job)| Some((how.to_owned(), job.parse().ok()?)));
    let known = |(how, _): &(String, i64)| ["afterok", "afterany", "afternotok"].contains(&&**how);
    found.filter(known).ok_or_else(|| "give afterok:JOB, afterany:JOB or afternotok:JOB".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let found = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    found.ok_or_else(|| "give NAME=VALUE".to_owned())
}

/// A number with one of these units; the unit of none is 1.
pub(super) fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn seconds(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("s", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86_400)];
    with_unit(text, &units).ok_or_else(|| "give seconds, or 90s, 15m, 2h, 1d".to_owned())
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
    with_unit(text, &units).ok_or_else(|| "give bytes, or 64K, 200M, 1G".to_owned())
}

/// Commands that work as they stand.
pub const JOB_EXAMPLES: &str = "\
Examples:
  inhost job submit --name tides --wall 10m tides.sh
  inhost job list
  inhost job log --follow 1
  inhost job submit --server ada@10.9.0.2 --follow tides.sh
      run there, its output here
Jobs run on a host whose host.toml has [jobs] with enabled = true; docs/jobs.md tells of both.";
const SUBMIT_EXAMPLES: &str = "\
Examples:
  inhost job submit --follow tides.sh
  inhost job submit --array 1-100%4 --memory 200M --retries 2 part.sh
      $INHOST_ARRAY_INDEX tells the script which one it is
  inhost job submit --after afterok:1 --deliver ada@example.org sum.sh
  inhost job submit --server ada@10.9.0.2 --password-file secret tides.sh
Output is delivered to a file that is there only with --replace. With --json --follow, the job's output is on standard error.
--timeout is how long the connection to another host and each answer may take, 30 s by default.";
const LIST_EXAMPLES: &str = "\
Examples:
  inhost job list --state running
  inhost job list --server ada@10.9.0.2 --json";
const SHOW_EXAMPLES: &str = "\
Examples:
  inhost job show 1
  inhost job show --json 1";
const LOG_EXAMPLES: &str = "\
Examples:
  inhost job log 1
  inhost job log --error --follow 1";
const HOLD_EXAMPLES: &str = "\
Examples:
  inhost job hold 1";
const RELEASE_EXAMPLES: &str = "\
Examples:
  inhost job release 1";
const CANCEL_EXAMPLES: &str = "\
Examples:
  inhost job cancel 1
  inhost job cancel --server ada@10.9.0.2 7";
