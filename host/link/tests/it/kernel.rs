//! TUN and TAP against the Linux kernel, in a network namespace of the test's own. Needs root.

use inhost_buf::{Batch, Device, Frame, Offload, Pool, Slices};
use inhost_interop::{Running, own_network, run};
use inhost_link::{Discard, Driver, FrameFormat, Tunnel, TunnelConfig};
use std::process::Command;
use std::time::Duration;

/// A datagram from the kernel's `ping` to 10.77.0.2, read from the device.
fn first_echo_request(tunnel: &mut Tunnel, header_bytes: usize) -> Vec<u8> {
    let (mut pool, mut batch) = (Pool::new(1 << 22), Batch::new());
    for _ in 0..100 {
        tunnel.receive(&mut pool, &mut batch).unwrap();
        while let Some(packet) = batch.pop() {
            let ip = packet.bytes().get(header_bytes..).unwrap_or_default().to_vec();
            pool.give(packet);
            if ip.first() == Some(&0x45) && ip.get(9) == Some(&1) {
                return ip;
            }
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("the kernel's echo request did not come within two seconds");
}

#[test]
fn the_kernels_ping_comes_through_tun_and_is_answered() {
    if !own_network() {
        return;
    }
    let config = TunnelConfig {
        mtu_bytes: 1400,
        host_addresses: vec!["10.77.0.1/24".parse().unwrap(), "fd77::1/64".parse().unwrap()],
        ..TunnelConfig::new("intest0", false)
    };
    let mut tunnel = Tunnel::open(config).unwrap();
    assert_eq!((tunnel.frame_format(), tunnel.mtu_bytes()), (FrameFormat::Ip, 1400));
    let mut ping = Running::start(Command::new("ping").args(["-c1", "-W3", "10.77.0.2"]));
    let mut reply = first_echo_request(&mut tunnel, 0);
    // The answer: addresses exchanged, type 0 instead of 8, whose checksum is 0x0800 more.
    for i in 12..16 {
        reply.swap(i, i + 4);
    }
    reply[20] = 0;
    let sum = u32::from(u16::from_be_bytes([reply[22], reply[23]])) + 0x0800;
    let sum = ((sum & 0xffff) + (sum >> 16)) as u16;
    reply[22..24].copy_from_slice(&sum.to_be_bytes());
    tunnel.transmit(&Frame { header: &reply, payload: Slices::EMPTY, offload: Offload::None }).unwrap();
    let status = ping.wait();
    assert!(status.success(), "{}", ping.printed());
}

#[test]
fn tap_carries_ethernet_and_keeps_its_address() {
    if !own_network() {
        return;
    }
    let config = TunnelConfig {
        mtu_bytes: 1500,
        host_addresses: vec!["10.78.0.1/24".parse().unwrap()],
        ..TunnelConfig::new("intest1", true)
    };
    let tunnel = Tunnel::open(config.clone()).unwrap();
    let FrameFormat::Ethernet(ours) = tunnel.frame_format() else { panic!("a TAP is an Ethernet") };
    assert!(ours.is_unicast() && ours.0[0] & 2 != 0);
    drop(tunnel);
    // A process that another test is just starting may hold a copy of the descriptor for a moment.
    let mut again = Tunnel::open(config.clone());
    for _ in 0..50 {
        if again.is_ok() {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(20));
        again = Tunnel::open(config.clone());
    }
    assert_eq!(again.unwrap().frame_format(), FrameFormat::Ethernet(ours));
}

#[test]
fn a_name_that_is_too_long_is_refused_in_words() {
    let error = Tunnel::open(TunnelConfig::new(&"x".repeat(16), false)).unwrap_err().to_string();
    assert!(error.contains("15 octets") || error.contains("run as root"), "{error}");
}

#[test]
fn a_host_without_memory_still_empties_the_device_and_a_deleted_interface_is_told() {
    if !own_network() {
        return;
    }
    let config = TunnelConfig {
        mtu_bytes: 1500,
        host_addresses: vec!["10.79.0.1/24".parse().unwrap()],
        ..TunnelConfig::new("intest2", false)
    };
    let mut tunnel = Tunnel::open(config).unwrap();
    let sender = std::net::UdpSocket::bind("10.79.0.1:0").unwrap();
    for _ in 0..5 {
        sender.send_to(b"datagram", "10.79.0.2:9").unwrap();
    }
    let (mut pool, mut batch) = (Pool::new(0), Batch::new());
    for _ in 0..100 {
        assert_eq!(tunnel.receive(&mut pool, &mut batch).unwrap(), 0);
        if tunnel.statistics().discarded(Discard::NoMemory) >= 5 {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert!(tunnel.statistics().discarded(Discard::NoMemory) >= 5);
    run(Command::new("ip").args(["link", "delete", "intest2"]));
    let mut pool = Pool::new(1 << 20);
    assert!(tunnel.receive(&mut pool, &mut batch).is_err());
}

#[test]
fn several_queues_share_one_interface_and_a_frame_comes_by_one_of_them() {
    if !own_network() {
        return;
    }
    let config = TunnelConfig {
        host_addresses: vec!["10.80.0.1/24".parse().unwrap()],
        multi_queue: true,
        ..TunnelConfig::new("intest3", false)
    };
    let mut queues = [Tunnel::open(config.clone()).unwrap(), Tunnel::open(config).unwrap()];
    let mut seen = [0, 0];
    for port in 0..32 {
        let sender = std::net::UdpSocket::bind("10.80.0.1:0").unwrap();
        sender.send_to(b"datagram", ("10.80.0.2", 1000 + port)).unwrap();
    }
    let (mut pool, mut batch) = (Pool::new(1 << 22), Batch::new());
    for (queue, seen) in queues.iter_mut().zip(&mut seen) {
        queue.receive(&mut pool, &mut batch).unwrap();
        while let Some(packet) = batch.pop() {
            *seen += usize::from(packet.bytes().first() == Some(&0x45) && packet.bytes().get(9) == Some(&17));
            pool.give(packet);
        }
    }
    assert!(seen[0] + seen[1] == 32 && seen[0] > 0 && seen[1] > 0, "{seen:?}");
}
