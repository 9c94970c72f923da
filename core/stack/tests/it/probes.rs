//! Probe sockets: what they send, and whose answers they believe.

use crate::common::packets::{SingleHost, emit};
use crate::common::{Net, address, address_v6, endpoint};
use inhost_base::{Duration, IpAddr};
use inhost_stack::{
    DatagramError, ErrorKind, Ignore, Probe, ProbeAnswer, ProbeMethod, ProbeNews, ProbeSocketId, SocketKind,
    UdpOptions,
};
use inhost_wire::icmpv4::{Icmpv4Message, TimeExceededCode, UnreachableCode};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::tcp::{Flags, TcpView};

const METHODS: [ProbeMethod; 3] =
    [ProbeMethod::Echo, ProbeMethod::Datagram { port: 33_434 }, ProbeMethod::Call { port: 80 }];

fn probe(to: IpAddr, number: u16) -> Probe {
    Probe { to, number, hop_limit: 3, packet_bytes: 60 }
}
fn answers(net: &mut Net, socket: ProbeSocketId) -> Vec<ProbeAnswer> {
    net.pass(Duration::from_secs(1));
    std::iter::from_fn(|| net.stacks[0].probe(net.now, &mut Ignore).receive(socket).ok()).collect()
}
/// A probe of number 5, and the frame that it is.
fn sent(host: &mut SingleHost, method: ProbeMethod) -> (ProbeSocketId, Vec<u8>) {
    let socket = host.stack.probe(host.now, &mut Ignore).open(method).unwrap();
    host.stack.probe(host.now, &mut Ignore).send(socket, &probe(address(1), 5)).unwrap();
    host.flush();
    (socket, host.sent.pop().unwrap())
}
/// A router's word that the packet of `frame` has had too many hops.
fn time_exceeded(host: &mut SingleHost, frame: &[u8]) {
    let (code, invoking) = (TimeExceededCode::InTransit, &frame[..28]);
    host.icmp(address(7), &emit(&Icmpv4Message::TimeExceeded { code, invoking }));
}

#[test]
fn probes_that_arrive_are_answered() {
    for mut net in [Net::new(60), Net::ethernet(61)] {
        for to in [address(1), address_v6(1)] {
            for method in METHODS {
                let socket = net.stacks[0].probe(net.now, &mut Ignore).open(method).unwrap();
                for number in [0, 1, 700] {
                    net.stacks[0].probe(net.now, &mut Ignore).send(socket, &probe(to, number)).unwrap();
                }
                let news = match method {
                    ProbeMethod::Echo => ProbeNews::Answered,
                    ProbeMethod::Datagram { .. } => {
                        ProbeNews::Error { kind: ErrorKind::PortUnreachable, mtu_bytes: None }
                    }
                    ProbeMethod::Call { .. } => ProbeNews::Refused,
                };
                let expected = [0, 1, 700].map(|number| ProbeAnswer { number, to, from: to, news });
                assert_eq!(answers(&mut net, socket), expected, "{method:?} to {to}");
                net.close(0, socket);
            }
        }
        net.assert_clean();
    }
}

#[test]
fn a_call_probe_is_a_syn_that_offers_a_window() {
    let mut host = SingleHost::new();
    let (_, frame) = sent(&mut host, METHODS[2]);
    let ip = Ipv4View::new(&frame).unwrap();
    let syn = TcpView::new(ip.payload()).unwrap();
    assert!(ip.checksum_ok() && syn.checksum_ok(ip.source().into(), ip.destination().into()));
    assert_eq!((syn.flags(), syn.destination_port()), (Flags::SYN, 80));
    assert!(syn.window() > 0, "a window of 0 tells scanners from hosts");
}

#[test]
fn an_open_port_answers_and_is_left_in_peace() {
    let mut net = Net::new(62);
    let listener = net.listen(1, 80);
    let echo =
        net.stacks[1].udp(net.now, &mut Ignore).bind(endpoint(1, 33_434), UdpOptions::default()).unwrap();
    for method in [METHODS[1], METHODS[2]] {
        let socket = net.stacks[0].probe(net.now, &mut Ignore).open(method).unwrap();
        net.stacks[0].probe(net.now, &mut Ignore).send(socket, &probe(address(1), 0)).unwrap();
        net.pass(Duration::from_millis(100));
        if method == METHODS[1] {
            let mut place = [0; 100];
            let info = net.stacks[1].udp(net.now, &mut Ignore).receive_from(echo, &mut place).unwrap();
            net.stacks[1]
                .udp(net.now, &mut Ignore)
                .send_to(echo, b"who are you?", Some(info.from), None)
                .unwrap();
        }
        let heard = answers(&mut net, socket);
        assert_eq!(heard.iter().map(|answer| answer.news).collect::<Vec<_>>(), [ProbeNews::Answered]);
        net.close(0, socket);
    }
    assert!(net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap().is_none());
    let connections =
        net.stacks[1].instruments().sockets(net.now).filter(|s| s.kind == SocketKind::Connection).count();
    assert_eq!(connections, 0, "the handshake that nobody wants is reset");
}

#[test]
fn a_probe_is_as_it_was_asked_for() {
    for method in METHODS {
        let mut host = SingleHost::new();
        let socket = host.stack.probe(host.now, &mut Ignore).open(method).unwrap();
        for (packet_bytes, length) in
            [(60, 60), (1500, 1500), (0, if method == METHODS[2] { 40 } else { 28 })]
        {
            let asked = Probe { to: address(1), number: 9, hop_limit: 7, packet_bytes };
            host.stack.probe(host.now, &mut Ignore).send(socket, &asked).unwrap();
            host.flush();
            let frame = host.sent.pop().unwrap();
            assert_eq!((frame.len(), frame[8], frame[6] & 0x40), (length, 7, 0x40), "{method:?}");
        }
        // Nothing that is sent in pieces says anything of the way.
        let long = Probe { packet_bytes: 1501, ..probe(address(1), 9) };
        host.stack.probe(host.now, &mut Ignore).send(socket, &long).unwrap();
        host.flush();
        assert!(host.sent.is_empty());
        assert_eq!(host.stack.probe(host.now, &mut Ignore).receive(socket), Err(DatagramError::TooLong));
        assert!(
            host.stack.probe(host.now, &mut Ignore).send(socket, &Probe { hop_limit: 0, ..long }).is_err()
        );
    }
}

#[test]
fn echo_probes_look_the_same_to_who_shares_out_the_load() {
    let mut host = SingleHost::new();
    let socket = host.stack.probe(host.now, &mut Ignore).open(ProbeMethod::Echo).unwrap();
    for number in [0, 1, 77, 0xffff] {
        host.stack.probe(host.now, &mut Ignore).send(socket, &probe(address(1), number)).unwrap();
    }
    host.flush();
    let marks: Vec<_> = host.sent.iter().map(|frame| frame[20..26].to_vec()).collect();
    assert!(marks.len() == 4 && marks.iter().all(|mark| *mark == marks[0]), "{marks:?}");
}

#[test]
fn errors_tell_who_and_are_believed_when_they_quote_what_was_sent() {
    for method in METHODS {
        let mut host = SingleHost::new();
        let (socket, frame) = sent(&mut host, method);
        time_exceeded(&mut host, &frame);
        let news = ProbeNews::Error { kind: ErrorKind::TimeExceeded, mtu_bytes: None };
        let answer = ProbeAnswer { number: 5, to: address(1), from: address(7), news };
        assert_eq!(host.stack.probe(host.now, &mut Ignore).receive(socket), Ok(answer), "{method:?}");
        let (code, invoking) = (UnreachableCode::FragmentationNeeded, &frame[..28]);
        let message = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 1400, invoking };
        host.icmp(address(7), &emit(&message));
        let news = ProbeNews::Error { kind: ErrorKind::PacketTooBig, mtu_bytes: Some(1400) };
        assert_eq!(
            host.stack.probe(host.now, &mut Ignore).receive(socket),
            Ok(ProbeAnswer { news, ..answer })
        );
        // Another identifier or port, and of a call another sequence number, was never sent.
        let changed: &[usize] = match method {
            ProbeMethod::Echo => &[24],
            ProbeMethod::Datagram { .. } => &[20],
            ProbeMethod::Call { .. } => &[20, 22, 24, 27],
        };
        for &at in changed {
            let mut other = frame.clone();
            other[at] ^= 0x80;
            time_exceeded(&mut host, &other);
            let heard = host.stack.probe(host.now, &mut Ignore).receive(socket);
            assert_eq!(heard, Err(DatagramError::WouldBlock), "{method:?}, octet {at}");
        }
    }
}

#[test]
fn who_answers_a_call_must_know_what_it_said() {
    let mut host = SingleHost::new();
    let (socket, frame) = sent(&mut host, METHODS[2]);
    let port = u16::from_be_bytes([frame[20], frame[21]]);
    let sequence = u32::from_be_bytes([frame[24], frame[25], frame[26], frame[27]]);
    let answer = |host: &mut SingleHost, acknowledgment: u32, flags: Flags, from: u16| {
        let header = crate::common::packets::header(flags, 1000, acknowledgment);
        host.segment(endpoint(1, from), endpoint(0, port), header, b"");
        host.flush();
        host.stack.probe(host.now, &mut Ignore).receive(socket).ok().map(|answer| answer.news)
    };
    let accepts = Flags::SYN.union(Flags::ACK);
    assert_eq!(answer(&mut host, sequence, accepts, 80), None, "an old number");
    assert_eq!(answer(&mut host, sequence.wrapping_add(0x9000_0000), accepts, 80), None, "a guess");
    assert_eq!(answer(&mut host, sequence.wrapping_add(1), accepts, 81), None, "nobody who was called");
    assert_eq!(answer(&mut host, sequence.wrapping_add(1), Flags::RST, 80), None, "no acknowledgment");
    assert_eq!(answer(&mut host, sequence.wrapping_add(1), accepts, 80), Some(ProbeNews::Answered));
    let resets = host.segments();
    assert!(resets.iter().all(|sent| sent.header.flags.rst()) && !resets.is_empty());
}
