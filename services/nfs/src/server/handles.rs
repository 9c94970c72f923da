//! File handles: a file's key with a code that only this server can make.
//!
//! `version(1) export(4) key(at most 43) code(16)`. The code is HMAC-SHA-256, cut to 16 octets, over what stands
//! before it. With the same key a handle is valid after a restart.

use std::io;
use std::path::Path;

use ring::hmac;

use super::tree::{FileKey, KEY_BYTES};
use crate::codec::nfs::{HANDLE_BYTES, Handle};

/// Octets of the key of all handles.
pub const SECRET_BYTES: usize = 32;

const VERSION: u8 = 1;
const CODE_BYTES: usize = 16;
const FRONT_BYTES: usize = 5;

const _: () = assert!(FRONT_BYTES + KEY_BYTES + CODE_BYTES == HANDLE_BYTES);

/// Makes and checks handles.
#[derive(Clone, Debug)]
pub struct Handles {
    key: hmac::Key,
}

impl Handles {
    /// Handles under a secret.
    pub fn new(secret: &[u8; SECRET_BYTES]) -> Handles {
        Handles { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }
    /// The number of an export: of its path, so that it is the same after a restart.
    pub fn export_number(&self, path: &[u8]) -> u32 {
        let code = hmac::sign(&self.key, &[b"export", path].concat());
        u32::from_be_bytes(first(code.as_ref()))
    }
    /// The handle of a file.
    pub fn seal(&self, export: u32, file: &FileKey) -> Handle {
        let mut octets = Vec::with_capacity(HANDLE_BYTES);
        octets.push(VERSION);
        octets.extend_from_slice(&export.to_be_bytes());
        octets.extend_from_slice(&file.0[..file.0.len().min(KEY_BYTES)]);
        let code = hmac::sign(&self.key, &octets);
        octets.extend_from_slice(&code.as_ref()[..CODE_BYTES]);
        Handle(octets)
    }
    /// Number of the export and key of the file; `None` for a handle that this server has not made.
    pub fn open(&self, handle: &Handle) -> Option<(u32, FileKey)> {
        let (body, code) = handle.0.split_at_checked(handle.0.len().checked_sub(CODE_BYTES)?)?;
        let made = hmac::sign(&self.key, body);
        let (&version, rest) = body.split_first()?;
        let (export, key) = rest.split_first_chunk::<4>()?;
        let is_same = same(code, &made.as_ref()[..CODE_BYTES]);
        (is_same && version == VERSION).then(|| (u32::from_be_bytes(*export), FileKey(key.to_vec())))
    }
}

/// Compares in constant time.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn first<const N: usize>(octets: &[u8]) -> [u8; N] {
    octets.first_chunk().copied().unwrap_or([0; N])
}

/// The secret in a file. If there is none, `fresh` is kept there, on the disk before this returns.
pub fn secret_in(path: &Path, fresh: [u8; SECRET_BYTES]) -> io::Result<[u8; SECRET_BYTES]> {
    match std::fs::read(path) {
        Ok(octets) => {
            let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not a key of 32 octets");
            octets.try_into().map_err(wrong)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            inhost_common::replace(path, &fresh)?;
            Ok(fresh)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_was_changed_anywhere_is_refused() {
        let handles = Handles::new(&[7; 32]);
        let key = FileKey(vec![3; KEY_BYTES]);
        let handle = handles.seal(9, &key);
        assert_eq!(handle.0.len(), HANDLE_BYTES);
        assert_eq!(handles.open(&handle), Some((9, key.clone())));
        for bit in 0..HANDLE_BYTES * 8 {
            let mut forged = handle.clone();
            forged.0[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(handles.open(&forged), None);
        }
        for length in 0..HANDLE_BYTES {
            assert_eq!(handles.open(&Handle(handle.0[..length].to_vec())), None);
        }
        assert_eq!(Handles::new(&[8; 32]).open(&handle), None);
        assert_eq!(Handles::new(&[7; 32]).open(&handle), Some((9, key)), "after a restart");
    }

    #[test]
    fn a_secret_is_kept() {
        let folder = std::env::temp_dir().join(format!("inhost-nfs-secret-{}", std::process::id()));
        let path = folder.join("state/nfs.key");
        assert_eq!(secret_in(&path, [1; 32]).unwrap(), [1; 32]);
        assert_eq!(secret_in(&path, [2; 32]).unwrap(), [1; 32]);
        std::fs::write(&path, b"short").unwrap();
        assert!(secret_in(&path, [2; 32]).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
