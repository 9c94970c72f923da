//! Captures built packet by packet, where the truth is what is written here.

use std::net::SocketAddr;

use inhost_base::{IpAddr, Ipv4Addr, Sequence};
use inhost_event::SendCause;
use inhost_explain::{Agreed, Cause, Known, Options, Report, Sign, Vantage, Verdict, explain};
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, SackBlocks, Segment, TcpOptions};

use super::network::report;

const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const CLIENT_ISN: u32 = u32::MAX - 5000;
const SERVER_ISN: u32 = 77;
const MSS: u32 = 1000;

/// A packet of the trace: who sends it, when, and its fields in relative numbers.
#[derive(Clone)]
pub struct Packet {
    at_us: u64,
    is_client: bool,
    start: u32,
    acknowledgment: u32,
    payload_bytes: u32,
    flags: Flags,
    window: u16,
    options: TcpOptions,
    hop_limit: u8,
    identification: u16,
    spoil: Option<u16>,
}

/// A trace of one connection; times in microseconds.
#[derive(Clone, Default)]
pub struct Trace(pub Vec<Packet>);

impl Trace {
    fn add(
        &mut self,
        at_us: u64,
        is_client: bool,
        start: u32,
        payload_bytes: u32,
        acknowledgment: u32,
    ) -> &mut Packet {
        self.0.push(Packet {
            at_us,
            is_client,
            start,
            acknowledgment,
            payload_bytes,
            flags: Flags::ACK,
            window: 60_000,
            options: TcpOptions::NONE,
            hop_limit: if is_client { 64 } else { 57 },
            identification: 0,
            spoil: None,
        });
        self.0.last_mut().unwrap()
    }
    /// The client sends.
    pub fn client(&mut self, at_us: u64, start: u32, payload_bytes: u32, acknowledgment: u32) -> &mut Packet {
        self.add(at_us, true, start, payload_bytes, acknowledgment)
    }
    /// The server sends.
    pub fn server(&mut self, at_us: u64, start: u32, payload_bytes: u32, acknowledgment: u32) -> &mut Packet {
        self.add(at_us, false, start, payload_bytes, acknowledgment)
    }
    /// A handshake seen at the client, over a path of 40 ms.
    pub fn open() -> Trace {
        let mut trace = Trace::default();
        trace.client(0, 0, 0, 0).syn();
        trace.server(40_000, 0, 0, 1).syn();
        trace.client(40_010, 1, 0, 1);
        trace
    }
    /// Raw IP packets.
    fn packets(&self) -> Vec<(u64, Vec<u8>)> {
        self.0.iter().map(|packet| (packet.at_us, packet.bytes())).collect()
    }
    /// A pcap file of raw IP in microseconds.
    pub fn file(&self) -> Vec<u8> {
        pcap(101, false, &self.packets(), 65_535)
    }
    fn verdict(&self) -> Verdict {
        let verdict = report(&self.file()).conversations.into_iter().next().unwrap();
        println!("{}{:?}\n{:?}", verdict.text(), verdict.directions, verdict.findings);
        verdict
    }
}

impl Packet {
    fn syn(&mut self) -> &mut Packet {
        self.options =
            TcpOptions { mss: Some(MSS as u16), sack_permitted: true, window_scale: Some(0), ..self.options };
        let acknowledges = if self.is_client { Flags::empty() } else { Flags::ACK };
        self.flags = Flags::SYN | acknowledges;
        self
    }
    /// With the segment size of Linux's loopback.
    fn large_syn(&mut self) -> &mut Packet {
        self.syn().window = u16::MAX;
        self.options.mss = Some(65_495);
        self
    }
    fn sack(&mut self, blocks: &[(u32, u32)]) -> &mut Packet {
        let number = |relative: u32| Sequence(CLIENT_ISN.wrapping_add(relative));
        let blocks: Vec<_> = blocks.iter().map(|&(start, end)| (number(start), number(end))).collect();
        self.options.sack = SackBlocks::from_slice(&blocks).unwrap();
        self
    }
    fn stamped(&mut self, value: u32, echo: u32) -> &mut Packet {
        self.options.timestamps = Some((value, echo));
        self
    }
    fn bytes(&self) -> Vec<u8> {
        let (own, other) = if self.is_client { (CLIENT_ISN, SERVER_ISN) } else { (SERVER_ISN, CLIENT_ISN) };
        let (source, destination) = if self.is_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let payload = vec![b'x'; self.payload_bytes as usize];
        let ports = if self.is_client { (4000, 80) } else { (80, 4000) };
        let segment = Segment {
            source_port: ports.0,
            destination_port: ports.1,
            sequence: Sequence(own.wrapping_add(self.start)),
            acknowledgment: Sequence(other.wrapping_add(self.acknowledgment)),
            flags: self.flags,
            window: self.window,
            options: self.options,
            payload: &payload,
            ..Segment::default()
        };
        let mut packet = vec![0; 20 + 60 + payload.len()];
        let bytes = segment.emit(IpAddr::V4(source), IpAddr::V4(destination), &mut packet[20..]);
        let mut header = Ipv4Header::new(source, destination, protocol::TCP, bytes as u16);
        (header.time_to_live, header.identification) = (self.hop_limit, self.identification);
        header.emit(&mut packet);
        packet.truncate(20 + bytes);
        if let Some(checksum) = self.spoil {
            packet[36..38].copy_from_slice(&checksum.to_be_bytes());
        }
        packet
    }
}

/// A pcap file.
pub fn pcap(link: u32, is_nano: bool, packets: &[(u64, Vec<u8>)], snap_bytes: usize) -> Vec<u8> {
    let magic: u32 = if is_nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = magic.to_be_bytes().to_vec();
    file.extend([0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend((snap_bytes as u32).to_be_bytes());
    file.extend(link.to_be_bytes());
    for (at_us, packet) in packets {
        let part = (at_us % 1_000_000) as u32 * if is_nano { 1000 } else { 1 };
        let kept = packet.len().min(snap_bytes);
        for field in [1_700_000_000 + (at_us / 1_000_000) as u32, part, kept as u32, packet.len() as u32] {
            file.extend(field.to_be_bytes());
        }
        file.extend(&packet[..kept]);
    }
    file
}

/// A sender that resends eight segments of which it has the selective acknowledgments, and one that was lost.
fn resends_what_was_received() -> Trace {
    let mut trace = Trace::open();
    let mut at = 41_000;
    for index in 0..10 {
        trace.client(at, 1 + index * MSS, MSS, 1);
        at += 100;
    }
    // The first is lost; each of the others is acknowledged selectively.
    for index in 1..10 {
        trace.server(81_000 + u64::from(index) * 100, 1, 0, 1).sack(&[(1 + MSS, 1 + (index + 1) * MSS)]);
    }
    for index in 0..9 {
        trace.client(82_500 + u64::from(index) * 30_000, 1 + index * MSS, MSS, 1);
    }
    trace.server(400_000, 1, 0, 1 + 10 * MSS);
    trace
}

#[test]
fn a_broken_recovery_is_named_with_its_frames() {
    let verdict = resends_what_was_received().verdict();
    assert_eq!((verdict.cause, verdict.direction), (Cause::BrokenRecovery, 0));
    let counts = verdict.directions[0].retransmissions;
    assert_eq!((counts.total, counts.needless, counts.spurious), (9, 8, 0));
    assert!(verdict.diagnosis.contains("8 of 9 retransmissions were needless"), "{}", verdict.diagnosis);
    let proof = verdict.findings.iter().find(|found| found.sign == Sign::NeedlessRetransmission).unwrap();
    assert_eq!(proof.frames, (24..32).collect::<Vec<u64>>());
}

#[test]
fn a_timeout_without_a_loss_is_spurious() {
    let mut trace = Trace::open();
    for packet in &mut trace.0[..] {
        packet.stamped(100, 0);
    }
    for index in 0..4 {
        trace.client(50_000 + index * 10, 1 + index as u32 * MSS, MSS - 12, 1).stamped(150, 100);
    }
    trace
        .0
        .iter_mut()
        .skip(3)
        .enumerate()
        .for_each(|(index, packet)| packet.start = 1 + index as u32 * (MSS - 12));
    // The path pauses for a second, and the timer fires.
    trace.client(400_000, 1, MSS - 12, 1).stamped(500, 100);
    trace.server(1_000_000, 1, 0, 1 + 4 * (MSS - 12)).stamped(1050, 150);
    trace.client(1_001_000, 1 + 4 * (MSS - 12), 100, 1).stamped(1100, 1050);
    let verdict = trace.verdict();
    assert!(verdict.has(Sign::SpuriousRetransmission));
    assert!(verdict.per_cent(0, Cause::SpuriousTimeout) > 30.0);
    assert_eq!(verdict.directions[0].retransmissions.spurious, 1);
}

#[test]
fn a_full_accept_queue() {
    let mut trace = Trace::open();
    trace.server(1_040_000, 0, 0, 1).syn();
    trace.client(1_040_010, 1, 0, 1);
    trace.server(3_040_000, 0, 0, 1).syn();
    trace.client(3_040_010, 1, 0, 1);
    trace.server(3_080_000, 1, 100, 1);
    let verdict = trace.verdict();
    assert!(verdict.has(Sign::AcceptQueueFull));
    assert!(verdict.per_cent(1, Cause::AcceptQueue) > 80.0);
    // At the server, a SYN arrives and is not answered.
    let mut trace = Trace::default();
    trace.client(0, 0, 0, 0).syn();
    trace.client(1_000_000, 0, 0, 0).syn();
    trace.server(1_000_050, 0, 0, 1).syn();
    trace.client(1_040_050, 1, 100, 1);
    trace.server(1_040_100, 1, 0, 101);
    let verdict = trace.verdict();
    assert_eq!((verdict.vantage, verdict.cause), (Vantage::Server, Cause::AcceptQueue));
}

/// Rounds of ten full segments and one of `last_bytes`; the third segment of the handshake comes `answer_us` after the second, and
/// each round so long after the acknowledgment of the one before.
fn rounds(answer_us: [u64; 2], last_bytes: u32) -> Verdict {
    let mut trace = Trace::default();
    trace.client(0, 0, 0, 0).syn();
    trace.server(40_000, 0, 0, 1).syn();
    let mut at_us = 40_000 + answer_us[0];
    trace.client(at_us, 1, 0, 1);
    let mut next = 1;
    for _ in 0..60 {
        for bytes in [MSS; 10].into_iter().chain((last_bytes > 0).then_some(last_bytes)) {
            trace.client(at_us, next, bytes, 1);
            next += bytes;
        }
        trace.server(at_us + 40_000, 1, 0, next);
        at_us += 40_000 + answer_us[1];
    }
    trace.verdict()
}

#[test]
fn a_full_segment_after_the_acknowledgment_is_not_held_by_nagles_algorithm() {
    assert_eq!(rounds([50, 50], 376).cause, Cause::CongestionWindow);
}

#[test]
fn an_answer_that_is_faster_than_the_handshakes_is_one() {
    assert_eq!([99, 101].map(|us| rounds([100, us], 0).cause), [Cause::CongestionWindow; 2]);
}

#[test]
fn who_only_reports_exchanges_nothing() {
    let mut trace = Trace::open();
    let (mut at_us, mut next) = (50_000, 1);
    for _ in 0..60 {
        trace.client(at_us, next, MSS, 1);
        next += MSS;
        trace.server(at_us + 80_000, 1, 0, next);
        at_us += 100_000;
    }
    let verdict = trace.verdict();
    assert!(!verdict.diagnosis.contains("exchange") && !verdict.remedy.contains("exchange"));
    assert!(verdict.remedy.contains("application"));
}

/// The answer to a SYN came after a second, on a path that is far shorter, at the client and at the server.
#[test]
fn a_late_answer_to_a_syn_was_lost_unless_the_server_was_slow() {
    let opened = |answered_us: u64, near_us: u64, far_us: u64| {
        let mut trace = Trace::default();
        trace.client(0, 0, 0, 0).syn();
        trace.server(answered_us, 0, 0, 1).syn();
        let open_us = answered_us + near_us;
        trace.client(open_us, 1, 0, 1);
        for number in 0..4 {
            let at_us = open_us + 10 + number * (near_us + far_us + 20);
            trace.client(at_us, 1 + number as u32 * 500, 500, 1);
            trace.server(at_us + far_us, 1, 0, 501 + number as u32 * 500);
        }
        trace.verdict()
    };
    let client = opened(1_040_000, 10, 40_000);
    assert_eq!((client.vantage, client.cause), (Vantage::Client, Cause::SynLoss));
    assert!(client.confidence < 0.8);
    let server = opened(1_000_000, 40_000, 10);
    assert_eq!((server.vantage, server.cause), (Vantage::Server, Cause::Opening));
}

#[test]
fn a_silly_window() {
    let mut trace = Trace::open();
    trace.server(60_000, 1, 0, 1).window = 5000;
    for index in 0..5 {
        trace.client(61_000 + u64::from(index), 1 + index * MSS, MSS, 1);
    }
    let mut edge = 5001;
    trace.server(101_000, 1, 0, edge).window = 100;
    for index in 0..10u32 {
        let at = 102_000 + u64::from(index) * 100_000;
        trace.client(at, edge, 100, 1);
        edge += 100;
        trace.server(at + 99_000, 1, 0, edge).window = 100;
    }
    let verdict = trace.verdict();
    assert_eq!(verdict.cause, Cause::SillyWindow);
}

#[test]
fn a_window_that_stays_below_a_segment_is_silly() {
    let mut trace = Trace::default();
    trace.client(0, 0, 0, 0).syn();
    trace.server(40_000, 0, 0, 1).syn().window = 600;
    trace.client(40_010, 1, 0, 1);
    for index in 0..10u32 {
        let at = 41_000 + u64::from(index) * 41_000;
        trace.client(at, 1 + index * 600, 600, 1);
        trace.server(at + 40_000, 1, 0, 1 + (index + 1) * 600).window = 600;
    }
    assert_eq!(trace.verdict().cause, Cause::SillyWindow);
}

/// Seen at the server, whose acknowledgments are lost behind the capture.
#[test]
fn what_a_timer_sends_again_in_vain_is_no_broken_recovery() {
    let mut trace = Trace::default();
    trace.client(0, 0, 0, 0).syn();
    trace.server(10, 0, 0, 1).syn();
    trace.client(40_000, 1, 0, 1);
    for index in 0..4 {
        trace.client(41_000 + index, 1 + index as u32 * MSS, MSS, 1);
        trace.server(41_010 + index, 1, 0, 1 + (index as u32 + 1) * MSS);
    }
    for at in [400_000, 1_000_000, 2_200_000] {
        trace.client(at, 1, MSS, 1);
        trace.server(at + 10, 1, 0, 1 + 4 * MSS);
    }
    let verdict = trace.verdict();
    assert!(verdict.has(Sign::SpuriousRetransmission) && !verdict.has(Sign::NeedlessRetransmission));
    assert_ne!(verdict.cause, Cause::BrokenRecovery);
    let counts = verdict.directions[0].retransmissions;
    assert_eq!((counts.total, counts.needless, counts.spurious), (3, 0, 3));
}

/// Without SACK and timestamps a retransmission may have been in vain, and nothing would show it.
#[test]
fn a_timeout_is_less_sure_where_nothing_shows_that_it_was_needed() {
    let timeout = |has_sack: bool| {
        let mut trace = Trace::open();
        for packet in &mut trace.0[..2] {
            packet.options.sack_permitted = has_sack;
        }
        for round in 0..6u32 {
            let (at, start) = (50_000 + u64::from(round) * 50_000, 1 + round * MSS);
            trace.client(at, start, MSS, 1);
            trace.server(at + 40_000, 1, 0, start + MSS);
        }
        let (at, start) = (400_000, 1 + 6 * MSS);
        trace.client(at, start, MSS, 1);
        trace.client(at + 10, start + MSS, MSS, 1);
        for again in [1_000_000, 3_000_000] {
            trace.client(at + again, start, MSS, 1);
        }
        trace.server(at + 3_040_000, 1, 0, start + 2 * MSS);
        trace.verdict()
    };
    let (shown, hidden) = (timeout(true), timeout(false));
    assert_eq!((shown.cause, hidden.cause), (Cause::Timeout, Cause::Timeout));
    assert!(hidden.confidence < 0.8 && hidden.confidence < shown.confidence);
    let names_it = |of: &Verdict| of.unknown.iter().any(|text| text.contains("without SACK and timestamps"));
    assert!(names_it(&hidden) && !names_it(&shown));
}

/// The verdict of a running host at one end, whose ledger has these times in microseconds.
fn of_host(trace: &Trace, at_client: bool, ledger: &[(SendCause, u64)]) -> Verdict {
    of_host_at(None, trace, at_client, ledger)
}

/// The same, asked at this time.
fn of_host_at(now_ns: Option<u64>, trace: &Trace, at_client: bool, ledger: &[(SendCause, u64)]) -> Verdict {
    let ends = [SocketAddr::from((CLIENT, 4000)), SocketAddr::from((SERVER, 80))];
    let (local, remote) = if at_client { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    let mut send_ns = [0; SendCause::COUNT];
    ledger.iter().for_each(|(cause, us)| send_ns[*cause as usize] = us * 1000);
    let known = Known {
        local,
        remote,
        send_ns,
        bytes: [0; 2],
        round_trip_ns: Some(40_000_000),
        now_ns,
        agreed: None,
    };
    inhost_explain::live(&known, &trace.file()[..], &Options::default()).unwrap()
}

/// The ledger begins with the SYN that is answered; the frames have the one before.
#[test]
fn a_host_counts_the_wait_before_its_ledger_begins() {
    let mut trace = Trace::default();
    trace.client(0, 0, 0, 0).syn();
    trace.client(1_000_000, 0, 0, 0).syn();
    trace.server(1_000_050, 0, 0, 1).syn();
    trace.client(1_040_050, 1, 100, 1);
    trace.server(1_040_100, 1, 50, 101);
    trace.client(1_080_100, 101, 0, 51);
    let ledger = [(SendCause::Opening, 40_000), (SendCause::AwaitingAcknowledgment, 40_000)];
    let verdict = of_host(&trace, false, &ledger);
    assert_eq!(verdict.cause, Cause::AcceptQueue);
    assert!(verdict.per_cent(1, Cause::AcceptQueue) > 80.0);
}

/// Something is always unacknowledged, and it is the application that is waited for.
#[test]
fn a_host_whose_application_sends_a_little_now_and_then_is_idle() {
    let mut trace = Trace::open();
    for index in 0..20u32 {
        trace.client(50_000 + u64::from(index) * 30_000, 1 + index * 100, 100, 1);
        if index > 0 {
            trace.server(60_000 + u64::from(index) * 30_000, 1, 0, 1 + index * 100);
        }
    }
    let ledger = [(SendCause::Opening, 40_000), (SendCause::AwaitingAcknowledgment, 580_000)];
    assert_eq!(of_host(&trace, true, &ledger).cause, Cause::ApplicationIdle);
}

/// Loopback's segments are nearly as large as its windows: 60 requests of 200 bytes leave almost all of a window free.
fn exchanges_with_large_segments(request_bytes: u32, think_us: u64) -> Verdict {
    let mut trace = Trace::default();
    trace.client(0, 0, 0, 0).large_syn();
    trace.server(20, 0, 0, 1).large_syn();
    trace.client(40, 1, 0, 1).window = u16::MAX;
    for index in 0..60u32 {
        let (at, start, answer) =
            (100 + u64::from(index) * (think_us + 60), 1 + index * request_bytes, 1 + index * 200);
        trace.client(at, start, request_bytes, answer).window = u16::MAX;
        trace.server(at + 20 + think_us, answer, 200, start + request_bytes).window = u16::MAX;
    }
    trace.verdict()
}

#[test]
fn little_in_flight_is_no_full_window_where_segments_are_large() {
    let verdict = exchanges_with_large_segments(200, 30_000);
    for direction in [0, 1] {
        for cause in [Cause::ReceiverWindow, Cause::ZeroWindow, Cause::SillyWindow] {
            assert_eq!(verdict.per_cent(direction, cause), 0.0, "{direction} {cause:?}");
        }
    }
    assert_eq!((verdict.direction, verdict.cause), (1, Cause::ThinkTime));
    assert!(verdict.per_cent(1, Cause::ThinkTime) > 95.0 && verdict.per_cent(0, Cause::AwaitingPeer) > 95.0);
    // More than half of it in flight leaves less than a sender waits for.
    let full = exchanges_with_large_segments(40_000, 30_000);
    assert_eq!((full.direction, full.cause), (0, Cause::ReceiverWindow));
}

/// At the client, over a path of 40 ms, each request is acknowledged with its answer, or before by a delayed acknowledgment.
#[test]
fn what_the_application_takes_is_not_the_networks_when_the_acknowledgment_comes_with_the_answer() {
    for (think_us, delayed_us) in [(30_000, None), (60_000, Some(40_000))] {
        let mut trace = Trace::open();
        for index in 0..20u32 {
            let (at, start, answer) =
                (50_000 + u64::from(index) * (think_us + 41_000), 1 + index * 200, 1 + index * 300);
            trace.client(at, start, 200, answer);
            if let Some(delayed_us) = delayed_us {
                trace.server(at + 40_000 + delayed_us, answer, 0, start + 200);
            }
            trace.server(at + 40_000 + think_us, answer, 300, start + 200);
        }
        let verdict = trace.verdict();
        let think = think_us as f64 * 100.0 / (think_us + 41_000) as f64;
        for (direction, cause) in [(0, Cause::AwaitingPeer), (1, Cause::ThinkTime)] {
            let share = verdict.per_cent(direction, cause);
            assert!((share - think).abs() < 4.0, "{direction} {cause:?}: {share} for {think}");
        }
    }
}

/// The peer has nothing to say, and delays its acknowledgment; what follows is said unasked.
#[test]
fn a_delayed_acknowledgment_without_an_answer_is_not_the_peers_turn() {
    let mut trace = Trace::open();
    for index in 0..20u32 {
        let (at, start) = (50_000 + u64::from(index) * 90_000, 1 + index * 200);
        trace.client(at, start, 200, 1);
        trace.server(at + 80_000, 1, 0, start + 200);
    }
    let verdict = trace.verdict();
    assert_eq!(verdict.per_cent(0, Cause::AwaitingPeer), 0.0);
    assert!(verdict.per_cent(0, Cause::AwaitingAcknowledgment) > 75.0);
}

/// The recorder has the last 20 exchanges of a connection of a minute.
#[test]
fn a_host_knows_of_the_exchanges_that_are_no_longer_recorded() {
    let mut trace = Trace::open();
    for index in 0..20u32 {
        let (at, start, answer) = (50_000 + u64::from(index) * 100_000, 1 + index * 200, 1 + index * 300);
        trace.client(at, start, 200, answer);
        trace.server(at + 99_000, answer, 300, start + 200);
    }
    let ledger = [(SendCause::Opening, 40_000), (SendCause::AwaitingAcknowledgment, 60_000_000)];
    let now_ns = 1_700_000_000_000_000_000 + trace.0.last().unwrap().at_us * 1000;
    let verdict = of_host_at(Some(now_ns), &trace, true, &ledger);
    let share = verdict.per_cent(0, Cause::AwaitingPeer);
    assert!((55.0..65.0).contains(&share), "{share}");
    assert_eq!((verdict.direction, verdict.cause), (1, Cause::ThinkTime));
}

#[test]
fn a_syn_without_an_answer() {
    let mut trace = Trace::default();
    trace.client(0, 0, 0, 0).syn();
    let alone = trace.verdict();
    assert_eq!((alone.cause, alone.duration_ns), (Cause::Unknown, 0));
    assert_eq!(alone.diagnosis, "the client's SYN has no answer in the capture");
    assert!(alone.remedy.contains("whether the server is up"), "{}", alone.remedy);
    assert!(alone.text().lines().all(|line| !line.trim().is_empty()), "{}", alone.text());
    for at in [1_000_000, 3_000_000] {
        trace.client(at, 0, 0, 0).syn();
    }
    let again = trace.verdict();
    assert_eq!(again.cause, Cause::SynLoss);
    assert_eq!(again.diagnosis, "none of the client's 3 SYNs has an answer in the capture");
    assert_eq!(again.remedy, alone.remedy);
    assert!(again.confidence < 0.5 && again.unknown[0] == "whether the SYN reached the server");
    // One that has an answer at last was lost, or dropped.
    trace.server(3_040_000, 0, 0, 1).syn();
    assert!(trace.verdict().diagnosis.contains("SYN that was lost"));
}

#[test]
fn a_refused_connection() {
    let mut trace = Trace::default();
    trace.client(0, 0, 0, 0).syn();
    trace.server(40_000, 0, 0, 1).flags = Flags::RST | Flags::ACK;
    let verdict = trace.verdict();
    let expected = "the server refuses the connection: a reset answers the client's SYN in frame 1";
    assert_eq!(verdict.diagnosis, expected);
    assert!(verdict.remedy.contains("listens at this port"), "{}", verdict.remedy);
}

#[test]
fn reordering_without_loss() {
    let mut trace = Trace::open();
    for (index, place) in [0u32, 2, 1, 3, 4, 6, 5, 7].into_iter().enumerate() {
        trace.client(50_000 + index as u64 * 100, 1 + place * MSS, MSS, 1);
    }
    trace.server(90_000, 1, 0, 1 + 8 * MSS);
    let verdict = trace.verdict();
    assert!(verdict.has(Sign::Reordering));
    assert_eq!(verdict.directions[0].retransmissions.total, 0);
}

#[test]
fn a_reset_of_another_origin() {
    let mut trace = Trace::open();
    trace.client(50_000, 1, 100, 1);
    let reset = trace.server(60_000, 1, 0, 101);
    (reset.flags, reset.hop_limit) = (Flags::RST | Flags::ACK, 50);
    let verdict = trace.verdict();
    assert!(verdict.has(Sign::Reset) && verdict.has(Sign::ForeignSegment));
    assert!(verdict.diagnosis.contains("another distance"), "{}", verdict.diagnosis);
}

#[test]
fn a_reset_names_who_and_after_what() {
    let mut trace = Trace::open();
    trace.client(50_000, 1, 100, 1);
    trace.server(90_000, 1, 0, 101).flags = Flags::RST | Flags::ACK;
    let expected = "the server reset the connection after the client's data in frame 4";
    assert!(trace.verdict().diagnosis.contains(expected));
}

#[test]
fn checksums_copies_and_options() {
    let mut trace = Trace::open();
    trace.0[1].options.sack_permitted = false;
    trace.client(50_000, 1, MSS, 1).identification = 9;
    trace.client(50_001, 1, MSS, 1).identification = 9;
    // The sum of the pseudo-header alone: 192.0.2.1, 192.0.2.2, TCP, 120 bytes.
    trace.client(50_100, 1 + MSS, 100, 1).spoil = Some(0x8482);
    trace.server(60_000, 1, 50, 1).spoil = Some(1);
    trace.server(90_000, 1, 0, 1 + MSS + 100);
    let verdict = trace.verdict();
    for sign in [Sign::OptionMissing, Sign::DuplicateFrame, Sign::ChecksumOffload, Sign::WrongChecksum] {
        assert!(verdict.has(sign), "{sign:?}");
    }
    assert_eq!(verdict.directions[0].bytes, u64::from(MSS) + 100);
    assert_eq!((verdict.directions[1].bytes, verdict.directions[0].retransmissions.total), (0, 0));
}

#[test]
fn a_capture_that_begins_in_the_middle() {
    let mut trace = resends_what_was_received();
    trace.0.drain(..3);
    let verdict = trace.verdict();
    assert!(!verdict.has_handshake && verdict.confidence < 0.8);
    assert_eq!(verdict.directions[0].retransmissions.total, 9);
}

/// The same trace in every format says the same.
#[test]
fn formats() {
    let packets = resends_what_was_received().packets();
    let framed = |front: &[u8]| -> Vec<(u64, Vec<u8>)> {
        packets.iter().map(|(at, packet)| (*at, [front, packet].concat())).collect()
    };
    let ethernet = framed(&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 8, 0]);
    let vlan = framed(&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 0x88, 0xa8, 0, 6, 8, 0]);
    let cooked = framed(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 1, 0, 0, 8, 0]);
    let cooked2 = framed(&[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 0, 0, 0, 0, 0, 1, 0, 0]);
    let null = framed(&[2, 0, 0, 0]);
    let said = |file: &[u8]| -> (u64, String) {
        let report: Report = explain(file, &Options::default()).unwrap();
        (report.tcp_frames, report.conversations[0].diagnosis.clone())
    };
    let expected = said(&pcap(101, false, &packets, 65_535));
    assert_eq!(expected.0, packets.len() as u64);
    for (link, packets) in [(1, &ethernet), (1, &vlan), (113, &cooked), (276, &cooked2), (0, &null)] {
        for is_nano in [false, true] {
            // Cut behind the headers, as with a short snap length.
            for snap_bytes in [100, 65_535] {
                assert_eq!(said(&pcap(link, is_nano, packets, snap_bytes)), expected, "link type {link}");
            }
        }
    }
}

#[test]
fn a_giant_without_a_length() {
    let mut trace = Trace::open();
    trace.client(50_000, 1, 60_000, 1);
    let mut packets = trace.packets();
    packets[3].1[2..4].copy_from_slice(&[0, 0]);
    let verdict = &report(&pcap(101, false, &packets, 200)).conversations[0];
    assert_eq!(verdict.directions[0].bytes, 60_000);
}

/// What a program reads: the names of the schema are those of the report.
#[cfg(feature = "schema")]
#[test]
fn the_schema_has_what_reports_have() {
    let schema = serde_json::to_value(schemars::schema_for!(Report)).unwrap();
    let report = serde_json::to_value(report(&resends_what_was_received().file())).unwrap();
    let has = |of: &serde_json::Value, value: &serde_json::Value| {
        for (name, _) in value.as_object().unwrap() {
            let property = &of["properties"][name];
            assert!(property.is_object(), "{name}");
        }
    };
    has(&schema, &report);
    has(&schema["$defs"]["Verdict"], &report["conversations"][0]);
    has(&schema["$defs"]["DirectionReport"], &report["conversations"][0]["directions"][0]);
    assert!(schema["$defs"]["Cause"].to_string().contains("RFC 813"), "causes have their definitions");
}

/// The recorder has the latest frames only. What the handshake agreed on the host knows: here windows of 64 segments, each
/// full for a round trip of 40 ms.
#[test]
fn a_host_knows_what_the_handshake_agreed_on() {
    const SCALE: u8 = 7;
    let mut trace = Trace::default();
    let window = (64 * MSS) >> SCALE;
    for round in 0..20u32 {
        let (at, first) = (u64::from(round) * 40_000, 1 + round * 64 * MSS);
        for index in 0..64 {
            trace.client(at + u64::from(index), first + index * MSS, MSS, 1);
        }
        trace.server(at + 39_900, 1, 0, first + 64 * MSS).window = window as u16;
    }
    let ends = [SocketAddr::from((CLIENT, 4000)), SocketAddr::from((SERVER, 80))];
    let mut send_ns = [0; SendCause::COUNT];
    send_ns[SendCause::ReceiverWindow as usize] = 800_000_000;
    let agreed = Agreed {
        mss_bytes: [MSS as u16; 2],
        window_scales: Some([0, SCALE]),
        has_timestamps: false,
        has_sack: true,
    };
    let known = |agreed| {
        let known = Known {
            local: ends[0],
            remote: ends[1],
            send_ns,
            bytes: [0; 2],
            round_trip_ns: Some(40_000_000),
            now_ns: None,
            agreed,
        };
        inhost_explain::live(&known, &trace.file()[..], &Options::default()).unwrap()
    };
    let (told, guessed) = (known(Some(agreed)), known(None));
    assert!(
        told.diagnosis.starts_with("the server's window of 62.5 KiB limits this path"),
        "{}",
        told.diagnosis
    );
    assert!(
        told.confidence > 0.7 && guessed.confidence < 0.5,
        "{:?} {:?}",
        told.confidence_reasons,
        guessed.confidence
    );
    let names_scale = |of: &Verdict| of.unknown.iter().any(|text| text.contains("scale of windows"));
    assert!(names_scale(&guessed) && !names_scale(&told));
}

/// A recorder that has the latest frames only: segments of 64 KiB, each acknowledged before the next leaves.
#[test]
fn large_segments_without_their_handshake_are_full() {
    let mut trace = Trace::default();
    for index in 0..40u32 {
        let (at, start) = (u64::from(index) * 2_000, 1 + index * 65_483);
        // Larger than a device takes at once on the path, as over a host's own sockets.
        trace.client(at, start, 65_000, 1);
        trace.server(at + 1_900, 1, 0, start + 65_000);
    }
    let verdict = trace.verdict();
    assert_eq!(verdict.per_cent(0, Cause::Nagle), 0.0, "{}", verdict.text());
    // Small ones are small without a handshake, too.
    let mut trace = Trace::default();
    for index in 0..40u32 {
        let (at, start) = (u64::from(index) * 2_000, 1 + index * 100);
        trace.client(at, start, 100, 1);
        trace.server(at + 1_900, 1, 0, start + 100);
    }
    assert!(trace.verdict().per_cent(0, Cause::Nagle) > 50.0);
}

/// The end of a stream is sent when the application says so, and Nagle's algorithm does not hold it.
#[test]
fn an_end_is_not_held_back() {
    let mut trace = Trace::open();
    trace.client(41_000, 1, 100, 1);
    trace.server(81_000, 1, 0, 101);
    trace.client(81_050, 101, 0, 1).flags = Flags::ACK | Flags::FIN;
    trace.server(121_000, 1, 0, 102);
    let verdict = trace.verdict();
    assert_eq!(verdict.per_cent(0, Cause::Nagle), 0.0, "{}", verdict.text());
    assert!(verdict.per_cent(0, Cause::AwaitingAcknowledgment) > 30.0, "{}", verdict.text());
}

/// An idle connection of a host goes on behind its last frame, in both directions.
#[test]
fn a_host_tells_how_long_a_connection_is_idle() {
    let ledger = [(SendCause::Opening, 40_010), (SendCause::ApplicationIdle, 3_000_000)];
    let verdict = of_host(&Trace::open(), true, &ledger);
    for direction in &verdict.directions {
        let sum_ns: u64 = direction.shares.iter().map(|share| share.ns).sum();
        assert_eq!(sum_ns, verdict.duration_ns);
    }
    assert_eq!(verdict.diagnosis, "neither application has sent anything");
}

/// A connection whose frames are gone: who called whom the ports say, and what took no time is not its cause.
#[test]
fn a_host_without_frames_names_what_it_knows() {
    let ledger = [(SendCause::Link, 50), (SendCause::Closed, 60_000_000)];
    let verdict = of_host(&Trace::default(), false, &ledger);
    assert_eq!((&*verdict.server, &*verdict.client), ("192.0.2.2:80", "192.0.2.1:4000"));
    assert_eq!((verdict.vantage, verdict.direction), (Vantage::Server, 1), "{}", verdict.text());
    assert_eq!((verdict.cause, &*verdict.diagnosis), (Cause::Closed, "nothing was left to send"));
}

/// What the host measured is less than the one round trip that its recorder still shows.
#[test]
fn a_hosts_least_round_trip_counts() {
    let mut trace = Trace::default();
    trace.client(0, 1, 100, 1);
    trace.server(900_000, 1, 0, 101);
    let verdict = of_host(&trace, true, &[(SendCause::AwaitingAcknowledgment, 900_000)]);
    assert_eq!(verdict.round_trip.unwrap().least_ns, 40_000_000);
}
