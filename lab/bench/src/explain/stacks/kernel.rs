//! A program on the kernel's sockets, and the kernel's figures of its connection.

use super::{CLIENT_PORT, SERVER_PORT};
use crate::explain::script::{Note, Notes, Settings, Step};
use crate::explain::situation::Side;
use crate::figures::kernel::place;
use crate::figures::kernel::subject::{Over, accept, is_time_over, std_time};
use inhost_base::{Duration, Instant};
use inhost_runtime::Clock;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// How often those who wait look whether the time is over.
const LOOK: Duration = Duration::from_millis(100);
/// How often the kernel is asked for the figures of a connection.
const SAMPLE: std::time::Duration = std::time::Duration::from_millis(4);
/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Bytes of `struct tcp_info` that are read.
const INFO_BYTES: usize = 84;

sockopt_impl!(TcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, [u8; INFO_BYTES]);
sockopt_impl!(MaxPacingRate, SetOnly, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64);

/// The kernel's figures of a connection (`struct tcp_info` of <linux/tcp.h>), in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The congestion window.
    pub congestion_window: u32,
    /// Below it the window grows as in slow start.
    pub slow_start_threshold: u32,
}

impl Sample {
    fn of(stream: &TcpStream) -> Option<Sample> {
        let info = getsockopt(stream, TcpInfo).ok()?;
        let u32_at = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        Some(Sample { congestion_window: u32_at(80), slow_start_threshold: u32_at(76) })
    }
}

/// A program on the kernel, and what it notes.
#[derive(Clone)]
pub struct Program {
    /// The clock of the notes.
    pub clock: Clock,
    /// What it noted.
    pub notes: Notes,
    /// Set by a program whose host vanishes.
    pub gone: Arc<AtomicBool>,
    /// Set when the time is over.
    pub over: Over,
    /// The kernel's figures.
    pub samples: Arc<Mutex<Vec<(Instant, Sample)>>>,
}

/// Sets the namespace of this thread for a side.
pub fn prepare(settings: &Settings) -> Result<(), String> {
    let on = |on: bool| if on { "1" } else { "0" };
    let receive = match settings.receive_window_bytes {
        // Half of the memory is window.
        Some(window) => format!("4096 {0} {0}", 2 * window),
        None => "4096 131072 6291456".to_owned(),
    };
    for (knob, value) in [
        ("tcp_rmem", receive.as_str()),
        ("tcp_wmem", "4096 16384 4194304"),
        ("tcp_no_metrics_save", "1"),
        ("tcp_window_scaling", on(settings.window_scaling)),
        ("tcp_sack", on(settings.sack)),
        ("tcp_timestamps", on(settings.timestamps)),
        ("tcp_slow_start_after_idle", on(settings.restart_after_idle)),
    ] {
        place::set(&format!("net/ipv4/{knob}"), value)?;
    }
    Ok(())
}

fn socket(settings: &Settings) -> Result<Socket, String> {
    let make = || -> std::io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_tcp_nodelay(!settings.nagle)?;
        socket.set_tcp_congestion(settings.congestion.as_bytes())?;
        if let Some(bytes) = settings.send_buffer_bytes {
            // The kernel doubles it.
            socket.set_send_buffer_size(bytes / 2)?;
        }
        if let Some(mss) = settings.mss_bytes {
            socket.set_tcp_mss(mss.into())?;
        }
        if let Some(rate) = settings.pacing_bytes_per_second {
            setsockopt(&socket, MaxPacingRate, &rate)?;
        }
        Ok(socket)
    };
    make().map_err(|e| format!("the kernel's socket: {e}"))
}

/// Opens the server's port in the namespace of this thread.
pub fn listen(settings: &Settings) -> Result<TcpListener, String> {
    let socket = socket(settings)?;
    let here = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), SERVER_PORT);
    let backlog = settings.backlog.unwrap_or(128) as i32;
    socket
        .bind(&here.into())
        .and_then(|()| socket.listen(backlog))
        .map_err(|e| format!("the kernel does not listen: {e}"))?;
    Ok(socket.into())
}

impl Program {
    /// The client's program, in the namespace of this thread.
    pub fn call(&self, side: &Side, to: SocketAddr, limit: Duration) -> Result<(), String> {
        self.rest(side.settings.wait_first);
        let connect = |port: u16| -> Result<TcpStream, String> {
            let socket = socket(&side.settings)?;
            let from = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
            socket.bind(&from.into()).map_err(|e| e.to_string())?;
            socket.connect_timeout(&to.into(), std_time(limit)).map_err(|e| e.to_string())?;
            Ok(socket.into())
        };
        let fillers: Vec<_> = (0..side.settings.fillers).map(|_| connect(0)).collect::<Result<_, _>>()?;
        self.note(Note::Began);
        match connect(CLIENT_PORT) {
            Ok(stream) => self.talk(stream, &side.script),
            Err(_) => self.note(Note::Failed),
        }
        drop(fillers);
        Ok(())
    }
    /// The server's program.
    pub fn serve(&self, side: &Side, listener: TcpListener) -> Result<(), String> {
        self.note(Note::Began);
        self.rest(side.settings.wait_first);
        let mut others = Vec::new();
        while !self.over.load(Ordering::Relaxed) {
            let Ok(stream) = accept(&listener, &self.over) else { return Ok(()) };
            match stream.peer_addr() {
                Ok(from) if from.port() == CLIENT_PORT => {
                    self.talk(stream, &side.script);
                    return Ok(());
                }
                _ => others.push(stream),
            }
        }
        Ok(())
    }
    fn note(&self, note: Note) {
        self.notes.add(self.clock.now(), note);
    }
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
    fn rest(&self, time: Duration) {
        self.rest_until(self.clock.now() + time);
    }
    fn rest_until(&self, until: Instant) {
        loop {
            let left = until.since(self.clock.now());
            if left == Duration::ZERO || self.is_over() {
                return;
            }
            std::thread::park_timeout(std_time(left.min(LOOK)));
        }
    }
    fn talk(&self, mut stream: TcpStream, script: &[Step]) {
        self.note(Note::Open);
        let limit = Some(std_time(LOOK));
        if stream.set_read_timeout(limit).and(stream.set_write_timeout(limit)).is_err() {
            return self.note(Note::Failed);
        }
        let (ends, ended) = channel::<()>();
        std::thread::scope(|scope| {
            if let Ok(seen) = stream.try_clone() {
                scope.spawn(move || {
                    while ended.recv_timeout(SAMPLE) == Err(RecvTimeoutError::Timeout) {
                        let Some(sample) = Sample::of(&seen) else { return };
                        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
                        samples.push((self.clock.now(), sample));
                    }
                });
            }
            let done = self.steps(&mut stream, script).and_then(|()| {
                stream.shutdown(std::net::Shutdown::Write).ok()?;
                self.note(Note::Shut);
                self.read(&mut stream, usize::MAX, READ_BYTES, Duration::ZERO)
            });
            self.note(if done.is_some() { Note::Done } else { Note::Failed });
            drop(ends);
        });
    }
    fn steps(&self, stream: &mut TcpStream, script: &[Step]) -> Option<()> {
        for step in script {
            match step {
                Step::Wait(time) => self.rest(*time),
                Step::Write { bytes, piece, every } => self.write(stream, *bytes, *piece, *every)?,
                Step::Read(bytes) => self.read(stream, *bytes, READ_BYTES, Duration::ZERO)?,
                Step::ReadToEnd => self.read(stream, usize::MAX, READ_BYTES, Duration::ZERO)?,
                Step::ReadSlowly { piece, every } => self.read(stream, usize::MAX, *piece, *every)?,
                Step::Shutdown => {
                    stream.shutdown(std::net::Shutdown::Write).ok()?;
                    self.note(Note::Shut);
                }
                Step::Reset => {
                    // The last handle is dropped when this returns.
                    SockRef::from(&*stream).set_linger(Some(std::time::Duration::ZERO)).ok()?;
                    self.note(Note::Reset);
                    return None;
                }
                Step::Vanish => {
                    self.note(Note::Vanished);
                    self.gone.store(true, Ordering::Relaxed);
                    return None;
                }
                Step::Repeat(times, steps) => {
                    for _ in 0..*times {
                        self.steps(stream, steps)?;
                    }
                }
            }
        }
        Some(())
    }
    fn write(&self, stream: &mut TcpStream, bytes: usize, piece: usize, every: Duration) -> Option<()> {
        let text = vec![0x5a; piece];
        let (mut left, mut next) = (bytes, self.clock.now());
        while left > 0 {
            let mut call = piece.min(left);
            // Without an interval the program has all the rest to write.
            self.note(Note::Wants(if every == Duration::ZERO { left } else { call } as u64));
            left -= call;
            while call > 0 {
                match stream.write(&text[..call]) {
                    Ok(count) => {
                        call -= count;
                        self.note(Note::Wrote(count as u64));
                    }
                    Err(error) if is_time_over(&error) && !self.is_over() => {}
                    Err(_) => return None,
                }
            }
            if every > Duration::ZERO && left > 0 {
                next += every;
                self.rest_until(next);
            }
        }
        Some(())
    }
    fn read(&self, stream: &mut TcpStream, bytes: usize, piece: usize, every: Duration) -> Option<()> {
        let (mut place, mut left) = (vec![0; piece.min(bytes)], bytes);
        while left > 0 {
            if every > Duration::ZERO {
                self.rest(every);
            }
            let most = place.len().min(left);
            self.note(Note::Reads);
            let count = loop {
                match stream.read(&mut place[..most]) {
                    Ok(count) => break count,
                    Err(error) if is_time_over(&error) && !self.is_over() => {}
                    Err(_) => return None,
                }
            };
            self.note(Note::Read(count as u64));
            if count == 0 {
                return (bytes == usize::MAX).then_some(());
            }
            left -= count;
        }
        Some(())
    }
}
