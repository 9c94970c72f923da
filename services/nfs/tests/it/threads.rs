//! Many threads at one server: no call waits for ever, and what a client is told about changes is right.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use inhost_base::Instant;
use inhost_nfs::codec::mount::{self, MountReply};
use inhost_nfs::codec::nfs::{
    self, CreateArguments, Data, Failed, Handle, How, LinkArguments, MakeDirectoryArguments, Named, Outcome,
    Procedure, ReadDirPlusArguments, RenameArguments, SetAttributes, Stable, Status, Wcc, WriteArguments,
};
use inhost_nfs::codec::rpc::{CallHeader, Credentials, ReplyHeader, ReplyStatus, Target};
use inhost_nfs::codec::xdr::{Encoder, Xdr, from_octets};
use inhost_nfs::server::folder::{Durability, FolderTree};
use inhost_nfs::server::{Answer, Caller, ExportRules, Programs, Server};

use super::place::Place;

const THREADS: u64 = 8;
const ROUNDS: usize = 1500;
const DIRECTORIES: u64 = 3;
const NAMES: u64 = 6;

fn server(place: &Place) -> Arc<Server> {
    let server = Server::new(&[7; 32], 1);
    let mut rules = ExportRules::default();
    rules.path = "/files".into();
    rules.networks = vec!["*".parse().unwrap()];
    rules.is_writable = true;
    rules.anonymous = Some((rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()));
    let tree = FolderTree::open(&place.0.join("server"), Durability::Later).unwrap();
    server.set_exports(vec![(rules, Arc::new(tree))]);
    Arc::new(server)
}

fn call<R: Xdr>(server: &Server, target: Target, arguments: &impl Xdr) -> R {
    static XID: AtomicU64 = AtomicU64::new(1);
    let xid = XID.fetch_add(1, Ordering::Relaxed) as u32;
    let mut to = Encoder::default();
    CallHeader { xid, target, credentials: Credentials::None }.encode(&mut to);
    to.value(arguments);
    let here = IpAddr::from([10, 9, 0, 1]);
    let caller = Caller { address: here, port: 1000, local: here, is_datagram: false };
    let Answer::Reply(reply) = server.answer(&to.into_octets(), caller, Programs::Files, Instant::ZERO)
    else {
        panic!("no reply")
    };
    let (header, results) = ReplyHeader::parse(&reply).unwrap();
    assert_eq!(header.status, ReplyStatus::Success);
    from_octets(results).unwrap()
}

fn mounted(server: &Server) -> Handle {
    let target =
        Target { program: mount::PROGRAM, version: mount::VERSION, procedure: mount::procedure::MNT };
    let mounted: MountReply = call(server, target, &mount::Path::from("/files"));
    mounted.0.unwrap().0
}

fn files<P: Procedure<Results = Outcome<T, F>>, T: Xdr, F: Xdr>(
    server: &Server,
    arguments: &P::Arguments,
) -> Outcome<T, F> {
    let target = Target { program: nfs::PROGRAM, version: nfs::VERSION, procedure: P::NUMBER };
    call(server, target, arguments)
}

/// A change that was done: nothing else was between before and after, so the directory's times did not go back.
fn check(wcc: &Wcc) {
    let (Some(before), Some(after)) = (wcc.before, wcc.after) else { panic!("{wcc:?}") };
    assert!(before.changed <= after.changed && before.modified <= after.modified, "{wcc:?}");
}

/// What others may have done meanwhile.
#[track_caller]
fn expect<T, F>(result: Outcome<T, F>, expected: &[Status]) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(Failed { status, .. }) => {
            assert!(expected.contains(&status), "{status:?}");
            None
        }
    }
}

fn work(server: &Server, directories: &[Handle], seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) % limit
    };
    for _ in 0..ROUNDS {
        let mut place = || nfs::Place {
            directory: directories[draw(DIRECTORIES) as usize].clone(),
            name: nfs::Name(format!("name-{}", draw(NAMES)).into_bytes()),
        };
        let (one, other) = (place(), place());
        match draw(7) {
            0 | 1 => {
                let how = How::Unchecked(SetAttributes::default());
                let made = files::<nfs::Create, _, _>(server, &CreateArguments { place: one, how });
                let Some(made) = expect(made, &[Status::EXIST, Status::NOENT]) else { continue };
                check(&made.directory);
                let (data, count) = (Data(vec![seed as u8; 100]), 100);
                let file = made.object.unwrap();
                let write = WriteArguments { file, offset: 0, count, stable: Stable::Unstable, data };
                let written =
                    expect(files::<nfs::Write, _, _>(server, &write), &[Status::STALE, Status::JUKEBOX]);
                // It may have been removed behind the writing.
                if let Some(written) = written.filter(|written| written.wcc.after.is_some()) {
                    check(&written.wcc);
                }
            }
            2 => {
                let removed = files::<nfs::Remove, _, _>(server, &Named { place: one });
                if let Some(wcc) = expect(removed, &[Status::NOENT]) {
                    check(&wcc);
                }
            }
            3 => {
                let rename = RenameArguments { from: one, to: other };
                if let Some(wcc) = expect(files::<nfs::Rename, _, _>(server, &rename), &[Status::NOENT]) {
                    check(&wcc.from);
                    check(&wcc.to);
                }
            }
            4 => {
                let found = files::<nfs::Lookup, _, _>(server, &Named { place: one });
                let Some(found) = expect(found, &[Status::NOENT]) else { continue };
                let link = LinkArguments { file: found.object, link: other };
                let expected = [Status::EXIST, Status::STALE, Status::NOENT, Status::JUKEBOX];
                expect(files::<nfs::Link, _, _>(server, &link), &expected);
            }
            5 => {
                let found = files::<nfs::Lookup, _, _>(server, &Named { place: one });
                let Some(found) = expect(found, &[Status::NOENT]) else { continue };
                let read = nfs::ReadArguments { file: found.object, offset: 0, count: 1000 };
                if let Some(read) =
                    expect(files::<nfs::Read, _, _>(server, &read), &[Status::STALE, Status::JUKEBOX])
                {
                    let octets = &read.data.0;
                    assert!(octets.is_empty() || octets.len() == 100);
                    assert!(octets.windows(2).all(|two| two[0] == two[1]), "two writers mixed");
                }
            }
            _ => {
                let asked = ReadDirPlusArguments {
                    directory: one.directory,
                    cookie: 0,
                    verifier: [0; 8],
                    names_bytes: 8192,
                    count: 32_768,
                };
                expect(files::<nfs::ReadDirPlus, _, _>(server, &asked), &[]);
            }
        }
    }
}

#[test]
fn many_threads_change_the_same_names() {
    let place = Place::new("threads");
    let server = server(&place);
    let root = mounted(&server);
    let directories = (0..DIRECTORIES).map(|number| {
        let place =
            nfs::Place { directory: root.clone(), name: nfs::Name(format!("d{number}").into_bytes()) };
        let asked = MakeDirectoryArguments { place, attributes: SetAttributes::default() };
        files::<nfs::Mkdir, _, _>(&server, &asked).ok().unwrap().object.unwrap()
    });
    let directories: Arc<[Handle]> = directories.collect();
    let threads: Vec<_> = (1..=THREADS)
        .map(|seed| {
            let (server, directories) = (server.clone(), directories.clone());
            std::thread::spawn(move || work(&server, &directories, seed))
        })
        .collect();
    threads.into_iter().for_each(inhost_interop::join);
}

/// Another program moves files and directories behind the server's back: all that is known of places is wrong again and
/// again. No call waits for ever, and afterwards each handle is that of its file.
#[test]
fn another_program_moves_what_is_served() {
    let place = Place::new("moved");
    let server = server(&place);
    let root = mounted(&server);
    let folder = place.0.join("server");
    for directory in ["a", "b", "a/inner"] {
        std::fs::create_dir_all(folder.join(directory)).unwrap();
    }
    let lookup = |directory: &Handle, name: &str| {
        let place = nfs::Place { directory: directory.clone(), name: name.into() };
        files::<nfs::Lookup, _, _>(&server, &Named { place }).ok().unwrap().object
    };
    let inner = lookup(&lookup(&root, "a"), "inner");
    let handles: Arc<[Handle]> = (0..20u8)
        .map(|number| {
            std::fs::write(folder.join(format!("a/inner/f{number}")), [number; 50]).unwrap();
            lookup(&inner, &format!("f{number}"))
        })
        .collect();
    let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (moving, stop) = (folder.clone(), ended.clone());
    let mover = std::thread::spawn(move || {
        let rename = |from: &str, to: &str| std::fs::rename(moving.join(from), moving.join(to)).unwrap();
        while !stop.load(Ordering::Relaxed) {
            rename("a/inner", "b/inner");
            rename("b/inner/f7", "a/g7");
            rename("b/inner", "a/inner");
            rename("a/g7", "a/inner/f7");
        }
    });
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (server, handles) = (server.clone(), handles.clone());
            std::thread::spawn(move || {
                for (number, handle) in (0..20u8).cycle().zip(handles.iter().cycle()).take(400) {
                    let read = nfs::ReadArguments { file: handle.clone(), offset: 0, count: 100 };
                    if let Some(read) =
                        expect(files::<nfs::Read, _, _>(&server, &read), &[Status::STALE, Status::JUKEBOX])
                    {
                        assert_eq!(read.data.0, [number; 50]);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(inhost_interop::join);
    ended.store(true, Ordering::Relaxed);
    inhost_interop::join(mover);
    let inner = lookup(&lookup(&root, "a"), "inner");
    for (number, handle) in (0..20u8).zip(handles.iter()) {
        // What was taken for gone is there once its name is looked up.
        assert_eq!(&lookup(&inner, &format!("f{number}")), handle);
        let read = nfs::ReadArguments { file: handle.clone(), offset: 0, count: 100 };
        assert_eq!(files::<nfs::Read, _, _>(&server, &read).ok().unwrap().data.0, [number; 50]);
    }
}
