//! What runs at the kernel's end: a sink, a source, or an echo, each on a thread.

use super::place::{KERNEL, PROCESS};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::park_timeout;
use std::time::Duration;

/// Bytes of one read or write: as much as a system call is worth, and no more than a core's cache holds.
const PIECE_BYTES: usize = 128 << 10;
/// Bytes of one answer to a byte.
const BODY_BYTES: usize = 1 << 20;
/// The longest that an attempt to call may take: its first segment may have found no stack yet.
const CALL_LIMIT: Duration = Duration::from_millis(50);
/// How many connections are opened and stay, and how long the opening of one may take.
const OPEN_CONNECTIONS: usize = 10_000;
const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// The kernel's own default may be one that halves its local rate.
const CONGESTION: &str = "cubic";

/// What the process under test does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// It sends a stream to port 9, or several.
    Send,
    /// It receives a stream from port 10, or several.
    Receive,
    /// It sends a byte to port 7 and waits for it.
    Echo,
    /// The same, on all cores.
    EchoOnCores,
    /// It calls port 11 and is closed, again and again.
    Connect,
    /// It is called at port 13 by so many connections as it may have, which stay open.
    Open,
    /// It calls port 12 and answers each byte with a body of a megabyte, with Nagle's algorithm on.
    Bodies,
    /// It receives datagrams at port 9, works on each for a declared time, and says how many there were.
    Consume,
}

/// A load by its word, and whether the process is called: one that cannot call says which face or stack it is.
pub fn load(word: &str) -> Result<(Load, bool), String> {
    match ["-net", "-within", "-netstack"].iter().find_map(|face| word.strip_suffix(face)) {
        Some(load) => Ok((load.parse()?, true)),
        None => Ok((word.parse()?, false)),
    }
}

impl FromStr for Load {
    type Err = String;
    fn from_str(word: &str) -> Result<Load, String> {
        match word {
            "send" => Ok(Load::Send),
            "receive" => Ok(Load::Receive),
            "echo" => Ok(Load::Echo),
            "echo-cores" => Ok(Load::EchoOnCores),
            "connect" => Ok(Load::Connect),
            "open" => Ok(Load::Open),
            "consume" => Ok(Load::Consume),
            "bodies" | "bodies-local" => Ok(Load::Bodies),
            _ => Err(format!("{word:?} is not a load")),
        }
    }
}

impl Load {
    /// Whether both ends share a core: waking somebody on another one costs more than everything else here.
    pub fn is_on_one_core(self) -> bool {
        matches!(self, Load::Echo | Load::Connect)
    }
    fn port(self) -> u16 {
        match self {
            Load::Send => 9,
            Load::Receive => 10,
            Load::Connect => 11,
            Load::Bodies => 12,
            Load::Open => 13,
            // Nobody calls there while datagrams are sent.
            Load::Echo | Load::EchoOnCores | Load::Consume => 7,
        }
    }
}

/// The kernel's end at work.
pub struct Ends {
    /// What it serves.
    pub load: Load,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    bytes: AtomicU64,
    stopped: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Ends {
    /// Listens, in the namespace of this thread; or calls the process, when that `is_called`.
    pub fn start(load: Load, is_called: bool) -> Result<Ends, String> {
        if is_called {
            let shared = Arc::new(Shared::default());
            let there = shared.clone();
            std::thread::spawn(move || call(load, &there));
            return Ok(Ends { load, shared });
        }
        let listener =
            TcpListener::bind((KERNEL, load.port())).map_err(|e| format!("port {}: {e}", load.port()))?;
        // Inherited by what is accepted.
        set_tcp_congestion(&listener, CONGESTION)
            .map_err(|e| format!("{CONGESTION}: {e}; modprobe tcp_cubic"))?;
        listener.set_nonblocking(true).map_err(|e| e.to_string())?;
        let shared = Arc::new(Shared::default());
        let there = shared.clone();
        std::thread::spawn(move || serve(load, &listener, &there));
        Ok(Ends { load, shared })
    }
    /// Whether [`Ends::bytes`] counts what matters.
    pub fn counts_bytes(&self) -> bool {
        matches!(self.load, Load::Send | Load::Receive | Load::Bodies)
    }
    /// Bytes received from the process, or written to it.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }
    /// Waits for a connection while `lives`.
    pub fn wait_for_connection(
        &self,
        limit: Duration,
        mut lives: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let mut waited = Duration::ZERO;
        while self.shared.connections().is_empty() {
            if waited > limit || !lives() {
                return Err("no connection came".into());
            }
            waited += Duration::from_millis(2);
            park_timeout(Duration::from_millis(2));
        }
        Ok(())
    }
    /// Ends what is left.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        for connection in self.shared.connections().iter() {
            // It may be over already.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves connections, each on a thread; an error is one's end.
fn serve(load: Load, listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stopped.load(Ordering::Relaxed) {
        match listener.accept() {
            // Dropped, it is closed, and its TIME-WAIT is at this end.
            Ok(_) if load == Load::Connect => {}
            Ok((stream, _)) => {
                let ready = stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true));
                if ready.is_err() {
                    return;
                }
                let shared = shared.clone();
                std::thread::spawn(move || work(load, stream, &shared));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && load == Load::Connect => {
                wait_for_call(listener)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => park_timeout(Duration::from_millis(2)),
            Err(_) => return,
        }
    }
}

/// Calls the process until it answers, and works; an error is the end.
fn call(load: Load, shared: &Shared) -> std::io::Result<()> {
    while !shared.stopped.load(Ordering::Relaxed) {
        match TcpStream::connect_timeout(&(PROCESS, load.port()).into(), CALL_LIMIT) {
            Ok(stream) if load == Load::Open => return open(stream, shared),
            Ok(stream) => {
                set_tcp_congestion(&stream, CONGESTION)?;
                stream.set_nodelay(true)?;
                return work(load, stream, shared);
            }
            Err(_) => park_timeout(Duration::from_millis(2)),
        }
    }
    Ok(())
}

fn work(load: Load, stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    shared.connections().extend(stream.try_clone());
    match load {
        Load::Send => sink(stream, shared),
        Load::Receive => source(stream, shared),
        Load::Bodies => ask(stream, shared),
        Load::Echo | Load::EchoOnCores | Load::Connect | Load::Consume => echo(stream),
        Load::Open => Ok(()),
    }
}

/// Opens connections after the first, each of which says a byte and stays.
fn open(first: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut stream = first;
    loop {
        stream.write_all(b"!")?;
        let mut open = shared.connections();
        open.push(stream);
        if open.len() >= OPEN_CONNECTIONS || shared.stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        drop(open);
        stream = TcpStream::connect_timeout(&(PROCESS, Load::Open.port()).into(), OPEN_LIMIT)?;
    }
}

/// Sleeps until somebody calls, for a while.
fn wait_for_call(listener: &TcpListener) {
    let limit = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let mut one = [rustix::event::PollFd::new(listener, rustix::event::PollFlags::IN)];
    // The next poll will show the result.
    let _ = rustix::event::poll(&mut one, Some(&limit));
}

fn sink(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut place = vec![0; PIECE_BYTES];
    loop {
        match stream.read(&mut place)? {
            0 => return Ok(()),
            count => shared.bytes.fetch_add(count as u64, Ordering::Relaxed),
        };
    }
}

fn source(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let text = vec![0x5a; PIECE_BYTES];
    loop {
        let count = stream.write(&text)?;
        shared.bytes.fetch_add(count as u64, Ordering::Relaxed);
    }
}

fn ask(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut place = vec![0; BODY_BYTES];
    loop {
        stream.write_all(b"?")?;
        stream.read_exact(&mut place)?;
        shared.bytes.fetch_add(BODY_BYTES as u64, Ordering::Relaxed);
    }
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    let mut place = [0; 64];
    loop {
        let count = stream.read(&mut place)?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&place[..count])?;
    }
}
