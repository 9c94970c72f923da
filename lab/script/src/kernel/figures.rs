//! The kernel's information structure by the names that scripts use.

use super::sockets::is_for_datagrams;
use crate::side::Figure;
use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

/// The bytes of `struct tcp_info` that are read: up to `tcpi_rehash`.
const INFO_BYTES: usize = 240;

sockopt_impl!(TcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, [u8; INFO_BYTES]);

/// `struct tcp_info` of <linux/tcp.h>, in place. Offsets are those of that file.
struct Info([u8; INFO_BYTES]);

impl Info {
    fn u8(&self, at: usize) -> f64 {
        f64::from(self.0[at])
    }
    fn u32(&self, at: usize) -> f64 {
        f64::from(u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]]))
    }
    fn u64(&self, at: usize) -> f64 {
        self.u32(at) + self.u32(at + 4) * 4_294_967_296.0
    }
    fn micros(&self, at: usize) -> f64 {
        self.u32(at) * 1e3
    }
    fn segments(&self, at: usize) -> f64 {
        self.u32(at) * self.u32(16)
    }
    fn has(&self, option: u8) -> Figure {
        (self.0[5] & option != 0).into()
    }
}

const STATES: [&str; 13] = [
    "CLOSED",
    "ESTABLISHED",
    "SYN-SENT",
    "SYN-RECEIVED",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "CLOSED",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "SYN-RECEIVED",
];
/// `enum tcp_ca_state`
const RECOVERY: [&str; 5] = ["open", "disorder", "window-reduction", "recovery", "loss"];

/// The figure called `name`, or `None` where the kernel keeps none such.
pub(super) fn figure(socket: &Socket, name: &str) -> Result<Option<Figure>, String> {
    if name == "congestion_control" {
        let name = socket.tcp_congestion().map_err(|error| error.to_string())?;
        let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
        return Ok(Some(Figure::Word(if name == "reno" { "newreno".into() } else { name })));
    }
    let info = Info(getsockopt(socket, TcpInfo).map_err(|error| error.to_string())?);
    if let Some(word) = word(&info, name) {
        return Ok(Some(word));
    }
    let number = match name {
        "send_window_bytes" => info.u32(228),
        "send_window_scale" => f64::from(info.0[6] & 0xf),
        "receive_window_scale" => f64::from(info.0[6] >> 4),
        "send_segment_bytes" => info.u32(16),
        "in_flight_bytes" => (info.u32(24) - info.u32(28) - info.u32(32) + info.u32(36)) * info.u32(16),
        "smoothed_round_trip" => info.micros(68),
        "round_trip_variation" => info.micros(72),
        "retransmission_timeout" => info.micros(8),
        "retransmission_backoff" => info.u8(4),
        "congestion_window_bytes" => info.segments(80),
        "slow_start_threshold_bytes" => info.segments(76),
        "sent_bytes" => info.u64(120),
        "received_bytes" => info.u64(128),
        "retransmitted_segments" => info.u32(100),
        "retransmitted_bytes" => info.u64(208),
        "sacked_bytes" => info.segments(28),
        "lost_bytes" => info.segments(32),
        "reordering_segments" => info.u32(88),
        "duplicate_sacks" => info.u32(216),
        "not_sent_bytes" => info.u32(144),
        "min_round_trip" => info.micros(148),
        "congestion_marks" => info.u32(196),
        "busy" => info.u64(168) * 1e3,
        "receive_window_limited" => info.u64(176) * 1e3,
        "send_buffer_limited" => info.u64(184) * 1e3,
        _ => return Ok(None),
    };
    Ok(Some(Figure::Number(number)))
}
fn word(info: &Info, name: &str) -> Option<Figure> {
    let named = |names: &[&str], at: usize| {
        Figure::Word(names.get(usize::from(info.0[at])).copied().unwrap_or("?").to_owned())
    };
    Some(match name {
        "state" => named(&STATES, 0),
        "recovery" => named(&RECOVERY, 1),
        "timestamps" => info.has(1),
        "sack" => info.has(2),
        "window_scaling" => info.has(4),
        "ecn" => info.has(8),
        _ => return None,
    })
}

/// Whether poll says so.
pub(super) fn is_ready(socket: &Socket, name: &str) -> Result<Option<bool>, String> {
    let mut wanted =
        [PollFd::new(socket, PollFlags::IN | PollFlags::OUT | PollFlags::PRI | PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Of a socket that does not block Linux says that it can be read before it has looked at a datagram's checksum.
    let waits = |waits: bool| match is_for_datagrams(socket) {
        true => socket.set_nonblocking(!waits).map_err(|error| error.to_string()),
        false => Ok(()),
    };
    waits(true)?;
    poll(&mut wanted, Some(&at_once)).map_err(|error| error.to_string())?;
    waits(false)?;
    let mut events = wanted[0].revents();
    if is_for_datagrams(socket) && events.contains(PollFlags::ERR) {
        // A call that tells an error does not wait, as select(2) has it.
        events |= PollFlags::IN | PollFlags::OUT;
    }
    Ok(Some(match name {
        "readable" | "acceptable" => events.contains(PollFlags::IN),
        "writable" => events.contains(PollFlags::OUT),
        "peer_closed" => events.contains(PollFlags::RDHUP),
        "urgent" => events.contains(PollFlags::PRI),
        "error" => events.contains(PollFlags::ERR),
        "connected" => events.contains(PollFlags::OUT) && !events.contains(PollFlags::ERR),
        _ => return Ok(None),
    }))
}
