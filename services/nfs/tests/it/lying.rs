//! Servers that say what cannot be: our client ends with an error, and neither waits for ever nor fills its memory.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration as Time;

use inhost_base::Duration;
use inhost_common::LocalFuture;
use inhost_nfs::client::{CallError, CallSettings, ClientError, Remote, Rpc};
use inhost_nfs::codec::nfs::{
    self, Attributes, Committed, Data, Entries, Entry, EntryPlus, Failed, FileType, Found, Handle,
    Information, LinkTarget, PostOp, Procedure, ReadData, Stable, Status, Written,
};
use inhost_nfs::codec::record::{Records, mark};
use inhost_nfs::codec::rpc::{CallHeader, Credentials, ReplyHeader, ReplyStatus};
use inhost_nfs::codec::xdr::to_octets;
use inhost_nfs::driver::{Connect, carry_stream, drive};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::place::{Place, get, put};
use super::sockets::KernelClock;

type Results<P> = <P as Procedure>::Results;

/// What a server answers to a procedure: results, or octets that stand for a whole record and its mark.
enum Says {
    Results(Vec<u8>),
    Raw(Vec<u8>),
    Nothing,
}

type Server = Rc<dyn Fn(u32) -> Option<Says>>;

/// What every server here has in common; `special` comes first.
fn answer(special: &Server, procedure: u32) -> Says {
    if let Some(says) = special(procedure) {
        return says;
    }
    let directory = Attributes { kind: FileType::Directory, ..Attributes::default() };
    let file = Attributes { size_bytes: 1000, ..Attributes::default() };
    let octets = match procedure {
        nfs::FsInfo::NUMBER => to_octets::<Results<nfs::FsInfo>>(&Ok(Information {
            read_best: 100,
            write_best: 100,
            ..Default::default()
        })),
        nfs::GetAttr::NUMBER => {
            to_octets::<Results<nfs::GetAttr>>(&Ok(nfs::AttributesOf { attributes: directory }))
        }
        nfs::Lookup::NUMBER => {
            let found = Found { object: Handle(vec![1]), attributes: Some(file), directory: None };
            to_octets::<Results<nfs::Lookup>>(&Ok(found))
        }
        nfs::Create::NUMBER => {
            let made = nfs::Created { object: Some(Handle(vec![1])), ..Default::default() };
            to_octets::<Results<nfs::Create>>(&Ok(made))
        }
        nfs::Write::NUMBER => {
            let written =
                Written { count: 100, stable: Stable::Unstable, verifier: [1; 8], ..Default::default() };
            to_octets::<Results<nfs::Write>>(&Ok(written))
        }
        other => panic!("procedure {other}"),
    };
    Says::Results(octets)
}

struct Lying {
    server: Server,
    connections: Rc<Cell<usize>>,
}

impl Connect for Lying {
    type Stream = DuplexStream;
    fn connect(&self) -> LocalFuture<io::Result<DuplexStream>> {
        self.connections.set(self.connections.get() + 1);
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::task::spawn_local(serve(far, self.server.clone()));
        Box::pin(std::future::ready(Ok(near)))
    }
}

async fn serve(mut stream: DuplexStream, server: Server) {
    let (mut records, mut buffer) = (Records::new(1 << 21), vec![0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut octets = &buffer[..count];
        while let Some(record) = records.take(&mut octets).unwrap() {
            let call = CallHeader::parse(&record).unwrap().0;
            let reply = match answer(&server, call.target.procedure) {
                Says::Nothing => continue,
                Says::Raw(octets) => octets,
                Says::Results(results) => {
                    let mut reply = ReplyHeader::octets(call.xid, ReplyStatus::Success);
                    reply.extend_from_slice(&results);
                    [&mark(reply.len())[..], &reply].concat()
                }
            };
            if stream.write_all(&reply).await.is_err() {
                return;
            }
        }
    }
}

/// Runs a client of such a server; also gives how often it connected.
fn client<T>(
    server: impl Fn(u32) -> Option<Says> + 'static,
    test: impl AsyncFnOnce(Remote<KernelClock>) -> T,
) -> (T, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connections = Rc::new(Cell::new(0));
    let network = Lying { server: Rc::new(server), connections: connections.clone() };
    let done = tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut settings = CallSettings::connection();
        settings.first_timeout = Duration::from_millis(300);
        settings.longest_timeout = Duration::from_millis(300);
        settings.give_up_after = Duration::from_millis(1500);
        let rpc = Rpc::new(KernelClock::start(), Credentials::None, settings, 1);
        let work = async {
            let remote = Remote::open(rpc.clone(), Handle(vec![0])).await.unwrap();
            test(remote).await
        };
        let limit = Time::from_secs(40);
        tokio::time::timeout(limit, drive(carry_stream(&rpc, &network), work)).await.expect("it does not end")
    });
    (done, connections.get())
}

fn says<P: Procedure>(results: &Results<P>) -> Option<Says> {
    Some(Says::Results(to_octets(results)))
}

#[test]
fn a_directory_without_end_ends() {
    let lists = |procedure| match procedure {
        nfs::Lookup::NUMBER => {
            let attributes = Some(Attributes { kind: FileType::Directory, ..Attributes::default() });
            says::<nfs::Lookup>(&Ok(Found { object: Handle(vec![1]), attributes, directory: None }))
        }
        nfs::ReadDirPlus::NUMBER => {
            let entry = Entry { fileid: 1, name: "again".into(), cookie: 7 };
            let entry = EntryPlus { entry, attributes: None, handle: None };
            says::<nfs::ReadDirPlus>(&Ok(Entries { entries: vec![entry], ..Entries::default() }))
        }
        _ => None,
    };
    let (listed, _) = client(lists, async |remote| remote.list("/directory").await);
    assert_eq!(listed, Err(ClientError::Nonsense("a directory without end")));
}

/// A server that has no READDIRPLUS is asked for names alone.
#[test]
fn a_server_without_readdirplus_lists_as_well() {
    let lists = |procedure| match procedure {
        nfs::ReadDirPlus::NUMBER => {
            says::<nfs::ReadDirPlus>(&Err(Failed { status: Status::NOTSUPP, rest: None }))
        }
        nfs::ReadDir::NUMBER => {
            let entries =
                ["one", "two"].map(|name| Entry { fileid: 1, name: name.into(), cookie: 7 }).to_vec();
            says::<nfs::ReadDir>(&Ok(Entries { entries, is_end: true, ..Entries::default() }))
        }
        _ => None,
    };
    let (listed, _) = client(lists, async |remote| remote.list("/").await);
    assert_eq!(listed.unwrap().iter().filter(|listed| listed.attributes.is_some()).count(), 2);
}

#[test]
fn reads_that_cannot_be_end_the_transfer() {
    let place = Place::new("lying-reads");
    let read = |octets: usize| {
        move |procedure| {
            let read = ReadData { count: octets as u32, data: Data(vec![7; octets]), ..ReadData::default() };
            if procedure == nfs::Read::NUMBER { says::<nfs::Read>(&Ok(read)) } else { None }
        }
    };
    let (more, _) = client(read(101), async |remote| get(&remote, &place, "/file", "x").await);
    assert_eq!(more, Err(ClientError::Nonsense("more octets than were asked for")));
    let (none, _) = client(read(0), async |remote| get(&remote, &place, "/file", "x").await);
    assert_eq!(none, Err(ClientError::Changed));
    let (few, _) = client(read(7), async |remote| get(&remote, &place, "/file", "few").await);
    assert_eq!(few, Err(ClientError::Nonsense("more octets than were asked for")), "the last of 100 are two");
    let (short, _) = client(read(50), async |remote| get(&remote, &place, "/file", "short").await);
    assert_eq!(short, Ok(1000), "short reads are gone on with");
    assert!(!place.0.join("client/x").exists() && place.read("client/short") == [7; 1000]);
}

#[test]
fn writes_that_are_never_committed_end() {
    let place = Place::new("lying-writes");
    place.write("client/own", &[7; 1000]);
    let commits = Rc::new(Cell::new(0u8));
    let count = commits.clone();
    let forgets = move |procedure| {
        (procedure == nfs::Commit::NUMBER).then(|| {
            count.set(count.get() + 1);
            Says::Results(to_octets::<Results<nfs::Commit>>(&Ok(Committed {
                verifier: [count.get() + 1; 8],
                ..Committed::default()
            })))
        })
    };
    let (stored, _) = client(forgets, async |remote| put(&remote, &place, "own", "/file").await);
    assert_eq!((stored, commits.get()), (Err(ClientError::NotCommitted), 16));
    let nothing = |procedure| {
        let written = Written { count: 0, ..Written::default() };
        if procedure == nfs::Write::NUMBER { says::<nfs::Write>(&Ok(written)) } else { None }
    };
    let (stored, _) = client(nothing, async |remote| put(&remote, &place, "own", "/file").await);
    assert!(matches!(stored, Err(ClientError::Nonsense(_))), "{stored:?}");
}

/// A small file is one WRITE that the server is to put on its disk; one that does not is asked to commit.
#[test]
fn a_small_file_is_committed_where_it_has_to_be() {
    let place = Place::new("lying-small");
    place.write("client/own", &[7; 100]);
    for stable in [Stable::File, Stable::Unstable] {
        let commits = Rc::new(Cell::new(0));
        let count = commits.clone();
        let server = move |procedure| match procedure {
            nfs::Write::NUMBER => says::<nfs::Write>(&Ok(Written {
                count: 100,
                stable,
                verifier: [1; 8],
                ..Written::default()
            })),
            nfs::Commit::NUMBER => {
                count.set(count.get() + 1);
                says::<nfs::Commit>(&Ok(Committed { verifier: [1; 8], ..Committed::default() }))
            }
            _ => None,
        };
        let (stored, _) = client(server, async |remote| put(&remote, &place, "own", "/file").await);
        assert_eq!((stored, commits.get()), (Ok(100), usize::from(stable == Stable::Unstable)));
    }
}

#[test]
fn a_circle_of_links_ends() {
    let circle = |procedure| match procedure {
        nfs::Lookup::NUMBER => {
            let attributes = Some(Attributes { kind: FileType::Link, ..Attributes::default() });
            says::<nfs::Lookup>(&Ok(Found { object: Handle(vec![1]), attributes, directory: None }))
        }
        nfs::ReadLink::NUMBER => {
            let target = nfs::Target("x/".repeat(2000).into_bytes());
            says::<nfs::ReadLink>(&Ok(LinkTarget { attributes: None, target }))
        }
        _ => None,
    };
    let (found, _) = client(circle, async |remote| remote.file("/link").await);
    assert_eq!(found, Err(ClientError::Links));
}

#[test]
fn rubbish_silence_and_long_records_end_the_call() {
    let rubbish = |procedure| (procedure == nfs::Lookup::NUMBER).then(|| Says::Results(vec![0; 8]));
    let (found, _) = client(rubbish, async |remote| remote.file("/file").await);
    assert!(matches!(found, Err(ClientError::Malformed(_))), "{found:?}");
    let silent = |procedure| (procedure == nfs::Lookup::NUMBER).then_some(Says::Nothing);
    let (found, connections) = client(silent, async |remote| remote.file("/file").await);
    assert_eq!(found, Err(ClientError::Call(CallError::Timeout)));
    assert!(connections > 1, "a silent connection is made anew");
    let long = |procedure| (procedure == nfs::Lookup::NUMBER).then(|| Says::Raw(vec![0xff; 4096]));
    let (found, connections) = client(long, async |remote| remote.file("/file").await);
    assert_eq!(found, Err(ClientError::Call(CallError::Timeout)));
    assert!(connections > 1);
}

#[test]
fn a_server_that_asks_for_patience_is_asked_again() {
    let asked = Rc::new(RefCell::new(0));
    let later = move |procedure| {
        let failed: Results<nfs::Lookup> = Err(Failed { status: Status::JUKEBOX, rest: PostOp::None });
        let is_first = procedure == nfs::Lookup::NUMBER && asked.replace(1) == 0;
        if is_first { says::<nfs::Lookup>(&failed) } else { None }
    };
    let (found, _) = client(later, async |remote| remote.file("/file").await);
    assert!(found.is_ok());
}
