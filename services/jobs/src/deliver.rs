//! Delivery of a job's output at its end, and the trait by which the host does it.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

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

/// Copies standard output to a file, whole or not at all. One that is there is replaced if `replace` says so, and is the
/// delivered one already if it has the same octets: a delivery is repeated after a crash.
pub(crate) fn to_file(parcel: &Parcel, path: &Path, replace: bool) -> Result<(), String> {
    let path = Deliver::file_path(path, &parcel.job);
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".job{}", parcel.job.id));
    let partial = path.with_file_name(name);
    let copied = match fs::copy(&parcel.stdout, &partial) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !parcel.stdout.exists() => {
            fs::write(&partial, b"").map(|()| 0)
        }
        other => other,
    };
    let named =
        copied.and_then(|_| if replace { fs::rename(&partial, &path) } else { rename_new(&partial, &path) });
    if named.is_ok() {
        return Ok(());
    }
    let is_there = is_same(&partial, &path).unwrap_or(false);
    let _ = fs::remove_file(&partial);
    match named {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match is_there {
            true => Ok(()),
            false => {
                Err(format!("{} is there already; move it away, or submit with --replace", path.display()))
            }
        },
        other => other.map_err(failed),
    }
}

/// Renames a file, unless there is one of that name.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system has it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        other => Ok(other?),
    }
}

/// Whether two files have the same octets.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (fs::File::open(one)?, fs::File::open(other)?);
    let (ours, theirs) = (one.metadata()?, other.metadata()?);
    if !theirs.is_file() || ours.len() != theirs.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let count = left.len().min(right.len());
        if left[..count] != right[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(left.len() == right.len());
        }
        one.consume(count);
        other.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_stays() {
        let folder = std::env::temp_dir().join(format!("inhost-deliver-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (stdout, path) = (folder.join("stdout"), folder.join("to"));
        fs::write(&stdout, "high").unwrap();
        let to = Deliver::File(path.clone());
        let parcel = Parcel { job: Job::default(), to, stdout, stderr: folder.join("stderr") };
        let read = || fs::read_to_string(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(to_file(&parcel, &path, false).unwrap_err().contains("is there already"));
        assert_eq!(read(), "mine");
        assert_eq!((to_file(&parcel, &path, true), read()), (Ok(()), "high".into()));
        assert_eq!(to_file(&parcel, &path, false), Ok(()), "it was delivered before a crash");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");
        fs::remove_file(&path).unwrap();
        assert_eq!((to_file(&parcel, &path, false), read()), (Ok(()), "high".into()));
        fs::remove_dir_all(folder).unwrap();
    }
}
