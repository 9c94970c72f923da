//! Fuzz targets. Any octets go to the formats and to a server; the invariants are asserted.

use std::net::IpAddr;
use std::sync::Arc;

use crate::client::{CallSettings, Calls};
use crate::codec::nfs::{
    self, Attributes, FileType, Procedure, SetAttributes, Stable, Statistics, Status, Verifier,
};
use crate::codec::record::Records;
use crate::codec::rpc::{CallHeader, Credentials, ReplyHeader, Target};
use crate::codec::xdr::{Encoder, Xdr, from_octets, to_octets};
use crate::codec::{mount, portmap};
use crate::server::tree::{FileKey, Known, Make, Tree, TreeEntries, TreeEntry, TreeResult};
use crate::server::{Answer, Caller, ExportRules, Programs, RECORD_BYTES, Server};
use inhost_base::Instant;

/// Octets of a reply at most: those of a READ, and its front.
const REPLY_BYTES: usize = RECORD_BYTES;

/// What is read is written as it was, except for padding.
fn both_ways<T: Xdr>(octets: &[u8]) {
    let Ok(value) = from_octets::<T>(octets) else { return };
    let written = to_octets(&value);
    assert_eq!(written.len(), octets.len());
    let again = from_octets::<T>(&written).map(|value| to_octets(&value));
    assert_eq!(again, Ok(written));
}

/// The formats.
pub fn fuzz_nfs_formats(input: &[u8]) {
    macro_rules! procedures {
        ($($name:ident)*) => {
            $(
                both_ways::<<nfs::$name as Procedure>::Arguments>(input);
                both_ways::<<nfs::$name as Procedure>::Results>(input);
            )*
        };
    }
    procedures!(GetAttr SetAttr Lookup Access ReadLink Read Write Create Mkdir Symlink Mknod Remove);
    procedures!(Rmdir Rename Link ReadDir ReadDirPlus FsStat FsInfo PathConf Commit);
    both_ways::<mount::MountReply>(input);
    both_ways::<mount::Export>(input);
    both_ways::<portmap::RpcBinding>(input);
    let _ = portmap::from_universal(&String::from_utf8_lossy(input));
    let _ = (CallHeader::parse(input), ReplyHeader::parse(input));
    let (first, limit) = (input.first().copied().unwrap_or(1), 1000);
    let mut records = Records::new(limit);
    for mut piece in input.chunks(usize::from(first.max(1))) {
        while let Ok(Some(record)) = records.take(&mut piece) {
            assert!(record.len() <= limit);
        }
        assert!(records.held_bytes() <= limit + 4);
    }
    let mut calls = Calls::new(CallSettings::datagrams(), 1);
    let target = Target { program: nfs::PROGRAM, version: nfs::VERSION, procedure: 0 };
    let begun = calls.begin(target, &Credentials::None, &(), Instant::ZERO);
    if calls.received(input) {
        assert!(begun.is_ok_and(|xid| calls.take(xid).is_some()));
    }
}

/// A server whose clients are the input: each piece is a call of a procedure, with a handle of the server before its
/// arguments or without.
pub fn fuzz_nfs_server(input: &[u8]) {
    let server = Server::new(&[7; 32], 1);
    let rules = ExportRules {
        path: "/files".into(),
        networks: "*".parse().into_iter().collect(),
        is_writable: input.len().is_multiple_of(2),
        ..ExportRules::default()
    };
    server.set_exports(vec![(rules, Arc::new(Two))]);
    let local = IpAddr::from([10, 9, 0, 1]);
    let caller = Caller { address: local, port: 1000, local, is_datagram: input.len().is_multiple_of(3) };
    let exported = [0, 1].map(|key| server.sealed("/files", &FileKey(vec![key])));
    let mut rest = input;
    while let Some((&choice, behind)) = rest.split_first() {
        let (piece, after) = behind.split_at(behind.len().min(1 + usize::from(choice)));
        rest = after;
        let (&kind, body) = piece.split_first().unwrap_or((&0, &[]));
        let target = match kind % 8 {
            0 => Target { program: mount::PROGRAM, version: 3, procedure: u32::from(choice % 7) },
            1 => Target {
                program: portmap::PROGRAM,
                version: 2 + u32::from(choice % 4),
                procedure: kind.into(),
            },
            _ => Target { program: nfs::PROGRAM, version: 3, procedure: u32::from(choice % 23) },
        };
        let mut to = Encoder::default();
        CallHeader { xid: choice.into(), target, credentials: Credentials::None }.encode(&mut to);
        if kind & 0x80 != 0 {
            to.value(&exported[usize::from(kind >> 6 & 1)]);
        }
        let mut message = to.into_octets();
        message.extend_from_slice(body);
        let programs = if kind % 8 == 1 { Programs::Ports } else { Programs::Files };
        for message in [&message[..], body] {
            if let Answer::Reply(reply) = server.answer(message, caller, programs, Instant::ZERO) {
                assert!(reply.len() <= REPLY_BYTES && ReplyHeader::parse(&reply).is_ok());
            }
        }
    }
}

/// A tree of a directory (key 0) with a file (key 1), which stay as they are. The disk fails at the last offset,
/// and for a link with the name `lost`.
pub(crate) struct Two;

const DIRECTORY: &[u8] = &[0];
const FILE: &[u8] = &[1];

impl Two {
    fn known(key: &[u8]) -> TreeResult<Known> {
        let (kind, mode) = match key {
            DIRECTORY => (FileType::Directory, 0o777),
            FILE => (FileType::Regular, 0o666),
            _ => return Err(Status::STALE),
        };
        let attributes = Attributes { kind, mode, size_bytes: 1 << 40, ..Attributes::default() };
        Ok(Known { key: FileKey(key.to_vec()), attributes })
    }
}

impl Tree for Two {
    fn root(&self) -> TreeResult<Known> {
        Two::known(DIRECTORY)
    }
    fn owner(&self) -> (u32, u32) {
        (1000, 1000)
    }
    fn gives_away(&self) -> bool {
        true
    }
    fn attributes(&self, file: &FileKey) -> TreeResult<Attributes> {
        Two::known(&file.0).map(|known| known.attributes)
    }
    fn lookup(&self, _: &FileKey, name: &[u8]) -> TreeResult<Known> {
        assert!(name != b"." && name != b"..");
        if name.len().is_multiple_of(2) { Two::known(FILE) } else { Err(Status::NOENT) }
    }
    fn parent(&self, _: &FileKey) -> TreeResult<Known> {
        self.root()
    }
    fn set_attributes(&self, _: &FileKey, set: &SetAttributes) -> TreeResult<()> {
        if set.size_bytes == Some(u64::MAX) { Err(Status::IO) } else { Ok(()) }
    }
    fn read_link(&self, _: &FileKey) -> TreeResult<Vec<u8>> {
        Ok(vec![b'x'; 10])
    }
    fn read(&self, file: &FileKey, _: u64, count: usize) -> TreeResult<(Vec<u8>, Attributes)> {
        Ok((vec![0; count], self.attributes(file)?))
    }
    fn write(&self, _: &FileKey, offset: u64, _: &[u8], stable: Stable) -> TreeResult<Stable> {
        if offset == u64::MAX { Err(Status::IO) } else { Ok(stable) }
    }
    fn commit(&self, _: &FileKey) -> TreeResult<()> {
        Err(Status::IO)
    }
    fn make(&self, _: &FileKey, name: &[u8], _: Make<'_>, _: u32, _: (u32, u32)) -> TreeResult<Known> {
        assert!(!matches!(name, b"" | b"." | b".."));
        Two::known(FILE)
    }
    fn remove(&self, _: &FileKey, name: &[u8], _: bool) -> TreeResult<()> {
        assert!(!matches!(name, b"." | b".."));
        Ok(())
    }
    fn rename(&self, from: (&FileKey, &[u8]), to: (&FileKey, &[u8])) -> TreeResult<()> {
        assert!(!matches!(from.1, b"." | b"..") && !matches!(to.1, b"." | b".."));
        Ok(())
    }
    fn link(&self, _: &FileKey, _: &FileKey, name: &[u8]) -> TreeResult<()> {
        if name == b"lost" { Err(Status::IO) } else { Ok(()) }
    }
    fn entries(&self, _: &FileKey, cookie: u64, bytes: usize) -> TreeResult<TreeEntries> {
        let count = (bytes / 32).max(1) as u64;
        let entry = |at| TreeEntry { fileid: at, name: b"file".to_vec(), cookie: at };
        let behind = cookie.saturating_add(1)..cookie.saturating_add(1 + count);
        Ok(TreeEntries { entries: behind.map(entry).collect(), is_end: cookie > 1000 })
    }
    fn cookie_verifier(&self, _: &FileKey) -> TreeResult<Verifier> {
        Ok([0; 8])
    }
    fn statistics(&self) -> TreeResult<Statistics> {
        Ok(Statistics::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets that are nearly calls, from a seed: what a fuzzer finds first.
    #[test]
    fn rubbish_holds() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        for _ in 0..3_000 {
            let mut input = Vec::new();
            for _ in 0..next() % 12 {
                input.extend_from_slice(&[next(), next() | (next() & 0x80)]);
                for _ in 0..next() % 24 {
                    let word = match next() % 6 {
                        0 => [0, 0, 0, next() % 12],
                        1 => [0; 4],
                        2 => [0, 0, next(), next()],
                        3 => *b"name",
                        4 => [0xff; 4],
                        _ => [0, 0, 0, 1],
                    };
                    input.extend_from_slice(&word);
                }
            }
            fuzz_nfs_server(&input);
            fuzz_nfs_formats(&input);
            fuzz_nfs_formats(input.get(2..).unwrap_or_default());
        }
    }
}
