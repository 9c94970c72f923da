//! The recorder: what is written, for whom, and when its traps spring.

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, Key, LinkId, Sequence, Slab};
use inhost_buf::{Batch, Device, Frame, Full, Offload, Pool, Slices};
use inhost_event::{
    Drop, Event, FrameDropped, Retransmitted, RetransmittedWhy, Sink, StateChanged, TcpState,
};
use inhost_record::{Condition, Config, Notice, Recorder, Selection, Trap, Writer};
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const LINK: LinkId = LinkId(1);
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;
const RST: u8 = 0x04;

/// A TCP segment over IPv4 between 10.0.0.1 and 10.0.0.2, of which ports, flags and window are told.
fn segment(source: u16, destination: u16, flags: u8, window: u16) -> Vec<u8> {
    let mut frame = vec![0; 40];
    (frame[0], frame[3], frame[9], frame[32], frame[33]) = (0x45, 40, 6, 0x50, flags);
    frame[12..16].copy_from_slice(&[10, 0, 0, 1]);
    frame[16..20].copy_from_slice(&[10, 0, 0, 2]);
    frame[20..22].copy_from_slice(&source.to_be_bytes());
    frame[22..24].copy_from_slice(&destination.to_be_bytes());
    frame[34..36].copy_from_slice(&window.to_be_bytes());
    frame
}
fn receive(recorder: &Recorder, frame: &[u8], at_ms: u64) {
    let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
    let mut packet = pool.take(frame.len()).unwrap();
    packet.append(frame);
    batch.push(packet).unwrap();
    recorder.received(LINK, &batch, Instant::from_millis(at_ms));
}
fn recorder() -> Recorder {
    let mut config = Config::default();
    config.epoch_ns = 1_000_000_000_000;
    let recorder = Recorder::new(config);
    recorder.add_link(LINK, "memory", false);
    recorder
}
/// Time in milliseconds, bytes, and comment of each frame of a file.
fn frames(file: &[u8]) -> Vec<(u64, Vec<u8>, String)> {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        let Some(packet) = block.unwrap().into_owned().into_enhanced_packet() else { continue };
        let comment = packet.options.iter().find_map(|option| match option {
            EnhancedPacketOption::Comment(comment) => Some(comment.to_string()),
            _ => None,
        });
        let at = (packet.timestamp.as_nanos() as u64 - 1_000_000_000_000) / 1_000_000;
        frames.push((at, packet.data.into_owned(), comment.unwrap_or_default()));
    }
    frames
}
fn write(recorder: &Recorder, selection: &Selection, ends: Option<(Endpoint, Endpoint)>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    recorder.write(&mut writer, &mut 0, selection, &|_| ends).unwrap();
    writer.into_inner()
}
/// What waits.
fn notices(recorder: &Recorder) -> Vec<Notice> {
    let mut notices = Vec::new();
    while let Poll::Ready(notice) = pin!(recorder.notice()).poll(&mut Context::from_waker(Waker::noop())) {
        notices.push(notice);
    }
    notices
}
fn end(last: u8, port: u16) -> Endpoint {
    Endpoint::new(Ipv4Addr::new(10, 0, 0, last), port)
}
fn socket() -> Key {
    Slab::new(4).insert(()).unwrap()
}

#[test]
fn events_are_comments_of_the_frame_that_follows() {
    let mut recorder = recorder();
    receive(&recorder, &segment(4000, 80, SYN_ACK, 100), 1);
    let state = StateChanged { socket: socket(), from: TcpState::SynSent, to: TcpState::Established };
    recorder.record(Instant::from_millis(2), Event::StateChanged(state));
    receive(&recorder, &segment(4001, 81, ACK, 100), 3);
    let ends = (end(1, 4000), end(2, 80));
    recorder.note(Instant::from_millis(4), ends, "last words".into());

    let all = frames(&write(&recorder, &Selection::default(), Some(ends)));
    let line = "@1000002000000 inhost 10.0.0.1:4000 10.0.0.2:80 state SYN-SENT to ESTABLISHED";
    let last = "@1000004000000 inhost 10.0.0.1:4000 10.0.0.2:80 last words";
    assert_eq!(all[0], (1, segment(4000, 80, SYN_ACK, 100), String::new()));
    assert_eq!(all[1], (3, segment(4001, 81, ACK, 100), format!("{line}\n{last}")));
    // One connection has its events with the frames that it has.
    let one = frames(&write(&recorder, &Selection::of([end(2, 80), end(1, 4000)]), Some(ends)));
    assert_eq!(one, [(1, segment(4000, 80, SYN_ACK, 100), format!("{line}\n{last}"))]);
}

#[test]
fn what_was_overwritten_is_counted_and_what_was_written_is_not_written_again() {
    let mut config = Config::default();
    config.memory_bytes = 4 * 128;
    let recorder = Recorder::new(config);
    recorder.add_link(LINK, "memory", false);
    (0..6).for_each(|port| receive(&recorder, &segment(port, 80, ACK, 1), 1));
    let (mut writer, mut from) = (Writer::new(Vec::new()).unwrap(), 0);
    let mut write =
        |from: &mut u64| recorder.write(&mut writer, from, &Selection::default(), &|_| None).unwrap();
    let written = write(&mut from);
    assert_eq!((written.frames, written.lost), (4, 2));
    receive(&recorder, &segment(9, 80, ACK, 1), 2);
    let written = write(&mut from);
    assert_eq!((written.frames, written.lost), (1, 0));
}

/// Takes one frame.
struct One(bool);
impl Device for One {
    fn transmit(&mut self, _: &Frame<'_>) -> Result<(), Full> {
        if std::mem::replace(&mut self.0, true) { Err(Full) } else { Ok(()) }
    }
}

#[test]
fn a_device_records_what_it_takes() {
    let recorder = recorder();
    let header = segment(80, 4000, ACK, 5);
    let frame = Frame { header: &header, payload: Slices::EMPTY, offload: Offload::None };
    let mut one = One(false);
    let mut device = recorder.device(LINK, Instant::from_millis(7), &mut one);
    assert!(device.transmit(&frame).is_ok() && device.transmit(&frame).is_err());
    drop(device);
    let written = frames(&write(&recorder, &Selection::default(), None));
    assert_eq!(written, [(7, header.clone(), String::new())]);
}

#[test]
fn traps_spring_once_in_a_while_and_only_for_whom_they_are_meant() {
    let mut recorder = recorder();
    for trap in ["reset port 80", "zero-window host 10.0.0.9", "bad-checksum", "retransmission"] {
        assert!(recorder.arm(trap.parse().unwrap()));
    }
    receive(&recorder, &segment(4000, 81, RST, 0), 1);
    receive(&recorder, &segment(4000, 80, ACK, 0), 1);
    assert_eq!(notices(&recorder), []);
    receive(&recorder, &segment(4000, 80, RST, 0), 2);
    receive(&recorder, &segment(4000, 80, RST, 0), 3);
    let sprung = notices(&recorder);
    assert!(
        matches!(&sprung[..], [Notice::Sprung(of)] if of.trap.condition == Condition::Reset
            && of.ends == Some((end(1, 4000), end(2, 80)))),
        "{sprung:?}"
    );
    receive(&recorder, &segment(4000, 80, RST, 0), 2 + Duration::from_secs(10).as_millis());
    assert_eq!(notices(&recorder).len(), 1);

    let bad = segment(4000, 80, ACK, 9);
    recorder.looks_at(&bad);
    let dropped = FrameDropped { link: LINK, why: Drop::Checksum };
    recorder.record(Instant::from_millis(4), Event::FrameDropped(dropped));
    let seen = notices(&recorder);
    let [Notice::Sprung(of), Notice::Offence(offence)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((of.trap.condition, &offence.head, offence.ends), (Condition::BadChecksum, &bad, of.ends));
    // A drop that breaks no protocol is not an offence.
    let dropped = FrameDropped { link: LINK, why: Drop::NoSocket };
    recorder.record(Instant::from_millis(4), Event::FrameDropped(dropped));
    assert_eq!(notices(&recorder), []);
    assert_eq!(recorder.disarm(&"reset port 80".parse().unwrap()), 1);
    assert_eq!(recorder.traps().len(), 3);
}

#[test]
fn notices_that_nobody_takes_are_counted() {
    let mut recorder = recorder();
    let dropped = FrameDropped { link: LINK, why: Drop::Checksum };
    for _ in 0..100 {
        recorder.record(Instant::from_millis(4), Event::FrameDropped(dropped));
    }
    let taken = notices(&recorder).len() as u64;
    assert!(taken > 0);
    assert_eq!(recorder.take_lost_notices(), 100 - taken);
    assert_eq!(recorder.take_lost_notices(), 0);
}

#[test]
fn a_retransmission_is_of_the_frame_that_left_last() {
    let mut recorder = recorder();
    assert!(recorder.arm("retransmission port 80".parse().unwrap()));
    let mut again = |source: u16| {
        let header = segment(source, 4000, ACK, 5);
        let frame = Frame { header: &header, payload: Slices::EMPTY, offload: Offload::None };
        recorder.device(LINK, Instant::from_millis(7), &mut One(false)).transmit(&frame).unwrap();
        let (sequence, why) = (Sequence(1), RetransmittedWhy::Timeout);
        let sent = Retransmitted { socket: socket(), sequence, payload_bytes: 9, why };
        recorder.record(Instant::from_millis(7), Event::Retransmitted(sent));
        notices(&recorder)
    };
    // Those of others do not make it rest.
    assert_eq!(again(81), []);
    let sprung = again(80);
    assert!(
        matches!(&sprung[..], [Notice::Sprung(of)] if of.ends == Some((end(1, 80), end(2, 4000)))),
        "{sprung:?}"
    );
}

#[test]
fn traps_are_read_as_they_are_written() {
    for text in
        ["frame", "reset host 10.0.0.1 port 80", "share receivers-window over 50", "retransmission port 1"]
    {
        assert_eq!(text.parse::<Trap>().unwrap().to_string(), text);
    }
    for (text, part) in [
        ("", "is not a condition"),
        ("share idle over 5", "is not a cause; there are opening"),
        ("share closed over 100", "is not a share"),
        ("share closed", "is written as"),
        ("reset port", "has nothing behind it"),
        ("reset port 99999", "is not a port"),
        ("reset host x", "is not an IP address"),
        ("reset near 5", "is not understood"),
    ] {
        let why = text.parse::<Trap>().unwrap_err().to_string();
        assert!(why.contains(part), "{text}: {why}");
    }
}
