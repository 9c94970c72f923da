//! Sockets bound to an address of ours while it is tested for a double.

use crate::common::{Net, address, address_v6, ethernet, interface};
use inhost_base::{Duration, Endpoint, HardwareAddress, IpAddr, Ipv4Addr};
use inhost_event::Ignore;
use inhost_stack::{
    BindError, ConnectOptions, DatagramError, DuplicateDetection, ListenOptions, Medium, Readiness, Stack,
    StackConfig, UdpOptions,
};

/// Two hosts, of which the second tests its addresses.
fn net() -> Net {
    let mut net = Net::with(11, StackConfig::default(), ethernet);
    let mut config = interface(1, ethernet(1));
    config.duplicate_detection = DuplicateDetection::BeforeUse;
    net.stacks[1] = Stack::new(StackConfig::default(), [8; 32], net.now);
    net.stacks[1].add_link(config, net.now).unwrap();
    net
}
fn ours() -> [IpAddr; 2] {
    [address(1), address_v6(1)]
}

#[test]
fn a_listener_waits_for_a_tentative_address_and_then_takes_callers() {
    let mut net = net();
    let now = net.now;
    let listeners = ours().map(|address| {
        let local = Endpoint::new(address, 23);
        net.stacks[1].tcp(now, &mut Ignore).listen(local, ListenOptions::default()).unwrap()
    });
    let stranger = Endpoint::new(Ipv4Addr::new(10, 0, 0, 9), 23);
    assert_eq!(
        net.stacks[1].tcp(now, &mut Ignore).listen(stranger, ListenOptions::default()),
        Err(BindError::NotOurs)
    );
    assert!(!net.stacks[1].ip().addresses_are_tested());
    net.pass(Duration::from_secs(10));
    for (address, listener) in ours().into_iter().zip(listeners) {
        let to = Endpoint::new(address, 23);
        let call = net.stacks[0].tcp(net.now, &mut Ignore).connect(to, ConnectOptions::default()).unwrap();
        let done = net.run(Duration::from_secs(30), |net| {
            net.stacks[0].readiness(call).contains(Readiness::CONNECTED)
                && net.stacks[1].readiness(listener).contains(Readiness::ACCEPTABLE)
        });
        assert!(done, "no connection to {address}");
    }
    assert!(net.stacks[1].ip().addresses_are_tested());
}

#[test]
fn a_datagram_socket_waits_for_a_tentative_address() {
    for address in ours() {
        let mut net = net();
        let local = Endpoint::new(address, 9);
        let socket = net.stacks[1].udp(net.now, &mut Ignore).bind(local, UdpOptions::default()).unwrap();
        let any = Endpoint::new(if address.is_ipv4() { crate::common::address(0) } else { address_v6(0) }, 0);
        let early = net.stacks[1].udp(net.now, &mut Ignore).send_to(
            socket,
            b"early",
            Some(Endpoint { port: 9, ..any }),
            None,
        );
        assert!(matches!(early, Err(DatagramError::Route(_))), "{early:?}");
        net.pass(Duration::from_secs(20));
        let caller = net.stacks[0].udp(net.now, &mut Ignore).bind(any, UdpOptions::default()).unwrap();
        net.stacks[0].udp(net.now, &mut Ignore).send_to(caller, b"hello", Some(local), None).unwrap();
        net.pass(Duration::from_secs(1));
        let mut place = [0; 9];
        let got = net.stacks[1].udp(net.now, &mut Ignore).receive_from(socket, &mut place).unwrap();
        assert_eq!(&place[..got.length_bytes], b"hello");
        let back = net.stacks[1].udp(net.now, &mut Ignore).send_to(socket, b"back", Some(got.from), None);
        assert_eq!(back, Ok(()));
    }
}

#[test]
fn an_address_that_is_anothers_leaves_its_listener_without_callers() {
    let mut net = net();
    // The other host has it already.
    net.stacks[0] = Stack::new(StackConfig::default(), [9; 32], net.now);
    let card = Medium::Ethernet(HardwareAddress([2, 0, 0, 0, 0, 9]));
    net.stacks[0].add_link(interface(1, card), net.now).unwrap();
    let local = Endpoint::new(address(1), 23);
    let listener = net.stacks[1].tcp(net.now, &mut Ignore).listen(local, ListenOptions::default()).unwrap();
    net.pass(Duration::from_secs(30));
    assert!(!net.stacks[1].ip().paths().is_local(address(1)));
    assert_eq!(net.stacks[1].readiness(listener), Readiness::empty());
    let again = net.stacks[1]
        .tcp(net.now, &mut Ignore)
        .listen(Endpoint { port: 24, ..local }, ListenOptions::default());
    assert_eq!(again, Err(BindError::NotOurs));
}
