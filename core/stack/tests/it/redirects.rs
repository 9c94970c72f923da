//! Redirects: a better first hop is believed of the gateway in use, and only for what this host has sent just now.

use crate::common::packets::{SingleHost, emit, ip_frame};
use crate::common::{LINK, address, endpoint, ethernet};
use inhost_base::{Duration, Endpoint, HardwareAddress, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_event::{Drop, Ignore};
use inhost_stack::{ConnectOptions, Probe, ProbeMethod, UdpOptions};
use inhost_wire::arp::{self, ArpOperation, ArpPacket};
use inhost_wire::ethernet::{EtherType, EthernetHeader, LENGTH};
use inhost_wire::icmpv4::{Icmpv4Message, RedirectCode};
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::ipv6::{self, Ipv6Header};
use inhost_wire::ndp::{NdpMessage, NdpOptions};
use inhost_wire::protocol;

const OWN: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
const GATEWAYS: [HardwareAddress; 2] =
    [HardwareAddress([2, 0, 0, 0, 0, 8]), HardwareAddress([2, 0, 0, 0, 0, 9])];
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// A gateway's address on the wire.
fn gateway(number: usize) -> IpAddr {
    address(7 + number)
}
fn gateway_v6(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 8 + number as u16)
}
fn frame(from: HardwareAddress, ethertype: EtherType, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; LENGTH];
    EthernetHeader { destination: OWN, source: from, ethertype }.emit(&mut frame);
    frame.extend_from_slice(body);
    frame
}
/// A host on an Ethernet with two gateways, of which the first is in use; both are known to it.
fn router_client() -> SingleHost {
    let mut host = SingleHost::with(Default::default(), |mut config| {
        config.medium = ethernet(0);
        config.accept_redirects = true;
        config
            .with_address("fe80::1/64".parse().unwrap())
            .with_gateway(gateway(0))
            .with_gateway(gateway_v6(0))
    });
    for (number, card) in GATEWAYS.into_iter().enumerate() {
        let IpAddr::V4(sender_protocol) = gateway(number) else { unreachable!() };
        let request = ArpPacket {
            operation: ArpOperation::Request,
            sender_hardware: card,
            sender_protocol,
            target_hardware: HardwareAddress::default(),
            target_protocol: Ipv4Addr::new(10, 0, 0, 1),
        };
        let mut body = [0; arp::LENGTH];
        request.emit(&mut body);
        host.deliver(&frame(card, EtherType::ARP, &body));
        let options = NdpOptions { source_link_layer: Some(card), ..NdpOptions::default() };
        let target = "fe80::1".parse().unwrap();
        say_v6(&mut host, number, target, NdpMessage::NeighbourSolicitation { target, options });
    }
    host.sent.clear();
    host
}
fn say_v6(host: &mut SingleHost, number: usize, to: Ipv6Addr, message: NdpMessage<'_>) {
    let mut body = vec![0; 1500];
    let length = Icmpv6Message::Ndp(message).emit(gateway_v6(number), to, &mut body);
    let mut packet = vec![0; ipv6::LENGTH];
    let header = Ipv6Header::new(gateway_v6(number), to, protocol::ICMPV6, length as u16);
    Ipv6Header { hop_limit: 255, ..header }.emit(&mut packet);
    packet.extend_from_slice(&body[..length]);
    host.deliver(&frame(GATEWAYS[number], EtherType::IPV6, &packet));
}
/// A gateway says that the other is the better one for `quoted`.
fn redirect(host: &mut SingleHost, number: usize, quoted: &[u8]) {
    if quoted[0] >> 4 == 6 {
        let redirected = Some(&quoted[..quoted.len() / 8 * 8]);
        let options =
            NdpOptions { redirected, target_link_layer: Some(GATEWAYS[1 - number]), ..NdpOptions::default() };
        let octets: [u8; 16] = quoted[24..40].try_into().unwrap();
        let (target, destination) = (gateway_v6(1 - number), Ipv6Addr::from(octets));
        let message = NdpMessage::Redirect { target, destination, options };
        return say_v6(host, number, "fd00::1".parse().unwrap(), message);
    }
    let IpAddr::V4(to) = gateway(1 - number) else { unreachable!() };
    let message = Icmpv4Message::Redirect { code: RedirectCode::Host, gateway: to, invoking: quoted };
    let packet = ip_frame(gateway(number), address(0), protocol::ICMPV4, &emit(&message));
    host.deliver(&frame(GATEWAYS[number], EtherType::IPV4, &packet));
}
fn accepted(host: &SingleHost) -> u64 {
    host.stack.ip().interface(LINK).unwrap().counters().accepted_redirects
}
fn not_credible(host: &SingleHost) -> u64 {
    host.stack.instruments().link_counters(LINK).unwrap().dropped_for(Drop::NotCredible)
}
fn next_hop(host: &mut SingleHost, to: IpAddr) -> IpAddr {
    host.stack.ip_mut().paths_mut().route(to, None, None, host.now).unwrap().next_hop
}
/// The only packet sent since the last look, and to whose card.
fn packet_sent(host: &mut SingleHost) -> (HardwareAddress, Vec<u8>) {
    host.flush();
    let is_ip =
        |frame: &Vec<u8>| frame[12..14] == [8, 0] || (frame[12..14] == [0x86, 0xdd] && frame[20] != 58);
    let packets: Vec<_> = host.sent.drain(..).filter(|frame| is_ip(frame) || frame[54] == 128).collect();
    assert_eq!(packets.len(), 1, "{packets:?}");
    let card: [u8; 6] = packets[0][..6].try_into().unwrap();
    (HardwareAddress(card), packets[0][LENGTH..].to_vec())
}
/// Has a host send one packet to the far end.
type Sender = Box<dyn Fn(&mut SingleHost)>;

/// One for every kind of packet.
fn senders() -> Vec<(&'static str, Sender)> {
    let udp = |to: IpAddr| -> Sender {
        Box::new(move |host| {
            let any = Endpoint::new(Ipv6Addr::UNSPECIFIED, 4000);
            let socket = host.stack.udp(host.now, &mut Ignore).bind(any, UdpOptions::default()).unwrap();
            host.stack
                .udp(host.now, &mut Ignore)
                .send_to(socket, &[1; 100], Some(Endpoint::new(to, 53)), None)
                .unwrap();
        })
    };
    let tcp = |to: IpAddr| -> Sender {
        Box::new(move |host| {
            let (to, options) = (Endpoint::new(to, 80), ConnectOptions::default());
            host.stack.tcp(host.now, &mut Ignore).connect(to, options).unwrap();
        })
    };
    let echo = |to: IpAddr| -> Sender {
        Box::new(move |host| {
            let socket = host.stack.echo(host.now, &mut Ignore).open().unwrap();
            host.stack.echo(host.now, &mut Ignore).send(socket, to, 1, b"a ping").unwrap();
        })
    };
    vec![
        ("UDP", udp(FAR.into())),
        ("TCP", tcp(FAR.into())),
        ("echo", echo(FAR.into())),
        ("UDP over IPv6", udp(FAR_V6.into())),
        ("TCP over IPv6", tcp(FAR_V6.into())),
        ("echo over IPv6", echo(FAR_V6.into())),
    ]
}

#[test]
fn a_redirect_is_believed_of_the_gateway_in_use_for_what_was_sent() {
    for (what, send) in senders() {
        let mut host = router_client();
        send(&mut host);
        let (card, packet) = packet_sent(&mut host);
        assert_eq!(card, GATEWAYS[0], "{what}");
        redirect(&mut host, 1, &packet);
        assert_eq!((accepted(&host), not_credible(&host)), (0, 1), "{what}: not the gateway in use");
        redirect(&mut host, 0, &packet);
        assert_eq!(accepted(&host), 1, "{what}");
        let far = if packet[0] >> 4 == 4 { FAR.into() } else { FAR_V6.into() };
        let second = if packet[0] >> 4 == 4 { gateway(1) } else { gateway_v6(1).into() };
        assert_eq!(next_hop(&mut host, far), second, "{what}");
    }
}

// spec: RFC5927 4
#[test]
fn a_stranger_who_quotes_what_was_never_sent_redirects_nothing() {
    for (what, send) in senders() {
        let mut host = router_client();
        // An attacker who made the same call knows the shape of its packet, but not its sequence number or port.
        send(&mut host);
        let (_, packet) = packet_sent(&mut host);
        let header_bytes = if packet[0] >> 4 == 4 { 20 } else { ipv6::LENGTH };
        let mut silent = router_client();
        redirect(&mut silent, 0, &packet);
        assert_eq!((accepted(&silent), not_credible(&silent)), (0, 1), "{what}: nothing was sent");
        // The last octet of the destination, of the port or identifier that is ours, and of TCP's and echo's number.
        let at = |offset: usize| header_bytes + offset;
        let number = if what.starts_with("UDP") { at(3) } else { at(7) };
        let own = if what.starts_with("echo") { at(5) } else { at(1) };
        for changed in [header_bytes - 1, own, number] {
            let mut other = packet.clone();
            other[changed] ^= 2;
            redirect(&mut host, 0, &other);
            assert_eq!(accepted(&host), 0, "{what}: octet {changed}");
        }
        assert_eq!(not_credible(&host), 3, "{what}");
        if !what.starts_with("TCP") {
            host.pass(Duration::from_secs(11));
            redirect(&mut host, 0, &packet);
            assert_eq!((accepted(&host), not_credible(&host)), (0, 4), "{what}: that was long ago");
        }
    }
}

/// Anyone can have a server send to a victim, by a datagram with the victim's address, and quote the answer.
#[test]
fn an_answer_to_a_stranger_redirects_nothing() {
    let mut host = router_client();
    let (here, victim) = (endpoint(0, 7), Endpoint::new(FAR, 2000));
    let socket = host.stack.udp(host.now, &mut Ignore).bind(here, UdpOptions::default()).unwrap();
    let asked = [&2000_u16.to_be_bytes()[..], &7_u16.to_be_bytes(), &12_u16.to_be_bytes(), &[0; 2], b"echo"];
    let packet = ip_frame(FAR.into(), here.address, protocol::UDP, &asked.concat());
    host.deliver(&frame(GATEWAYS[0], EtherType::IPV4, &packet));
    host.stack.udp(host.now, &mut Ignore).send_to(socket, b"echo", Some(victim), None).unwrap();
    let (_, answer) = packet_sent(&mut host);
    redirect(&mut host, 0, &answer);
    assert_eq!((accepted(&host), not_credible(&host)), (0, 1));
}

#[test]
fn an_ipv6_redirect_that_quotes_nothing_or_another_packet_is_not_believed() {
    let mut host = router_client();
    let send = &senders()[3].1;
    send(&mut host);
    let (_, packet) = packet_sent(&mut host);
    let options = NdpOptions { target_link_layer: Some(GATEWAYS[1]), ..NdpOptions::default() };
    let (own, target) = ("fd00::1".parse().unwrap(), gateway_v6(1));
    let elsewhere = "2001:db8::2".parse().unwrap();
    let redirected = Some(&packet[..packet.len() / 8 * 8]);
    for (destination, options) in [(FAR_V6, options), (elsewhere, NdpOptions { redirected, ..options })] {
        say_v6(&mut host, 0, own, NdpMessage::Redirect { target, destination, options });
        assert_eq!(accepted(&host), 0);
    }
    assert_eq!(not_credible(&host), 2);
}

#[test]
fn a_probe_is_redirected_as_the_packets_that_it_stands_for() {
    let mut host = router_client();
    let socket = host.stack.probe(host.now, &mut Ignore).open(ProbeMethod::Echo).unwrap();
    let probe = Probe { to: FAR.into(), number: 1, hop_limit: 3, packet_bytes: 28 };
    host.stack.probe(host.now, &mut Ignore).send(socket, &probe).unwrap();
    let (_, packet) = packet_sent(&mut host);
    let mut other = packet.clone();
    other[27] ^= 2;
    redirect(&mut host, 0, &other);
    assert_eq!(accepted(&host), 0);
    redirect(&mut host, 0, &packet);
    assert_eq!(accepted(&host), 1);
}

#[test]
fn a_bare_acknowledgment_is_redirected_too() {
    use crate::common::packets::{header, segment_frame};
    use inhost_stack::ListenOptions;
    use inhost_wire::tcp::Flags;
    let mut host = router_client();
    let (here, far) = (endpoint(0, 80), Endpoint::new(FAR, 2000));
    host.stack.tcp(host.now, &mut Ignore).listen(here, ListenOptions::default()).unwrap();
    let segment = |host: &mut SingleHost, header, payload: &[u8]| {
        host.sent.clear();
        host.deliver(&frame(GATEWAYS[0], EtherType::IPV4, &segment_frame(far, here, header, payload)));
    };
    segment(&mut host, header(Flags::SYN, 100, 0), b"");
    let (_, answer) = packet_sent(&mut host);
    let next = u32::from_be_bytes(answer[24..28].try_into().unwrap()).wrapping_add(1);
    segment(&mut host, header(Flags::ACK, 101, next), b"");
    segment(&mut host, header(Flags::ACK | Flags::PSH, 101, next), b"asked");
    host.pass(Duration::from_millis(500));
    let (_, acknowledgment) = packet_sent(&mut host);
    let mut other = acknowledgment.clone();
    other[27] ^= 1;
    redirect(&mut host, 0, &other);
    assert_eq!(accepted(&host), 0, "a number that was never used");
    redirect(&mut host, 0, &acknowledgment);
    assert_eq!(accepted(&host), 1);
}
