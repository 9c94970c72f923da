//! Sending: local files and folders to the other end's `rcp -t`.

use super::super::machine::{Progress, Source};
use super::super::{DEPTH_LIMIT, NameError, Options, Times, check};
use super::{CopyError, CopySummary};
use crate::codec::{Reply, ReplyReader, printable};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Octets of one write.
const WRITE_BYTES: usize = 64 * 1024;

/// Sends `paths`. `tell` gets a message for each skipped entry. Files are touched on other threads only.
pub async fn send<S>(
    stream: &mut S,
    options: Options,
    paths: &[PathBuf],
    tell: impl FnMut(&str),
) -> Result<CopySummary, CopyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut sending =
        Sending { stream, source: Source::new(), options, report: CopySummary::default(), tell };
    if !sending.is_done().await? {
        return Ok(sending.report);
    }
    for path in paths {
        sending.tree(path).await?;
    }
    Ok(sending.report)
}

struct Sending<'a, S, T> {
    stream: &'a mut S,
    source: Source,
    options: Options,
    report: CopySummary,
    tell: T,
}

/// Queue of entries to send.
enum Next {
    Entry(PathBuf, usize),
    Leave,
}

impl<S: AsyncRead + AsyncWrite + Unpin, T: FnMut(&str)> Sending<'_, S, T> {
    /// One thing with all in it.
    async fn tree(&mut self, path: &Path) -> Result<(), CopyError> {
        let mut stack = vec![Next::Entry(path.to_owned(), 0)];
        while let Some(next) = stack.pop() {
            let (path, depth) = match next {
                Next::Leave => {
                    self.source.leave();
                    self.is_done().await?;
                    continue;
                }
                Next::Entry(path, depth) => (path, depth),
            };
            match self.entry(&path, depth).await {
                Ok(entries) if entries.is_empty() => {}
                Ok(entries) => stack.extend(entries),
                Err(NotSent::Skipped(why)) => {
                    self.left_out(&format!("{}: {why}", printable(path.as_os_str().as_bytes())));
                }
                Err(NotSent::Failed(failed)) => return Err(failed),
            }
        }
        Ok(())
    }
    /// One file, or a folder of which what is in it is to be sent next.
    async fn entry(&mut self, path: &Path, depth: usize) -> Result<Vec<Next>, NotSent> {
        let name = path.file_name().map_or(&b""[..], |name| name.as_bytes());
        check(name).map_err(|why: NameError| NotSent::Skipped(why.to_string()))?;
        let (place, recursive) = (path.to_owned(), self.options.recursive);
        let (about, found) = blocking::unblock(move || look(&place, recursive, depth)).await?;
        let mut inside = match found {
            Found::File(file) => {
                self.file(file, &about, name).await?;
                return Ok(Vec::new());
            }
            Found::Folder(inside) => inside,
        };
        // From behind, since the last is taken first.
        inside.sort_by(|a, b| b.cmp(a));
        self.source.enter(name, mode(&about), self.times(&about));
        if !self.is_done().await? {
            return Ok(Vec::new());
        }
        let mut next = vec![Next::Leave];
        next.extend(inside.into_iter().map(|path| Next::Entry(path, depth + 1)));
        Ok(next)
    }
    fn times(&self, about: &Metadata) -> Option<Times> {
        let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
        self.options.preserve.then(|| Times {
            modified_seconds: seconds(about.mtime()),
            accessed_seconds: seconds(about.atime()),
        })
    }
    async fn file(&mut self, mut file: File, about: &Metadata, name: &[u8]) -> Result<(), CopyError> {
        let size_bytes = about.len();
        self.source.file(name, mode(about), size_bytes, self.times(about));
        let mut progress = self.progress().await?;
        if progress == Progress::Accepted {
            while self.source.wanted_bytes() > 0 {
                let limit =
                    usize::try_from(self.source.wanted_bytes()).unwrap_or(usize::MAX).min(WRITE_BYTES);
                let mut part = vec![0; limit];
                // A file that cannot be read on is filled with zeros: its length was promised.
                if self.source.unreadable().is_none() {
                    let count;
                    (file, part, count) = blocking::unblock(move || {
                        let count = file.read(&mut part);
                        (file, part, count)
                    })
                    .await;
                    match count {
                        Ok(0) => {
                            self.source
                                .mark_unreadable("the file became shorter while it was sent".to_owned());
                        }
                        Ok(_) => {}
                        Err(ref error) => self.source.mark_unreadable(error.to_string()),
                    }
                    part.truncate(count.unwrap_or(0));
                }
                self.source.data(part);
                self.flush().await?;
            }
            progress = self.progress().await?;
        }
        let is_taken = self.take(progress)?;
        match self.source.unreadable().map(str::to_owned) {
            Some(why) => self.left_out(&format!("{}: {why}", printable(name))),
            None if is_taken => {
                (self.report.files, self.report.bytes) =
                    (self.report.files + 1, self.report.bytes + size_bytes);
            }
            None => {}
        }
        Ok(())
    }

    /// Sends what the machine has to send.
    async fn flush(&mut self) -> Result<(), CopyError> {
        let output = self.source.output();
        if output.is_empty() {
            return Ok(());
        }
        match self.stream.write_all(&output).await {
            Ok(()) => Ok(self.stream.flush().await?),
            // The other end's last reply may say why it reads no more.
            Err(error) => match self.last_reply().await {
                Some(Reply::Warning(why) | Reply::Fatal(why)) if !why.is_empty() => {
                    Err(CopyError::Other(why))
                }
                _ => Err(error.into()),
            },
        }
    }
    /// Sends what there is and waits for what the other end makes of it.
    async fn progress(&mut self) -> Result<Progress, CopyError> {
        loop {
            self.flush().await?;
            let mut octet = [0];
            if self.stream.read(&mut octet).await? == 0 {
                let progress = match self.source.end() {
                    Some(Reply::Ok) => Progress::Done,
                    Some(Reply::Warning(why)) => Progress::Refused(why),
                    Some(Reply::Fatal(why)) => Progress::Failed(why),
                    None => return Err(CopyError::Other("the other end closed without a word".to_owned())),
                };
                return Ok(progress);
            }
            if let Some(progress) = self.source.receive(&mut &octet[..]) {
                return Ok(progress);
            }
        }
    }
    /// The next reply that is still to be read, after writing has failed.
    async fn last_reply(&mut self) -> Option<Reply> {
        let mut replies = ReplyReader::default();
        loop {
            let mut octet = [0];
            match self.stream.read(&mut octet).await {
                Ok(0) => return replies.end(),
                Ok(_) => {}
                Err(_) => return None,
            }
            if let Some(reply) = replies.take(&mut &octet[..]) {
                return Some(reply);
            }
        }
    }
    /// Whether the other end takes what was sent last. A refusal is reported.
    async fn is_done(&mut self) -> Result<bool, CopyError> {
        let progress = self.progress().await?;
        self.take(progress)
    }
    fn take(&mut self, progress: Progress) -> Result<bool, CopyError> {
        match progress {
            Progress::Accepted | Progress::Done => Ok(true),
            Progress::Refused(why) => {
                self.left_out(&why);
                Ok(false)
            }
            Progress::Failed(why) => Err(CopyError::Other(why)),
        }
    }
    fn left_out(&mut self, why: &str) {
        self.report.left_out += 1;
        (self.tell)(why);
    }
}

/// Permissions as they are announced.
fn mode(about: &Metadata) -> u32 {
    about.permissions().mode() & 0o7777
}

/// An entry to send.
enum Found {
    /// A file, opened before it is announced: what cannot be read is not promised.
    File(File),
    /// A folder, with what is in it.
    Folder(Vec<PathBuf>),
}

/// Looks at something to be sent. It may wait for the disk.
fn look(path: &Path, recursive: bool, depth: usize) -> Result<(Metadata, Found), NotSent> {
    let about = std::fs::metadata(path)?;
    if !about.is_dir() && !about.is_file() {
        return Err(NotSent::Skipped("neither a file nor a folder".to_owned()));
    }
    if about.is_file() {
        return Ok((about, Found::File(File::open(path)?)));
    }
    if !recursive {
        return Err(NotSent::Skipped("a folder; --recursive sends it with all in it".to_owned()));
    }
    if depth >= DEPTH_LIMIT {
        return Err(NotSent::Skipped(format!("more than {DEPTH_LIMIT} folders deep")));
    }
    let inside = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    Ok((about, Found::Folder(inside)))
}

/// Why something is not sent.
enum NotSent {
    Skipped(String),
    Failed(CopyError),
}
impl From<io::Error> for NotSent {
    fn from(error: io::Error) -> NotSent {
        NotSent::Skipped(error.to_string())
    }
}
impl From<CopyError> for NotSent {
    fn from(failed: CopyError) -> NotSent {
        NotSent::Failed(failed)
    }
}
