//! Closing a UDP socket sends what it has queued, and takes bounded time and memory for that.

use crate::common::packets::SingleHost;
use crate::common::{LINK, Net, endpoint};
use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_buf::{Device, Frame, Full};
use inhost_event::Ignore;
use inhost_stack::{BindError, Readiness, StackConfig, UdpOptions, UdpSocketId};

fn bind(host: &mut SingleHost, port: u16) -> UdpSocketId {
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, port);
    host.stack.udp(host.now, &mut Ignore).bind(any, UdpOptions::default()).unwrap()
}
fn peer() -> Endpoint {
    endpoint(1, 4000)
}

#[test]
fn what_is_queued_when_a_socket_closes_still_leaves() {
    let mut host = SingleHost::new();
    let socket = bind(&mut host, 69);
    host.datagram(peer(), endpoint(0, 69), b"never read");
    for bytes in [&b"data"[..], b"last acknowledgment"] {
        host.stack.udp(host.now, &mut Ignore).send_to(socket, bytes, Some(peer()), None).unwrap();
    }
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    // The identifier is dead and the port is free at once.
    assert!(host.stack.udp(host.now, &mut Ignore).send_to(socket, b"more", Some(peer()), None).is_err());
    assert!(host.stack.close(socket, host.now, &mut Ignore).is_err());
    assert_eq!(host.stack.readiness(socket), Readiness::empty());
    let next = bind(&mut host, 69);
    assert_eq!(host.stack.instruments().sockets(host.now).filter(|info| !info.is_held).count(), 1);
    host.flush();
    let sent = host.datagrams();
    let payloads: Vec<&[u8]> = sent.iter().map(|(_, _, payload)| &payload[..]).collect();
    assert_eq!(payloads, [&b"data"[..], b"last acknowledgment"]);
    assert!(sent.iter().all(|(from, to, _)| (*from, *to) == (endpoint(0, 69), peer())));
    // What comes now is for the socket that has the port.
    host.datagram(peer(), endpoint(0, 69), b"new");
    assert!(host.stack.readiness(next).contains(Readiness::READABLE));
    host.stack.close(next, host.now, &mut Ignore).unwrap();
    assert_eq!((host.stack.instruments().socket_count(), host.stack.memory().outstanding_bytes()), (0, 0));
    assert!(host.stack.ready().is_none(), "nobody is told of a closed socket");
}

#[test]
fn a_closed_socket_waits_for_its_neighbour_and_for_the_loopback() {
    let mut net = Net::ethernet(5);
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 9);
    let taker = [0, 1]
        .map(|host| net.stacks[host].udp(net.now, &mut Ignore).bind(any, UdpOptions::default()).unwrap());
    for (host, local) in [(1, 0), (0, 0)] {
        let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, local);
        let socket = net.stacks[0].udp(net.now, &mut Ignore).bind(any, UdpOptions::default()).unwrap();
        let to = Some(endpoint(host, 9));
        net.stacks[0].udp(net.now, &mut Ignore).send_to(socket, b"farewell", to, None).unwrap();
        net.close(0, socket);
        net.pass(Duration::from_secs(1));
        let mut place = [0; 20];
        let got = net.stacks[host].udp(net.now, &mut Ignore).receive_from(taker[host], &mut place).unwrap();
        assert_eq!(&place[..got.length_bytes], b"farewell");
    }
    // Nobody answers there.
    let socket = net.stacks[0]
        .udp(net.now, &mut Ignore)
        .bind(Endpoint { port: 0, ..any }, UdpOptions::default())
        .unwrap();
    let nobody = Endpoint::new(Ipv4Addr::new(10, 0, 0, 99), 9);
    net.stacks[0].udp(net.now, &mut Ignore).send_to(socket, b"farewell", Some(nobody), None).unwrap();
    net.close(0, socket);
    for (host, socket) in taker.into_iter().enumerate() {
        net.close(host, socket);
    }
    net.pass(Duration::from_secs(15));
    net.assert_clean();
}

/// A device that takes nothing.
struct Stuck;

impl Device for Stuck {
    fn transmit(&mut self, _frame: &Frame<'_>) -> Result<(), Full> {
        Err(Full)
    }
}

#[test]
fn a_device_that_takes_nothing_keeps_neither_closed_sockets_nor_new_ones_from_binding() {
    let mut config = StackConfig::default();
    config.datagram_socket_limit = 4;
    let mut host = SingleHost::with(config, |link| link);
    for _ in 0..10 {
        let socket = bind(&mut host, 69);
        host.stack.udp(host.now, &mut Ignore).send_to(socket, &[1; 1000], Some(peer()), None).unwrap();
        host.stack.close(socket, host.now, &mut Ignore).unwrap();
        assert!(host.stack.transmit(LINK, host.now, 100, &mut Stuck, &mut Ignore).device_full);
    }
    assert_eq!(host.stack.instruments().socket_count(), 4);
    let held: Vec<_> = (0..4).map(|i| bind(&mut host, 100 + i)).collect();
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 200);
    let refused = host.stack.udp(host.now, &mut Ignore).bind(any, UdpOptions::default());
    assert_eq!(refused, Err(BindError::TooManySockets));
    host.stack.close(held[0], host.now, &mut Ignore).unwrap();
    let socket = bind(&mut host, 69);
    host.stack.udp(host.now, &mut Ignore).send_to(socket, &[1; 1000], Some(peer()), None).unwrap();
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    let until = host.stack.deadline().unwrap();
    assert!(until <= host.now + Duration::from_secs(10));
    while let Some(deadline) = host.stack.deadline() {
        host.now = host.now.max(deadline);
        host.stack.timeout(host.now, &mut Ignore);
    }
    assert_eq!((host.stack.instruments().socket_count(), host.stack.memory().outstanding_bytes()), (3, 0));
}
