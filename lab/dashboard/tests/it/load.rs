//! What it costs others that a host with many connections is looked at: a figure, of real time.
#![allow(clippy::disallowed_methods)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use inhost_base::Endpoint;
use inhost_common::service::Service;
use inhost_dashboard::{Dashboard, Instruments, Log, Section, Views};
use inhost_interop::{own_network, pause, run};
use inhost_link::Spec;
use inhost_runtime::control::{Client, Server};
use inhost_runtime::{Runtime, interface};
use inhost_socket::{Host, Listener};
use inhost_stack::{DuplicateDetection, ListenOptions, StackConfig};
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::place::{context, pair_up};

const CONNECTIONS: usize = 100_000;
/// There are ports for so many calls of one listener.
const PAIRS_A_PORT: usize = 10_000;
/// 10 Gbit/s, in pieces of a millisecond.
const PIECE_BYTES: u64 = 1_250_000;
const PIECE_EVERY: Duration = Duration::from_millis(1);
/// Each round is measured without, and with, somebody who looks.
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(5);
const HOST: &str = "10.9.0.2";
const DISCARD: u16 = 9;
const ECHO: u16 = 7;

/// A host of many connections with a TUN link, until it is dropped.
struct Place {
    control: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Place {
    fn new() -> Place {
        let control = std::env::temp_dir().join(format!("inhost-load-{}.sock", std::process::id()));
        let (tell, told) = mpsc::channel();
        let (stop, path) = (Arc::new(AtomicBool::new(false)), control.clone());
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || serve(&path, &tell, &stopping));
        told.recv_timeout(Duration::from_secs(120)).expect("the host has its connections");
        Place { control, stop, thread: Some(thread) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(inhost_interop::join);
    }
}

fn serve(control: &std::path::Path, tell: &mpsc::Sender<()>, stop: &AtomicBool) {
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 1 << 30;
    config.socket_limit = 2 * CONNECTIONS;
    let mut runtime = Runtime::new(config).unwrap();
    let host = runtime.host().clone();
    let spec: Spec = format!("tun:inload0,address={HOST}/24,host=10.9.0.1/24").parse().unwrap();
    let driver = inhost_link::open(&spec).unwrap();
    let mut interface = interface("load", &*driver);
    interface.addresses.clone_from(&spec.addresses);
    interface.duplicate_detection = DuplicateDetection::Off;
    runtime.add_link(&host, interface, driver).unwrap();
    let context = context(&runtime, Default::default(), Default::default());
    let section = Section { token: Some("x".repeat(32)), ..Section::default() };
    let service = Dashboard::start(&section, (), &context).unwrap();
    let instruments = Instruments {
        recorder: runtime.recorder(&host),
        links: runtime.links(),
        log: Log::default(),
        name: "load".to_owned(),
        sessions: context.sessions.clone(),
    };
    let views = Views::new(&host, instruments);
    service.show(&views);
    let server = Server::open(&host, runtime.handle(), control).unwrap();
    views.offer(&server);
    let listen = |port| {
        host.listen(Endpoint::new(inhost_base::Ipv4Addr::UNSPECIFIED, port), ListenOptions::default())
            .unwrap()
    };
    each(&host, listen(DISCARD), false);
    each(&host, listen(ECHO), true);
    runtime
        .run(async {
            let mut held = Vec::new();
            for place in 0..CONNECTIONS / 2 / PAIRS_A_PORT {
                held.push(pair_up(&host, 4000 + place as u16, PAIRS_A_PORT).await);
            }
            tell.send(()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                host.sleep(inhost_base::Duration::from_millis(20)).await;
            }
            drop(held);
        })
        .unwrap();
    host.stop();
}

/// Discards what each caller sends, or sends it back.
fn each(host: &Host, listener: Listener, is_echo: bool) {
    let spawner = host.clone();
    host.spawn(async move {
        while let Ok(caller) = listener.accept().await {
            spawner
                .spawn(async move {
                    let mut place = vec![0; 256 << 10];
                    let mut caller = caller;
                    while let Ok(count @ 1..) = caller.receive(&mut place).await {
                        if is_echo && caller.write_all(&place[..count]).await.is_err() {
                            return;
                        }
                    }
                })
                .detach();
        }
    })
    .detach();
}

/// Sends 10 Gbit/s, if they pass, until it is to stop.
fn bulk(sent: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut stream = TcpStream::connect((HOST, DISCARD)).unwrap();
        let piece = vec![7; PIECE_BYTES as usize];
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            stream.write_all(&piece).unwrap();
            sent.fetch_add(PIECE_BYTES, Ordering::Relaxed);
            next += PIECE_EVERY;
            let now = Instant::now();
            // What a slow moment kept back is not caught up with in a burst of more than ten pieces.
            next = next.max(now - 10 * PIECE_EVERY);
            pause(next.saturating_duration_since(now));
        }
    })
}

/// Round trips of 64 bytes, one each millisecond, in microseconds.
fn echo(time: Duration) -> Vec<u64> {
    let mut stream = TcpStream::connect((HOST, ECHO)).unwrap();
    stream.set_nodelay(true).unwrap();
    let (until, mut found, mut place) = (Instant::now() + time, Vec::new(), [0; 64]);
    while Instant::now() < until {
        let began = Instant::now();
        stream.write_all(&[1; 64]).unwrap();
        stream.read_exact(&mut place).unwrap();
        found.push(began.elapsed().as_micros() as u64);
        pause(Duration::from_millis(1));
    }
    found.sort_unstable();
    found
}

/// Looks once a second as netstat, top and the page do; how long the first list of all connections took.
fn look(control: &std::path::Path, time: Duration) -> Duration {
    // As the commands do.
    let _ = rustix::process::nice(10);
    let mut client = Client::open(control).unwrap();
    let began = Instant::now();
    let all = client.view("connections?sort=age&limit=1000000").unwrap();
    let took = began.elapsed();
    let all: Value = serde_json::from_slice(&all).unwrap();
    assert!(all["rows"].as_array().unwrap().len() >= CONNECTIONS);
    while began.elapsed() < time {
        client.view("host").unwrap();
        client.view("connections?sort=send_rate&limit=40").unwrap();
        for path in ["/api/connections?sort=sent&limit=60", "/api/host", "/api/histograms", "/metrics"] {
            let mut page = TcpStream::connect((HOST, 80)).unwrap();
            let ask = format!(
                "GET {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
                "x".repeat(32)
            );
            page.write_all(ask.as_bytes()).unwrap();
            let mut answer = Vec::new();
            match page.read_to_end(&mut answer) {
                Err(why) if why.kind() != ErrorKind::ConnectionReset => panic!("{path}: {why}"),
                _ => assert!(
                    answer.starts_with(b"HTTP/1.1 200"),
                    "{path}: {}",
                    String::from_utf8_lossy(&answer)
                ),
            }
        }
        pause(Duration::from_secs(1).min(time.saturating_sub(began.elapsed())));
    }
    took
}

#[test]
#[ignore = "long run: make dashboard-bench"]
fn a_host_of_100_000_connections_that_is_looked_at() {
    if !own_network() {
        return;
    }
    let place = Place::new();
    run(Command::new("ping").args(["-c", "1", "-W", "5", HOST]));
    let (sent, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let sender = bulk(sent.clone(), stop.clone());
    // Slow start is over.
    pause(Duration::from_secs(1));
    let measure = |is_looked_at: bool| {
        let before = sent.load(Ordering::Relaxed);
        let began = Instant::now();
        let (trips, listed) = std::thread::scope(|scope| {
            let looking = is_looked_at.then(|| scope.spawn(|| look(&place.control, ROUND)));
            (echo(ROUND), looking.map(|looking| looking.join().unwrap()))
        });
        let bits = (sent.load(Ordering::Relaxed) - before) as f64 * 8.0;
        (bits / began.elapsed().as_secs_f64() / 1e9, trips[trips.len() * 99 / 100] as f64, listed)
    };
    let (mut rates, mut slowest, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    println!("{CONNECTIONS} connections; 10 Gbit/s through TUN; netstat, top and the page once a second");
    for round in 0..ROUNDS {
        // In turn one and the other comes first.
        let order = [round % 2 == 1, round % 2 == 0];
        let [one, other] = order.map(measure);
        let (with, without) = if order[0] { (one, other) } else { (other, one) };
        println!(
            "  bulk {:>5.2} and {:>5.2} Gbit/s, echo 99 % {:>6.0} and {:>6.0} us, all listed in {:?}",
            without.0, with.0, without.1, with.1, with.2
        );
        rates.push(with.0 / without.0);
        slowest.push(with.1 / without.1);
        lists.push(with.2.unwrap_or_default().as_secs_f64());
    }
    for (name, values) in
        [("bulk, looked at / not", rates), ("echo 99 %, looked at / not", slowest), ("all listed, s", lists)]
    {
        let mut values = values;
        values.sort_by(f64::total_cmp);
        println!("{name:<28} {:>6.3} ({:.3} to {:.3})", values[ROUNDS / 2], values[0], values[ROUNDS - 1]);
    }
    stop.store(true, Ordering::Relaxed);
    inhost_interop::join(sender);
}
