//! A client of TFTP on the kernel's own sockets: the same for every server. What comes is counted, and not kept.

use inhost_base::{Endpoint, Instant};
use inhost_tftp::{Mode, Options, Request, Settings, Transfer};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// How long a look for a datagram takes at most.
const LOOK: Duration = Duration::from_millis(20);
/// Memory for windows that wait.
const RECEIVE_BYTES: usize = 4 << 20;
/// Octets that are given at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// What is asked for.
pub struct Asked<'a> {
    /// Whether the file is sent, and how long it is then.
    pub put_bytes: Option<u64>,
    /// Its name.
    pub name: &'a str,
    /// Blocks before an acknowledgment.
    pub window: u16,
}

/// The time on a clock that only goes forward.
pub fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Instant::from_nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Moves a file; `halfway` is called once, when half of `bytes` has moved. Gives the octets that moved.
pub fn carry(
    from: SocketAddr,
    server: SocketAddr,
    asked: &Asked<'_>,
    bytes: u64,
    mut halfway: impl FnMut(),
) -> Result<u64, String> {
    let failed = |e: io::Error| format!("{}: {e}", asked.name);
    let socket = UdpSocket::bind(from).map_err(failed)?;
    // The system may give less.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES);
    socket.set_read_timeout(Some(LOOK)).map_err(failed)?;
    let mut options = Options::default();
    options.block_size = Some(1428);
    options.window = (asked.window > 1).then_some(asked.window);
    options.transfer_size = asked.put_bytes;
    let is_write = asked.put_bytes.is_some();
    let request = Request { is_write, name: asked.name.into(), mode: Mode::Octet, options };
    let mut transfer = Transfer::ask(request, Endpoint::from(server), Settings::default(), now());
    let (mut packet, mut place, piece) = (Vec::new(), vec![0; 65_536], vec![7; PIECE_BYTES]);
    let (mut left, mut is_half) = (asked.put_bytes.unwrap_or(0), false);
    loop {
        while transfer.wants() > 0 && left != u64::MAX {
            let count = left.min(PIECE_BYTES as u64);
            transfer.supply(&piece[..count as usize]);
            left = if count == 0 { u64::MAX } else { left - count };
        }
        while let Some(to) = transfer.transmit(&mut packet, now()) {
            match socket.send_to(&packet, SocketAddr::from(to)) {
                Ok(_) => {}
                // A server that is not there yet; it is asked again.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(e) => return Err(failed(e)),
            }
        }
        if let Some(file) = transfer.file() {
            file.clear();
        }
        if !is_half && transfer.file_bytes() >= bytes / 2 {
            is_half = true;
            halfway();
        }
        if transfer.is_whole() {
            transfer.stored(now());
            continue;
        }
        if let Some(outcome) = transfer.outcome() {
            let outcome = outcome.as_ref().map_err(|error| format!("{}: {error}", asked.name));
            return outcome.map(|summary| summary.file_bytes);
        }
        match socket.recv_from(&mut place) {
            Ok((length, from)) => transfer.datagram(Endpoint::from(from), &place[..length], now()),
            Err(_) => transfer.timeout(now()),
        }
    }
}
