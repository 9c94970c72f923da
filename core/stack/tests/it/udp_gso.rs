//! Runs of datagrams: cut by the device, cut just above it, and refused.

use crate::common::{LINK, Net, address_v6, endpoint, interface};
use inhost_base::{Endpoint, Instant, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_buf::{Device, Frame, Full, GsoType, Offers, Offload};
use inhost_event::Ignore;
use inhost_stack::{
    DatagramError, Ecn, MAX_GSO_DATAGRAMS, Medium, SendDatagrams, Stack, StackConfig, UdpOptions, UdpSocketId,
};
use inhost_wire::offload::Segmenter;
use inhost_wire::udp::UdpView;
use inhost_wire::{ipv4::Ipv4View, ipv6::Ipv6View};

const NOW: Instant = Instant::from_millis(1000);
const SEGMENT_BYTES: u16 = 1000;

/// A device that keeps the packets of what it gets, and cuts where it offers that.
struct Card {
    offers: Offers,
    room: usize,
    frames: Vec<usize>,
    packets: Vec<Vec<u8>>,
}

impl Card {
    fn new(offers: Offers) -> Card {
        Card { offers, room: usize::MAX, frames: Vec::new(), packets: Vec::new() }
    }
    fn put(&mut self, frame: &Frame<'_>) {
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes).unwrap();
        self.packets.push(bytes);
    }
}

impl Device for Card {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if self.frames.len() >= self.room {
            return Err(Full);
        }
        self.frames.push(frame.payload.len());
        match frame.offload {
            Offload::Segment { of, .. } => {
                assert_eq!((of, self.offers.udp), (GsoType::Udp, true));
                let mut segmenter = Segmenter::new(frame, 0).unwrap();
                for index in 0..segmenter.count() {
                    self.put(&segmenter.frame(index, None));
                }
            }
            Offload::Checksum { .. } => {
                assert!(self.offers.checksum);
                let mut bytes = vec![0; frame.len()];
                frame.write_to(&mut bytes).unwrap();
                assert!(inhost_wire::offload::finish_checksum(&mut bytes, 0));
                self.packets.push(bytes);
            }
            Offload::None => self.put(frame),
        }
        Ok(())
    }
    fn offers(&self) -> Offers {
        self.offers
    }
}

fn host(v6: bool) -> (Stack, UdpSocketId, Endpoint) {
    let mut stack = Stack::new(StackConfig::default(), [7; 32], NOW);
    stack.add_link(interface(0, Medium::Ip), NOW).unwrap();
    let address = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv4Addr::UNSPECIFIED) };
    let local = Endpoint { address, port: 9 };
    let socket = stack.udp(NOW, &mut Ignore).bind(local, UdpOptions::default()).unwrap();
    let to = if v6 { Endpoint { address: address_v6(1), port: 7 } } else { endpoint(1, 7) };
    (stack, socket, to)
}

fn text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// The data of each packet. Headers and checksums are right, and no router may fragment it.
fn data_of(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let one = |packet: &Vec<u8>| {
        let (udp, ends) = if packet[0] >> 4 == 4 {
            let view = Ipv4View::new(packet).unwrap();
            assert!(view.checksum_ok() && view.dont_fragment() && view.total_length() == packet.len());
            (view.payload(), (view.source().into(), view.destination().into()))
        } else {
            let view = Ipv6View::new(packet).unwrap();
            assert_eq!(view.total_length(), packet.len());
            (view.payload(), (view.source().into(), view.destination().into()))
        };
        let view = UdpView::new(udp).unwrap();
        assert!(view.checksum_ok(ends.0, ends.1));
        assert_eq!((view.source_port(), view.destination_port()), (9, 7));
        view.payload().to_vec()
    };
    packets.iter().map(one).collect()
}

fn pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.chunks(usize::from(SEGMENT_BYTES)).map(<[u8]>::to_vec).collect()
}

#[test]
fn a_run_is_one_frame_for_a_device_that_cuts_and_the_same_datagrams_for_one_that_does_not() {
    let sums = Offers { checksum: true, ..Offers::NONE };
    for v6 in [false, true] {
        for (offers, frames) in [(Offers::ALL, 1), (sums, 21), (Offers::NONE, 21)] {
            let (mut stack, socket, to) = host(v6);
            let bytes = text(20_300);
            stack.udp(NOW, &mut Ignore).send_gso(socket, &bytes, SEGMENT_BYTES, Some(to), None).unwrap();
            let mut card = Card::new(offers);
            stack.transmit(LINK, NOW, 64, &mut card, &mut Ignore);
            assert_eq!(card.frames.len(), frames);
            assert_eq!(data_of(&card.packets), pieces(&bytes));
            assert_eq!(stack.instruments().counters().datagrams_sent, 21);
            assert_eq!(stack.pool().outstanding_bytes(), 0);
        }
    }
}

#[test]
fn what_a_full_device_does_not_take_leaves_later_and_others_have_their_turn() {
    let (mut stack, socket, to) = host(false);
    let other =
        stack.udp(NOW, &mut Ignore).bind(Endpoint { port: 10, ..to_any() }, UdpOptions::default()).unwrap();
    let bytes = text(20_300);
    stack.udp(NOW, &mut Ignore).send_gso(socket, &bytes, SEGMENT_BYTES, Some(to), None).unwrap();
    stack.udp(NOW, &mut Ignore).send_to(other, b"between", Some(to), None).unwrap();
    let mut card = Card::new(Offers::NONE);
    card.room = 3;
    let done = stack.transmit(LINK, NOW, 64, &mut card, &mut Ignore);
    assert!(done.device_full && done.more && card.frames.len() == 3);
    card.room = usize::MAX;
    while stack.wants_transmit(LINK) {
        stack.transmit(LINK, NOW, 64, &mut card, &mut Ignore);
    }
    let at = card.packets.iter().position(|packet| packet.ends_with(b"between")).unwrap();
    assert!(at < 8, "after {at} datagrams of the other's run");
    card.packets.remove(at);
    assert_eq!(data_of(&card.packets), pieces(&bytes));
    assert_eq!(stack.pool().outstanding_bytes(), 0);
}

fn to_any() -> Endpoint {
    Endpoint::new(Ipv4Addr::UNSPECIFIED, 0)
}

#[test]
fn what_fits_no_datagram_no_path_or_no_run_is_refused_and_one_datagram_is_no_run() {
    let (mut stack, socket, to) = host(false);
    let mut send = |bytes: usize, each: u16| {
        let sent = stack.udp(NOW, &mut Ignore).send_gso(socket, &text(bytes), each, Some(to), None);
        let mut card = Card::new(Offers::ALL);
        while stack.wants_transmit(LINK) {
            stack.transmit(LINK, NOW, 64, &mut card, &mut Ignore);
        }
        sent.map(|()| card.packets.len())
    };
    assert_eq!(send(10, 0), Err(DatagramError::TooLong));
    assert_eq!(send(65_508, 1400), Err(DatagramError::TooLong));
    assert_eq!(send(3000, 1473), Err(DatagramError::TooLong));
    assert_eq!(send(MAX_GSO_DATAGRAMS * 10 + 1, 10), Err(DatagramError::TooLong));
    assert_eq!(send(MAX_GSO_DATAGRAMS * 10, 10), Ok(MAX_GSO_DATAGRAMS));
    assert_eq!(send(3000, 1472), Ok(3));
    // One that is too long for the path goes in fragments, as ever.
    assert_eq!(send(3000, 3000), Ok(3));
    assert_eq!(send(0, 0), Ok(1));
}

#[test]
fn a_run_waits_for_its_neighbour_and_arrives_in_order() {
    let mut net = Net::ethernet(3);
    let receiver =
        net.stacks[1].udp(net.now, &mut Ignore).bind(endpoint(1, 7), UdpOptions::default()).unwrap();
    let sender = net.stacks[0].udp(net.now, &mut Ignore).bind(endpoint(0, 9), UdpOptions::default()).unwrap();
    let bytes = text(20_300);
    net.stacks[0]
        .udp(net.now, &mut Ignore)
        .send_gso(sender, &bytes, SEGMENT_BYTES, Some(endpoint(1, 7)), None)
        .unwrap();
    net.pass(inhost_base::Duration::from_secs(1));
    let mut place = [0; 2000];
    for piece in pieces(&bytes) {
        let info = net.stacks[1].udp(net.now, &mut Ignore).receive_from(receiver, &mut place).unwrap();
        assert_eq!(place[..info.length_bytes], piece);
    }
    assert!(net.stacks[1].udp(net.now, &mut Ignore).receive_from(receiver, &mut place).is_err());
}

#[test]
fn any_run_by_any_device_with_any_room_is_the_same_datagrams() {
    let mut random = inhost_base::Random::from_number(7);
    for _ in 0..400 {
        let v6 = random.public_below(2) == 0;
        let (mut stack, socket, to) = host(v6);
        let each = 1 + random.public_below(1_400) as usize;
        let count = 1 + random.public_below(MAX_GSO_DATAGRAMS as u32) as usize;
        let whole = (each * count).min(65_507);
        let bytes = text(whole - random.public_below(each as u32) as usize % whole);
        stack.udp(NOW, &mut Ignore).send_gso(socket, &bytes, each as u16, Some(to), None).unwrap();
        let offers = [Offers::ALL, Offers::NONE, Offers { checksum: true, ..Offers::NONE }];
        let mut card = Card::new(offers[random.public_below(3) as usize]);
        let mut passes = 0;
        while stack.wants_transmit(LINK) {
            card.room = card.frames.len() + random.public_below(9) as usize;
            stack.transmit(LINK, NOW, 1 + random.public_below(64) as usize, &mut card, &mut Ignore);
            passes += 1;
            assert!(passes < 1_000, "no end in sight");
        }
        // One datagram alone may be fragmented on its way, and is not told what a run is.
        let is_run = bytes.len() > each;
        let sent: Vec<Vec<u8>> = match is_run {
            true => data_of(&card.packets),
            false => card.packets.iter().map(|packet| packet[if v6 { 48 } else { 28 }..].to_vec()).collect(),
        };
        assert_eq!(sent, bytes.chunks(each).map(<[u8]>::to_vec).collect::<Vec<_>>());
        assert_eq!(stack.pool().outstanding_bytes(), 0);
    }
}

#[test]
fn every_datagram_bears_the_mark_that_it_was_sent_with_and_the_receiver_sees_it() {
    let mut net = Net::ethernet(3);
    let receiver =
        net.stacks[1].udp(net.now, &mut Ignore).bind(endpoint(1, 7), UdpOptions::default()).unwrap();
    let sender = net.stacks[0].udp(net.now, &mut Ignore).bind(endpoint(0, 9), UdpOptions::default()).unwrap();
    for ecn in [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced] {
        for segment_bytes in [0, SEGMENT_BYTES] {
            let mut how = SendDatagrams::to(endpoint(1, 7));
            (how.segment_bytes, how.ecn) = (segment_bytes, ecn);
            let bytes = text(if segment_bytes == 0 { 100 } else { 2_500 });
            net.stacks[0].udp(net.now, &mut Ignore).send_with(sender, &bytes, &how).unwrap();
            net.pass(inhost_base::Duration::from_secs(1));
            let mut place = [0; 2000];
            let mut received = Vec::new();
            while let Some(next) = net.stacks[1].udp(net.now, &mut Ignore).next_received(receiver) {
                let info =
                    net.stacks[1].udp(net.now, &mut Ignore).receive_from(receiver, &mut place).unwrap();
                assert_eq!((info, info.ecn), (next, ecn));
                received.extend_from_slice(&place[..info.length_bytes]);
            }
            assert_eq!(received, bytes);
        }
    }
}

#[test]
fn what_arrives_beyond_the_limit_is_dropped_and_counted() {
    let mut net = Net::ethernet(3);
    let mut options = UdpOptions::default();
    options.receive_limit_bytes = 4_000;
    let receiver = net.stacks[1].udp(net.now, &mut Ignore).bind(endpoint(1, 7), options).unwrap();
    let sender = net.stacks[0].udp(net.now, &mut Ignore).bind(endpoint(0, 9), UdpOptions::default()).unwrap();
    for _ in 0..10 {
        net.stacks[0]
            .udp(net.now, &mut Ignore)
            .send_to(sender, &text(1_000), Some(endpoint(1, 7)), None)
            .unwrap();
    }
    net.pass(inhost_base::Duration::from_secs(1));
    let mut received = 0;
    while net.stacks[1].udp(net.now, &mut Ignore).receive_from(receiver, &mut [0; 2000]).is_ok() {
        received += 1;
    }
    assert!(received > 0 && received < 10, "{received}");
    assert_eq!(net.stacks[1].udp(net.now, &mut Ignore).dropped(receiver), 10 - received);
}
