//! Sending: local files and folders to the other end's `rcp -t`.

use super::driver::{Failed, Report};
use super::{DEPTH_LIMIT, NameError, Options, check};
use crate::answer::{Answer, Said, shown};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Octets of one write.
const WRITE_BYTES: usize = 64 * 1024;

/// Sends `paths`. `tell` hears of what is left out. Files are touched on other threads only.
pub async fn send<S>(
    stream: &mut S,
    options: Options,
    paths: &[PathBuf],
    tell: impl FnMut(&str),
) -> Result<Report, Failed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut sending = Sending { stream, answer: Answer::default(), options, report: Report::default(), tell };
    if !sending.is_fine().await? {
        return Ok(sending.report);
    }
    for path in paths {
        sending.tree(path).await?;
    }
    Ok(sending.report)
}

struct Sending<'a, S, T> {
    stream: &'a mut S,
    answer: Answer,
    options: Options,
    report: Report,
    tell: T,
}

/// What is to be sent next.
enum Next {
    Entry(PathBuf, usize),
    Leave,
}

impl<S: AsyncRead + AsyncWrite + Unpin, T: FnMut(&str)> Sending<'_, S, T> {
    /// One thing with all in it.
    async fn tree(&mut self, path: &Path) -> Result<(), Failed> {
        let mut stack = vec![Next::Entry(path.to_owned(), 0)];
        while let Some(next) = stack.pop() {
            let (path, depth) = match next {
                Next::Leave => {
                    self.say(b"E\n").await?;
                    self.is_fine().await?;
                    continue;
                }
                Next::Entry(path, depth) => (path, depth),
            };
            match self.entry(&path, depth).await {
                Ok(entries) if entries.is_empty() => {}
                Ok(entries) => stack.extend(entries),
                Err(Left::Out(why)) => {
                    self.left_out(&format!("{}: {why}", shown(path.as_os_str().as_bytes())));
                }
                Err(Left::Failed(failed)) => return Err(failed),
            }
        }
        Ok(())
    }
    /// One file, or a folder of which what is in it is to be sent next.
    async fn entry(&mut self, path: &Path, depth: usize) -> Result<Vec<Next>, Left> {
        let name = path.file_name().map_or(&b""[..], |name| name.as_bytes());
        check(name).map_err(|why: NameError| Left::Out(why.to_string()))?;
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
        if !self.announce(b'D', &about, 0, name).await? {
            return Ok(Vec::new());
        }
        let mut next = vec![Next::Leave];
        next.extend(inside.into_iter().map(|path| Next::Entry(path, depth + 1)));
        Ok(next)
    }
    /// Announces a file or folder; false when the other end will not have it.
    async fn announce(
        &mut self,
        kind: u8,
        about: &Metadata,
        size_bytes: u64,
        name: &[u8],
    ) -> Result<bool, Failed> {
        if self.options.preserve {
            let times = format!("T{} 0 {} 0\n", about.mtime().max(0), about.atime().max(0));
            self.say(times.as_bytes()).await?;
            if !self.is_fine().await? {
                return Ok(false);
            }
        }
        let mode = about.permissions().mode() & 0o7777;
        let mut line = vec![kind];
        line.extend(format!("{mode:04o} {size_bytes} ").into_bytes());
        line.extend_from_slice(name);
        line.push(b'\n');
        self.say(&line).await?;
        self.is_fine().await
    }
    async fn file(&mut self, mut file: File, about: &Metadata, name: &[u8]) -> Result<(), Failed> {
        let size_bytes = about.len();
        if !self.announce(b'C', about, size_bytes, name).await? {
            return Ok(());
        }
        let (mut left, mut place, mut trouble) = (size_bytes, Vec::new(), None);
        while left > 0 {
            let limit = usize::try_from(left).unwrap_or(usize::MAX).min(WRITE_BYTES);
            let mut part = std::mem::take(&mut place);
            part.resize(limit, 0);
            let count = if trouble.is_none() {
                let count;
                (file, part, count) = blocking::unblock(move || {
                    let count = file.read(&mut part);
                    (file, part, count)
                })
                .await;
                match count {
                    Ok(0) => {
                        trouble = Some("the file became shorter while it was sent".to_owned());
                        0
                    }
                    Ok(count) => count,
                    Err(error) => {
                        trouble = Some(error.to_string());
                        0
                    }
                }
            } else {
                // So many bytes were promised, and the other end counts them.
                part.fill(0);
                limit
            };
            left -= count as u64;
            part.truncate(count);
            // What ends the file leaves with the last of it, and does not wait until that is acknowledged.
            if left == 0 {
                part.extend(verdict(trouble.as_deref()));
            }
            self.say(&part).await?;
            place = part;
        }
        if size_bytes == 0 {
            self.say(&verdict(None)).await?;
        }
        let is_taken = self.is_fine().await?;
        match trouble {
            Some(why) => self.left_out(&format!("{}: {why}", shown(name))),
            None if is_taken => {
                (self.report.files, self.report.bytes) =
                    (self.report.files + 1, self.report.bytes + size_bytes);
            }
            None => {}
        }
        Ok(())
    }

    async fn say(&mut self, octets: &[u8]) -> Result<(), Failed> {
        match self.stream.write_all(octets).await {
            Ok(()) => Ok(self.stream.flush().await?),
            // Why it does not listen any more may be what it said last.
            Err(error) => match self.listen().await {
                Ok(Said::Warning(why) | Said::Fatal(why)) if !why.is_empty() => Err(Failed::Other(why)),
                _ => Err(error.into()),
            },
        }
    }
    /// The other end's word: whether all is well.
    async fn is_fine(&mut self) -> Result<bool, Failed> {
        match self.listen().await? {
            Said::Fine => Ok(true),
            Said::Warning(why) => {
                self.left_out(&why);
                Ok(false)
            }
            Said::Fatal(why) => Err(Failed::Other(why)),
        }
    }
    async fn listen(&mut self) -> Result<Said, Failed> {
        loop {
            let mut place = [0];
            if self.stream.read(&mut place).await? == 0 {
                let said = self.answer.end();
                return said.ok_or_else(|| Failed::Other("the other end closed without a word".to_owned()));
            }
            if let Some(said) = self.answer.take(&mut &place[..]) {
                return Ok(said);
            }
        }
    }
    fn left_out(&mut self, why: &str) {
        self.report.left_out += 1;
        (self.tell)(why);
    }
}

/// The octets behind a file: that it is whole, or why not.
fn verdict(trouble: Option<&str>) -> Vec<u8> {
    trouble.map_or_else(|| vec![0], |why| format!("\x01{why}\n").into_bytes())
}

/// What there is to send.
enum Found {
    /// A file, opened before it is announced: what cannot be read is not promised.
    File(File),
    /// A folder, with what is in it.
    Folder(Vec<PathBuf>),
}

/// Looks at something to be sent. It may wait for the disk.
fn look(path: &Path, recursive: bool, depth: usize) -> Result<(Metadata, Found), Left> {
    let about = std::fs::metadata(path)?;
    if !about.is_dir() && !about.is_file() {
        return Err(Left::Out("neither a file nor a folder".to_owned()));
    }
    if about.is_file() {
        return Ok((about, Found::File(File::open(path)?)));
    }
    if !recursive {
        return Err(Left::Out("a folder; --recursive sends it with all in it".to_owned()));
    }
    if depth >= DEPTH_LIMIT {
        return Err(Left::Out(format!("more than {DEPTH_LIMIT} folders deep")));
    }
    let inside = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    Ok((about, Found::Folder(inside)))
}

/// Why something is not sent.
enum Left {
    Out(String),
    Failed(Failed),
}
impl From<io::Error> for Left {
    fn from(error: io::Error) -> Left {
        Left::Out(error.to_string())
    }
}
impl From<Failed> for Left {
    fn from(failed: Failed) -> Left {
        Left::Failed(failed)
    }
}
