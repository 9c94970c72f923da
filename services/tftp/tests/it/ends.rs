//! A server and clients on one host under the real clock, with folders of the system.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use inhost_base::{Duration, Endpoint};
use inhost_common::Callers;
use inhost_common::storage::{Folder, VirtualPath};
use inhost_runtime::Runtime;
use inhost_socket::{Either, Host, race};
use inhost_stack::{StackConfig, UdpOptions};
use inhost_tftp::driver::{ServerConfig, ServerEvent, get, put, serve};
use inhost_tftp::{
    ErrorCode, Mode, Options, Packet, Request, Rights, Settings, Summary, TransferError, TransferLimits,
};

const SERVER: [u8; 4] = [127, 0, 0, 1];

/// Folders of its own: `server` is what is served, `client` the other side.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("inhost-tftp-{name}-{}-{number}", std::process::id()));
        for folder in ["server/sub", "client"] {
            std::fs::create_dir_all(path.join(folder)).unwrap();
        }
        Place(path)
    }
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(name)).ok()
    }
    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }
    fn folder(&self, name: &str) -> Folder {
        Folder::open(&self.0.join(name)).unwrap()
    }
    /// All names, those of half files too.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct World {
    host: Host,
    log: Rc<RefCell<Vec<String>>>,
    client: Folder,
}

fn world<F: Future<Output = ()>>(place: &Place, config: ServerConfig, test: impl FnOnce(Rc<World>) -> F) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let log = Rc::new(RefCell::new(Vec::new()));
    let lines = log.clone();
    let record = move |event: ServerEvent<'_>| {
        lines.borrow_mut().push(match event {
            ServerEvent::Refused { why, .. } => format!("refused: {why}"),
            ServerEvent::Ended { request, outcome, .. } => match outcome {
                Ok(summary) => format!("{} {} bytes", request.name, summary.file_bytes),
                Err(error) => format!("{} failed: {error}", request.name),
            },
        });
    };
    let server =
        serve(&host, 69, Rc::new(place.folder("server")), config, Callers::default(), record).unwrap();
    let world = Rc::new(World { host: host.clone(), log, client: place.folder("client") });
    let limit = host.sleep(inhost_interop::DEADLINE.into());
    let ended = runtime.run(race(test(world), limit)).unwrap();
    assert!(matches!(ended, Either::First(())), "the test takes too long");
    drop(server);
    host.stop();
}

fn pattern(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn request(name: &str, mode: Mode, options: Options) -> Request {
    Request { is_write: false, name: name.into(), mode, options }
}

impl World {
    async fn moves(&self, is_put: bool, request: Request, here: &str) -> Result<Summary, TransferError> {
        let socket = self.host.udp(Endpoint::new(SERVER, 0), UdpOptions::default()).unwrap();
        let (to, path) = (Endpoint::new(SERVER, 69), VirtualPath::root().join(here));
        let (progress, settings) = (Cell::new(0), Settings::default());
        let (file, world) =
            ((&self.client as &dyn inhost_common::storage::Storage, &path), (&socket, &self.host));
        match is_put {
            true => put(request, to, file, settings, world, &progress).await,
            false => get(request, to, file, settings, world, &progress).await,
        }
    }
    async fn get(&self, name: &str, options: Options, here: &str) -> Result<Summary, TransferError> {
        self.moves(false, request(name, Mode::Octet, options), here).await
    }
    async fn put(&self, here: &str, options: Options, name: &str) -> Result<Summary, TransferError> {
        self.moves(true, request(name, Mode::Octet, options), here).await
    }
    /// What the server answers to a datagram.
    async fn asks(&self, datagram: &[u8]) -> String {
        let socket = self.host.udp(Endpoint::new(SERVER, 0), UdpOptions::default()).unwrap();
        socket.send_to(datagram, Endpoint::new(SERVER, 69)).await.unwrap();
        let mut answer = vec![0; 1024];
        let received = self.host.timeout(Duration::from_secs(2), socket.receive_from(&mut answer)).await;
        let Ok(Ok(received)) = received else { return "nothing".into() };
        match Packet::parse(&answer[..received.length_bytes]).unwrap() {
            Packet::Error(code, message) => format!("{} {message}", code.0),
            other => format!("{other:?}"),
        }
    }
}

fn writable() -> ServerConfig {
    let mut config = ServerConfig::default();
    config.rights = Rights::Write;
    config
}

#[test]
fn files_of_any_length_both_ways() {
    let place = Place::new("both");
    for bytes in [0, 1, 511, 512, 513, 1024, 300_000, 3_000_000] {
        place.write(&format!("server/f{bytes}"), &pattern(bytes));
    }
    world(&place, writable(), async |world| {
        let mut fast = Options::default();
        fast.block_size = Some(1428);
        fast.window = Some(32);
        fast.transfer_size = Some(0);
        for bytes in [0, 1, 511, 512, 513, 1024, 300_000, 3_000_000] {
            for (number, options) in [fast, Options::default()].into_iter().enumerate() {
                let (name, here) = (format!("f{bytes}"), format!("g{bytes}-{number}"));
                let got = world.get(&name, options, &here).await.unwrap();
                assert_eq!((got.file_bytes, got.blocks_again), (bytes as u64, 0));
                assert_eq!(got.agreed.transfer_size, options.transfer_size.and(Some(bytes as u64)));
                let sent = world.put(&here, options, &format!("sub/{here}")).await.unwrap();
                assert_eq!(sent.file_bytes, bytes as u64);
                assert!(place.read(&format!("client/{here}")).unwrap() == pattern(bytes));
                assert!(place.read(&format!("server/sub/{here}")).unwrap() == pattern(bytes));
            }
        }
        assert!(world.log.borrow().iter().any(|line| line == "f3000000 3000000 bytes"));
    });
    assert!(place.names("client").iter().all(|name| name.starts_with('g')));
}

#[test]
fn text_goes_as_the_network_has_it() {
    let place = Place::new("text");
    place.write("server/t", b"one\ntwo\rthree\r\n");
    world(&place, writable(), async |world| {
        let text = |name: &str| request(name, Mode::Netascii, Options::default());
        world.moves(false, text("t"), "t").await.unwrap();
        world.moves(true, text("back"), "t").await.unwrap();
    });
    assert_eq!(place.read("client/t").unwrap(), b"one\ntwo\rthree\r\n");
    assert_eq!(place.read("server/back").unwrap(), b"one\ntwo\rthree\r\n");
}

#[test]
fn what_is_refused_is_told_and_leaves_nothing() {
    let place = Place::new("refused");
    place.write("server/there", b"old");
    place.write("client/new", &pattern(3_000));
    place.write("secret", b"secret");
    std::os::unix::fs::symlink("../secret", place.0.join("server/way-out")).unwrap();
    let told = |outcome: Result<Summary, TransferError>| outcome.unwrap_err().to_string();
    world(&place, ServerConfig::default(), async |world| {
        for (name, why) in [
            ("missing", "refused with error 1: No such file or directory"),
            ("/etc/passwd", "refused with error 1: No such file or directory"),
            ("../secret", "refused with error 2: The name leads out of the folder"),
            ("sub/../../secret", "refused with error 2: The name leads out of the folder"),
            ("way-out", "refused with error 2: Permission denied"),
            ("sub", "refused with error 2: It is a directory"),
        ] {
            assert_eq!(told(world.get(name, Options::default(), "x").await), why, "{name}");
        }
        let why = told(world.put("new", Options::default(), "there").await);
        assert_eq!(why, "refused with error 2: Files may be read here, not written");
        let long = [b"\0\x01".as_slice(), &[b'x'; 700], b"\0octet\0"].concat();
        assert_eq!(world.asks(&long).await, "4 The request is longer than 512 octets");
        assert_eq!(world.asks(b"\0\x01x\0mail\0").await, "4 The mode is neither octet nor netascii");
        assert_eq!(world.asks(&Packet::Ack(1).bytes()).await, "5 No transfer is at this port");
        assert_eq!(world.asks(&Packet::Error(ErrorCode::OTHER, "x".into()).bytes()).await, "nothing");
        assert!(world.log.borrow().iter().any(|line| line == "refused: The name leads out of the folder"));
    });
    let mut create = ServerConfig::default();
    create.rights = Rights::Create;
    create.settings = {
        let mut settings = Settings::default();
        settings.size_limit_bytes = 2_000;
        settings
    };
    let mut size = Options::default();
    size.transfer_size = Some(0);
    world(&place, create, async |world| {
        let why = told(world.put("new", Options::default(), "there").await);
        assert_eq!(why, "refused with error 6: There is such a name already");
        for options in [size, Options::default()] {
            let why = told(world.put("new", options, "long").await);
            assert_eq!(why, "refused with error 3: The file is longer than this end takes");
        }
        world.host.sleep(Duration::from_millis(100)).await;
    });
    assert_eq!(place.names("client"), ["new"], "nothing half is left");
    assert_eq!(place.names("server"), ["sub", "there", "way-out"]);
    assert_eq!(place.read("server/there").unwrap(), b"old");
}

#[test]
fn too_many_transfers_are_told_to_wait() {
    let place = Place::new("many");
    place.write("server/f", &pattern(100_000));
    let mut transfers = TransferLimits::default();
    transfers.transfers = 8;
    transfers.transfers_per_client = 3;
    world(
        &place,
        {
            let mut config = ServerConfig::default();
            config.transfers = transfers;
            config
        },
        async |world| {
            let ask = Packet::Request(request("f", Mode::Octet, Options::default())).bytes();
            let mut idle = Vec::new();
            for _ in 0..3 {
                let socket = world.host.udp(Endpoint::new(SERVER, 0), UdpOptions::default()).unwrap();
                socket.send_to(&ask, Endpoint::new(SERVER, 69)).await.unwrap();
                let mut first = vec![0; 600];
                let received = socket.receive_from(&mut first).await.unwrap();
                assert_eq!((received.length_bytes, &first[..4]), (516, [0, 3, 0, 1].as_slice()));
                idle.push((socket, received.from));
            }
            let ports: std::collections::BTreeSet<u16> = idle.iter().map(|(_, from)| from.port).collect();
            assert!(ports.len() == 3 && !ports.contains(&69), "each transfer has a port of its own");
            assert_eq!(world.asks(&ask).await, "0 Too many transfers, try again later");
            let (socket, to) = &idle[0];
            let bye = Packet::Error(ErrorCode::OTHER, "enough".into()).bytes();
            socket.send_to(&bye, *to).await.unwrap();
            world.host.sleep(Duration::from_millis(50)).await;
            let got = world.get("f", Options::default(), "f").await.unwrap();
            assert_eq!(got.file_bytes, 100_000);
        },
    );
}

/// A datagram from an unknown port is answered with error 5, and the transfer goes on.
#[test]
fn a_forged_datagram_disturbs_nothing() {
    let place = Place::new("forged");
    place.write("server/f", &pattern(3_000));
    world(&place, ServerConfig::default(), async |world| {
        let bind = || world.host.udp(Endpoint::new(SERVER, 0), UdpOptions::default()).unwrap();
        let (socket, intruder) = (bind(), bind());
        let ask = Packet::Request(request("f", Mode::Octet, Options::default())).bytes();
        socket.send_to(&ask, Endpoint::new(SERVER, 69)).await.unwrap();
        let (mut place_of, mut file) = (vec![0; 600], Vec::new());
        for number in 1..=6 {
            let received = socket.receive_from(&mut place_of).await.unwrap();
            let Packet::Data(block, data) = Packet::parse(&place_of[..received.length_bytes]).unwrap() else {
                panic!()
            };
            assert_eq!(block, number);
            file.extend_from_slice(data);
            intruder.send_to(&Packet::Ack(block).bytes(), received.from).await.unwrap();
            let mut answer = vec![0; 600];
            let told = intruder.receive_from(&mut answer).await.unwrap();
            assert_eq!(told.from, received.from);
            let Packet::Error(code, _) = Packet::parse(&answer[..told.length_bytes]).unwrap() else {
                panic!()
            };
            assert_eq!(code, ErrorCode::UNKNOWN_TRANSFER);
            socket.send_to(&Packet::Ack(block).bytes(), received.from).await.unwrap();
        }
        world.host.sleep(Duration::from_millis(50)).await;
        assert!(file == pattern(3_000));
        assert_eq!(*world.log.borrow(), ["f 3000 bytes"]);
    });
}

/// An upload that breaks off leaves nothing, and nobody sees its half under the name.
#[test]
fn half_a_file_never_has_the_name() {
    let place = Place::new("half");
    place.write("server/f", b"old");
    world(&place, writable(), async |world| {
        let socket = world.host.udp(Endpoint::new(SERVER, 0), UdpOptions::default()).unwrap();
        let ask =
            Packet::Request(Request { is_write: true, ..request("f", Mode::Octet, Options::default()) });
        socket.send_to(&ask.bytes(), Endpoint::new(SERVER, 69)).await.unwrap();
        let mut answer = vec![0; 600];
        let to = socket.receive_from(&mut answer).await.unwrap().from;
        socket.send_to(&Packet::Data(1, &[7; 512]).bytes(), to).await.unwrap();
        socket.receive_from(&mut answer).await.unwrap();
        assert_eq!(place.names("server"), [".f.inhost-part", "f", "sub"]);
        // Nor can it be asked for, or written by somebody else meanwhile.
        let half = world.get(".f.inhost-part", Options::default(), "x").await.unwrap_err().to_string();
        assert_eq!(half, "refused with error 2: A file that is being written has no name yet");
        let busy = world.asks(&ask.bytes()).await;
        assert_eq!(busy, "0 Another session is storing to it");
        let bye = Packet::Error(ErrorCode::FULL, "enough".into()).bytes();
        socket.send_to(&bye, to).await.unwrap();
        world.host.sleep(Duration::from_millis(100)).await;
        assert!(world.log.borrow().iter().any(|line| line == "f failed: refused with error 3: enough"));
    });
    assert_eq!(place.names("server"), ["f", "sub"]);
    assert_eq!(place.read("server/f").unwrap(), b"old");
}
