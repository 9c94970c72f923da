//! A line of JSON for each connection, in files of a limited size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::Record;

/// The file of the latest lines, and the one before it.
const NAMES: [&str; 2] = ["connections.jsonl", "connections.old.jsonl"];

/// The files.
pub(crate) struct Lines {
    folder: PathBuf,
    file: BufWriter<File>,
    written_bytes: u64,
    most_bytes: u64,
}

impl Lines {
    /// Goes on with the file in `folder`. A file has at most about `most_bytes`.
    pub(crate) fn open(folder: &Path, most_bytes: u64) -> io::Result<Lines> {
        let path = folder.join(NAMES[0]);
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let written_bytes = file.metadata()?.len();
        Ok(Lines { folder: folder.to_owned(), file: BufWriter::new(file), written_bytes, most_bytes })
    }
    /// Adds a line for each record.
    pub(crate) fn add(&mut self, records: &[Record]) -> io::Result<()> {
        for record in records {
            let mut line = serde_json::to_vec(record)?;
            line.push(b'\n');
            self.file.write_all(&line)?;
            self.written_bytes += line.len() as u64;
            if self.written_bytes >= self.most_bytes {
                self.begins_anew()?;
            }
        }
        self.file.flush()
    }
    fn begins_anew(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let [path, old] = NAMES.map(|name| self.folder.join(name));
        fs::rename(path, old)?;
        *self = Lines::open(&self.folder, self.most_bytes)?;
        Ok(())
    }
}
