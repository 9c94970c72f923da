//! Fetching: the machine between a stream and a folder.

use super::super::machine::{Event, Sink};
use super::super::{Expected, Folder, Options};
use super::{CopyError, CopySummary};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Octets of one read.
const READ_BYTES: usize = 64 * 1024;

/// Takes what the other end's `rcp -f` sends. `tell` gets a message for each skipped entry. Files are touched on other
/// threads only.
pub async fn fetch<S>(
    stream: &mut S,
    options: Options,
    expected: Expected,
    folder: Folder,
    mut tell: impl FnMut(&str),
) -> Result<CopySummary, CopyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut taking = Taking {
        sink: Sink::new(options, expected),
        folder: Some(folder),
        report: CopySummary::default(),
        name: Vec::new(),
        size_bytes: 0,
        bad: None,
    };
    let mut place = vec![0; READ_BYTES];
    loop {
        let output = taking.sink.output();
        if !output.is_empty() {
            stream.write_all(&output).await?;
            stream.flush().await?;
        }
        let count = stream.read(&mut place).await?;
        if count == 0 {
            taking.with_folder(Folder::abandon).await;
            return taking.sink.end().map(|()| taking.report).map_err(CopyError::Other);
        }
        let mut input = place.get(..count).unwrap_or_default();
        while let Some(event) = taking.sink.receive(&mut input) {
            taking.event(event, &mut tell).await?;
        }
    }
}

struct Taking {
    sink: Sink,
    /// `None` while another thread works in it.
    folder: Option<Folder>,
    report: CopySummary,
    /// Of the file that is coming.
    name: Vec<u8>,
    size_bytes: u64,
    /// Why the file that is coming cannot be kept.
    bad: Option<String>,
}

impl Taking {
    /// Works in the folder on a thread that may wait for the disk.
    async fn with_folder<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Folder) -> R + Send + 'static,
    ) -> Option<R> {
        let mut folder = self.folder.take()?;
        let (folder, done) = blocking::unblock(move || {
            let done = work(&mut folder);
            (folder, done)
        })
        .await;
        self.folder = Some(folder);
        Some(done)
    }
    /// The same, for work that may fail. A folder that a copy which was given up has left is none.
    async fn try_with_folder(
        &mut self,
        work: impl FnOnce(&mut Folder) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.with_folder(work).await.unwrap_or_else(|| Err(io::Error::other("the copy was given up")))
    }
    async fn event(&mut self, event: Event<'_>, tell: &mut impl FnMut(&str)) -> Result<(), CopyError> {
        match event {
            Event::Enter { name, mode, times } => {
                let asked = name.clone();
                let done = self.try_with_folder(move |folder| folder.enter(&asked, mode, times)).await;
                self.verdict(done, &name, tell);
            }
            Event::Leave => {
                let done = self.try_with_folder(Folder::leave).await;
                self.verdict(done, b"a folder", tell);
            }
            Event::Begin { name, mode, size_bytes, times } => {
                (self.size_bytes, self.bad, self.name) = (size_bytes, None, name.clone());
                let asked = name.clone();
                let done = self.try_with_folder(move |folder| folder.begin(&asked, mode, times)).await;
                self.verdict(done, &name, tell);
            }
            Event::Data(data) => {
                if self.bad.is_none() {
                    let data = data.to_vec();
                    let write =
                        move |folder: &mut Folder| folder.write(&data).inspect_err(|_| folder.abandon());
                    self.bad = self.try_with_folder(write).await.err().map(|error| error.to_string());
                }
            }
            Event::Finished => {
                let done = match self.bad.take() {
                    Some(why) => Err(io::Error::other(why)),
                    None => self.try_with_folder(Folder::finish).await,
                };
                if done.is_ok() {
                    (self.report.files, self.report.bytes) =
                        (self.report.files + 1, self.report.bytes + self.size_bytes);
                }
                let name = std::mem::take(&mut self.name);
                self.verdict(done, &name, tell);
            }
            Event::Spoiled(why) => {
                self.with_folder(Folder::abandon).await;
                self.left_out(&why, tell);
                self.sink.accept();
            }
            Event::Warning(why) => self.left_out(&why, tell),
            Event::Refused(name, why) => self.left_out(&format!("{name}: {why}"), tell),
            Event::Failed(why) => {
                self.with_folder(Folder::abandon).await;
                return Err(CopyError::Other(why));
            }
        }
        Ok(())
    }
    fn verdict(&mut self, done: io::Result<()>, name: &[u8], tell: &mut impl FnMut(&str)) {
        match done {
            Ok(()) => self.sink.accept(),
            Err(error) => {
                let why = format!("{}: {error}", crate::codec::printable(name));
                self.left_out(&why, tell);
                self.sink.refuse(&why);
            }
        }
    }
    fn left_out(&mut self, why: &str, tell: &mut impl FnMut(&str)) {
        self.report.left_out += 1;
        tell(why);
    }
}
