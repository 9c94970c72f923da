//! Delivery of a job's output at its end, and the trait by which the host does it.

use std::path::PathBuf;

use crate::codec::Job;
use inhost_common::LocalFuture;

pub use crate::codec::Deliver;

/// Attempts to deliver, after which it is given up.
pub const ATTEMPTS: u32 = 12;
/// How long the second attempt waits; each that follows waits twice as long.
pub const FIRST_DELAY_S: u64 = 30;

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
