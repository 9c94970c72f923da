#![allow(clippy::result_large_err, reason = "a procedure that failed tells attributes, too")]

use super::access::Squash;
use super::folder::{Durability, FolderTree};
use super::*;
use crate::codec::mount::{MountError, MountReply};
use crate::codec::nfs::access;
use crate::codec::nfs::*;
use crate::codec::portmap::{Mapping, RpcBinding, TCP, Text, UDP};
use crate::codec::rpc::{AuthSys, Credentials, Target as CallTarget};
use crate::codec::xdr::{from_octets, to_octets};
use std::cell::Cell;
use std::path::PathBuf;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 7));

struct Rig {
    path: PathBuf,
    server: Server,
    caller: Caller,
    credentials: Credentials,
    xid: Cell<u32>,
}

impl Rig {
    fn new(name: &str, change: impl FnOnce(&mut ExportRules)) -> Rig {
        let path = std::env::temp_dir().join(format!("inhost-nfs-server-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let mut rules = ExportRules {
            path: "/files".into(),
            networks: vec!["10.9.0.0/16".parse().unwrap()],
            is_writable: true,
            anonymous: Some(own),
            ..ExportRules::default()
        };
        change(&mut rules);
        let server = Server::new(&[7; 32], 1);
        let tree = FolderTree::open(&path, Durability::Later).unwrap();
        server.set_exports(vec![(rules, Arc::new(tree))]);
        server.set_ports(Ports { files: 2049, portmapper: 111, has_datagrams: true });
        let local = IpAddr::from([10, 9, 0, 1]);
        let caller = Caller { address: CLIENT, port: 5000, local, is_datagram: false };
        let credentials = Credentials::Sys(AuthSys { uid: 1000, gid: 1000, ..AuthSys::default() });
        Rig { path, server, caller, credentials, xid: Cell::new(0) }
    }
    fn message(&self, target: CallTarget, arguments: &impl Xdr) -> Vec<u8> {
        self.xid.set(self.xid.get() + 1);
        let mut to = Encoder::default();
        CallHeader { xid: self.xid.get(), target, credentials: self.credentials.clone() }.encode(&mut to);
        to.value(arguments);
        to.into_octets()
    }
    fn send(&self, message: &[u8], programs: Programs) -> (ReplyStatus, Vec<u8>) {
        let Answer::Reply(reply) = self.server.answer(message, self.caller, programs, Instant::ZERO) else {
            panic!("no reply")
        };
        let (header, results) = ReplyHeader::parse(&reply).unwrap();
        (header.status, results.to_vec())
    }
    fn call<P: Procedure>(&self, arguments: &P::Arguments) -> P::Results {
        let target = CallTarget { program: PROGRAM, version: VERSION, procedure: P::NUMBER };
        let (status, results) = self.send(&self.message(target, arguments), Programs::Files);
        assert_eq!(status, ReplyStatus::Success);
        from_octets(&results).unwrap()
    }
    fn mount(&self, path: &str) -> Result<Handle, MountError> {
        let target = CallTarget { program: mount::PROGRAM, version: 3, procedure: mount::procedure::MNT };
        let (_, results) = self.send(&self.message(target, &mount::Path::from(path)), Programs::Files);
        from_octets::<MountReply>(&results).unwrap().0.map(|(handle, _)| handle)
    }
    fn root(&self) -> Handle {
        self.mount("/files").unwrap()
    }
    fn create(&self, directory: &Handle, name: &str) -> Handle {
        let how = How::Guarded(SetAttributes::default());
        let made = self.call::<Create>(&CreateArguments { place: place(directory, name), how });
        made.unwrap().object.unwrap()
    }
    fn write(&self, file: &Handle, octets: &[u8], stable: Stable) -> Outcome<Written, Wcc> {
        let (data, count) = (Data(octets.to_vec()), octets.len() as u32);
        self.call::<Write>(&WriteArguments { file: file.clone(), offset: 0, count, stable, data })
    }
}
impl Drop for Rig {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn place(directory: &Handle, name: &str) -> Place {
    Place { directory: directory.clone(), name: name.into() }
}
fn named(directory: &Handle, name: &str) -> Named {
    Named { place: place(directory, name) }
}
fn object(handle: &Handle) -> Object {
    Object { handle: handle.clone() }
}
fn error<T, F>(outcome: Outcome<T, F>) -> Status {
    outcome.err().unwrap().status
}

#[test]
fn only_networks_of_the_list_mount_and_use_handles() {
    let mut rig = Rig::new("networks", |_| {});
    let root = rig.root();
    assert_eq!(rig.mount("/other"), Err(MountError::NO_ENTRY));
    assert_eq!(rig.mount("/filesystem"), Err(MountError::NO_ENTRY));
    assert_eq!(rig.mount("/files/../etc").unwrap_err(), MountError(Status::INVAL.0));
    std::fs::create_dir(rig.path.join("sub")).unwrap();
    assert!(rig.mount("/files/sub/").is_ok());
    rig.caller.address = IpAddr::from([192, 0, 2, 1]);
    assert_eq!(rig.mount("/files"), Err(MountError::ACCESS));
    assert_eq!(error(rig.call::<GetAttr>(&object(&root))), Status::ACCES, "a handle alone is not enough");
    let reserved = Rig::new("reserved", |rules| rules.needs_reserved_port = true);
    assert_eq!(reserved.mount("/files"), Err(MountError::ACCESS));
}

#[test]
fn handles_are_checked_and_outlive_the_server() {
    let rig = Rig::new("handles", |_| {});
    let root = rig.root();
    let file = rig.create(&root, "file");
    assert!(rig.call::<GetAttr>(&object(&file)).is_ok());
    let mut forged = file.clone();
    forged.0[9] ^= 1;
    assert_eq!(error(rig.call::<GetAttr>(&object(&forged))), Status::BADHANDLE);
    assert_eq!(error(rig.call::<GetAttr>(&object(&Handle(vec![])))), Status::BADHANDLE);
    let again = Server::new(&[7; 32], 2);
    let tree = FolderTree::open(&rig.path, Durability::Later).unwrap();
    let rules =
        ExportRules { path: "/files".into(), networks: vec!["*".parse().unwrap()], ..Default::default() };
    again.set_exports(vec![(rules, Arc::new(tree))]);
    let target = CallTarget { program: PROGRAM, version: VERSION, procedure: GetAttr::NUMBER };
    let message = rig.message(target, &object(&file));
    let Answer::Reply(reply) = again.answer(&message, rig.caller, Programs::Files, Instant::ZERO) else {
        panic!()
    };
    let (_, results) = ReplyHeader::parse(&reply).unwrap();
    assert!(from_octets::<Outcome<AttributesOf, ()>>(results).unwrap().is_ok());
    std::fs::remove_file(rig.path.join("file")).unwrap();
    assert_eq!(error(rig.call::<GetAttr>(&object(&file))), Status::STALE);
    rig.server.set_exports(Vec::new());
    assert_eq!(error(rig.call::<GetAttr>(&object(&root))), Status::STALE);
}

#[test]
fn a_repeated_call_is_done_once() {
    let rig = Rig::new("repeated", |_| {});
    let root = rig.root();
    rig.create(&root, "file");
    let target = CallTarget { program: PROGRAM, version: VERSION, procedure: Remove::NUMBER };
    let message = rig.message(target, &named(&root, "file"));
    let first = rig.send(&message, Programs::Files);
    rig.create(&root, "file");
    assert_eq!(rig.send(&message, Programs::Files), first, "the reply is the same");
    assert!(rig.path.join("file").exists(), "and nothing is removed");
    let other = rig.message(target, &named(&root, "file"));
    assert!(from_octets::<Outcome<Wcc, Wcc>>(&rig.send(&other, Programs::Files).1).unwrap().is_ok());
    assert!(!rig.path.join("file").exists());
}

#[test]
fn attributes_before_and_after_belong_together() {
    let rig = Rig::new("wcc", |_| {});
    let root = rig.root();
    let before = rig.call::<GetAttr>(&object(&root)).unwrap().attributes;
    let how = How::Unchecked(SetAttributes { mode: Some(0o600), ..SetAttributes::default() });
    let made = rig.call::<Create>(&CreateArguments { place: place(&root, "f"), how }).unwrap();
    assert_eq!(made.directory.before, Some(before.into()));
    assert_eq!(made.attributes.unwrap().mode, 0o600);
    let file = made.object.unwrap();
    let written = rig.write(&file, b"octets", Stable::Unstable).unwrap();
    assert_eq!(written.wcc.before, made.attributes.map(Into::into));
    assert_eq!(written.wcc.after.unwrap().size_bytes, 6);
    assert_eq!((written.count, written.stable), (6, Stable::Unstable));
    let read = ReadArguments { file: file.clone(), offset: 2, count: 100 };
    let read = rig.call::<Read>(&read).unwrap();
    assert_eq!((read.data.0.as_slice(), read.is_end), (&b"tets"[..], true));
    let committed = rig.call::<Commit>(&CommitArguments { file: file.clone(), offset: 0, count: 0 }).unwrap();
    assert_eq!(committed.verifier, written.verifier);
    rig.server.change_verifier();
    let after = rig.write(&file, b"x", Stable::File).unwrap();
    assert_ne!(after.verifier, written.verifier);
    let guard = SetAttributesArguments {
        object: file.clone(),
        guard: Some(written.wcc.after.unwrap().changed),
        attributes: SetAttributes { size_bytes: Some(2), ..SetAttributes::default() },
    };
    if after.wcc.after.unwrap().changed != written.wcc.after.unwrap().changed {
        assert_eq!(error(rig.call::<SetAttr>(&guard)), Status::NOT_SYNC);
    }
    let guard = SetAttributesArguments { guard: Some(after.wcc.after.unwrap().changed), ..guard };
    assert_eq!(rig.call::<SetAttr>(&guard).unwrap().after.unwrap().size_bytes, 2);
    let failed = rig.call::<Remove>(&named(&root, "missing")).unwrap_err();
    assert!(failed.rest.before.is_some() && failed.rest.after.is_some());
    let short = WriteArguments { file, count: 9, data: Data(vec![0; 3]), ..WriteArguments::default() };
    assert_eq!(error(rig.call::<Write>(&short)), Status::INVAL);
}

#[test]
fn a_failure_of_the_disk_changes_the_verifier() {
    let rig = Rig::new("disk", |_| {});
    let (rules, networks) = (ExportRules::default(), vec!["*".parse().unwrap()]);
    let rules = ExportRules { path: "/files".into(), networks, is_writable: true, ..rules };
    rig.server.set_exports(vec![(rules, Arc::new(crate::fuzz::Two))]);
    let file = rig.server.sealed("/files", &FileKey(vec![1]));
    let verifier = || rig.write(&file, b"octets", Stable::Unstable).unwrap().verifier;
    let fails = |stable| {
        let (data, count) = (Data(b"x".to_vec()), 1);
        let write = WriteArguments { file: file.clone(), offset: u64::MAX, count, stable, data };
        assert_eq!(error(rig.call::<Write>(&write)), Status::IO);
    };
    let first = verifier();
    fails(Stable::Unstable);
    assert_eq!(verifier(), first, "what was written before is where it was");
    fails(Stable::File);
    let second = verifier();
    assert_ne!(second, first, "COMMIT would not tell of octets that this write found lost");
    fails(Stable::Data);
    let third = verifier();
    assert_ne!(third, second);
    let attributes = SetAttributes { size_bytes: Some(u64::MAX), ..SetAttributes::default() };
    let set = SetAttributesArguments { object: file.clone(), guard: None, attributes };
    assert_eq!(error(rig.call::<SetAttr>(&set)), Status::IO);
    let fourth = verifier();
    assert_ne!(fourth, third);
    let place = |name: &str| Place {
        directory: rig.server.sealed("/files", &FileKey(vec![0])),
        name: Name(name.into()),
    };
    let create = CreateArguments { place: place("file"), how: How::Unchecked(attributes) };
    assert_eq!(error(rig.call::<Create>(&create)), Status::IO);
    let fifth = verifier();
    assert_ne!(fifth, fourth);
    assert_eq!(
        error(rig.call::<Link>(&LinkArguments { file: file.clone(), link: place("lost") })),
        Status::IO
    );
    assert_ne!(verifier(), fifth);
}

#[test]
fn an_exclusive_create_is_known_again() {
    let rig = Rig::new("exclusive", |_| {});
    let root = rig.root();
    let create = |verifier| {
        rig.call::<Create>(&CreateArguments { place: place(&root, "f"), how: How::Exclusive(verifier) })
    };
    let first = create(*b"verifier").unwrap();
    assert_eq!(create(*b"verifier").unwrap().object, first.object);
    assert_eq!(error(create(*b"another!")), Status::EXIST);
    let how = How::Guarded(SetAttributes::default());
    assert_eq!(error(rig.call::<Create>(&CreateArguments { place: place(&root, "f"), how })), Status::EXIST);
    let how = How::Unchecked(SetAttributes { size_bytes: Some(3), ..SetAttributes::default() });
    let taken = rig.call::<Create>(&CreateArguments { place: place(&root, "f"), how }).unwrap();
    assert_eq!((taken.object, taken.attributes.unwrap().size_bytes), (first.object, 3));
    for name in ["", ".", ".."] {
        let how = How::Guarded(SetAttributes::default());
        assert!(rig.call::<Create>(&CreateArguments { place: place(&root, name), how }).is_err(), "{name}");
    }
}

#[test]
fn a_read_only_export_is_not_changed() {
    let rig = Rig::new("read-only", |rules| rules.is_writable = false);
    std::fs::write(rig.path.join("f"), b"old").unwrap();
    let root = rig.root();
    let file = rig.call::<Lookup>(&named(&root, "f")).unwrap().object;
    assert_eq!(error(rig.write(&file, b"new", Stable::File)), Status::ROFS);
    assert_eq!(error(rig.call::<Remove>(&named(&root, "f"))), Status::ROFS);
    let moved = RenameArguments { from: place(&root, "f"), to: place(&root, "g") };
    assert_eq!(error(rig.call::<Rename>(&moved)), Status::ROFS);
    let link = LinkArguments { file: file.clone(), link: place(&root, "g") };
    assert_eq!(error(rig.call::<Link>(&link)), Status::ROFS);
    let make = MakeDirectoryArguments { place: place(&root, "d"), attributes: SetAttributes::default() };
    assert_eq!(error(rig.call::<Mkdir>(&make)), Status::ROFS);
    let all = AccessArguments { object: file, access: 0x3f };
    assert_eq!(rig.call::<Access>(&all).unwrap().access & (access::MODIFY | access::EXTEND), 0);
    assert_eq!(std::fs::read(rig.path.join("f")).unwrap(), b"old");
}

#[test]
fn names_are_moved_linked_and_removed() {
    let rig = Rig::new("names", |_| {});
    let root = rig.root();
    let make = MakeDirectoryArguments { place: place(&root, "d"), attributes: SetAttributes::default() };
    let directory = rig.call::<Mkdir>(&make).unwrap().object.unwrap();
    let file = rig.create(&root, "f");
    let link = LinkArguments { file: file.clone(), link: place(&directory, "g") };
    assert_eq!(rig.call::<Link>(&link).unwrap().attributes.unwrap().links, 2);
    assert_eq!(error(rig.call::<Link>(&link)), Status::EXIST);
    let of_directory = LinkArguments { file: directory.clone(), link: place(&root, "h") };
    assert_eq!(error(rig.call::<Link>(&of_directory)), Status::ISDIR);
    let symlink = SymlinkArguments {
        place: place(&root, "l"),
        attributes: SetAttributes::default(),
        target: "d/g".into(),
    };
    let symlink = rig.call::<Symlink>(&symlink).unwrap().object.unwrap();
    assert_eq!(rig.call::<ReadLink>(&object(&symlink)).unwrap().target.0, b"d/g");
    assert_eq!(error(rig.call::<ReadLink>(&object(&file))), Status::INVAL);
    let rename =
        |from: &str, to: Place| rig.call::<Rename>(&RenameArguments { from: place(&root, from), to });
    assert_eq!(error(rename("f", place(&root, "d"))), Status::EXIST, "a file in the place of a directory");
    assert_eq!(error(rename("d", place(&root, "f"))), Status::EXIST);
    assert_eq!(error(rename("missing", place(&root, "x"))), Status::NOENT);
    assert_eq!(error(rename("f", place(&root, ".."))), Status::INVAL);
    let moved = rename("f", place(&directory, "moved")).unwrap();
    assert!(moved.from.before.is_some() && moved.to.after.is_some());
    let found = rig.call::<Lookup>(&named(&directory, "moved")).unwrap();
    assert_eq!(found.object, file, "a file has one handle, wherever it is");
    assert_eq!(rig.call::<Lookup>(&named(&directory, "moved")).unwrap().object, {
        rig.call::<Lookup>(&named(&directory, "g")).unwrap().object
    });
    assert_eq!(rig.call::<Lookup>(&named(&directory, "..")).unwrap().object, root);
    assert_eq!(rig.call::<Lookup>(&named(&root, "..")).unwrap().object, root);
    assert_eq!(error(rig.call::<Rmdir>(&named(&root, "d"))), Status::NOTEMPTY);
    assert_eq!(error(rig.call::<Remove>(&named(&root, "d"))), Status::ISDIR);
    assert_eq!(error(rig.call::<Rmdir>(&named(&root, "l"))), Status::NOTDIR);
    for name in ["moved", "g"] {
        assert!(rig.call::<Remove>(&named(&directory, name)).is_ok());
    }
    assert!(rig.call::<Rmdir>(&named(&root, "d")).is_ok());
    let node = |kind| {
        let node = Node { kind, ..Node::default() };
        rig.call::<Mknod>(&MakeNodeArguments { place: place(&root, "n"), node })
    };
    assert_eq!(error(node(FileType::Block)), Status::NOTSUPP);
    assert_eq!(error(node(FileType::Regular)), Status::BADTYPE);
    assert_eq!(node(FileType::Fifo).unwrap().attributes.unwrap().kind, FileType::Fifo);
}

#[test]
fn a_program_that_is_written_lends_no_identity_any_more() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::new("set-user-id", |_| {});
    let path = rig.path.join("program");
    std::fs::write(&path, b"old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o6755)).unwrap();
    let file = rig.call::<Lookup>(&named(&rig.root(), "program")).unwrap();
    assert_eq!(file.attributes.unwrap().mode, 0o6755);
    let written = rig.write(&file.object, b"new", Stable::Unstable).unwrap();
    assert_eq!(written.wcc.after.unwrap().mode, 0o755);
}

#[test]
fn directories_are_listed_in_pieces() {
    let rig = Rig::new("listed", |_| {});
    for number in 0..500 {
        std::fs::write(rig.path.join(format!("file-{number}")), b"").unwrap();
    }
    let root = rig.root();
    let (mut names, mut cookie, mut verifier) = (Vec::new(), 0, [0; 8]);
    loop {
        let asked = ReadDirArguments { directory: root.clone(), cookie, verifier, count: 1024 };
        let target = CallTarget { program: PROGRAM, version: VERSION, procedure: ReadDir::NUMBER };
        let (_, results) = rig.send(&rig.message(target, &asked), Programs::Files);
        assert!(results.len() <= 1024 + 4, "{} octets", results.len());
        let list = from_octets::<Outcome<Entries<Entry>, PostOp>>(&results).unwrap().unwrap();
        names.extend(list.entries.iter().map(|entry| entry.name.clone()));
        (cookie, verifier) = (list.entries.last().unwrap().cookie, list.verifier);
        if list.is_end {
            break;
        }
    }
    let (mut plus, mut cookie, mut verifier) = (Vec::new(), 0, [0; 8]);
    loop {
        let asked = ReadDirPlusArguments {
            directory: root.clone(),
            cookie,
            verifier,
            names_bytes: 8192,
            count: 4096,
        };
        let list = rig.call::<ReadDirPlus>(&asked).unwrap();
        assert!(to_octets(&list).len() <= 4096);
        for entry in &list.entries {
            assert!(rig.call::<GetAttr>(&object(entry.handle.as_ref().unwrap())).is_ok());
            assert_eq!(entry.attributes.unwrap().fileid, entry.entry.fileid);
        }
        plus.extend(list.entries.iter().map(|entry| entry.entry.name.clone()));
        (cookie, verifier) = (list.entries.last().unwrap().entry.cookie, list.verifier);
        if list.is_end {
            break;
        }
    }
    names.sort();
    plus.sort();
    assert_eq!((names.len(), &names), (502, &plus));
    let wrong = ReadDirArguments { directory: root.clone(), cookie, verifier: [9; 8], count: 1024 };
    assert_eq!(error(rig.call::<ReadDir>(&wrong)), Status::BAD_COOKIE);
    let small = ReadDirArguments { directory: root, cookie: 0, verifier: [0; 8], count: 64 };
    assert_eq!(error(rig.call::<ReadDir>(&small)), Status::TOOSMALL);
}

/// As the superuser the server has a caller's own user; else all callers are the server itself.
#[test]
fn callers_have_the_rights_of_their_user() {
    let mut rig = Rig::new("users", |rules| {
        rules.squash = Squash::Root;
        rules.anonymous = None;
    });
    if !rustix::process::geteuid().is_root() {
        assert!(rig.call::<GetAttr>(&object(&rig.root())).is_ok());
        return;
    }
    let root = rig.root();
    let how = How::Guarded(SetAttributes::default());
    let create = CreateArguments { place: place(&root, "f"), how };
    assert_eq!(error(rig.call::<Create>(&create)), Status::ACCES, "the folder is the superuser's");
    std::os::unix::fs::chown(&rig.path, Some(1000), Some(1000)).unwrap();
    let made = rig.call::<Create>(&create).unwrap();
    let attributes = made.attributes.unwrap();
    assert_eq!((attributes.uid, attributes.gid), (1000, 1000));
    let file = made.object.unwrap();
    let set = |attributes| {
        let asked = SetAttributesArguments { object: file.clone(), attributes, guard: None };
        rig.call::<SetAttr>(&asked).map(|_| ()).map_err(|failed| failed.status)
    };
    let uid = |uid| SetAttributes { uid: Some(uid), ..SetAttributes::default() };
    let mode = |mode| SetAttributes { mode: Some(mode), ..SetAttributes::default() };
    assert_eq!((set(uid(0)), set(uid(1000)), set(mode(0o600))), (Err(Status::PERM), Ok(()), Ok(())));
    for stranger in [1001, 0] {
        rig.credentials = Credentials::Sys(AuthSys { uid: stranger, gid: 7, ..AuthSys::default() });
        let read = ReadArguments { file: file.clone(), offset: 0, count: 10 };
        assert_eq!(error(rig.call::<Read>(&read)), Status::ACCES);
        assert_eq!(error(rig.write(&file, b"x", Stable::Unstable)), Status::ACCES);
        assert_eq!(error(rig.call::<Remove>(&named(&root, "f"))), Status::ACCES);
    }
}

#[test]
fn the_portmapper_tells_the_ports_of_this_server() {
    let rig = Rig::new("ports", |_| {});
    let call = |version, procedure, arguments: &dyn Fn(&mut Encoder)| {
        let target = CallTarget { program: portmap::PROGRAM, version, procedure };
        let mut to = Encoder::behind(rig.message(target, &()));
        arguments(&mut to);
        rig.send(&to.into_octets(), Programs::Ports)
    };
    let port = |program, version, protocol| {
        let mapping = Mapping { program, version, protocol, port: 0 };
        from_octets::<u32>(&call(2, 3, &|to| to.value(&mapping)).1).unwrap()
    };
    assert_eq!(
        (port(PROGRAM, 3, TCP), port(PROGRAM, 3, UDP), port(mount::PROGRAM, 3, TCP)),
        (2049, 2049, 2049)
    );
    assert_eq!((port(PROGRAM, 4, TCP), port(100_021, 4, TCP)), (0, 0));
    let (_, results) = call(2, 4, &|_| {});
    assert_eq!(Decoder::new(&results).list::<Mapping>(100).unwrap().len(), 10);
    let binding = RpcBinding { program: PROGRAM, version: 3, network: "tcp".into(), ..RpcBinding::default() };
    for version in [3, 4] {
        let (_, results) = call(version, 3, &|to| to.value(&binding));
        assert_eq!(from_octets::<Text>(&results).unwrap(), "10.9.0.1.8.1".into());
    }
    assert_eq!(from_octets::<bool>(&call(2, 1, &|_| {}).1), Ok(false), "nobody enters a port");
    assert_eq!(call(2, 5, &|_| {}).0, ReplyStatus::ProcedureUnavailable, "nothing is called for others");
    assert_eq!(call(5, 0, &|_| {}).0, ReplyStatus::ProgramMismatch { low: 2, high: 4 });
}

#[test]
fn what_is_not_understood_is_told() {
    let rig = Rig::new("refused", |_| {});
    let call = |program, version, procedure, arguments: u32| {
        rig.send(&rig.message(CallTarget { program, version, procedure }, &arguments), Programs::Files).0
    };
    assert_eq!(call(PROGRAM, 4, 1, 0), ReplyStatus::ProgramMismatch { low: 3, high: 3 });
    assert_eq!(call(PROGRAM, 3, 22, 0), ReplyStatus::ProcedureUnavailable);
    assert_eq!(call(PROGRAM, 3, 1, 99), ReplyStatus::GarbageArguments);
    assert_eq!(call(PROGRAM, 3, 12, 99), ReplyStatus::GarbageArguments);
    assert_eq!(call(100_021, 3, 1, 0), ReplyStatus::ProgramUnavailable);
    assert_eq!(call(portmap::PROGRAM, 2, 0, 0), ReplyStatus::ProgramUnavailable, "not at this port");
    assert_eq!(rig.server.answer(b"rubbish", rig.caller, Programs::Files, Instant::ZERO), Answer::Nothing);
}
