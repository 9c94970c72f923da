use super::*;
use inhost_base::{Ipv4Addr, Random};

const START: Instant = Instant::ZERO;

fn line() -> Line {
    Line::new(Config::default())
}

/// `packet` as encoded between ACK and END.
fn on_the_line(packet: Packet<'_>) -> Vec<u8> {
    let mut bytes = vec![0; packet.length()];
    packet.emit(&mut bytes);
    let mut octets = Vec::new();
    super::super::encode(&bytes, &mut octets);
    octets
}

fn receive_all(line: &mut Line, octets: &[u8], now: Instant) {
    for octet in octets {
        line.receive(*octet, now);
    }
}

fn pull_all(line: &mut Line, now: Instant) -> Vec<u8> {
    core::iter::from_fn(|| line.next_octet(now)).collect()
}

#[test]
fn a_packet_is_requested_granted_and_sent() {
    // spec: MIT 5.3
    let packet = Packet::Data(&[0x45, END, ESC, REQ, ACK, 7]);
    let mut line = line();
    assert_eq!(line.send(packet, START), Ok(()));
    assert_eq!(line.send(packet, START), Err(Busy));
    assert_eq!(pull_all(&mut line, START), [REQ]);
    line.receive(ACK, START);
    let mut expected = on_the_line(packet);
    expected.push(END);
    assert_eq!(pull_all(&mut line, START), expected);
    assert_eq!(line.send(packet, START), Err(Busy), "the outcome comes first");
    assert_eq!(line.poll_event(), Some(Event::Sent));
    assert_eq!((line.poll_event(), line.deadline(), line.is_idle()), (None, None, true));
}

#[test]
fn a_request_without_an_answer_is_given_up_after_two_seconds() {
    // spec: MIT 5.3
    let mut line = Line::new(Config { requests: 1, ..Config::default() });
    line.send(Packet::Data(b"anyone?"), START).unwrap();
    assert_eq!(line.deadline(), None, "the time runs from the REQ");
    let pulled = Instant::from_millis(500);
    assert_eq!(pull_all(&mut line, pulled), [REQ]);
    assert_eq!(line.deadline(), Some(Instant::from_millis(2500)));
    line.timeout(Instant::from_millis(2499));
    assert_eq!(line.poll_event(), None);
    line.timeout(Instant::from_millis(2500));
    assert_eq!((line.poll_event(), line.deadline()), (Some(Event::NotAcknowledged), None));
    line.receive(ACK, Instant::from_millis(2600));
    assert_eq!(pull_all(&mut line, Instant::from_millis(2600)), [], "too late");
    let counters = line.counters();
    assert_eq!((counters.requests_unanswered, counters.unexpected_octets), (1, 1));
}

#[test]
fn a_request_is_repeated_a_bounded_number_of_times() {
    let mut line = line();
    line.send(Packet::Data(b"anyone?"), START).unwrap();
    for second in [0, 2, 4] {
        assert_eq!(pull_all(&mut line, Instant::from_millis(second * 1000)), [REQ]);
        assert_eq!(line.poll_event(), None);
        assert_eq!(line.deadline(), Some(Instant::from_millis(second * 1000 + 2000)));
    }
    line.timeout(Instant::from_millis(6000));
    assert_eq!(line.poll_event(), Some(Event::NotAcknowledged));
    let counters = line.counters();
    assert_eq!((counters.requests_repeated, counters.requests_unanswered), (2, 1));
}

#[test]
fn a_request_is_answered_late_when_a_buffer_becomes_free() {
    // spec: MIT 5.3
    let octets = on_the_line(Packet::Data(b"packet"));
    for (freed_at_ms, answer) in [(1999, &[ACK][..]), (2000, &[])] {
        let mut line = Line::new(Config { packet_buffers: 1, ..Config::default() });
        line.receive(REQ, START);
        assert_eq!(pull_all(&mut line, START), [ACK]);
        receive_all(&mut line, &octets, START);
        receive_all(&mut line, &[END, REQ], START);
        assert_eq!(pull_all(&mut line, START), [], "no buffer");
        assert!(line.poll_event().is_some());
        assert_eq!(pull_all(&mut line, Instant::from_millis(freed_at_ms)), answer);
        assert_eq!(pull_all(&mut line, Instant::from_millis(freed_at_ms)), [], "once");
    }
}

#[test]
fn an_acknowledgment_goes_between_the_octets_of_a_packet() {
    // spec: MIT 5.3
    let packet = Packet::Data(&[1, ESC, 3]);
    let mut line = line();
    line.send(packet, START).unwrap();
    line.next_octet(START);
    line.receive(ACK, START);
    let mut sent = vec![line.next_octet(START).unwrap()];
    line.receive(REQ, START);
    sent.push(line.next_octet(START).unwrap());
    sent.extend(pull_all(&mut line, START));
    let mut expected = on_the_line(packet);
    expected.push(END);
    expected.insert(1, ACK);
    assert_eq!(sent, expected);
}

#[test]
fn an_acknowledgment_is_taken_out_of_a_packet() {
    // spec: MIT 5.3
    let packet = Packet::Data(&[1, ESC, 3]);
    let octets = on_the_line(packet);
    for at in 0..=octets.len() {
        let mut line = line();
        line.send(Packet::Data(b"the other way"), START).unwrap();
        line.receive(REQ, START);
        assert_eq!(pull_all(&mut line, START), [ACK, REQ]);
        receive_all(&mut line, &octets[..at], START);
        assert_eq!(line.next_octet(START), None);
        line.receive(ACK, START);
        assert!(line.next_octet(START).is_some(), "granted");
        receive_all(&mut line, &octets[at..], START);
        line.receive(END, START);
        assert_eq!(line.poll_event(), Some(Event::Data(vec![1, ESC, 3])), "at {at}");
    }
}

#[test]
fn a_request_in_a_packet_means_a_lost_end() {
    // spec: MIT 5.3
    let octets = on_the_line(Packet::Data(b"packet"));
    let mut line = line();
    line.receive(REQ, START);
    receive_all(&mut line, &octets, START);
    line.receive(REQ, START);
    receive_all(&mut line, &octets, START);
    line.receive(END, START);
    assert_eq!(line.poll_event(), Some(Event::Data(b"packet".to_vec())));
    assert_eq!(line.poll_event(), None);
    assert_eq!((line.counters().ends_lost, line.counters().packets_received), (1, 1));
    // A repeated REQ, its ACK having been lost, costs nothing.
    receive_all(&mut line, &[REQ, REQ], START);
    assert_eq!(line.counters().ends_lost, 1);
}

#[test]
fn a_pause_within_a_packet_drops_it() {
    // spec: MIT 5.3
    let octets = on_the_line(Packet::Data(b"packet"));
    let mut line = line();
    line.receive(REQ, START);
    assert_eq!(line.deadline(), Some(Instant::from_millis(2000)), "even before the first octet");
    receive_all(&mut line, &octets, Instant::from_millis(1999));
    assert_eq!(line.deadline(), Some(Instant::from_millis(3999)));
    line.receive(END, Instant::from_millis(3999));
    assert_eq!(line.poll_event(), None);
    let counters = line.counters();
    assert_eq!((counters.character_timeouts, counters.unexpected_octets), (1, 1));
}

#[test]
fn without_a_buffer_a_request_is_not_answered() {
    // spec: MIT 5.3
    let mut line = Line::new(Config { packet_buffers: 2, ..Config::default() });
    let octets = on_the_line(Packet::Data(b"packet"));
    for _ in 0..2 {
        line.receive(REQ, START);
        assert_eq!(pull_all(&mut line, START), [ACK]);
        receive_all(&mut line, &octets, START);
        line.receive(END, START);
    }
    line.receive(REQ, START);
    assert_eq!(pull_all(&mut line, START), []);
    assert_eq!((line.counters().requests_refused, line.deadline()), (1, None));
    assert!(line.poll_event().is_some());
    line.receive(REQ, START);
    assert_eq!(pull_all(&mut line, START), [ACK]);
}

#[test]
fn damaged_and_overlong_packets_are_dropped_to_their_end() {
    let mut line = Line::new(Config { payload_limit_bytes: 8, ..Config::default() });
    let good = on_the_line(Packet::Data(b"8 octets"));
    let long = on_the_line(Packet::Data(b"9 octets!"));
    let mut wrong = good.clone();
    wrong[6] ^= 1;
    for bad in [&long[..], &wrong, &[1, ESC, 7, 7], &[1, ESC], &[]] {
        line.receive(REQ, START);
        receive_all(&mut line, bad, START);
        line.receive(END, START);
        assert_eq!(line.poll_event(), None);
    }
    assert_eq!((line.counters().packets_damaged, line.counters().packets_too_long), (4, 1));
    line.receive(REQ, START);
    receive_all(&mut line, &good, START);
    line.receive(END, START);
    assert_eq!(line.poll_event(), Some(Event::Data(b"8 octets".to_vec())));
    assert_eq!(line.counters().unexpected_octets, 0);
}

#[test]
fn addresses_are_asked_for_and_told() {
    // spec: MIT 5.4
    let (mut host, mut concentrator) = (line(), line());
    let request = AddressRequest { wanted: Ipv4Addr::UNSPECIFIED };
    let reply = AddressReply {
        address: Ipv4Addr::new(10, 9, 0, 2),
        concentrator: Ipv4Addr::new(10, 9, 0, 1),
        prefix_bits: 24,
    };
    host.send(Packet::AddressRequest(request), START).unwrap();
    exchange(&mut host, &mut concentrator, START, Some);
    assert_eq!(concentrator.poll_event(), Some(Event::AddressRequest(request)));
    concentrator.send(Packet::AddressReply(reply), START).unwrap();
    exchange(&mut host, &mut concentrator, START, Some);
    assert_eq!(host.poll_event(), Some(Event::Sent));
    assert_eq!(host.poll_event(), Some(Event::AddressReply(reply)));
}

/// Every state of reception against every class of octet: what follows, and what it counts.
#[test]
fn the_whole_table_of_reception() {
    let states = [
        ("idle", &[][..]),
        ("packet", &[REQ, 1]),
        ("escaped", &[REQ, 1, ESC]),
        ("discarding", &[REQ, 1, ESC, 1]),
    ];
    let octets =
        [("REQ", REQ), ("ACK", ACK), ("END", END), ("ESC", ESC), ("code", displaced(END)), ("data", 2)];
    let mut table = String::new();
    for (state, way) in states {
        for (name, octet) in octets {
            let mut line = line();
            receive_all(&mut line, way, START);
            let before = line.counters();
            line.acknowledge = false;
            line.receive(octet, START);
            let after = line.counters();
            let mut notes = String::new();
            for (note, happened) in [
                (" +ack", line.acknowledge),
                (" damaged", after.packets_damaged > before.packets_damaged),
                (" end-lost", after.ends_lost > before.ends_lost),
                (" unexpected", after.unexpected_octets > before.unexpected_octets),
            ] {
                notes += if happened { note } else { "" };
            }
            table += &format!("{state} {name} -> {:?}{notes}\n", line.receiving);
        }
    }
    assert_eq!(
        table,
        "\
idle REQ -> Packet +ack
idle ACK -> Idle unexpected
idle END -> Idle unexpected
idle ESC -> Idle unexpected
idle code -> Idle unexpected
idle data -> Idle unexpected
packet REQ -> Packet +ack end-lost
packet ACK -> Packet unexpected
packet END -> Idle damaged
packet ESC -> Escaped
packet code -> Packet
packet data -> Packet
escaped REQ -> Packet +ack end-lost
escaped ACK -> Escaped unexpected
escaped END -> Idle damaged
escaped ESC -> Discarding damaged
escaped code -> Packet
escaped data -> Discarding damaged
discarding REQ -> Packet +ack
discarding ACK -> Discarding unexpected
discarding END -> Idle
discarding ESC -> Discarding
discarding code -> Discarding
discarding data -> Discarding
"
    );
}

/// Both directions at once until the line is quiet; every octet passes through `noise`, which may swallow it.
fn exchange(a: &mut Line, b: &mut Line, now: Instant, mut noise: impl FnMut(u8) -> Option<u8>) {
    loop {
        let (there, back) = (a.next_octet(now), b.next_octet(now));
        if let Some(octet) = there.and_then(&mut noise) {
            b.receive(octet, now);
        }
        if let Some(octet) = back.and_then(&mut noise) {
            a.receive(octet, now);
        }
        if there.is_none() && back.is_none() {
            return;
        }
    }
}

/// Sends numbered packets both ways over a line that changes or loses one octet in a thousand; returns how many came.
fn noisy_transfer(seed: u64, rounds: u32) -> [u32; 2] {
    let mut random = Random::from_number(seed);
    let mut noise = random.clone();
    let mut lines = [line(), line()];
    let mut now = START;
    let mut came = [0; 2];
    for round in 0..rounds {
        let packets = [0u8, 1].map(|side| {
            let length = 60 + random.public_below(540) as usize;
            let mut packet = vec![side, (round >> 8) as u8, round as u8];
            packet.extend((0..length).map(|_| random.public_u64() as u8));
            packet
        });
        for (line, packet) in lines.iter_mut().zip(&packets) {
            line.send(Packet::Data(packet), now).unwrap();
        }
        let [a, b] = &mut lines;
        let mut spoil = |octet| match noise.public_below(2000) {
            0 => Some(octet ^ (1 + noise.public_below(255) as u8)),
            1 => None,
            _ => Some(octet),
        };
        exchange(a, b, now, &mut spoil);
        // Whatever waits for something that was lost asks again, and gives up after the third time.
        for _ in 0..4 {
            now += Duration::from_secs(2);
            a.timeout(now);
            b.timeout(now);
            exchange(a, b, now, &mut spoil);
        }
        for (side, line) in lines.iter_mut().enumerate() {
            line.timeout(now);
            let mut ended = 0;
            while let Some(event) = line.poll_event() {
                match event {
                    Event::Data(packet) => {
                        assert_eq!(packet, packets[1 - side], "seed {seed} round {round}: a wrong packet");
                        came[side] += 1;
                    }
                    Event::Sent | Event::NotAcknowledged => ended += 1,
                    other => panic!("seed {seed} round {round}: {other:?} out of noise"),
                }
            }
            assert_eq!((ended, line.deadline()), (1, None), "seed {seed} round {round}");
        }
    }
    came
}

#[test]
fn on_a_noisy_line_nothing_wrong_comes_through() {
    for seed in 0..40 {
        for came in noisy_transfer(seed, 200) {
            // A packet of 330 octets on average survives with a chance of about 0.7.
            assert!((100..=180).contains(&came), "seed {seed}: {came} of 200 came");
        }
    }
}
