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
    std::fs::write(here.join("host.toml"), "[little]\nconnections_per_peer = 1000\n").unwrap();
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
    assert_eq!(sockets.matches("ESTABLISHED").count(), 1, "{sockets}");
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
    let mut echo = |word: &[u8; 4]| {
        let mut place = [0; 4];
        stream.write_all(word).unwrap();
        stream.read_exact(&mut place).unwrap();
        assert_eq!(&place, word);
    };
    echo(b"one ");
    // Of a service whose key is not there: it fails after the devices came over.
    std::fs::write(
        here.join("broken.toml"),
        "[ftp]\nenabled = true\ntls = true\ncertificate = \"/none\"\nkey = \"/none\"\n",
    )
    .unwrap();
    let mut new = serve(here, link, &["--take-over", "--config", "broken.toml"]);
    assert!(!new.wait().success());
    echo(b"two ");
    drop(until("an answer of the old host", call));
    run(inhost(here).arg("netstat"));
    // Another link than the running host's is refused before anything is moved.
    let mut other = serve(here, "tun:inhand3,address=10.9.1.2/24", &["--take-over"]);
    other.wait();
    assert!(other.printed().contains("give both the same links"), "{}", other.printed());
    drop(until("an answer of the old host", call));
    echo(b"last");
    drop(old);
}
