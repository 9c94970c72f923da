//! A folder that keeps messages: `ID.eml` has the octets and `ID.json` how they came.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use inhost_common::replace;
use serde::{Deserialize, Serialize};

use super::{Id, StoreLimits};
use crate::envelope::Envelope;

/// The longest file of how a message came.
const ENVELOPE_BYTES: u64 = 1 << 20;

/// A folder that keeps messages. Its calls wait for the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folder(PathBuf);

/// A message as the folder keeps it.
#[derive(Debug)]
pub struct Kept {
    /// Its identifier.
    pub id: Id,
    /// When it came, in milliseconds since 1970.
    pub received_ms: u64,
    /// How it came.
    pub envelope: Envelope,
    /// Its octets.
    pub raw: Bytes,
}

#[derive(Serialize, Deserialize)]
struct Sidecar {
    received_ms: u64,
    envelope: Envelope,
}

impl Folder {
    /// The folder at `path`, made if it is not there.
    pub fn open(path: &Path) -> io::Result<Folder> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Folder(path.to_owned()))
    }
    fn file(&self, id: Id, kind: &str) -> PathBuf {
        self.0.join(format!("{id}.{kind}"))
    }
    /// The newest messages within the limits, the oldest first. Files that are not whole are passed over.
    pub fn read(&self, limits: StoreLimits) -> io::Result<Vec<Kept>> {
        let mut ids: Vec<Id> = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let name = entry?.file_name();
            let id =
                name.to_str().and_then(|name| name.strip_suffix(".eml")).and_then(|name| name.parse().ok());
            ids.extend(id.filter(|id: &Id| name.to_str() == Some(&format!("{id}.eml"))));
        }
        ids.sort_unstable();
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for &id in ids.iter().rev().take(limits.messages) {
            let path = self.file(id, "eml");
            bytes += fs::metadata(&path).map_or(0, |metadata| metadata.len());
            if bytes > limits.bytes as u64 {
                break;
            }
            kept.extend(self.read_one(id).ok());
        }
        kept.reverse();
        Ok(kept)
    }
    fn read_one(&self, id: Id) -> io::Result<Kept> {
        let sidecar = self.file(id, "json");
        if fs::metadata(&sidecar)?.len() > ENVELOPE_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Sidecar { received_ms, envelope } = serde_json::from_slice(&fs::read(sidecar)?)?;
        Ok(Kept { id, received_ms, envelope, raw: fs::read(self.file(id, "eml"))?.into() })
    }
    /// Keeps a message.
    pub fn keep(&self, message: &Kept) -> io::Result<()> {
        let sidecar = Sidecar { received_ms: message.received_ms, envelope: message.envelope.clone() };
        replace(&self.file(message.id, "json"), &serde_json::to_vec_pretty(&sidecar)?)?;
        replace(&self.file(message.id, "eml"), &message.raw)
    }
    /// Removes messages.
    pub fn remove(&self, ids: &[Id]) -> io::Result<()> {
        for &id in ids {
            for kind in ["eml", "json"] {
                match fs::remove_file(self.file(id, kind)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_in_a_folder() {
        let path = std::env::temp_dir().join(format!("inhost-mailcatch-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let folder = Folder::open(&path).unwrap();
        for number in 1..=4 {
            let envelope = Envelope { to: vec![format!("{number}@example.net")], ..Default::default() };
            folder
                .keep(&Kept { id: Id(number), received_ms: number, envelope, raw: vec![b'x'; 100].into() })
                .unwrap();
        }
        fs::write(path.join("other.eml"), "not ours").unwrap();
        fs::write(path.join("000000000003.json"), "not whole").unwrap();
        folder.remove(&[Id(1), Id(77)]).unwrap();
        let read = |messages, bytes| {
            let kept = folder.read(StoreLimits { messages, bytes }).unwrap();
            kept.iter().map(|kept| (kept.id.0, kept.envelope.to[0].clone())).collect::<Vec<_>>()
        };
        assert_eq!(read(9, 1000), [(2, "2@example.net".into()), (4, "4@example.net".into())]);
        assert_eq!(read(1, 1000).len(), 1);
        assert_eq!(read(9, 150).len(), 1);
        fs::remove_dir_all(&path).unwrap();
    }
}
