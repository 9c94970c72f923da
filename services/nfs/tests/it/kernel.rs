//! Our client and our server, each on the kernel's sockets.

use std::cell::Cell;
use std::task::{Context, Poll};

use inhost_base::Duration;

use super::place::{HERE, Place, client, credentials, get, pattern, put};
use super::sockets::{KernelClock, KernelDatagrams};
use inhost_nfs::client::{CallSettings, ClientError, Remote, Rpc, mount};
use inhost_nfs::codec::nfs::Status;
use inhost_nfs::driver::{Peer, carry_datagrams, drive};

fn refused<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Status {
    match result {
        Err(ClientError::Refused { status, .. }) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_of_any_length_both_ways_over_tcp_and_udp() {
    let place = Place::new("lengths");
    let (_server, port) = place.server(0, &["later"]);
    for is_stream in [true, false] {
        client(port, is_stream, "/files", async |files| {
            for bytes in [0, 1, 32_767, 32_768, 32_769, 262_144, 3_000_001] {
                place.write("client/own", &pattern(bytes));
                assert_eq!(put(&files, &place, "own", "/stored").await, Ok(bytes as u64));
                assert!(place.read("server/stored") == pattern(bytes), "{bytes} octets stored");
                assert_eq!(get(&files, &place, "/stored", "fetched").await, Ok(bytes as u64));
                assert!(place.read("client/fetched") == pattern(bytes), "{bytes} octets fetched");
            }
            assert_eq!(files.rpc().retransmitted(), 0);
        });
    }
}

#[test]
fn names_are_listed_made_moved_and_removed() {
    let place = Place::new("operations");
    let (_server, port) = place.server(0, &[]);
    place.write("client/own", b"octets");
    std::os::unix::fs::symlink("folder/below", place.0.join("server/link")).unwrap();
    std::os::unix::fs::symlink("../../etc", place.0.join("server/up")).unwrap();
    std::os::unix::fs::symlink("circle", place.0.join("server/circle")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.0.join("server/absolute")).unwrap();
    client(port, true, "/files", async |files| {
        files.make_directory("/folder", 0o755).await.unwrap();
        files.make_directory("folder/below/", 0o700).await.unwrap();
        assert_eq!(refused(files.make_directory("/folder", 0o755).await), Status::EXIST);
        put(&files, &place, "own", "/link/file").await.unwrap();
        assert_eq!(place.read("server/folder/below/file"), b"octets");
        let mut names: Vec<_> =
            files.list("/").await.unwrap().into_iter().map(|listed| listed.name).collect();
        names.sort();
        assert_eq!(names, [&b"absolute"[..], b"circle", b"folder", b"link", b"up"]);
        let one = files.list("/link/file").await.unwrap();
        assert_eq!((one.len(), one[0].attributes.unwrap().size_bytes), (1, 6));
        files.rename("/folder/below/file", "/moved").await.unwrap();
        assert_eq!(refused(files.file("/folder/below/file").await), Status::NOENT);
        assert_eq!(refused(files.remove_directory("/folder").await), Status::NOTEMPTY);
        assert_eq!(refused(files.remove("/folder").await), Status::ISDIR);
        assert_eq!(refused(get(&files, &place, "/folder", "x").await), Status::ISDIR);
        assert_eq!(refused(files.file("/moved/x").await), Status::NOTDIR);
        assert_eq!(files.file("/circle").await, Err(ClientError::Links));
        assert_eq!(files.file("/absolute").await, Err(ClientError::Links));
        assert_eq!(refused(files.file("/up").await), Status::NOENT, "above the export is the export");
        assert_eq!(refused(files.remove("/..").await), Status::INVAL);
        files.remove("/moved").await.unwrap();
        files.remove("/link").await.unwrap();
        files.remove_directory("/folder/below").await.unwrap();
        files.remove_directory("/folder").await.unwrap();
        assert_eq!(files.list("/").await.unwrap().len(), 3);
    });
    assert!(!place.0.join("client/x").exists());
}

/// A name that is not UTF-8 is fetched as it was listed.
#[test]
fn names_are_octets() {
    use inhost_common::storage::name_text;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new("octets");
    let (_server, port) = place.server(0, &[]);
    let name = std::ffi::OsStr::from_bytes(b"M\xfcller");
    std::fs::write(place.0.join("server").join(name), b"octets").unwrap();
    client(port, true, "/files", async |files| {
        let listed = files.list("/").await.unwrap().remove(0);
        assert_eq!(listed.name, b"M\xfcller");
        get(&files, &place, &name_text(&listed.name), "fetched").await.unwrap();
    });
    assert_eq!(place.read("client/fetched"), b"octets");
}

/// Datagrams of which some are lost, and some sent twice.
struct Lossy(KernelDatagrams, Cell<u64>);

impl Lossy {
    fn draw(&self) -> u64 {
        let mut random = self.1.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.1.set(random);
        (random >> 16) % 10
    }
}

impl Peer for Lossy {
    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<(), String>> {
        match self.draw() {
            0 => Poll::Ready(Ok(())),
            1 => {
                let _ = self.0.0.try_send(bytes);
                Peer::poll_send(&self.0, cx, bytes)
            }
            _ => Peer::poll_send(&self.0, cx, bytes),
        }
    }
    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, String>> {
        let received = Peer::poll_receive(&self.0, cx, into);
        let is_lost = received.is_ready() && self.draw() == 0;
        if is_lost { Poll::Ready(Ok(0)) } else { received }
    }
}

#[test]
fn a_file_arrives_whole_over_datagrams_that_are_lost_and_repeated() {
    let place = Place::new("lossy");
    let (_server, port) = place.server(0, &["later"]);
    place.write("client/own", &pattern(3_000_000));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let retransmitted = runtime.block_on(async {
        let socket = tokio::net::UdpSocket::bind((HERE, 0)).await.unwrap();
        socket.connect((HERE, port)).await.unwrap();
        let mut settings = CallSettings::datagrams();
        settings.first_timeout = Duration::from_millis(40);
        let rpc = Rpc::new(KernelClock::start(), credentials(), settings, 4711);
        let peer = Lossy(KernelDatagrams(socket), Cell::new(0x9e37_79b9_7f4a_7c15));
        let work = async {
            let root = mount(&rpc, "/files").await.unwrap();
            let files = Remote::open(rpc.clone(), root).await.unwrap();
            assert_eq!(put(&files, &place, "own", "/stored").await, Ok(3_000_000));
            assert_eq!(get(&files, &place, "/stored", "fetched").await, Ok(3_000_000));
            for number in 0..50 {
                files.make_directory(&format!("/d{number}"), 0o755).await.unwrap();
                files.rename(&format!("/d{number}"), "/moved").await.unwrap();
                files.remove_directory("/moved").await.unwrap();
            }
        };
        drive(carry_datagrams(&rpc, &peer), work).await;
        rpc.retransmitted()
    });
    assert!(retransmitted > 20, "{retransmitted} calls were sent again");
    assert!(place.read("server/stored") == pattern(3_000_000));
    assert!(place.read("client/fetched") == pattern(3_000_000));
}
