//! `inhost serve --take-over`: a running host is replaced under its connections, to kernel sockets.

use crate::common::{Folder, inhost, with_deadline};
use inhost_interop::{Running, join, own_network, pause, run, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const ECHO: &str = "10.9.0.2:7";
const TRANSFERS: usize = 100;

/// Starts a host on `link`, which prints its log.
fn serve(folder: &Path, link: &str, more: &[&str]) -> Running {
    Running::start(inhost(folder).args(["serve", "--quiet", "--log", "info", "--link", link]).args(more))
}

fn call() -> Option<TcpStream> {
    let stream =
        TcpStream::connect_timeout(&ECHO.parse::<SocketAddr>().unwrap(), Duration::from_secs(2)).ok()?;
    stream.set_nodelay(true).unwrap();
    Some(with_deadline(stream))
}

/// Sends a word and checks that it comes back.
fn echo(stream: &mut TcpStream, word: &[u8; 4]) {
    let mut place = [0; 4];
    stream.write_all(word).unwrap();
    stream.read_exact(&mut place).unwrap();
    assert_eq!(&place, word);
}

/// Sends numbered blocks and checks what comes back, until it is told to stop; gives their number.
fn transfer(mut stream: TcpStream, stop: Arc<AtomicBool>, slowest_us: Arc<AtomicU64>) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let clock = inhost_runtime::Clock::start();
        let (mut blocks, mut last) = (0u64, clock.now());
        let mut place = [0; 1024];
        while !stop.load(Ordering::Relaxed) {
            let block: Vec<u8> = (0..128).flat_map(|n| (blocks * 128 + n).to_be_bytes()).collect();
            stream.write_all(&block).unwrap();
            stream.read_exact(&mut place).unwrap();
            assert_eq!(&place[..], &block[..], "block {blocks}");
            blocks += 1;
            let now = clock.now();
            slowest_us.fetch_max(now.since(last).as_micros(), Ordering::Relaxed);
            last = now;
        }
        // The whole stream arrived, and ends with its end.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut place).unwrap(), 0);
        blocks
    })
}

fn replaced_under_transfers(link: &str) {
    if !own_network() {
        return;
    }
    let (stop, slowest_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let folder = Folder::new("handover");
    let here = &folder.0;
    std::fs::write(here.join("host.toml"), "[little.limits]\nsessions_per_peer = 1000\n").unwrap();
    let mut old = serve(here, link, &[]);
    drop(until("an answer of the host", call));
    let transfers: Vec<_> = (0..TRANSFERS)
        .map(|_| transfer(call().expect("an answer"), stop.clone(), slowest_us.clone()))
        .collect();
    pause(Duration::from_millis(500));
    let before_us = slowest_us.swap(0, Ordering::Relaxed);
    let mut new = serve(here, link, &["--take-over"]);
    new.wait_for("taken over");
    old.wait_for("handed over");
    // The new one answers whoever calls now, and the control socket; the old one keeps what it had.
    let mut stream = call().expect("an answer of the new host");
    stream.write_all(b"new").unwrap();
    let mut place = [0; 3];
    stream.read_exact(&mut place).unwrap();
    let sockets = run(inhost(here).arg("netstat"));
    assert_eq!(sockets.matches(" ESTAB ").count(), 1, "{sockets}");
    pause(Duration::from_secs(1));
    assert!(old.child.try_wait().unwrap().is_none(), "the old host lives as long as its connections");
    let pause_us = slowest_us.load(Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    let blocks: Vec<u64> = transfers.into_iter().map(join).collect();
    assert!(blocks.iter().all(|&blocks| blocks > 0));
    assert!(old.wait().success(), "{}", old.printed());
    // The connection to the new host outlives the old one.
    stream.write_all(b"too").unwrap();
    stream.read_exact(&mut place).unwrap();
    println!(
        "{link}: {} blocks of 1 KiB through {TRANSFERS} connections; the longest wait for one: {before_us} us before, \
         {pause_us} us with the upgrade",
        blocks.iter().sum::<u64>()
    );
}

#[test]
fn a_host_is_replaced_under_a_hundred_transfers_over_tun() {
    replaced_under_transfers("tun:inhand0,address=10.9.0.2/24,host=10.9.0.1/24");
}

#[test]
fn a_host_is_replaced_under_a_hundred_transfers_over_tap() {
    replaced_under_transfers("tap:inhand1,address=10.9.0.2/24,host=10.9.0.1/24,offload=off");
}

#[test]
fn the_old_host_goes_on_when_the_new_one_does_not_start() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let link = "tun:inhand2,address=10.9.0.2/24,host=10.9.0.1/24";
    let old = serve(here, link, &[]);
    let mut stream = until("an answer of the host", call);
    echo(&mut stream, b"one ");
    // Of a service whose key is not there: it fails after the devices came over.
    std::fs::write(
        here.join("broken.toml"),
        "[ftp]\nenabled = true\ntls = true\ncertificate = \"/none\"\nkey = \"/none\"\n",
    )
    .unwrap();
    let mut new = serve(here, link, &["--take-over", "--config", "broken.toml"]);
    assert!(!new.wait().success());
    echo(&mut stream, b"two ");
    drop(until("an answer of the old host", call));
    run(inhost(here).arg("netstat"));
    // Another link than the running host's is refused before anything is moved.
    let mut other = serve(here, "tun:inhand3,address=10.9.1.2/24", &["--take-over"]);
    other.wait();
    assert!(other.printed().contains("give both the same links"), "{}", other.printed());
    drop(until("an answer of the old host", call));
    echo(&mut stream, b"last");
    drop(old);
}

/// The old host may see first that the device's channel has ended, and first that the new process has.
#[test]
fn links_are_up_after_each_take_over_that_failed() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let link = "tap:inhand8,address=10.9.0.2/24,host=10.9.0.1/24";
    let user = "user,forward=127.0.0.1:47008->7,forward=udp:127.0.0.1:47008->7";
    let too_much = format!("{user},forward={}->9", taken.local_addr().unwrap());
    let _old = serve(here, link, &["--link", user]);
    drop(until("an answer of the host", call));
    let caller = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..5 {
        caller.send_to(b"anyone?", "127.0.0.1:47008").unwrap();
        let mut new = serve(here, link, &["--link", &too_much, "--take-over"]);
        assert!(!new.wait().success());
        let port = taken.local_addr().unwrap().port().to_string();
        assert!(new.printed().contains(&port), "{}", new.printed());
        drop(until("an answer of the old host", call));
        let state = || {
            let shown = inhost(here).args(["netstat", "interfaces", "--json"]).output().unwrap();
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            let is_down = shown.contains("\"state\":\"down\"");
            (!is_down).then_some(shown)
        };
        until("links that are up", state);
    }
}

/// A FIFO that nobody writes: who reads it waits.
fn fifo(folder: &Path, name: &str) {
    let made = std::process::Command::new("mkfifo").arg(folder.join(name)).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_new_host_that_hangs_gets_nothing() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let link = "tun:inhand4,address=10.9.0.2/24,host=10.9.0.1/24";
    let forward = "user,forward=127.0.0.1:47007->7";
    std::fs::write(here.join("host.toml"), "take_over_s = 2\n").unwrap();
    let mut old = serve(here, link, &["--link", forward]);
    let mut stream = until("an answer of the host", call);
    echo(&mut stream, b"one ");
    fifo(here, "names");
    let hangs = "take_over_s = 2\nhosts = \"names\"\n";
    std::fs::write(here.join("hangs.toml"), hangs).unwrap();
    let new = serve(here, link, &["--link", forward, "--take-over", "--config", "hangs.toml"]);
    old.wait_for("not handed over");
    // Connections, callers and the control socket are the old one's again, while the new one still hangs.
    echo(&mut stream, b"two ");
    drop(until("an answer of the old host", call));
    run(inhost(here).arg("netstat"));
    // It had listened at the forwarded port; with its end the port is free.
    drop(new);
    let forwarded = || TcpStream::connect("127.0.0.1:47007").ok();
    let mut through = with_deadline(until("an answer at the forwarded port", forwarded));
    let mut place = [0; 3];
    through.write_all(b"new").unwrap();
    through.read_exact(&mut place).unwrap();
    echo(&mut stream, b"last");
    run(inhost(here).arg("netstat"));
}

#[test]
fn a_new_host_that_is_late_learns_it() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let link = "tun:inhand5,address=10.9.0.2/24,host=10.9.0.1/24";
    std::fs::write(here.join("host.toml"), "take_over_s = 1\n").unwrap();
    let mut old = serve(here, link, &[]);
    drop(until("an answer of the host", call));
    fifo(here, "names");
    std::fs::write(here.join("hangs.toml"), "hosts = \"names\"\n").unwrap();
    let mut new = serve(here, link, &["--take-over", "--config", "hangs.toml"]);
    old.wait_for("not handed over");
    std::fs::write(here.join("names"), "10.9.0.2 host\n").unwrap();
    assert!(!new.wait().success());
    assert!(new.printed().contains("not ready in time"), "{}", new.printed());
    drop(until("an answer of the old host", call));
    run(inhost(here).arg("netstat"));
}

#[test]
fn links_of_another_shape_and_an_upgrade_too_soon_are_refused() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let link = "tun:inhand6,address=10.9.0.2/24,host=10.9.0.1/24";
    std::fs::write(here.join("host.toml"), "").unwrap();
    let mut old = serve(here, link, &[]);
    let mut stream = until("an answer of the host", call);
    let others = [
        ("tap:inhand6,address=10.9.0.2/24,host=10.9.0.1/24", "kind is tun here and tap there"),
        ("tun:inhand6,address=10.9.0.2/24,host=10.9.0.1/24,offload=off", "offload is on here and off there"),
        ("tun:inhand6,address=10.9.0.2/24,host=10.9.0.1/24,mtu=1400", "mtu is as usual here and 1400 there"),
    ];
    for (other, why) in others {
        let mut refused = serve(here, other, &["--take-over"]);
        assert!(!refused.wait().success());
        assert!(refused.printed().contains(why), "{}", refused.printed());
        echo(&mut stream, b"same");
    }
    let mut new = serve(here, link, &["--take-over"]);
    new.wait_for("taken over");
    old.wait_for("handed over");
    // The old one still has a connection, whose packets go through the new one.
    echo(&mut stream, b"held");
    let mut newest = serve(here, link, &["--take-over"]);
    assert!(!newest.wait().success());
    assert!(newest.printed().contains("still has connections"), "{}", newest.printed());
    echo(&mut stream, b"held");
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    assert!(old.wait().success(), "{}", old.printed());
    let mut newest = serve(here, link, &["--take-over"]);
    newest.wait_for("taken over");
    drop(until("an answer of the newest host", call));
}

#[test]
fn an_old_host_that_is_asked_to_end_gives_its_connections_time_to_close() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let link = "tun:inhand9,address=10.9.0.2/24,host=10.9.0.1/24";
    std::fs::write(here.join("host.toml"), "").unwrap();
    let mut old = serve(here, link, &[]);
    let mut stream = until("an answer of the host", call);
    let mut new = serve(here, link, &["--take-over"]);
    new.wait_for("taken over");
    old.wait_for("handed over");
    echo(&mut stream, b"held");
    old.signal(rustix::process::Signal::TERM);
    pause(Duration::from_secs(1));
    echo(&mut stream, b"more");
    drop(stream);
    assert!(old.wait().success(), "{}", old.printed());
}

/// A host that is stopped does not hold up those who ask it, and a second one says what to do about the first.
#[test]
fn what_to_do_about_a_host_that_runs_or_is_stopped() {
    let serve = crate::common::Serve::start("stopped", &["--link", "user,forward=127.0.0.1:0->23"]);
    let second = inhost_interop::output(serve.inhost().arg("serve"));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && said.contains("take it over with --take-over"), "{said}");
    serve.process.signal(rustix::process::Signal::STOP);
    let asked = [&["netstat"][..], &["serve", "--take-over"], &["record", "traps"]];
    let asking = asked.map(|arguments| (arguments, Running::start(serve.inhost().args(arguments))));
    for (arguments, mut asking) in asking {
        let expected = format!("process {}, does not answer within 10 s", serve.process.id());
        assert!(!asking.wait().success(), "{arguments:?}");
        assert!(asking.printed().contains(&expected), "{arguments:?}: {}", asking.printed());
    }
    serve.process.signal(rustix::process::Signal::CONT);
    assert!(serve.end().success());
}

#[test]
fn of_two_that_take_over_at_once_each_is_answered() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let link = "tun:inhand7,address=10.9.0.2/24,host=10.9.0.1/24";
    std::fs::write(here.join("host.toml"), "").unwrap();
    let mut old = serve(here, link, &[]);
    drop(until("an answer of the host", call));
    let mut both: Vec<Running> = (0..2).map(|_| serve(here, link, &["--take-over"])).collect();
    old.wait_for("handed over");
    let answered =
        |new: &mut Running| new.printed().contains("taken over") || new.child.try_wait().unwrap().is_some();
    for new in &mut both {
        until("an answer to each", || answered(new).then_some(()));
    }
    drop(until("an answer of a new host", call));
    run(inhost(here).arg("netstat"));
}

#[test]
fn a_caller_who_reuses_a_port_reaches_the_new_host() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let link = "tun:inhand8,address=10.9.0.2/24,host=10.9.0.1/24";
    std::fs::write(here.join("host.toml"), "").unwrap();
    let mut old = serve(here, link, &[]);
    // One connection keeps the old host; of another the host keeps TIME-WAIT, for it closes first.
    let held = until("an answer of the host", call);
    let from = |port: u16| {
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None)
                .unwrap();
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from(([10, 9, 0, 1], port))).unwrap();
        rustix::net::connect(&socket, &"10.9.0.2:13".parse::<SocketAddr>().unwrap())
            .map(|()| with_deadline(TcpStream::from(socket)))
    };
    let day = |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.contains("20"), "{text:?}");
    };
    day(from(40_001).unwrap());
    let mut new = serve(here, link, &["--take-over"]);
    new.wait_for("taken over");
    old.wait_for("handed over");
    day(from(40_001).unwrap());
    drop(held);
    assert!(old.wait().success(), "{}", old.printed());
}
