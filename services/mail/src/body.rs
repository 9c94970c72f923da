//! A message on its way: small ones stay in memory, large ones go to a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;

/// Octets up to which a message stays in memory, and in the queue's table.
pub const MEMORY_BYTES: usize = 64 << 10;
/// Octets that are read from a file at a time.
const PIECE_BYTES: usize = 256 << 10;

/// A message: header lines that this host has put in front, and what came.
#[derive(Clone, Debug)]
pub struct Body {
    head: Bytes,
    text: Text,
}

#[derive(Clone, Debug)]
enum Text {
    Memory(Bytes),
    File { file: Arc<SpoolFile>, bytes: u64 },
}

/// A file of a message. It is removed with its last owner, unless it is kept.
#[derive(Debug)]
pub struct SpoolFile {
    path: PathBuf,
    is_kept: AtomicBool,
}

impl SpoolFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Leaves it where it is from now on.
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if !self.is_kept.load(Ordering::Relaxed) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Body {
    /// A message in memory.
    pub fn new(text: impl Into<Bytes>) -> Body {
        Body { head: Bytes::new(), text: Text::Memory(text.into()) }
    }
    /// A message in a file that is kept.
    pub fn in_file(path: PathBuf, bytes: u64) -> Body {
        let file = Arc::new(SpoolFile { path, is_kept: AtomicBool::new(true) });
        Body { head: Bytes::new(), text: Text::File { file, bytes } }
    }
    /// The same with `head` in front; it is whole lines.
    pub fn with_head(self, head: impl Into<Bytes>) -> Body {
        let head = head.into();
        match self.head.is_empty() {
            true => Body { head, ..self },
            false => Body { head: [head, self.head].concat().into(), ..self },
        }
    }
    /// The lines in front.
    pub fn head(&self) -> &Bytes {
        &self.head
    }
    /// Size in octets.
    pub fn size_bytes(&self) -> u64 {
        self.head.len() as u64
            + match &self.text {
                Text::Memory(text) => text.len() as u64,
                Text::File { bytes, .. } => *bytes,
            }
    }
    /// What came, where it is in memory.
    pub fn memory(&self) -> Option<&Bytes> {
        match &self.text {
            Text::Memory(text) => Some(text),
            Text::File { .. } => None,
        }
    }
    /// The file of what came, where it is in one.
    pub fn file(&self) -> Option<&SpoolFile> {
        match &self.text {
            Text::Memory(_) => None,
            Text::File { file, .. } => Some(file),
        }
    }
    /// Reads it piece by piece. It may wait for the disk.
    pub fn pieces(&self) -> Pieces {
        let text = match &self.text {
            Text::Memory(text) => PiecesOf::Memory(text.clone()),
            Text::File { file, .. } => PiecesOf::Closed(file.clone()),
        };
        Pieces { head: self.head.clone(), text }
    }
    /// All of it, of `limit_bytes` at most. It may wait for the disk.
    pub fn read(&self, limit_bytes: usize) -> io::Result<Bytes> {
        let (mut pieces, mut all) = (self.pieces(), Vec::new());
        while let Some(piece) = pieces.read()? {
            let room = limit_bytes.saturating_sub(all.len()).min(piece.len());
            all.extend_from_slice(&piece[..room]);
            if room < piece.len() {
                break;
            }
        }
        Ok(all.into())
    }
    /// Whether nothing has to be waited for to read it.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.text, Text::Memory(_))
    }
}

/// A message in pieces.
#[derive(Debug)]
pub struct Pieces {
    head: Bytes,
    text: PiecesOf,
}

#[derive(Debug)]
enum PiecesOf {
    Memory(Bytes),
    Closed(Arc<SpoolFile>),
    // The file stays while it is read.
    Open(File, #[allow(dead_code)] Arc<SpoolFile>),
}

impl Pieces {
    /// The next piece; `None` at the end.
    pub fn read(&mut self) -> io::Result<Option<Bytes>> {
        if !self.head.is_empty() {
            return Ok(Some(core::mem::take(&mut self.head)));
        }
        if let PiecesOf::Closed(file) = &self.text {
            self.text = PiecesOf::Open(File::open(&file.path)?, file.clone());
        }
        match &mut self.text {
            PiecesOf::Memory(text) if text.is_empty() => Ok(None),
            PiecesOf::Memory(text) => Ok(Some(core::mem::take(text))),
            PiecesOf::Open(file, _) => {
                let mut piece = Vec::with_capacity(PIECE_BYTES);
                file.take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
                Ok((!piece.is_empty()).then(|| piece.into()))
            }
            PiecesOf::Closed(_) => Ok(None),
        }
    }
    /// The next piece, read on another thread where the disk may have to be waited for.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if !self.head.is_empty() || matches!(self.text, PiecesOf::Memory(_)) {
            return self.read();
        }
        let mut theirs = Pieces {
            head: Bytes::new(),
            text: core::mem::replace(&mut self.text, PiecesOf::Memory(Bytes::new())),
        };
        let (theirs, piece) = blocking::unblock(move || {
            let piece = theirs.read();
            (theirs, piece)
        })
        .await;
        self.text = theirs.text;
        piece
    }
}

/// Where files of messages are made.
#[derive(Debug)]
pub struct SpoolFolder {
    path: Option<PathBuf>,
    prefix: String,
    next: AtomicU64,
}

impl SpoolFolder {
    /// All messages stay in memory.
    pub fn memory() -> SpoolFolder {
        SpoolFolder { path: None, prefix: String::new(), next: AtomicU64::new(0) }
    }
    /// In the folder `path`. Names begin with `prefix`, which no other process uses there.
    pub fn new(path: PathBuf, prefix: String) -> SpoolFolder {
        SpoolFolder { path: Some(path), prefix, next: AtomicU64::new(0) }
    }
    fn create(&self, folder: &Path) -> io::Result<(File, Arc<SpoolFile>)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number:x}", self.prefix));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok((file, Arc::new(SpoolFile { path, is_kept: AtomicBool::new(false) })))
    }
}

/// A message that comes.
#[derive(Debug)]
pub struct Spool {
    folder: Arc<SpoolFolder>,
    memory: Vec<u8>,
    file: Option<(File, Arc<SpoolFile>)>,
    bytes: u64,
}

impl Spool {
    /// An empty one.
    pub fn new(folder: &Arc<SpoolFolder>) -> Spool {
        Spool { folder: folder.clone(), memory: Vec::new(), file: None, bytes: 0 }
    }
    /// More of it.
    pub async fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.memory.extend_from_slice(octets);
        self.bytes += octets.len() as u64;
        match &self.folder.path {
            Some(_) if self.memory.len() > MEMORY_BYTES => self.spill(false).await,
            _ => Ok(()),
        }
    }
    /// All of it has come. A file is on the disk when this is done; the entry of its folder is for the owner to
    /// make durable.
    pub async fn finish(mut self) -> io::Result<Body> {
        if self.file.is_some() {
            self.spill(true).await?;
        }
        let text = match self.file.take() {
            None => Text::Memory(core::mem::take(&mut self.memory).into()),
            Some((_, file)) => Text::File { file, bytes: self.bytes },
        };
        Ok(Body { head: Bytes::new(), text })
    }
    async fn spill(&mut self, is_end: bool) -> io::Result<()> {
        let (folder, octets) = (self.folder.clone(), core::mem::take(&mut self.memory));
        let open = self.file.take();
        let written = blocking::unblock(move || {
            let (mut file, spooled) = match (open, &folder.path) {
                (Some(open), _) => open,
                (None, Some(path)) => folder.create(path)?,
                (None, None) => return Err(io::Error::from(io::ErrorKind::Unsupported)),
            };
            file.write_all(&octets)?;
            if is_end {
                file.sync_data()?;
            }
            Ok::<_, io::Error>((file, spooled))
        });
        self.file = Some(written.await?);
        Ok(())
    }
}

/// Large messages that are read whole, for signatures and their checks: a few at a time, since each is in memory then.
#[derive(Clone, Debug)]
pub(crate) struct Turns(async_channel::Sender<()>, async_channel::Receiver<()>);

/// A turn. Dropped, the next one has it.
pub(crate) struct Turn(async_channel::Receiver<()>);

impl Turns {
    pub fn new(count: usize) -> Turns {
        let (take, give) = async_channel::bounded(count);
        Turns(take, give)
    }
    /// Waits for a turn.
    pub async fn next(&self) -> Turn {
        // It is never closed: this holds both ends.
        let _ = self.0.send(()).await;
        Turn(self.1.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = self.0.try_recv();
    }
}
