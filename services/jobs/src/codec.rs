//! Jobs as values and as JSON: what a user submits, and what the queue says of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::machine::{Need, State};

/// Octets of a script.
pub const SCRIPT_BYTES: usize = 128 << 10;
/// Characters of a job's name.
pub const NAME_CHARS: usize = 64;
/// Variables that a user adds to a job's environment.
pub const VARIABLES: usize = 64;
/// Octets of such a variable.
pub const VARIABLE_BYTES: usize = 4096;
/// Elements of an array.
pub const ELEMENTS: u32 = 1000;
/// Jobs that a job may wait for.
pub const DEPENDENCIES: usize = 32;
/// Deliveries of a job.
pub const DELIVERIES: usize = 4;
/// Retries of a job.
pub const RETRIES: u32 = 100;
/// Octets of the key that makes a submission the same one.
pub const KEY_BYTES: usize = 128;
/// Octets of a target's name, a path, a URL or an address.
const WORD_BYTES: usize = 1024;

/// A job as a user submits it. In JSON every key but `script` may be left out.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Submission {
    /// Its name. Default "job".
    pub name: String,
    /// The script. Without a `#!` line it is one of `/bin/sh`.
    pub script: String,
    /// Where it runs: a place that the queue knows. Default: this host.
    pub to: Option<String>,
    /// More of the environment, by name.
    pub environment: BTreeMap<String, String>,
    /// A higher one runs first. Default 0.
    pub priority: i32,
    /// Elements that each run the script.
    pub array: Option<Array>,
    /// Jobs that it waits for.
    pub after: Vec<After>,
    /// It does not run before this time, in seconds since 1970.
    pub not_before_s: u64,
    /// It does not run before so many seconds after its submission.
    pub delay_s: u64,
    /// How often it is tried again after it failed or was lost. Default 0.
    pub retries: u32,
    /// How long the first retry waits; the others wait twice as long each. Default 10 s.
    pub retry_delay_s: Option<u64>,
    /// Whether it is held from the beginning.
    pub is_held: bool,
    /// What it may use.
    pub limits: Limits,
    /// What becomes of its output.
    pub deliver: Vec<Deliver>,
    /// Whether a [`Deliver::File`] takes the place of a file that is there. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// Where output goes when a job is over.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Deliver {
    /// Standard output to a file of the host where the job was submitted, by its absolute path; `%j` is the job's
    /// number, `%a` its index.
    File(PathBuf),
    /// Standard output by FTP, to a URL.
    Ftp(String),
    /// The end of the job with its output by mail, to an address.
    Mail(String),
}

impl Deliver {
    /// Refuses what no host can do.
    ///
    /// # Errors
    /// The path is not absolute, or a text could be taken for something else by a command.
    pub fn check(&self) -> Result<(), Invalid> {
        let is_right = match self {
            Deliver::File(path) => path.is_absolute() && path.to_str().is_some_and(is_argument),
            Deliver::Ftp(url) => {
                is_argument(url) && (url.starts_with("ftp://") || url.starts_with("ftps://"))
            }
            Deliver::Mail(address) => is_argument(address) && address.contains('@'),
        };
        let expected = "deliver: an absolute path, an ftp:// URL, or an address with '@'";
        if is_right { Ok(()) } else { Err(Invalid(expected.to_owned())) }
    }
    /// The path of a [`Deliver::File`], with `%j` and `%a` filled in.
    pub fn file_path(path: &Path, job: &Job) -> PathBuf {
        let text = path.to_string_lossy().replace("%j", &job.id.to_string());
        PathBuf::from(with_index(&text, job.index))
    }
    /// Whether it is a file that has another name for each element of an array.
    fn is_apart(&self) -> bool {
        let Deliver::File(path) = self else { return true };
        path.to_str().is_some_and(|path| path.contains("%a") || path.contains("%j"))
    }
}

/// The elements of an array.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// The first index.
    pub first: u32,
    /// The last index.
    pub last: u32,
    /// Elements that run at a time. Default: as many as there are slots.
    #[serde(default)]
    pub at_a_time: Option<u32>,
}

/// A dependency.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// How that job has to end.
    pub need: Need,
    /// Its number, or that of an array.
    pub job: i64,
}

/// What a job may use. What is not said is limited by the queue's own defaults, or not at all.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Time from its start, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<u64>,
    /// Time of processors of one process, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<u64>,
    /// Address space of one process, and memory of all of them where a cgroup can be had, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Size of a file that it writes, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Open files of one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Processes. Without a cgroup all processes of the same user count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Processors in percent of one, where a cgroup can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u64>,
    /// Octets of each of standard output and standard error that are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

impl Limits {
    /// These, and `others` where these say nothing.
    pub fn or(self, others: Limits) -> Limits {
        Limits {
            wall_s: self.wall_s.or(others.wall_s),
            cpu_s: self.cpu_s.or(others.cpu_s),
            memory_bytes: self.memory_bytes.or(others.memory_bytes),
            file_bytes: self.file_bytes.or(others.file_bytes),
            open_files: self.open_files.or(others.open_files),
            processes: self.processes.or(others.processes),
            cpu_percent: self.cpu_percent.or(others.cpu_percent),
            output_bytes: self.output_bytes.or(others.output_bytes),
        }
    }
}

/// Why a submission is not taken: what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid(pub String);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Invalid {}

impl Submission {
    /// A job of a script.
    pub fn new(name: &str, script: &str) -> Submission {
        Submission { name: name.to_owned(), script: script.to_owned(), ..Submission::default() }
    }
    /// One of JSON; see [`check`](Self::check).
    ///
    /// # Errors
    /// It is not JSON, has unknown keys, or cannot be run.
    pub fn from_json(octets: &[u8]) -> Result<Submission, Invalid> {
        let submission: Submission =
            serde_json::from_slice(octets).map_err(|error| Invalid(error.to_string()))?;
        submission.check()?;
        Ok(submission)
    }
    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// Something is too long, too many, or cannot be part of a file name, an environment or a command.
    pub fn check(&self) -> Result<(), Invalid> {
        let wrong = |what: &str| Err(Invalid(what.to_owned()));
        if self.name.chars().count() > NAME_CHARS || self.name.chars().any(char::is_control) {
            return wrong("name: up to 64 characters, none of them a control character");
        }
        if self.script.is_empty() || self.script.len() > SCRIPT_BYTES || self.script.contains('\0') {
            return wrong("script: 1 to 131072 octets, without NUL");
        }
        if self.to.as_deref().is_some_and(|to| !is_word(to, 64)) {
            return wrong("to: letters, digits, '.', '-' and '_', up to 64");
        }
        if self.environment.len() > VARIABLES {
            return wrong("environment: up to 64 variables");
        }
        let is_bad = |(name, value): (&String, &String)| {
            let is_name = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
                && name.bytes().next().is_some_and(|c| !c.is_ascii_digit());
            !is_name
                || name.starts_with("INHOST_")
                || name.len() + value.len() > VARIABLE_BYTES
                || value.contains('\0')
        };
        if self.environment.iter().any(is_bad) {
            return wrong("environment: a name is letters, digits and '_', not INHOST_…; 4096 octets each");
        }
        if let Some(array) = self.array {
            let count = array.last.checked_sub(array.first).map(|less| u64::from(less) + 1);
            if count.is_none_or(|count| count > u64::from(ELEMENTS)) || array.at_a_time == Some(0) {
                return wrong("array: up to 1000 elements, and at least one at a time");
            }
        }
        if self.after.len() > DEPENDENCIES || self.deliver.len() > DELIVERIES || self.retries > RETRIES {
            return wrong("up to 32 dependencies, 4 deliveries and 100 retries");
        }
        if self.limits.wall_s == Some(0) || self.limits.cpu_s == Some(0) {
            return wrong("limits: a time is at least 1 s");
        }
        let is_array = self.array.is_some_and(|array| array.first < array.last);
        if is_array && !self.deliver.iter().all(Deliver::is_apart) {
            return wrong(
                "deliver: the elements of an array need a file each: write %a (the index) or %j in its name",
            );
        }
        self.deliver.iter().try_for_each(Deliver::check)
    }
    /// A file to which output would be delivered, and which is there, as far as that is known before the job has a number.
    pub(crate) fn occupied(&self) -> Option<PathBuf> {
        if self.replace {
            return None;
        }
        let paths = self.deliver.iter().filter_map(|to| match to {
            Deliver::File(path) => path.to_str().filter(|path| !path.contains("%j")),
            _ => None,
        });
        let indices = self.indices();
        let mut all =
            paths.flat_map(|path| indices.iter().map(|&index| PathBuf::from(with_index(path, index))));
        all.find(|path| path.symlink_metadata().is_ok())
    }
    /// Indices of its elements; a job that is not an array has one without an index.
    pub fn indices(&self) -> Vec<Option<u32>> {
        match self.array {
            Some(array) => (array.first..=array.last).take(ELEMENTS as usize).map(Some).collect(),
            None => vec![None],
        }
    }
}

/// What a status other than 0 says: that of a shell has 128 and the signal that ended a program.
pub(crate) fn status_text(status: i32) -> String {
    match status {
        129..=192 => format!("signal {}", status - 128),
        status => format!("exit status {status}"),
    }
}

/// A path with `%a` filled in.
fn with_index(path: &str, index: Option<u32>) -> String {
    path.replace("%a", &index.map(|index| index.to_string()).unwrap_or_default())
}

/// A word of names of hosts: letters, digits, '.', '-', '_', not beginning with a dash or dot.
pub(crate) fn is_word(text: &str, most: usize) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !text.is_empty() && text.len() <= most && !text.starts_with(['-', '.']) && text.chars().all(letters)
}

/// A text in one line that a command takes as one argument.
pub(crate) fn is_argument(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= WORD_BYTES
        && !text.starts_with('-')
        && !text.chars().any(char::is_control)
}

/// A job as the queue shows it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default)]
#[non_exhaustive]
pub struct Job {
    /// Its number.
    pub id: i64,
    /// The number of the array that it is an element of. Arrays and jobs share the numbers.
    pub array: Option<i64>,
    /// Its index in the array.
    pub index: Option<u32>,
    /// Whose it is.
    pub user: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: Option<State>,
    /// Why it waits, or ended as it did.
    pub reason: String,
    /// Where it runs.
    pub to: Option<String>,
    /// What that place calls it: a process, or the number at the other host.
    pub handle: Option<String>,
    /// Its priority.
    pub priority: i32,
    /// When it was submitted, in seconds since 1970.
    pub submitted_s: u64,
    /// It does not run before.
    pub not_before_s: u64,
    /// When it started last.
    pub started_s: Option<u64>,
    /// When it ended.
    pub ended_s: Option<u64>,
    /// How often it was started.
    pub attempts: u32,
    /// Its exit status: 128 and the signal for one that ended it.
    pub exit_status: Option<i32>,
    /// Octets of standard output and standard error of all attempts, once it is over.
    pub output_bytes: u64,
    /// Why its output is not delivered yet; empty once it is, or if it is not to be.
    pub delivery: String,
    /// Whether it is being cancelled.
    pub is_cancelling: bool,
}

impl Job {
    /// Its state; that of a job of which nothing is known is lost.
    pub fn state(&self) -> State {
        self.state.unwrap_or(State::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_what_it_can_and_is_refused_otherwise() {
        let text = br#"{"script":"echo","array":{"first":1,"last":3,"at_a_time":2},"after":[{"need":"afterok","job":7}],
            "limits":{"wall_s":5},"deliver":[{"file":"/tmp/x-%a"}]}"#;
        let job = Submission::from_json(text).unwrap();
        assert_eq!(job.indices(), [Some(1), Some(2), Some(3)]);
        assert_eq!(Submission::from_json(&serde_json::to_vec(&job).unwrap()), Ok(job));
        let wrong = [
            r#"{"script":""}"#,
            r#"{"script":"a","nmae":"b"}"#,
            r#"{"script":"a","name":"\u001b"}"#,
            r#"{"script":"a","to":"../x"}"#,
            r#"{"script":"a","environment":{"A=":"b"}}"#,
            r#"{"script":"a","environment":{"INHOST_JOB_ID":"b"}}"#,
            r#"{"script":"a","array":{"first":2,"last":1}}"#,
            r#"{"script":"a","array":{"first":0,"last":4294967295}}"#,
            r#"{"script":"a","deliver":[{"mail":"-oQ/tmp"}]}"#,
            r#"{"script":"a","deliver":[{"file":"relative"}]}"#,
            r#"{"script":"a","deliver":[{"file":"/one/for/all"}],"array":{"first":1,"last":3}}"#,
            r#"{"script":"a","limits":{"wall_s":0}}"#,
        ];
        for text in wrong {
            assert!(Submission::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }
}
