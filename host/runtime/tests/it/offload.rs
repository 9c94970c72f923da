//! Our host and the kernel over TUN and TAP, with and without large frames, and with losses: what arrives is what was
//! sent. Needs root.
#![allow(clippy::disallowed_methods)] // The kernel lives in real time.

use inhost_base::{Cidr, Duration, Endpoint};
use inhost_interop::{DEADLINE, join, own_network};
use inhost_link::{Spec, Statistics, open};
use inhost_runtime::{Runtime, interface};
use inhost_socket::both;
use inhost_stack::{DuplicateDetection, StackConfig, UdpOptions};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The byte at `place` of a stream.
fn byte_at(place: usize) -> u8 {
    ((place as u32).wrapping_mul(2_654_435_761) >> 17) as u8 ^ (place >> 16) as u8
}

/// A part of a stream.
fn part(from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(byte_at).collect()
}

/// A host at the other end of a fresh device of `kind`, opened with `keys`; ours and the kernel's address.
fn host_on(kind: &str, keys: &str, v6: bool) -> (Runtime, String, String) {
    let (ours, theirs, bits) = if v6 { ("fd0a::2", "fd0a::1", 64) } else { ("10.10.0.2", "10.10.0.1", 24) };
    let spec: Spec = format!("{kind}:inoff0,host={theirs}/{bits}{keys}").parse().unwrap();
    let driver = open(&spec).unwrap();
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let address: Cidr = format!("{ours}/{bits}").parse().unwrap();
    let mut config = interface("inoff0", &*driver).with_address(address);
    config.duplicate_detection = DuplicateDetection::Off;
    (config.gso, config.gro) = (spec.gso, spec.gro);
    let host = runtime.host().clone();
    runtime.add_link(&host, config, driver).unwrap();
    (runtime, ours.to_owned(), theirs.to_owned())
}

/// Binds at an address of the kernel's that may still be settling.
fn settled<T>(mut bind: impl FnMut() -> std::io::Result<T>) -> T {
    for _ in 0..250 {
        if let Ok(bound) = bind() {
            return bound;
        }
        thread::park_timeout(std::time::Duration::from_millis(20));
    }
    bind().unwrap()
}

fn statistics(runtime: &Runtime) -> Statistics {
    runtime.links().report(runtime.host(), inhost_base::LinkId(1)).unwrap().statistics
}

/// Both ends send a stream to each other at once, and look at every byte that comes.
fn streams_cross(kind: &str, keys: &str, v6: bool, bytes: usize) -> Statistics {
    let (mut runtime, _, theirs) = host_on(kind, keys, v6);
    let listener = settled(|| TcpListener::bind((theirs.as_str(), 9)));
    let kernel = thread::spawn(move || {
        let (mut from, _) = listener.accept().unwrap();
        set_tcp_congestion(&from, "cubic").unwrap();
        let mut to = from.try_clone().unwrap();
        let writer = thread::spawn(move || {
            for at in (0..bytes).step_by(100_000) {
                to.write_all(&part(at, 100_000.min(bytes - at))).unwrap();
            }
            to.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        from.read_to_end(&mut got).unwrap();
        join(writer);
        got
    });
    let host = runtime.host().clone();
    let to = Endpoint { address: theirs.parse().unwrap(), port: 9 };
    let done = runtime.run(host.timeout(DEADLINE.into(), async {
        let stream = host.connect(to).await.unwrap();
        let (mut from, mut into) = tokio::io::split(stream);
        let mut got = Vec::new();
        let write = async {
            for at in (0..bytes).step_by(77_777) {
                into.write_all(&part(at, 77_777.min(bytes - at))).await.unwrap();
            }
            into.shutdown().await.unwrap();
        };
        let read = async { from.read_to_end(&mut got).await.unwrap() };
        both(write, read).await;
        got
    }));
    let got = done.unwrap().unwrap_or_else(|_| panic!("{kind}{keys}: not done in time"));
    let wanted = part(0, bytes);
    assert!(got == wanted, "{kind}{keys}: the kernel's stream came {} bytes long, or changed", got.len());
    let passed = statistics(&runtime);
    // The kernel is done when it has our last byte.
    runtime.shutdown(DEADLINE.into()).unwrap();
    let told = join(kernel);
    assert!(told == wanted, "{kind}{keys}: our stream came {} bytes long, or changed", told.len());
    passed
}

#[test]
fn large_frames_carry_both_streams_whole() {
    for (kind, v6) in [("tun", false), ("tun", true), ("tap", false), ("tap", true)] {
        if !own_network() {
            return;
        }
        const BYTES: usize = 8_000_000;
        let passed = streams_cross(kind, "", v6, BYTES);
        let mean = |bytes: u64, frames: u64| bytes / frames.max(1);
        let sent = mean(passed.transmitted_bytes, passed.transmitted_frames);
        assert!(sent > 3_000, "{kind}: frames of {sent} bytes on average left");
        let received = mean(passed.received_bytes, passed.received_frames);
        assert!(received > 3_000, "{kind}: frames of {received} bytes on average came");
        assert_eq!(passed.discarded_in_all(), 0);
    }
}

#[test]
fn without_offload_no_frame_exceeds_the_mtu_and_both_streams_arrive_whole() {
    for (kind, v6) in [("tun", false), ("tap", true)] {
        for keys in ["", ",gso=off", ",gro=off", ",gso=off,gro=off"] {
            if !own_network() {
                return;
            }
            let keys = format!(",offload=off,mtu=1400{keys}");
            let passed = streams_cross(kind, &keys, v6, 3_000_000);
            assert!(passed.transmitted_bytes / passed.transmitted_frames < 1_414);
            assert_eq!(passed.discarded_in_all(), 0);
        }
    }
}

#[test]
fn losses_on_the_link_are_repaired_with_offload_and_without() {
    for (keys, v6) in [("", false), ("", true), (",offload=off", false), (",gso=off,gro=off,mtu=1280", true)]
    {
        if !own_network() {
            return;
        }
        let keys = format!("{keys},loss=1%,reorder=1%,duplicate=1%,seed=5");
        streams_cross("tun", &keys, v6, 2_000_000);
    }
}

/// The kernel's `UDP_SEGMENT`: what is written is cut into datagrams of so many bytes.
fn segment_datagrams(socket: &UdpSocket, bytes: u16) {
    use rustix::fd::AsRawFd;
    let value = libc::c_int::from(bytes);
    // SAFETY: the option is an integer, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            core::ptr::from_ref(&value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn datagrams_that_the_kernel_gives_in_one_frame_come_one_by_one() {
    for (keys, v6) in [("", false), ("", true), (",offload=off", false), (",loss=0.0001%", false)] {
        if !own_network() {
            return;
        }
        let (mut runtime, ours, theirs) = host_on("tun", keys, v6);
        let host = runtime.host().clone();
        let at = Endpoint { address: ours.parse().unwrap(), port: 7 };
        let socket = host.udp(at, UdpOptions::default()).unwrap();
        let kernel = settled(|| UdpSocket::bind((theirs.as_str(), 0)));
        kernel.connect((ours.as_str(), 7)).unwrap();
        segment_datagrams(&kernel, 1_000);
        kernel.send(&part(0, 20_300)).unwrap();
        let lengths = runtime.run(host.timeout(DEADLINE.into(), async {
            let (mut at, mut lengths) = (0, Vec::new());
            while at < 20_300 {
                let mut place = [0; 2_000];
                let length = socket.receive_from(&mut place).await.unwrap().length_bytes;
                assert_eq!(place[..length], part(at, length));
                at += length;
                lengths.push(length);
            }
            lengths
        }));
        let mut wanted = vec![1_000; 20];
        wanted.push(300);
        assert_eq!(lengths.unwrap().unwrap(), wanted, "{keys}");
        if keys.is_empty() {
            let passed = statistics(&runtime);
            assert!(passed.received_frames < 12, "{} frames", passed.received_frames);
        }
    }
}

#[test]
fn a_run_of_datagrams_is_cut_by_the_kernel_or_just_above_the_device() {
    for (kind, keys, v6, frames) in [
        ("tun", "", false, 1),
        ("tun", "", true, 1),
        ("tap", "", false, 1),
        ("tap", "", true, 1),
        ("tun", ",offload=off", false, 21),
        ("tap", ",offload=off", true, 21),
        ("tun", ",loss=0.0001%", false, 21),
    ] {
        if !own_network() {
            return;
        }
        let (mut runtime, ours, theirs) = host_on(kind, keys, v6);
        let host = runtime.host().clone();
        let kernel = settled(|| UdpSocket::bind((theirs.as_str(), 9)));
        kernel.set_read_timeout(Some(core::time::Duration::from_secs(10))).unwrap();
        let at = Endpoint { address: ours.parse().unwrap(), port: 7 };
        let to = Endpoint { address: theirs.parse().unwrap(), port: 9 };
        let socket = host.udp(at, UdpOptions::default()).unwrap();
        // Neighbours find each other first.
        let mut place = [0; 2_000];
        let found = async {
            socket.send_to(b"where", to).await.unwrap();
            host.sleep(Duration::from_millis(200)).await;
        };
        runtime.run(found).unwrap();
        assert_eq!(kernel.recv(&mut place).unwrap(), 5, "{kind}{keys}");
        let before = statistics(&runtime).transmitted_frames;
        let sent = async {
            socket.send_gso(&part(0, 20_300), 1_000, Some(to)).await.unwrap();
            host.sleep(Duration::from_millis(50)).await;
        };
        runtime.run(sent).unwrap();
        for index in 0..21 {
            let length = kernel.recv(&mut place).unwrap();
            assert_eq!(place[..length], part(index * 1_000, if index < 20 { 1_000 } else { 300 }));
        }
        // Neighbours may ask for each other in between.
        let sent = statistics(&runtime).transmitted_frames - before;
        assert!((frames..frames + 4).contains(&sent), "{kind}{keys}: {sent} frames");
    }
}
