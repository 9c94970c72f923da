//! A trial: what a frame to and from a TUN device costs by each of the system calls that could carry it, in processor
//! time of this process, kernel included. As root: `cargo run --release -p inhost-bench --example tun_calls`.
//!
//! `docs/performance.md` has what it showed; the driver uses what was best.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A program to be read from a terminal.

use inhost_base::{Cidr, Ipv4Addr};
use inhost_link::{Driver, Tunnel, TunnelConfig};
use inhost_wire::checksum::Sum;
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::protocol;
use inhost_wire::udp::UdpHeader;
use io_uring::{IoUring, opcode, types};
use std::io::{self, IoSlice};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes of a datagram, and of the headers before it.
const DATA_BYTES: usize = 1_400;
const HEADER_BYTES: usize = 28;
const FRAME_BYTES: usize = HEADER_BYTES + DATA_BYTES;
/// Frames of one measurement; the device's queue holds 500 of those that come in.
const SENT: usize = 4_096;
const RECEIVED: usize = 448;
/// Frames of one submission to a ring.
const BATCH: usize = 64;
/// `RWF_NOWAIT`: a ring would else wait for a frame, whatever the descriptor says.
const NOT_WAITING: i32 = 8;
/// Measurements of each way.
const ROUNDS: usize = 41;
const OURS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const KERNELS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

/// How frames cross.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    /// One `write` or `read` for each.
    One,
    /// The same, of headers and data that lie apart and are copied together first, as the driver sends short frames.
    Gathered,
    /// One `writev` of headers and data; one `readv` behind a small piece, for the header of virtio.
    Vector,
    /// A ring: 64 of the same at a time, one `io_uring_enter` for all of them.
    Ring,
    /// The same, with the descriptor registered.
    RegisteredRing,
}

const METHODS: [(Method, &str); 5] = [
    (Method::One, "write / read, a call for each"),
    (Method::Gathered, "write of a copy / read, a call for each"),
    (Method::Vector, "writev / readv, a call for each"),
    (Method::Ring, "io_uring, 64 a call"),
    (Method::RegisteredRing, "io_uring, 64 a call, registered file"),
];

/// Nanoseconds of processor time that this process has had, kernel and helpers of the ring included.
fn spent_ns() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A datagram for port 9 of the kernel.
fn frame() -> Vec<u8> {
    let mut frame = vec![0x5a; FRAME_BYTES];
    let ip = Ipv4Header::new(OURS, KERNELS, protocol::UDP, (FRAME_BYTES - 20) as u16);
    ip.emit(&mut frame);
    let sum = Sum::of(&frame[HEADER_BYTES..]);
    let udp = UdpHeader { source_port: 7, destination_port: 9 };
    udp.emit(OURS.into(), KERNELS.into(), DATA_BYTES, sum, &mut frame[20..]);
    frame
}

/// The rings and the places that they use.
struct Rings {
    ring: IoUring,
    places: Vec<Vec<u8>>,
}

impl Rings {
    fn new(descriptor: BorrowedFd<'_>) -> io::Result<Rings> {
        let ring = IoUring::builder().setup_single_issuer().setup_coop_taskrun().build(BATCH as u32)?;
        ring.submitter().register_files(&[descriptor.as_raw_fd()])?;
        Ok(Rings { ring, places: (0..BATCH).map(|_| vec![0; 2048]).collect() })
    }
    /// Submits `count` operations and waits for all; gives how many moved a frame.
    fn pass(&mut self, entries: impl Iterator<Item = io_uring::squeue::Entry>) -> io::Result<usize> {
        let mut count = 0;
        for entry in entries {
            // SAFETY: what the entry points to lives until the ring has answered, which is waited for below.
            unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
            count += 1;
        }
        self.ring.submit_and_wait(count)?;
        Ok(self.ring.completion().filter(|done| done.result() > 0).count())
    }
}

/// Sends [`SENT`] frames; those that the device has taken.
fn send(method: Method, tun: BorrowedFd<'_>, rings: &mut Rings, frame: &[u8]) -> io::Result<usize> {
    let (header, data) = frame.split_at(HEADER_BYTES);
    let pieces = [IoSlice::new(header), IoSlice::new(data)];
    let mut taken = 0;
    while taken < SENT {
        taken += match method {
            Method::One => rustix::io::write(tun, frame).map(|_| 1)?,
            Method::Gathered => {
                let place = &mut rings.places[0];
                inhost_buf::copy(&mut place[..HEADER_BYTES], header);
                inhost_buf::copy(&mut place[HEADER_BYTES..FRAME_BYTES], data);
                rustix::io::write(tun, &place[..FRAME_BYTES]).map(|_| 1)?
            }
            Method::Vector => rustix::io::writev(tun, &pieces).map(|_| 1)?,
            Method::Ring | Method::RegisteredRing => {
                let pieces = pieces.as_ptr().cast();
                let entry = match method {
                    Method::Ring => opcode::Writev::new(types::Fd(tun.as_raw_fd()), pieces, 2).build(),
                    _ => opcode::Writev::new(types::Fixed(0), pieces, 2).build(),
                };
                rings.pass((0..BATCH).map(|_| entry.clone()))?
            }
        };
    }
    Ok(taken)
}

/// Receives all that waits; the frames.
fn receive(method: Method, tun: BorrowedFd<'_>, rings: &mut Rings) -> io::Result<usize> {
    let mut small = [0; 10];
    let mut got = 0;
    loop {
        // As many places in turn as the ring fills: what is received is not worked on at once.
        let place = &mut rings.places[got % BATCH];
        let now = match method {
            Method::One | Method::Gathered => rustix::io::read(tun, &mut place[..]).map(|_| 1),
            Method::Vector => {
                let mut pieces = [io::IoSliceMut::new(&mut small), io::IoSliceMut::new(place)];
                rustix::io::readv(tun, &mut pieces).map(|_| 1)
            }
            Method::Ring | Method::RegisteredRing => {
                let places: Vec<*mut u8> = rings.places.iter_mut().map(|place| place.as_mut_ptr()).collect();
                let entries = places.into_iter().map(|place| match method {
                    Method::Ring => {
                        let here = types::Fd(tun.as_raw_fd());
                        opcode::Read::new(here, place, 2048).rw_flags(NOT_WAITING).build()
                    }
                    _ => opcode::Read::new(types::Fixed(0), place, 2048).rw_flags(NOT_WAITING).build(),
                });
                match rings.pass(entries)? {
                    0 => return Ok(got),
                    frames => Ok(frames),
                }
            }
        };
        match now {
            Ok(frames) => got += frames,
            Err(rustix::io::Errno::AGAIN) => return Ok(got),
            Err(error) => return Err(error.into()),
        }
    }
}

fn middle(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn main() -> io::Result<()> {
    // SAFETY: nothing but the network namespace is unshared, and no descriptor depends on it.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }?;
    let kernels = Cidr::new(KERNELS, 24).map_err(io::Error::other)?;
    let config =
        TunnelConfig { host_addresses: vec![kernels], offload: false, ..TunnelConfig::new("trial", false) };
    let tunnel = Tunnel::open(config).map_err(io::Error::other)?;
    let tun = tunnel.descriptor().ok_or_else(|| io::Error::other("no descriptor"))?;
    // What comes to this port is dropped as soon as the socket's buffer is full.
    let sink = UdpSocket::bind((std::net::Ipv4Addr::new(10, 9, 0, 1), 9))?;
    let source = UdpSocket::bind((std::net::Ipv4Addr::new(10, 9, 0, 1), 10))?;
    source.connect((std::net::Ipv4Addr::new(10, 9, 0, 2), 11))?;
    rustix::net::sockopt::set_socket_send_buffer_size(&source, 8 << 20)?;
    let (frame, mut rings) = (frame(), Rings::new(tun)?);
    let mut cost = [const { [Vec::new(), Vec::new()] }; METHODS.len()];
    for round in 0..ROUNDS {
        for place in 0..METHODS.len() {
            let index = (place + round) % METHODS.len();
            let (method, _) = METHODS[index];
            let began = spent_ns();
            let frames = send(method, tun, &mut rings, &frame)?;
            cost[index][0].push((spent_ns() - began) as f64 / frames as f64);
            for _ in 0..RECEIVED {
                source.send(&frame[HEADER_BYTES..])?;
            }
            let began = spent_ns();
            let frames = receive(method, tun, &mut rings)?;
            cost[index][1].push((spent_ns() - began) as f64 / frames as f64);
            assert!(frames >= RECEIVED, "{frames} frames");
        }
    }
    println!("ns of processor time a frame of {FRAME_BYTES} bytes: middle (least, most) of {ROUNDS} runs");
    for ((_, name), costs) in METHODS.iter().zip(&mut cost) {
        let [sent, received] = costs.each_mut().map(|values| middle(values));
        println!(
            "{name:<40} sent {:>6.0} ({:.0}, {:.0})   received {:>6.0} ({:.0}, {:.0})",
            sent.0, sent.1, sent.2, received.0, received.1, received.2
        );
    }
    drop(sink);
    Ok(())
}
