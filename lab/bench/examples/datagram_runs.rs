//! What a datagram to the kernel over TUN costs when it is sent alone, and in a run of 46: processor time of this
//! process, the kernel's receiving side included. As root: `cargo run --release -p inhost-bench --example datagram_runs`.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A program to be read from a terminal.

use inhost_base::{Cidr, Endpoint, Ipv4Addr};
use inhost_link::Spec;
use inhost_runtime::{Runtime, interface};
use inhost_stack::{DuplicateDetection, StackConfig, UdpOptions};
use std::io;
use std::net::UdpSocket;

/// Bytes of a datagram, and datagrams of a run.
const DATA_BYTES: usize = 1_400;
const RUN: usize = 46;
/// Runs of one measurement, and measurements of each way.
const RUNS: usize = 400;
const ROUNDS: usize = 15;
const KERNELS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

/// Nanoseconds of processor time that this process has had.
fn spent_ns() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A host at the other end of a fresh device.
fn host_on(name: &str, offload: &str) -> io::Result<Runtime> {
    let spec: Spec = format!("tun:{name},host=10.9.0.1/24,{offload}").parse().map_err(io::Error::other)?;
    let driver = inhost_link::open(&spec).map_err(io::Error::other)?;
    let mut runtime = Runtime::new(StackConfig::default())?;
    let address = Cidr::new(Ipv4Addr::new(10, 9, 0, 2), 24).map_err(io::Error::other)?;
    let mut config = interface(name, &*driver).with_address(address);
    config.duplicate_detection = DuplicateDetection::Off;
    let host = runtime.host().clone();
    runtime.add_link(&host, config, driver).map_err(io::Error::other)?;
    Ok(runtime)
}

/// Nanoseconds for each datagram, `in_runs` or alone; middle, least and most.
fn cost(offload: &str, in_runs: bool) -> io::Result<(f64, f64, f64)> {
    // SAFETY: nothing but the network namespace is unshared, and no descriptor depends on it.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }?;
    let mut runtime = host_on("trial", offload)?;
    // What comes to this port is dropped as soon as the socket's buffer is full.
    let sink = UdpSocket::bind((std::net::Ipv4Addr::new(10, 9, 0, 1), 9))?;
    let host = runtime.host().clone();
    let here = Endpoint::new(Ipv4Addr::UNSPECIFIED, 7);
    let socket = host.udp(here, UdpOptions::default()).map_err(io::Error::other)?;
    let (to, bytes) = (Endpoint::new(KERNELS, 9), vec![0x5a; RUN * DATA_BYTES]);
    let mut each = Vec::new();
    for _ in 0..ROUNDS {
        let began = spent_ns();
        let sent = runtime.run(async {
            for _ in 0..RUNS {
                if in_runs {
                    socket.send_gso(&bytes, DATA_BYTES as u16, Some(to)).await?;
                } else {
                    for one in bytes.chunks(DATA_BYTES) {
                        socket.send_to(one, to).await?;
                    }
                }
            }
            Ok::<(), inhost_socket::DatagramError>(())
        })?;
        sent.map_err(io::Error::other)?;
        each.push((spent_ns() - began) as f64 / (RUNS * RUN) as f64);
    }
    drop(sink);
    each.sort_unstable_by(f64::total_cmp);
    Ok((each[ROUNDS / 2], each[0], each[ROUNDS - 1]))
}

fn main() -> io::Result<()> {
    println!("ns of processor time a datagram of {DATA_BYTES} bytes: middle (least, most) of {ROUNDS} runs");
    for (name, offload, in_runs) in [
        ("alone, offload=off", "offload=off", false),
        ("alone", "offload=on", false),
        ("in runs of 46, offload=off", "offload=off", true),
        ("in runs of 46", "offload=on", true),
    ] {
        let (middle, least, most) = cost(offload, in_runs)?;
        println!("{name:<28} {middle:>6.0} ({least:.0}, {most:.0})");
    }
    Ok(())
}
