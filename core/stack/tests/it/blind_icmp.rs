//! What a stranger gains who sends ICMP errors about packets that this host never sent: nothing (RFC 5927).

use crate::common::packets::{SingleHost, emit, header, ip_frame};
use crate::common::{LINK, address, address_v6, endpoint};
use inhost_base::{Duration, Endpoint, IpAddr, Ipv4Addr, Ipv6Addr, Sequence};
use inhost_event::{Drop, Ignore};
use inhost_stack::{ConnectOptions, DatagramError, ErrorKind, UdpOptions, UdpSocketId};
use inhost_wire::icmpv4::{Icmpv4Message, UnreachableCode};
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::ipv6::{Ipv6Header, LENGTH};
use inhost_wire::protocol;
use inhost_wire::tcp::Flags;

const PORT: u16 = 53;

/// The front of a packet that the host may have sent, of `length` bytes with its header.
pub fn quote(from: Endpoint, to: Endpoint, protocol: u8, length: u16, behind_ports: [u8; 4]) -> Vec<u8> {
    let ports = [from.port.to_be_bytes(), to.port.to_be_bytes()].concat();
    let upper = [&ports[..], &behind_ports].concat();
    match (from.address, to.address) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut packet = vec![0; LENGTH];
            Ipv6Header::new(from, to, protocol, length - LENGTH as u16).emit(&mut packet);
            packet.extend_from_slice(&upper);
            packet
        }
        (from, to) => {
            let mut packet = ip_frame(from, to, protocol, &upper);
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet
        }
    }
}
/// A router says that the next hop takes no more than `mtu`.
pub fn too_big(host: &mut SingleHost, mtu: u16, quoted: &[u8]) {
    if quoted[0] >> 4 == 4 {
        let code = UnreachableCode::FragmentationNeeded;
        let message = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: mtu, invoking: quoted };
        return host.icmp(address(7), &emit(&message));
    }
    error_v6(host, &Icmpv6Message::PacketTooBig { mtu: mtu.into(), invoking: quoted });
}
fn error_v6(host: &mut SingleHost, message: &Icmpv6Message<'_>) {
    let (IpAddr::V6(from), IpAddr::V6(to)) = (address_v6(7), address_v6(0)) else { unreachable!() };
    let mut body = vec![0; 1500];
    let length = message.emit(from, to, &mut body);
    let mut frame = vec![0; LENGTH];
    Ipv6Header::new(from, to, protocol::ICMPV6, length as u16).emit(&mut frame);
    frame.extend_from_slice(&body[..length]);
    host.deliver(&frame);
}
fn not_credible(host: &SingleHost) -> u64 {
    host.stack.instruments().link_counters(LINK).unwrap().dropped_for(Drop::NotCredible)
}
fn path_mtu(host: &mut SingleHost, to: IpAddr) -> u16 {
    host.stack.ip_mut().paths_mut().route(to, None, None, host.now).unwrap().mtu_bytes
}
fn bind(host: &mut SingleHost, options: UdpOptions) -> UdpSocketId {
    host.stack.udp(host.now, &mut Ignore).bind(Endpoint::new(Ipv6Addr::UNSPECIFIED, PORT), options).unwrap()
}
/// Our end and the peer's, of both families, and an MTU that a report may name.
fn ends() -> [(Endpoint, Endpoint, u16); 2] {
    let v6 = |host| Endpoint::new(address_v6(host), if host == 0 { PORT } else { 4000 });
    [(endpoint(0, PORT), endpoint(1, 4000), 600), (v6(0), v6(1), 1300)]
}

#[test]
fn a_datagram_that_was_never_sent_narrows_no_path() {
    let mut host = SingleHost::new();
    let mut options = UdpOptions::default();
    options.dont_fragment = true;
    bind(&mut host, options);
    for (local, remote, mtu) in ends() {
        // The socket answers any sender, but nothing was sent to it yet.
        too_big(&mut host, mtu, &quote(local, remote, protocol::UDP, 1500, [0; 4]));
        assert_eq!(path_mtu(&mut host, remote.address), 1500, "{remote}");
    }
    assert_eq!(not_credible(&host), 2);
}

#[test]
fn a_report_is_believed_of_the_destination_the_length_and_the_time_of_what_was_sent() {
    for (local, remote, mtu) in ends() {
        let mut host = SingleHost::new();
        let mut options = UdpOptions::default();
        options.dont_fragment = true;
        let socket = bind(&mut host, options);
        let header_bytes = if local.address.is_ipv4() { 28 } else { 48 };
        let send = |host: &mut SingleHost, packet_bytes: usize| {
            let bytes = vec![1; packet_bytes - header_bytes];
            host.stack.udp(host.now, &mut Ignore).send_to(socket, &bytes, Some(remote), Some(local)).unwrap();
            host.flush();
        };
        send(&mut host, 1400);
        let sent = quote(local, remote, protocol::UDP, 1400, [0; 4]);
        let other_port = Endpoint { port: 4001, ..remote };
        for wrong in [
            quote(local, other_port, protocol::UDP, 1400, [0; 4]),
            quote(local, remote, protocol::UDP, 1401, [0; 4]),
            // This would have passed.
            quote(local, remote, protocol::UDP, mtu, [0; 4]),
        ] {
            too_big(&mut host, mtu, &wrong);
            assert_eq!(path_mtu(&mut host, remote.address), 1500);
        }
        assert_eq!(not_credible(&host), 3);
        host.pass(Duration::from_secs(11));
        too_big(&mut host, mtu, &sent);
        assert_eq!(path_mtu(&mut host, remote.address), 1500, "that was long ago");
        send(&mut host, 1400);
        too_big(&mut host, mtu, &sent);
        assert_eq!(path_mtu(&mut host, remote.address), mtu);
    }
}

/// Anyone can have a server send to a victim, by a datagram with the victim's address, and quote the answer.
#[test]
fn an_answer_to_a_stranger_narrows_no_path() {
    for (local, remote, mtu) in ends() {
        let mut options = UdpOptions::default();
        options.dont_fragment = true;
        let mut host = SingleHost::new();
        let socket = bind(&mut host, options.clone());
        let header_bytes = if local.address.is_ipv4() { 28 } else { 48 };
        let answer = |host: &mut SingleHost| {
            let bytes = vec![1; 1400 - header_bytes];
            host.stack.udp(host.now, &mut Ignore).send_to(socket, &bytes, Some(remote), Some(local)).unwrap();
            host.flush();
            too_big(host, mtu, &quote(local, remote, protocol::UDP, 1400, [0; 4]));
            path_mtu(host, remote.address)
        };
        host.datagram(remote, local, b"asked");
        assert_eq!(answer(&mut host), 1500, "{remote}: asked by a stranger");
        // More strangers than the socket remembers: none can be told from those that it has not heard.
        let mut host = SingleHost::new();
        bind(&mut host, options.clone());
        host.datagram(remote, local, b"asked");
        for port in 0..100 {
            host.datagram(Endpoint { port: 5000 + port, ..remote }, local, b"asked");
        }
        assert_eq!(answer(&mut host), 1500, "{remote}: one of many");
        // Who was asked first may answer, and a router be right.
        let mut host = SingleHost::new();
        bind(&mut host, options.clone());
        host.stack.udp(host.now, &mut Ignore).send_to(socket, b"asks", Some(remote), Some(local)).unwrap();
        host.flush();
        host.datagram(remote, local, b"answers");
        assert_eq!(answer(&mut host), mtu, "{remote}: asked by this host");
        // A server's socket for one exchange.
        let mut host = SingleHost::new();
        options.answers_strangers = true;
        bind(&mut host, options.clone());
        assert_eq!(answer(&mut host), 1500, "{remote}: said to be an answer");
    }
}

#[test]
fn a_datagram_that_routers_fragment_is_never_too_big() {
    let mut host = SingleHost::new();
    let socket = bind(&mut host, UdpOptions::default());
    let [(local, remote, mtu), _] = ends();
    host.stack.udp(host.now, &mut Ignore).send_to(socket, &[1; 1400], Some(remote), None).unwrap();
    host.flush();
    too_big(&mut host, mtu, &quote(local, remote, protocol::UDP, 1428, [0; 4]));
    assert_eq!((path_mtu(&mut host, remote.address), not_credible(&host)), (1500, 1));
}

#[test]
fn a_connected_socket_that_has_sent_nothing_hears_no_error() {
    let mut host = SingleHost::new();
    let [(local, remote, _), _] = ends();
    let socket = bind(&mut host, UdpOptions::default());
    host.stack.udp(host.now, &mut Ignore).connect(socket, remote).unwrap();
    let unreachable = |host: &mut SingleHost| {
        let invoking = &quote(local, remote, protocol::UDP, 40, [0; 4]);
        let code = UnreachableCode::Port;
        let message = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 0, invoking };
        host.icmp(remote.address, &emit(&message));
        host.stack.udp(host.now, &mut Ignore).receive_from(socket, &mut [0; 9])
    };
    assert_eq!(unreachable(&mut host), Err(DatagramError::WouldBlock));
    host.stack.udp(host.now, &mut Ignore).send_to(socket, b"hello", None, None).unwrap();
    host.flush();
    assert_eq!(unreachable(&mut host), Err(DatagramError::Unreachable(ErrorKind::PortUnreachable)));
}

#[test]
fn a_segment_that_is_not_in_flight_narrows_no_path() {
    for (local, remote, mtu) in ends() {
        let mut host = SingleHost::new();
        let is_ipv4 = local.address.is_ipv4();
        let options = ConnectOptions::default();
        let remote = Endpoint { port: 80, ..remote };
        let socket = host.stack.tcp(host.now, &mut Ignore).connect(remote, options).unwrap();
        let info = |host: &SingleHost| host.stack.instruments().info(socket, host.now).unwrap();
        let local = info(&host).local;
        let Sequence(initial) = info(&host).tcp.unwrap().send_unacknowledged;
        host.flush();
        let report = |host: &mut SingleHost, sequence: u32| {
            too_big(host, mtu, &quote(local, remote, protocol::TCP, 1500, sequence.to_be_bytes()));
            path_mtu(host, remote.address)
        };
        assert_eq!(report(&mut host, initial.wrapping_add(1)), 1500);
        assert_eq!(report(&mut host, initial.wrapping_sub(1)), 1500);
        assert_eq!(not_credible(&host), 2);
        if is_ipv4 {
            let mut answer = header(Flags::SYN | Flags::ACK, 900, initial.wrapping_add(1));
            answer.options.mss = Some(1460);
            host.segment(remote, local, answer, b"");
            host.stack.tcp(host.now, &mut Ignore).send(socket, &[7; 5000]).unwrap();
            host.flush();
            assert_eq!(report(&mut host, initial.wrapping_add(1)), mtu);
        }
    }
}

#[test]
fn an_echo_that_was_not_asked_for_fails_nothing() {
    let mut host = SingleHost::new();
    let socket = host.stack.echo(host.now, &mut Ignore).open().unwrap();
    host.stack.echo(host.now, &mut Ignore).send(socket, address(1), 1, b"ping").unwrap();
    host.flush();
    let frame = host.sent.pop().unwrap();
    let unreachable = |host: &mut SingleHost, change: &dyn Fn(&mut [u8])| {
        let mut invoking = frame[..28].to_vec();
        change(&mut invoking);
        let code = UnreachableCode::Host;
        let message = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 0, invoking: &invoking };
        host.icmp(address(7), &emit(&message));
        host.stack.echo(host.now, &mut Ignore).receive(socket, &mut [0; 9])
    };
    let nothing = Err(DatagramError::WouldBlock);
    assert_eq!(unreachable(&mut host, &|frame| frame[27] ^= 2), nothing, "another number");
    assert_eq!(unreachable(&mut host, &|frame| frame[19] ^= 8), nothing, "another host");
    let error = unreachable(&mut host, &|_| ());
    assert_eq!(error, Err(DatagramError::Unreachable(ErrorKind::HostUnreachable)));
}

#[test]
fn a_gateway_learns_what_its_callers_need() {
    // One socket sends from every address to many ends; the latest of them are remembered.
    let mut host = SingleHost::with(Default::default(), |mut link| {
        link.any_address = true;
        link
    });
    let mut options = UdpOptions::default();
    options.any_address = true;
    options.dont_fragment = true;
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 0);
    let socket = host.stack.udp(host.now, &mut Ignore).bind(any, options).unwrap();
    let far = Endpoint::new(Ipv4Addr::new(8, 8, 8, 8), 53);
    for port in 4000..4040 {
        let to = Some(endpoint(1, port));
        host.stack.udp(host.now, &mut Ignore).send_to(socket, &[1; 1000], to, Some(far)).unwrap();
        host.flush();
    }
    let report = |host: &mut SingleHost, port: u16| {
        let quoted = quote(far, endpoint(1, port), protocol::UDP, 1028, [0; 4]);
        let code = UnreachableCode::FragmentationNeeded;
        let message = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 700, invoking: &quoted };
        host.deliver(&ip_frame(address(7), far.address, protocol::ICMPV4, &emit(&message)));
        path_mtu(host, address(1))
    };
    assert_eq!(report(&mut host, 4000), 1500, "forgotten");
    assert_eq!(report(&mut host, 4039), 700);
}
