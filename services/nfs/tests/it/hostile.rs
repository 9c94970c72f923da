//! Clients that do not do what they should.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration as Time;

use inhost_base::Duration;
use inhost_nfs::codec::mount::{self, MountReply};
use inhost_nfs::codec::nfs::{self, DATA_BYTES, Handle, Procedure, ReadArguments};
use inhost_nfs::codec::record::{Records, mark};
use inhost_nfs::codec::rpc::{CallHeader, Credentials, ReplyHeader, Target};
use inhost_nfs::codec::xdr::{Encoder, Xdr, from_octets};
use inhost_nfs::driver::{SessionEnd, SessionLimits, serve_stream};
use inhost_nfs::server::folder::{Durability, FolderTree};
use inhost_nfs::server::{Caller, ExportRules, Programs, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::place::{Place, pattern};
use super::sockets::KernelClock;

/// Octets between client and server.
const PIPE_BYTES: usize = 64 * 1024;

fn server(place: &Place) -> Arc<Server> {
    let server = Server::new(&[7; 32], 1);
    let mut rules = ExportRules::default();
    rules.path = "/files".into();
    rules.networks = vec!["*".parse().unwrap()];
    let tree = FolderTree::open(&place.0.join("server"), Durability::Later).unwrap();
    server.set_exports(vec![(rules, Arc::new(tree))]);
    Arc::new(server)
}

fn short() -> SessionLimits {
    let mut limits = SessionLimits::default();
    limits.idle_time = Duration::from_millis(1500);
    limits.stalled_time = Duration::from_millis(500);
    limits
}

/// Runs a client beside a session of the server, and says how the session ended.
fn session<F: Future<Output = ()>>(place: &Place, client: impl FnOnce(DuplexStream) -> F) -> SessionEnd {
    let server = server(place);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let here = IpAddr::from([127, 0, 0, 1]);
    let caller = Caller { address: here, port: 1000, local: here, is_datagram: false };
    runtime.block_on(async {
        let (near, mut far) = tokio::io::duplex(PIPE_BYTES);
        let clock = KernelClock::start();
        let served = async {
            let end = serve_stream(&mut far, &clock, &server, caller, Programs::Files, short()).await;
            drop(far);
            end
        };
        let both = futures_lite::future::zip(served, client(near));
        let limit = Time::from_secs(40);
        tokio::time::timeout(limit, both).await.expect("the session takes too long").0
    })
}

fn call(xid: u32, target: Target, arguments: &impl Xdr) -> Vec<u8> {
    let mut to = Encoder::default();
    CallHeader { xid, target, credentials: Credentials::None }.encode(&mut to);
    to.value(arguments);
    let message = to.into_octets();
    [&mark(message.len())[..], &message].concat()
}

fn procedure(procedure: u32) -> Target {
    Target { program: nfs::PROGRAM, version: nfs::VERSION, procedure }
}

async fn reply(stream: &mut DuplexStream) -> Vec<u8> {
    let (mut records, mut octet) = (Records::new(2 * DATA_BYTES), [0; 1]);
    loop {
        assert_eq!(stream.read(&mut octet).await.unwrap(), 1, "the connection has ended");
        if let Some(record) = records.take(&mut &octet[..]).unwrap() {
            return ReplyHeader::parse(&record).unwrap().1.to_vec();
        }
    }
}

/// The handle of the file `big`.
async fn big(stream: &mut DuplexStream) -> Handle {
    let target =
        Target { program: mount::PROGRAM, version: mount::VERSION, procedure: mount::procedure::MNT };
    stream.write_all(&call(1, target, &mount::Path::from("/files"))).await.unwrap();
    let root = from_octets::<MountReply>(&reply(stream).await).unwrap().0.unwrap().0;
    let named = nfs::Named { place: nfs::Place { directory: root, name: "big".into() } };
    stream.write_all(&call(2, procedure(nfs::Lookup::NUMBER), &named)).await.unwrap();
    let found = from_octets::<<nfs::Lookup as Procedure>::Results>(&reply(stream).await).unwrap();
    found.unwrap().object
}

/// It asks for a hundred gigabytes and takes nothing: the server reads few of the calls, and gives the client up.
#[test]
fn a_client_that_never_reads_is_not_read_either() {
    let place = Place::new("unread");
    place.write("server/big", &pattern(DATA_BYTES));
    let end = session(&place, async |mut stream| {
        let file = big(&mut stream).await;
        let read = |xid| {
            let asked = ReadArguments { file: file.clone(), offset: 0, count: DATA_BYTES as u32 };
            call(xid, procedure(nfs::Read::NUMBER), &asked)
        };
        let mut sent = 0;
        for xid in 10..100_000 {
            let message = read(xid);
            if stream.write_all(&message).await.is_err() {
                break;
            }
            sent += message.len();
        }
        assert!(sent < 3 * PIPE_BYTES, "{sent} octets of calls were taken");
    });
    assert_eq!(end, SessionEnd::Stalled);
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let place = Place::new("half-closed");
    place.write("server/big", &pattern(DATA_BYTES));
    let end = session(&place, async |mut stream| {
        let file = big(&mut stream).await;
        let asked = ReadArguments { file, offset: 0, count: DATA_BYTES as u32 };
        for xid in 10..30 {
            stream.write_all(&call(xid, procedure(nfs::Read::NUMBER), &asked)).await.unwrap();
        }
        stream.shutdown().await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        assert!(all.len() > 20 * DATA_BYTES);
    });
    assert_eq!(end, SessionEnd::Closed);
}

#[test]
fn records_that_are_too_long_or_never_whole_end_the_session() {
    let place = Place::new("records");
    let ends = |octets: &'static [u8]| {
        session(&place, async move |mut stream| {
            stream.write_all(octets).await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"");
        })
    };
    assert_eq!(ends(b"\xff\xff\xff\xff"), SessionEnd::Malformed);
    assert_eq!(ends(b"\x00\x7f\xff\xff"), SessionEnd::Malformed);
    assert_eq!(ends(b"\x80\x00\x01\x00half"), SessionEnd::Stalled);
    assert_eq!(ends(b"\x80\x00"), SessionEnd::Stalled);
    assert_eq!(ends(b"\x80\x00\x01\x00"), SessionEnd::Stalled);
    assert_eq!(ends(b""), SessionEnd::Idle);
    assert_eq!(ends(b"\x80\x00\x00\x04junk"), SessionEnd::Idle, "what is not a call is not answered");
}
