//! `inhost serve --take-over`: a running host is replaced under its connections, to kernel sockets.

mod common;

use common::{Folder, Running, inhost, own_namespace, wait};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const ECHO: &str = "10.9.0.2:7";
const TRANSFERS: usize = 100;

/// Starts a host on `link`, logging to `log`.
fn serve(folder: &Path, link: &str, log: &str, more: &[&str]) -> Running {
    let mut command = inhost(folder);
    command.args(["serve", "--quiet", "--log", "info", "--link", link]).args(more);
    let log = File::create(folder.join(log)).unwrap();
    Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
}

fn log(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

fn until(folder: &Path, what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is() {
            return;
        }
        wait(50);
    }
    panic!("never {what}\nold: {}\nnew: {}", log(folder, "old"), log(folder, "new"));
}

fn call() -> Option<TcpStream> {
    let stream =
        TcpStream::connect_timeout(&ECHO.parse::<SocketAddr>().unwrap(), Duration::from_secs(2)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    Some(stream)
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
    if !own_namespace() {
        return;
    }
    let (stop, slowest_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let folder = Folder::new("handover");
    let here = &folder.0;
    std::fs::write(here.join("host.toml"), "[little]\nconnections_per_peer = 1000\n").unwrap();
    let mut old = serve(here, link, "old", &[]);
    until(here, "up", || call().is_some());
    let transfers: Vec<_> = (0..TRANSFERS)
        .map(|_| transfer(call().expect("an answer"), stop.clone(), slowest_us.clone()))
        .collect();
    wait(500);
    let before_us = slowest_us.swap(0, Ordering::Relaxed);
    let _new = serve(here, link, "new", &["--take-over"]);
    until(here, "taken over", || log(here, "new").contains("taken over"));
    until(here, "handed over", || log(here, "old").contains("handed over"));
    // The new one answers whoever calls now, and the control socket; the old one keeps what it had.
    let mut stream = call().expect("an answer of the new host");
    stream.write_all(b"new").unwrap();
    let mut place = [0; 3];
    stream.read_exact(&mut place).unwrap();
    let sockets = inhost(here).args(["netstat"]).output().unwrap();
    let sockets = String::from_utf8_lossy(&sockets.stdout).into_owned();
    assert_eq!(sockets.matches("ESTABLISHED").count(), 1, "{sockets}");
    wait(1000);
    assert!(old.0.try_wait().unwrap().is_none(), "the old host lives as long as its connections");
    let pause_us = slowest_us.load(Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    let blocks: Vec<u64> = transfers.into_iter().map(|transfer| transfer.join().unwrap()).collect();
    assert!(blocks.iter().all(|&blocks| blocks > 0));
    until(here, "ended", || old.0.try_wait().unwrap().is_some());
    assert!(old.0.wait().unwrap().success(), "{}", log(here, "old"));
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
    if !own_namespace() {
        return;
    }
    let folder = Folder::new("handover");
    let here = &folder.0;
    let link = "tun:inhand2,address=10.9.0.2/24,host=10.9.0.1/24";
    let old = serve(here, link, "old", &[]);
    until(here, "up", || call().is_some());
    let mut stream = call().unwrap();
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
    let mut new = serve(here, link, "new", &["--take-over", "--config", "broken.toml"]);
    until(here, "failed", || new.0.try_wait().unwrap().is_some());
    assert!(!new.0.wait().unwrap().success());
    echo(b"two ");
    until(here, "answering again", || call().is_some());
    assert!(inhost(here).args(["netstat"]).output().unwrap().status.success());
    // Another link than the running host's is refused before anything is moved.
    let mut other = serve(here, "tun:inhand3,address=10.9.1.2/24", "new", &["--take-over"]);
    until(here, "refused", || other.0.try_wait().unwrap().is_some());
    assert!(log(here, "new").contains("give both the same links"), "{}", log(here, "new"));
    until(here, "answering again", || call().is_some());
    echo(b"last");
    drop(old);
}
