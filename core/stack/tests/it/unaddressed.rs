//! A host on a link that has given it no address yet: what it may send and hear (RFC 2131 §4.1).

use crate::common::{LINK, Net, ethernet};
use inhost_base::{Endpoint, Instant, Ipv4Addr};
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_event::Ignore;
use inhost_stack::{
    DatagramError, DuplicateDetection, InterfaceConfig, LinkId, RouteError, Stack, StackConfig, UdpOptions,
};

/// A wire that keeps its frames.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Device for Kept {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes).unwrap();
        self.0.push(bytes);
        Ok(())
    }
}

fn bare_host() -> Stack {
    let mut stack = Stack::new(StackConfig::default(), [5; 32], Instant::ZERO);
    let mut config = InterfaceConfig::new("bare", ethernet(0));
    config.ipv6 = false;
    assert_eq!(stack.add_link(config, Instant::ZERO), Ok(LINK));
    stack
}

#[test]
fn a_host_without_an_address_speaks_to_everybody_and_hears_what_everybody_hears() {
    let (mut stack, now, mut wire) = (bare_host(), Instant::from_millis(1), Kept::default());
    let here = Endpoint::new(Ipv4Addr::UNSPECIFIED, 68);
    let mut options = UdpOptions::default();
    options.broadcast = true;
    let socket = stack.udp(now, &mut Ignore).bind(here, options).unwrap();
    let everybody = Endpoint::new(Ipv4Addr::BROADCAST, 67);
    let refused = stack.udp(now, &mut Ignore).send_to(socket, b"?", Some(everybody), None);
    assert!(
        matches!(refused, Err(DatagramError::Route(_))),
        "an ordinary datagram has a source: {refused:?}"
    );
    let nowhere = stack.udp(now, &mut Ignore).send_unaddressed(socket, b"?", LinkId(7), 67);
    assert_eq!(nowhere, Err(DatagramError::Route(RouteError::NoLink)));
    stack.udp(now, &mut Ignore).send_unaddressed(socket, b"who am I?", LINK, 67).unwrap();
    // A change of addresses while it waits does not give it a source.
    let address = "10.0.0.9/24".parse().unwrap();
    stack.with_ip(now, &mut Ignore, |ip, env| ip.add_leased_address(LINK, address, env)).unwrap();
    stack.transmit(LINK, now, 8, &mut wire, &mut Ignore);
    let frame = wire.0.iter().find(|frame| frame[12..14] == [8, 0]).expect("a datagram");
    assert_eq!(frame[..6], [0xff; 6]);
    assert_eq!((&frame[26..30], &frame[30..34]), (&[0; 4][..], &[255; 4][..]));
    assert_eq!(frame[34..38], [0, 68, 0, 67]);

    // The same frame from another card and host, to our port, is what an answer looks like.
    stack.with_ip(now, &mut Ignore, |ip, env| ip.remove_address(LINK, address.address(), env)).unwrap();
    let mut net = Net::ethernet(3);
    let mut udp_options = UdpOptions::default();
    udp_options.broadcast = true;
    let server =
        net.stacks[1].udp(net.now, &mut Ignore).bind(Endpoint::new(Ipv4Addr::UNSPECIFIED, 67), udp_options);
    let to = Endpoint::new(Ipv4Addr::BROADCAST, 68);
    net.stacks[1].udp(net.now, &mut Ignore).send_to(server.unwrap(), b"you are", Some(to), None).unwrap();
    let mut answer = Kept::default();
    net.stacks[1].transmit(LINK, net.now, 8, &mut answer, &mut Ignore);
    let answer = answer.0.iter().find(|frame| frame[12..14] == [8, 0]).unwrap();
    let mut packet = stack.pool().take(answer.len()).unwrap();
    packet.append(answer);
    let mut batch = Batch::new();
    batch.push(packet).unwrap();
    stack.receive(LINK, &mut batch, now, &mut Ignore);
    let mut place = [0; 64];
    let info = stack.udp(now, &mut Ignore).receive_from(socket, &mut place).unwrap();
    assert_eq!((&place[..info.length_bytes], info.link), (&b"you are"[..], LINK));
    assert_eq!(info.from.port, 67);
}

#[test]
fn a_leased_address_in_doubt_is_seen_as_a_change_of_paths() {
    let mut stack = bare_host();
    let mut now = Instant::from_millis(1);
    let before = stack.ip().paths().generation();
    let address = "10.0.0.9/24".parse().unwrap();
    stack.with_ip(now, &mut Ignore, |ip, env| ip.add_leased_address(LINK, address, env)).unwrap();
    let tested = stack.ip().paths().generation();
    assert_ne!(before, tested);
    assert_eq!(
        stack.ip().interface(LINK).unwrap().config().duplicate_detection,
        DuplicateDetection::BeforeUse
    );
    while stack.ip().paths().generation() == tested {
        now = stack.deadline().expect("the test goes on");
        stack.timeout(now, &mut Ignore);
    }
    assert!(stack.ip().addresses_are_tested() && stack.ip().paths().is_local(address.address()));
    assert!((4000..7100).contains(&now.as_millis()), "{now:?}");
}
