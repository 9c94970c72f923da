//! Work that must not grow with what it is not about. Times are compared with each other, the least of many.

#![expect(clippy::disallowed_methods, reason = "what is tested is what work costs in real time")]

use crate::common::packets::{SingleHost, emit, header, ip_frame};
use crate::common::{LINK, Net, address, endpoint, ethernet};
use inhost_base::{Duration, Endpoint, HardwareAddress, Ipv4Addr};
use inhost_buf::Batch;
use inhost_event::{Drop, Ignore};
use inhost_stack::{ConnectOptions, StackConfig};
use inhost_wire::arp::{ArpOperation, ArpPacket};
use inhost_wire::ethernet::{EtherType, EthernetHeader};
use inhost_wire::icmpv4::{Icmpv4Message, UnreachableCode};
use inhost_wire::protocol;
use inhost_wire::tcp::Flags;

/// The least time of what is done with each of many neighbours, while `others` connections wait for one that does not
/// answer.
fn least_time_of_an_answer(others: u16) -> std::time::Duration {
    let mut net = Net::with(9, StackConfig::default(), ethernet);
    let silent = Ipv4Addr::new(10, 0, 0, 200);
    let call = |net: &mut Net, to: Endpoint| {
        net.stacks[0].tcp(net.now, &mut Ignore).connect(to, ConnectOptions::default()).unwrap();
    };
    for port in 0..others {
        call(&mut net, Endpoint::new(silent, 1 + port));
    }
    net.transmit();
    let mut least = std::time::Duration::MAX;
    for host in 3..60 {
        let neighbour = Ipv4Addr::new(10, 0, 0, host);
        call(&mut net, Endpoint::new(neighbour, 80));
        net.transmit();
        let from = HardwareAddress([2, 0, 0, 0, 1, host]);
        let to = HardwareAddress([2, 0, 0, 0, 0, 1]);
        let reply = ArpPacket {
            operation: ArpOperation::Reply,
            sender_hardware: from,
            sender_protocol: neighbour,
            target_hardware: to,
            target_protocol: Ipv4Addr::new(10, 0, 0, 1),
        };
        let mut frame = vec![0; 60];
        let front =
            EthernetHeader { source: from, destination: to, ethertype: EtherType::ARP }.emit(&mut frame);
        reply.emit(&mut frame[front..]);
        let begun = std::time::Instant::now();
        net.inject(0, &frame);
        least = least.min(begun.elapsed());
        assert!(net.stacks[0].wants_transmit(LINK), "the call to {neighbour} can leave");
        net.transmit();
    }
    least
}

#[test]
fn a_neighbours_answer_costs_the_same_however_many_wait_for_another() {
    let (few, many) = (least_time_of_an_answer(10), least_time_of_an_answer(40_000));
    assert!(many < few * 8 + std::time::Duration::from_micros(2), "{few:?} with ten, {many:?} with 40,000");
}

/// The least time that an ICMP error takes which quotes nothing in flight, of a connection that has sent about `bytes`
/// in segments of 88 bytes.
fn least_time_of_an_error(bytes: usize) -> std::time::Duration {
    let mut host = SingleHost::new();
    let remote = endpoint(1, 80);
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(remote, ConnectOptions::default()).unwrap();
    host.flush();
    let syn = host.segment_sent();
    let next = syn.header.sequence.0.wrapping_add(1);
    let mut answer = header(Flags::SYN | Flags::ACK, 900, next);
    (answer.options.mss, answer.options.window_scale) = (Some(88), Some(14));
    host.segment(remote, syn.from, answer, b"");
    // Each acknowledgment of all doubles what may be in flight.
    let mut acknowledged = next;
    let info = loop {
        let _ = host.stack.tcp(host.now, &mut Ignore).send(socket, &vec![7; 2 * bytes]);
        host.flush();
        host.pass(Duration::from_millis(50));
        host.sent.clear();
        let info = host.stack.instruments().info(socket, host.now).unwrap().tcp.unwrap();
        if info.in_flight_bytes as usize >= bytes {
            break info;
        }
        assert_ne!(info.send_next.0, acknowledged);
        acknowledged = info.send_next.0;
        host.segment(remote, syn.from, header(Flags::ACK, 901, acknowledged), b"");
    };
    let old = info.send_unacknowledged.0.wrapping_sub(1).to_be_bytes();
    let ports = [syn.from.port.to_be_bytes(), remote.port.to_be_bytes()].concat();
    let quoted = ip_frame(syn.from.address, remote.address, protocol::TCP, &[ports, old.to_vec()].concat());
    let code = UnreachableCode::Host;
    let message = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 0, invoking: &quoted };
    let frame = ip_frame(address(7), address(0), protocol::ICMPV4, &emit(&message));
    let time = |host: &mut SingleHost| {
        let mut packet = host.stack.pool().take(frame.len()).unwrap();
        packet.append(&frame);
        let mut batch = Batch::new();
        batch.push(packet).unwrap();
        let begun = std::time::Instant::now();
        host.stack.receive(LINK, &mut batch, host.now, &mut Ignore);
        begun.elapsed()
    };
    let least = (0..50).map(|_| time(&mut host)).min().unwrap();
    let dropped = host.stack.instruments().link_counters(LINK).unwrap().dropped_for(Drop::NotCredible);
    assert_eq!(dropped, 50);
    least
}

#[test]
fn an_icmp_error_costs_the_same_however_much_is_in_flight() {
    let (little, much) = (least_time_of_an_error(500), least_time_of_an_error(1_500_000));
    assert!(much < little * 8 + std::time::Duration::from_micros(2), "{little:?}, with 1.5 MB {much:?}");
}
