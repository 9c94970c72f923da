//! The control socket, from another thread in another process's place.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::{beside, in_time};

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_event::SendCause;
use inhost_interop::{join, output, receive, until};
use inhost_runtime::Runtime;
use inhost_runtime::control::{CallOptions, Client, ClientError, Failure, Server, Summary};
use inhost_socket::Host;
use inhost_stack::{ListenOptions, SendHow, StackConfig, TcpConfig, UdpOptions};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Conversations that ask for all sockets at the same time.
const ASKERS: usize = 5;

fn here(port: u16) -> Endpoint {
    Endpoint::new(Ipv4Addr::LOCALHOST, port)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect()
}

/// A path of its own for each test, in a directory of ours alone.
fn path(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("inhost-test-{}-{name}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    directory.join("control.sock")
}

/// Bytes that the service on port 10 had acknowledged when it reset its caller.
static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);

/// Datagrams that came to port 11.
static DATAGRAMS: AtomicU64 = AtomicU64::new(0);
/// Bytes that the service on port 11 read to the end of its last connection.
static READ: AtomicU64 = AtomicU64::new(0);

/// Echo over TCP on port 7 and UDP on port 7; on port 8 a service that resets each caller after its first bytes; on
/// port 10 one that sends as much as is taken, and then resets; on port 11 one that greets and then reads slowly; on
/// port 12 one that reads and says nothing. On UDP port 11 whatever comes is counted.
fn services(host: &Host) {
    let (tcp, udp) = (host.clone(), host.clone());
    host.spawn(async move {
        let listener = tcp.listen(here(7), ListenOptions::default()).unwrap();
        while let Ok(stream) = listener.accept().await {
            tcp.spawn(async move {
                let (mut from, mut to) = tokio::io::split(stream);
                if tokio::io::copy(&mut from, &mut to).await.is_ok() {
                    let _ = to.shutdown().await;
                }
            })
            .detach();
        }
    })
    .detach();
    host.spawn(async move {
        let socket = udp.udp(here(7), UdpOptions::default()).unwrap();
        let mut place = vec![0; 65_535];
        while let Ok(info) = socket.receive_from(&mut place).await {
            let _ = socket.send_to(&place[..info.length_bytes], info.from).await;
        }
    })
    .detach();
    let (sending, server) = (host.listen(here(10), ListenOptions::default()).unwrap(), host.clone());
    host.spawn(async move {
        while let Ok(stream) = sending.accept().await {
            let text = pattern(10_000);
            let second = Duration::from_millis(300);
            while let Ok(Ok(_)) = server.timeout(second, stream.send(&text, SendHow::default())).await {}
            ACKNOWLEDGED.store(stream.info().unwrap().delivered_bytes, Ordering::SeqCst);
            stream.abort();
        }
    })
    .detach();
    let (greeting, server) = (host.listen(here(11), ListenOptions::default()).unwrap(), host.clone());
    host.spawn(async move {
        while let Ok(stream) = greeting.accept().await {
            stream.send(b"hello", SendHow::default()).await.unwrap();
            let (mut read, mut place) = (0, [0; 10_000]);
            while let Ok(count @ 1..) = stream.receive(&mut place).await {
                read += count as u64;
                server.sleep(Duration::from_millis(1)).await;
            }
            READ.store(read, Ordering::SeqCst);
        }
    })
    .detach();
    let silent = host.listen(here(12), ListenOptions::default()).unwrap();
    host.spawn(async move {
        while let Ok(stream) = silent.accept().await {
            while let Ok(1..) = stream.receive(&mut [0; 1000]).await {}
        }
    })
    .detach();
    let counting = host.udp(here(11), UdpOptions::default()).unwrap();
    host.spawn(async move {
        while counting.receive_from(&mut [0; 10]).await.is_ok() {
            DATAGRAMS.fetch_add(1, Ordering::SeqCst);
        }
    })
    .detach();
    let resetting = host.listen(here(8), ListenOptions::default()).unwrap();
    host.spawn(async move {
        while let Ok(stream) = resetting.accept().await {
            let _ = stream.receive(&mut [0; 16]).await;
            stream.abort();
        }
    })
    .detach();
}

/// Runs `work` as a client while a host with services and a control socket lives; it ends when the client asks.
fn with_host(name: &str, work: impl FnOnce(&mut Client, &Path) + Send + 'static) {
    with_host_of(StackConfig::default(), name, work);
}

fn with_host_of(config: StackConfig, name: &str, work: impl FnOnce(&mut Client, &Path) + Send + 'static) {
    let path = path(name);
    let mut runtime = Runtime::new(config).unwrap();
    let host = runtime.host().clone();
    services(&host);
    let server = Server::open(&host, runtime.handle(), &path).unwrap();
    server.handle("greet", |_, request| async move {
        let name = request["name"].as_str().ok_or_else(|| Failure::new("who?"))?;
        Ok(json!({"greeting": format!("hello, {name}")}).into())
    });
    let client_path = path.clone();
    beside(&mut runtime, move || {
        let mut client = Client::open(&client_path).unwrap();
        work(&mut client, &client_path);
        client.shutdown().unwrap();
    });
    in_time(&mut runtime, server.shutdown_requested());
    let shutdown = runtime.shutdown(Duration::from_secs(1)).unwrap();
    assert!(shutdown.took <= Duration::from_secs(2), "{}", shutdown.took);
    drop(server);
    assert!(!path.exists());
    fs::remove_dir(path.parent().unwrap()).unwrap();
}

#[test]
fn a_connection_by_descriptor_carries_bytes_and_half_closes() {
    with_host("connect", |client, _| {
        let connected = client.connect(here(7)).unwrap();
        assert_eq!(connected.remote, here(7));
        let status = client.status(&connected.socket).unwrap();
        assert_eq!(status["status"]["state"], "ESTABLISHED");
        let sent = pattern(3 << 20);
        let bytes = sent.clone();
        // A duplicate is the same connection, as after a fork.
        let mut writer = connected.stream.try_clone().unwrap();
        let writing = thread::spawn(move || {
            writer.write_all(&bytes).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        (&connected.stream).read_to_end(&mut received).unwrap();
        join(writing);
        assert!(received == sent);
    });
}

/// Words of a dialogue do not wait for the acknowledgment of those before, which who says nothing delays.
#[test]
fn a_connection_without_nagle_holds_nothing_back() {
    with_host("nagle", |client, _| {
        let mut calling = CallOptions::default();
        calling.nagle = false;
        let mut connected = client.connect_with(here(12), calling).unwrap();
        for _ in 0..50 {
            connected.stream.write_all(b"x").unwrap();
            thread::park_timeout(std::time::Duration::from_millis(1));
        }
        let ledger = client.status(&connected.socket).unwrap()["status"]["tcp"]["send"]["ledger_ns"].clone();
        let held = SendCause::SmallData.text();
        assert_eq!(ledger[held], 0, "{ledger}");
    });
}

#[test]
fn a_refusal_and_a_reset_are_told() {
    with_host("reset", |client, _| {
        let refused = client.connect(here(99)).unwrap_err();
        assert!(matches!(refused, ClientError::Refused { errno: Some(111), .. }), "{refused}");
        let mut connected = client.connect(here(8)).unwrap();
        connected.stream.write_all(b"x").unwrap();
        // The descriptor ends in both directions; why, the host knows.
        assert_eq!(connected.stream.read(&mut [0; 8]).unwrap_or(0), 0);
        assert!(connected.stream.write(b"y").is_err());
        let status = client.status(&connected.socket).unwrap();
        assert_eq!(status["errno"], 104, "{status}");
    });
}

#[test]
fn what_came_before_a_reset_is_read_to_its_end() {
    let mut tcp = TcpConfig::default();
    tcp.policy.received_data_survives_reset = true;
    let mut config = StackConfig::default();
    config.tcp = tcp;
    with_host_of(config, "reset-late", |client, _| {
        let mut connected = client.connect(here(10)).unwrap();
        // The reset is there once nothing can be written any more; nothing was read until then.
        while connected.stream.write(b"x").is_ok() {
            thread::park_timeout(std::time::Duration::from_millis(20));
        }
        let mut received = Vec::new();
        connected.stream.read_to_end(&mut received).unwrap();
        assert_eq!(received.len() as u64, ACKNOWLEDGED.load(Ordering::SeqCst));
        let status = client.status(&connected.socket).unwrap();
        assert_eq!(status["errno"], 104, "{status}");
    });
}

#[test]
fn what_was_written_before_a_close_arrives_though_bytes_are_unread() {
    let mut tcp = TcpConfig::default();
    tcp.policy.received_data_survives_reset = true;
    let mut config = StackConfig::default();
    config.tcp = tcp;
    with_host_of(config, "closed-over", |client, _| {
        let mut connected = client.connect(here(11)).unwrap();
        // The greeting is there, and nobody reads it.
        let mut set = [PollFd::from_borrowed_fd(connected.stream.as_fd(), PollFlags::IN)];
        poll(&mut set, None).unwrap();
        connected.stream.write_all(&pattern(2_000_000)).unwrap();
        drop(connected);
        let read = || Some(READ.load(Ordering::SeqCst)).filter(|&read| read > 0);
        assert_eq!(until("the service has read to the end", read), 2_000_000);
    });
}

#[test]
fn datagrams_written_before_a_close_are_sent_though_others_are_unread() {
    with_host("udp-closed-over", |client, _| {
        let socket = client.udp(here(0), None).unwrap();
        socket.send(b"echo", Some(here(7))).unwrap();
        // The answer is there, and nobody reads it.
        let mut set = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        poll(&mut set, None).unwrap();
        let before = DATAGRAMS.load(Ordering::SeqCst);
        for _ in 0..5 {
            socket.send(b"one", Some(here(11))).unwrap();
        }
        drop(socket);
        until("all came", || (DATAGRAMS.load(Ordering::SeqCst) == before + 5).then_some(()));
    });
}

#[test]
fn an_empty_datagram_is_not_the_end() {
    with_host("udp-empty", |client, _| {
        let connected = client.udp(here(0), Some(here(7))).unwrap();
        for payload in [&b""[..], b"one", b"", b""] {
            connected.send(payload, None).unwrap();
            assert_eq!(connected.receive().unwrap(), (payload.to_vec(), here(7)));
        }
        let anywhere = client.udp(here(0), None).unwrap();
        anywhere.send(b"", Some(here(7))).unwrap();
        assert_eq!(anywhere.receive().unwrap(), (Vec::new(), here(7)));
    });
}

#[test]
fn a_listener_by_descriptor_is_polled_and_accepts() {
    with_host("listen", |client, path| {
        let listener = client.listen(here(80)).unwrap();
        assert_eq!(listener.local(), here(80));
        let readable = |limit_ms: i64| {
            let mut set = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
            let limit =
                rustix::event::Timespec { tv_sec: limit_ms / 1000, tv_nsec: limit_ms % 1000 * 1_000_000 };
            poll(&mut set, Some(&limit)).unwrap() == 1
        };
        assert!(!readable(20));
        let mut other = Client::open(path).unwrap();
        let mut caller = other.connect(here(80)).unwrap();
        assert!(readable(5000));
        let mut called = listener.accept().unwrap();
        assert_eq!((called.remote, called.local), (caller.local, here(80)));
        caller.stream.write_all(b"through two descriptors").unwrap();
        drop(caller);
        let mut text = String::new();
        called.stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through two descriptors");
        // A listener that is closed listens no more.
        drop(listener);
        let refused = (0..100).any(|_| matches!(other.connect(here(80)), Err(ClientError::Refused { .. })));
        assert!(refused);
    });
}

#[test]
fn datagrams_by_descriptor_with_and_without_addresses() {
    with_host("udp", |client, _| {
        let anywhere = client.udp(here(0), None).unwrap();
        anywhere.send(b"whoever", Some(here(7))).unwrap();
        assert_eq!(anywhere.receive().unwrap(), (b"whoever".to_vec(), here(7)));
        let connected = client.udp(here(0), Some(here(7))).unwrap();
        for length in [1, 1000, 60_000] {
            let sent = pattern(length);
            connected.send(&sent, None).unwrap();
            assert!(connected.receive().unwrap() == (sent, here(7)));
        }
    });
}

#[test]
fn netstat_shows_the_host_and_other_requests_can_be_added() {
    with_host("netstat", |client, path| {
        let connected = client.connect(here(7)).unwrap();
        let shown = client.netstat().unwrap();
        let sockets = shown["sockets"].as_array().unwrap();
        let ours = sockets.iter().find(|s| s["socket"] == connected.socket.as_str()).unwrap();
        assert_eq!(ours["state"], "ESTABLISHED");
        assert_eq!(ours["remote"], "127.0.0.1:7");
        for side in ["send", "receive"] {
            let ledger = ours["tcp"][side]["ledger_ns"].as_object().unwrap();
            let total: u64 = ledger.values().map(|time| time.as_u64().unwrap()).sum();
            assert_eq!(total, ours["tcp"]["age_ns"].as_u64().unwrap(), "{side}");
        }
        assert!(sockets.iter().any(|s| s["kind"] == "listener" && s["local"] == "127.0.0.1:7"));
        assert!(sockets.iter().any(|s| s["kind"] == "udp"));
        let loopback = &shown["interfaces"][0];
        assert_eq!((&loopback["medium"], &loopback["link"]), (&json!("loopback"), &json!(0)), "{loopback}");
        assert!(shown["routes"].is_array());
        assert!(client.counters().unwrap()["counters"]["connections_opened"].as_u64().unwrap() >= 1);

        let greeting = client.request(&json!({"op": "greet", "name": "you"})).unwrap().0;
        assert_eq!(greeting["greeting"], "hello, you");
        assert_eq!(client.request(&json!({"op": "greet"})).unwrap_err().to_string(), "who?");
        assert_eq!(
            client.request(&json!({"op": "nonsense"})).unwrap_err().to_string(),
            "no such request: nonsense"
        );

        // What is not JSON is answered, and what never ends is cut off.
        let mut raw = UnixStream::connect(path).unwrap();
        raw.write_all(b"nonsense\n").unwrap();
        let mut place = [0; 256];
        let count = raw.read(&mut place).unwrap();
        assert!(String::from_utf8_lossy(&place[..count]).contains("not JSON"));
        let _ = raw.write_all(&vec![b'a'; 1 << 20]);
        assert!(!matches!(raw.read(&mut place), Ok(1..)));
    });
}

#[test]
fn a_thousand_connections_live_at_once_and_netstat_lists_them() {
    let path = path("thousand");
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    services(&host);
    let server = Server::open(&host, runtime.handle(), &path).unwrap();
    let callers = in_time(&mut runtime, async {
        let mut callers = Vec::new();
        for number in 0..1000u32 {
            let mut stream = host.connect(here(7)).await.unwrap();
            stream.write_all(&number.to_be_bytes()).await.unwrap();
            callers.push(stream);
        }
        for (number, stream) in callers.iter_mut().enumerate() {
            assert_eq!(stream.read_u32().await.unwrap(), number as u32);
        }
        callers
    });
    let client_path = path.clone();
    let before = runtime.rounds();
    let all_shown = beside(&mut runtime, move || {
        let askers: Vec<_> = (0..ASKERS)
            .map(|_| {
                let path = client_path.clone();
                thread::spawn(move || Client::open(&path).unwrap().netstat().unwrap())
            })
            .collect();
        let shown: Vec<_> = askers.into_iter().map(join).collect();
        Client::open(&client_path).unwrap().shutdown().unwrap();
        shown
    });
    in_time(&mut runtime, server.shutdown_requested());
    let rounds = runtime.rounds() - before;
    for shown in all_shown {
        let sockets = shown["sockets"].as_array().unwrap();
        let established = sockets.iter().filter(|s| s["state"] == "ESTABLISHED").count();
        assert_eq!(established, 2000);
    }
    // Each round describes only a few sockets, so other clients wait little, however many ask.
    let described = ASKERS as u64 * 2000;
    assert!(rounds >= described / 20, "{described} sockets were described in {rounds} rounds");
    let summary = Summary::new(&host);
    assert_eq!(
        summary.state()["sockets"],
        json!({"connections": 2000, "listeners": 5, "udp": 2, "echo": 0, "probes": 0})
    );
    assert_eq!(summary.state()["interfaces"][0]["medium"], "loopback");
    let udp = host.udp(here(9), UdpOptions::default()).unwrap();
    assert_eq!(summary.state()["sockets"]["udp"], 2, "they are counted once a second");
    runtime.run(host.sleep(Duration::from_secs(1))).unwrap();
    assert_eq!(summary.state()["sockets"]["udp"], 3);
    drop(udp);
    drop(callers);
    assert_eq!(runtime.shutdown(Duration::from_secs(10)).unwrap().aborted, 0);
    drop(server);
    fs::remove_dir(path.parent().unwrap()).unwrap();
}

#[test]
fn the_socket_is_its_owners_alone() {
    with_host("owner", |_, path| {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        if !rustix::process::getuid().is_root() {
            return;
        }
        // As root we can play another user, let into the directory and at the socket: the credentials still tell.
        fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o711)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        let script = format!(
            "import socket,os\nos.setgid(65534); os.setuid(65534)\ns=socket.socket(socket.AF_UNIX)\n\
             s.settimeout(10)\ns.connect('{}')\ntry:\n s.send(b'{{\"op\":\"netstat\"}}\\n'); print(len(s.recv(10)))\n\
             except (BrokenPipeError, ConnectionResetError): print(0)",
            path.display()
        );
        let told = output(std::process::Command::new("python3").args(["-c", &script]));
        assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), "0", "{told:?}");
    });
}

#[test]
fn a_stale_socket_is_replaced_and_a_living_one_is_not() {
    let path = path("stale");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let runtime = Runtime::new(StackConfig::default()).unwrap();
    let server = Server::open(runtime.host(), runtime.handle(), &path).unwrap();
    let second = Server::open(runtime.host(), runtime.handle(), &path).err().unwrap();
    assert_eq!(second.kind(), std::io::ErrorKind::AddrInUse);
    drop(server);
    fs::write(&path, "precious").unwrap();
    let refused = Server::open(runtime.host(), runtime.handle(), &path).err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// What a listener of another user at `path` is told by a client, and why the client gives up. None where we cannot play
/// another user.
fn open_at_a_strangers(path: &Path) -> Option<(std::io::Error, Vec<u8>)> {
    if !rustix::process::getuid().is_root() {
        inhost_interop::left_out("nobody but root can play another user; run as root");
        return None;
    }
    let (place, (ready, is_ready)) = (path.to_owned(), std::sync::mpsc::channel());
    let stranger = thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65_534);
        // This thread's alone, as the system has it.
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&place).unwrap();
        ready.send(()).unwrap();
        let (mut caller, _) = listener.accept().unwrap();
        let mut told = Vec::new();
        caller.read_to_end(&mut told).unwrap();
        told
    });
    receive(&is_ready);
    let place = path.to_owned();
    let client = thread::spawn(move || {
        let asked =
            Client::open(&place).and_then(|mut client| client.netstat().map_err(std::io::Error::other));
        asked.unwrap_err()
    });
    let why = join(client);
    // A refused client made no call.
    drop(UnixStream::connect(path));
    Some((why, join(stranger)))
}

#[test]
fn a_client_tells_nothing_to_a_strangers_socket() {
    let path = path("stranger");
    let directory = path.parent().unwrap();
    // Anybody may make a file here, and nobody may take another's place: as in /tmp.
    fs::set_permissions(directory, fs::Permissions::from_mode(0o1777)).unwrap();
    if let Some((why, told)) = open_at_a_strangers(&path) {
        assert_eq!(why.kind(), std::io::ErrorKind::PermissionDenied, "{why}");
        assert!(why.to_string().contains("runs as user 65534"), "{why}");
        assert!(told.is_empty(), "it was told {:?}", String::from_utf8_lossy(&told));
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_directory_in_which_others_may_replace_the_socket_is_not_used() {
    let path = path("open-to-others");
    let directory = path.parent().unwrap();
    let runtime = Runtime::new(StackConfig::default()).unwrap();
    let server = Server::open(runtime.host(), runtime.handle(), &path).unwrap();
    assert!(Client::open(&path).is_ok());
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
    let why = Client::open(&path).unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::PermissionDenied, "{why}");
    assert!(why.to_string().contains("chmod go-w"), "{why}");
    drop(server);
    let why = Server::open(runtime.host(), runtime.handle(), &path).err().unwrap();
    assert_eq!(why.kind(), std::io::ErrorKind::PermissionDenied, "{why}");
    if rustix::process::getuid().is_root() {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(directory, Some(65_534), None).unwrap();
        let why = Client::open(&path).unwrap_err();
        assert!(why.to_string().contains("belongs to user 65534"), "{why}");
    } else {
        inhost_interop::left_out("nobody but root can make a directory of another user's; run as root");
    }
    fs::remove_dir_all(directory).unwrap();
}
