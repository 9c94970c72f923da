//! Delivery of a job's output at its end: values, and the trait by which the host does it.

use std::path::PathBuf;

use inhost_common::LocalFuture;
use serde::{Deserialize, Serialize};

use crate::codec::{Invalid, Job, is_argument};

/// Attempts to deliver, after which it is given up.
pub const ATTEMPTS: u32 = 12;
/// How long the second attempt waits; each that follows waits twice as long.
pub const FIRST_DELAY_S: u64 = 30;

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
    pub fn file_path(path: &std::path::Path, job: &Job) -> PathBuf {
        let index = job.index.map(|index| index.to_string()).unwrap_or_default();
        let text = path.to_string_lossy();
        PathBuf::from(text.replace("%j", &job.id.to_string()).replace("%a", &index))
    }
}

/// A job's output on its way.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Parcel {
    /// The job, which is over.
    pub job: Job,
    /// Where it goes.
    pub to: Deliver,
    /// The file of standard output. It may be missing if the job never ran.
    pub stdout: PathBuf,
    /// The file of standard error.
    pub stderr: PathBuf,
}

/// Delivers output by FTP and by mail. The host implements it by its own clients; files are delivered by the queue.
pub trait Courier {
    /// Delivers; the reason why it could not, in one line. It is called again after a failure, and after a crash in the
    /// middle, so the same parcel may arrive twice.
    fn deliver(&self, parcel: Parcel) -> LocalFuture<Result<(), String>>;
}

/// A courier that can neither.
pub struct NoCourier;

impl Courier for NoCourier {
    fn deliver(&self, _: Parcel) -> LocalFuture<Result<(), String>> {
        Box::pin(std::future::ready(Err("this host delivers to files only".to_owned())))
    }
}

/// Copies standard output to a file, whole or not at all.
pub(crate) fn to_file(parcel: &Parcel, path: &std::path::Path) -> Result<(), String> {
    let path = Deliver::file_path(path, &parcel.job);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".job{}", parcel.job.id));
    let partial = path.with_file_name(name);
    let copied = match std::fs::copy(&parcel.stdout, &partial) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !parcel.stdout.exists() => {
            std::fs::write(&partial, b"").map(|()| 0)
        }
        other => other,
    };
    copied.and_then(|_| std::fs::rename(&partial, &path)).map_err(failed)
}
