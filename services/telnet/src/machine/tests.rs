//! Transcripts, octet by octet.

use inhost_base::{Instant, Random};

use super::*;
use crate::codec::{Command, DO, DONT, IAC, SB, SE, Side, TelnetOption, WILL, WONT};

/// Everything that `input` makes of a machine: data joined, other events as text, and what it answers.
fn run(telnet: &mut Telnet, input: &[u8]) -> (Vec<u8>, Vec<String>, Vec<u8>) {
    let (mut data, mut events) = (Vec::new(), Vec::new());
    let mut rest = input;
    while let Some(event) = telnet.receive(&mut rest) {
        match event {
            Event::Data(run) => data.extend_from_slice(run),
            other => events.push(format!("{other:?}")),
        }
    }
    (data, events, sent(telnet))
}

fn sent(telnet: &mut Telnet) -> Vec<u8> {
    let mut all = Vec::new();
    while telnet.pending_bytes() > 0 {
        let (bytes, _) = telnet.pending();
        all.extend_from_slice(bytes);
        let count = bytes.len();
        telnet.sent(count);
    }
    all
}

fn server() -> Telnet {
    Telnet::new(Config::server())
}
fn client() -> Telnet {
    Telnet::new(Config::client("xterm"))
}

/// spec: RFC854 NVT
/// spec: RFC1123 3.3.1
#[test]
fn line_ends_both_ways() {
    assert_eq!(run(&mut server(), b"a\r\nb\r\0c\rd\ne\r").0, b"a\rb\rc\rd\ne\r");
    assert_eq!(run(&mut client(), b"a\r\nb\r\0c\rd\ne\r").0, b"a\r\nb\rc\rd\ne\r");
    let mut telnet = server();
    for (piece, expected) in [(&b"a\r"[..], &b"a\r"[..]), (b"\n", b""), (b"\r", b"\r"), (b"\0x", b"x")] {
        assert_eq!(run(&mut telnet, piece).0, expected);
    }
    let mut telnet = client();
    telnet.send(b"a\r\nb\rc\r");
    assert_eq!(sent(&mut telnet), b"a\r\nb\r\0c\r\0");
}

/// spec: RFC856
#[test]
fn binary_is_transparent_but_for_iac() {
    let all: Vec<u8> = (0..=255).chain([13, 0, 13, 10, 255]).collect();
    let (mut near, mut far) = (client(), server());
    near.enable(Side::Local, TelnetOption::Binary);
    far.accept(Side::Remote, TelnetOption::Binary);
    let (_, events, answer) = run(&mut far, &sent(&mut near));
    assert_eq!(events, ["OptionChanged { side: Remote, option: Binary, active: true }"]);
    run(&mut near, &answer);
    near.send(&all);
    let wire = sent(&mut near);
    assert_eq!(wire.len(), all.len() + 2);
    assert_eq!(run(&mut far, &wire).0, all);
}

/// spec: RFC854 commands
#[test]
fn commands_and_doubled_iac_come_through_in_any_pieces() {
    let mut input = b"x\xff\xffy\xff\xf1z".to_vec();
    let mut expected = vec!["Command(NoOperation)".to_owned()];
    for command in Command::ALL.into_iter().filter(|&command| command != Command::DataMark) {
        input.extend_from_slice(&[IAC, command.octet()]);
        expected.push(format!("Command({command:?})"));
    }
    input.extend_from_slice(&[IAC, 200, IAC, SE, b'!']);
    for size in 1..input.len() {
        let mut telnet = server();
        let (mut data, mut events) = (Vec::new(), Vec::new());
        for piece in input.chunks(size) {
            let (more_data, more_events, answer) = run(&mut telnet, piece);
            data.extend(more_data);
            events.extend(more_events);
            assert!(answer.is_empty());
        }
        assert_eq!((&data[..], &events), (&b"x\xffyz!"[..], &expected));
        assert_eq!(telnet.counters().unknown_commands, 2);
    }
}

/// spec: RFC854 Synch
#[test]
fn a_synch_discards_data_and_obeys_commands() {
    let mut telnet = server();
    assert_eq!(run(&mut telnet, b"before").0, b"before");
    let stream = b"lost\xff\xf4more\r\xff\xfd\x01lost\xff\xf2after\xff\xf2!";
    telnet.urgent(20);
    let (data, events, answer) = run(&mut telnet, stream);
    assert_eq!(data, b"after!");
    assert_eq!(events[0], "Command(InterruptProcess)");
    assert_eq!(events.last().unwrap(), "Synchronized");
    assert_eq!(answer, [IAC, WILL, 1]);
    assert_eq!(telnet.counters().synchs, 1);
    // The mark lies one octet further for some senders: it is not taken for another Synch.
    telnet.urgent(0);
    assert!(!telnet.is_synchronizing());
}

/// spec: RFC854 Synch
#[test]
fn a_mark_that_lies_beyond_a_data_mark_waits_for_the_next() {
    let mut telnet = client();
    let stream = b"a\xff\xf2b\xff\xf2c";
    telnet.urgent(6);
    assert_eq!(run(&mut telnet, stream).0, b"c");
    // A mark thought to be one octet before, or after, the Data Mark ends at the Data Mark all the same.
    for ahead in [1, 2, 3, 4] {
        let mut telnet = client();
        telnet.urgent(ahead);
        let (data, events, _) = run(&mut telnet, b"a\xff\xf2");
        assert_eq!((data, events.len()), (vec![], 1), "{ahead}");
        telnet.urgent(ahead.saturating_sub(3));
        assert_eq!(run(&mut telnet, b"shown").0, b"shown", "{ahead}");
    }
}

/// spec: RFC854 Synch
#[test]
fn a_synch_is_sent_with_the_mark_on_its_last_octet() {
    let mut telnet = client();
    telnet.send(b"abc");
    telnet.send_command(Command::InterruptProcess);
    telnet.send_synch();
    telnet.send(b"def");
    assert_eq!(telnet.pending(), (&b"abc\xff\xf4\xff\xf2"[..], true));
    telnet.sent(5);
    assert_eq!(telnet.pending(), (&b"\xff\xf2"[..], true));
    telnet.sent(2);
    assert_eq!(telnet.pending(), (&b"def"[..], false));
}

/// spec: RFC855
#[test]
fn what_is_not_spoken_is_refused_without_memory() {
    let mut telnet = server();
    let (_, events, answer) = run(&mut telnet, &[IAC, WILL, 38, IAC, DO, 38, IAC, WONT, 38, IAC, DONT, 38]);
    assert_eq!((events.len(), &answer[..]), (0, &[IAC, DONT, 38, IAC, WONT, 38][..]));
    assert_eq!(run(&mut client(), &[IAC, DO, 1]).2, [IAC, WONT, 1], "a client does not echo");
}

/// Server and client as configured, joined: both fall silent, and agree.
#[test]
fn both_roles_come_to_terms() {
    let (mut a, mut b) = (server(), client());
    b.set_window(100, 255);
    a.start();
    b.start();
    let mut events = Vec::new();
    for round in 0.. {
        let (to_b, to_a) = (sent(&mut a), sent(&mut b));
        if to_a.is_empty() && to_b.is_empty() {
            break;
        }
        events.extend(run_keeping(&mut a, &to_a));
        run_keeping(&mut b, &to_b);
        assert!(round < 6);
    }
    for option in TelnetOption::ALL {
        for side in [Side::Local, Side::Remote] {
            let other = if side == Side::Local { Side::Remote } else { Side::Local };
            assert_eq!(a.phase(side, option), b.phase(other, option), "{option:?}");
            assert!(!a.phase(side, option).is_pending());
        }
    }
    assert!(a.is_active(Side::Local, TelnetOption::Echo));
    for expected in [
        "TerminalType(\"xterm\")",
        "WindowSize { columns: 100, rows: 255 }",
        "TerminalSpeed { transmit: 38400, receive: 38400 }",
        "Environment([])",
    ] {
        assert!(events.iter().any(|event| event == expected), "{expected} in {events:?}");
    }
    assert!(b.ask_status());
    let (_, _, report) = run(&mut a, &sent(&mut b));
    let (_, events, _) = run(&mut b, &report);
    assert!(events[0].contains("StatusEntry { side: Remote, code: 1, active: true }"), "{events:?}");
}

fn run_keeping(telnet: &mut Telnet, input: &[u8]) -> Vec<String> {
    let mut events = Vec::new();
    let mut rest = input;
    while let Some(event) = telnet.receive(&mut rest) {
        events.push(format!("{event:?}"));
    }
    events
}

/// spec: RFC1091
#[test]
fn terminal_names_are_cycled_and_the_last_one_repeated() {
    let mut telnet =
        Telnet::new(Config { terminal_types: vec!["xterm".into(), "vt100".into()], ..Config::client("") });
    run(&mut telnet, &[IAC, DO, 24]);
    let names: Vec<Vec<u8>> = (0..4)
        .map(|_| run(&mut telnet, &[IAC, SB, 24, 1, IAC, SE]).2)
        .map(|reply| reply[4..reply.len() - 2].to_vec())
        .collect();
    assert_eq!(names, [&b"XTERM"[..], b"VT100", b"VT100", b"XTERM"]);
}

/// spec: RFC860
/// spec: RFC885
#[test]
fn timing_marks_and_records() {
    let mut telnet = server();
    assert_eq!(run(&mut telnet, &[IAC, DO, 6, IAC, DO, 6, IAC, DONT, 6]).2, [IAC, WILL, 6, IAC, WILL, 6]);
    let mut telnet = client();
    assert!(run(&mut telnet, &[IAC, WILL, 6]).1.is_empty(), "a mark that nobody asked for");
    assert!((0..TIMING_MARKS).all(|_| telnet.send_timing_mark()) && !telnet.send_timing_mark());
    sent(&mut telnet);
    assert_eq!(run(&mut telnet, &[IAC, WONT, 6]).1, ["TimingMark"]);
    telnet.end_record();
    assert_eq!(sent(&mut telnet), b"");
    run(&mut telnet, &[IAC, DO, 25]);
    telnet.end_record();
    assert_eq!(sent(&mut telnet), [IAC, 239]);
}

#[test]
fn a_subnegotiation_is_bounded_broken_off_or_without_meaning() {
    let mut telnet = server();
    run(&mut telnet, &[IAC, WILL, 31]);
    let mut long = vec![IAC, SB, 31];
    long.extend(vec![1; 5000]);
    long.extend([IAC, SE, b'x']);
    assert_eq!(run(&mut telnet, &long), (b"x".to_vec(), vec![], vec![]));
    assert_eq!(run(&mut telnet, &[IAC, SB, 31, 0, IAC, 246, b'y']).1, ["Command(AreYouThere)"]);
    assert_eq!(run(&mut telnet, &[IAC, SB, 31, 0, IAC, SE]).1.len(), 0);
    assert_eq!(run(&mut telnet, &[IAC, SB, 99, 0, IAC, SE]).1.len(), 0);
    assert_eq!(telnet.counters().bad_subnegotiations, 4);
    let sized = run(&mut telnet, &[IAC, SB, 31, 0, IAC, IAC, 0, 24, IAC, SE]).1;
    assert_eq!(sized, ["WindowSize { columns: 255, rows: 24 }"]);
}

#[test]
fn a_flood_of_requests_draws_no_more_than_the_budget() {
    for request in [&[IAC, DO, 6][..], &[IAC, WILL, 200], &[IAC, DO, 5, IAC, SB, 5, 1, IAC, SE, IAC, DONT, 5]]
    {
        let mut telnet = server();
        let (_, events, answer) = run(&mut telnet, &request.repeat(100_000));
        assert_eq!(events.last().unwrap(), "Violation(ReplyBudget)");
        assert!(answer.len() <= REPLY_BURST_BYTES as usize);
        telnet.advance(Instant::from_millis(10_000));
        assert_eq!(run(&mut telnet, b"x").0, b"", "nothing comes out after a violation");
    }
}

/// The slices are the input's own.
#[test]
fn data_is_not_copied() {
    let input = vec![b'a'; 10_000];
    let mut telnet = client();
    let mut rest = &input[..];
    let Some(Event::Data(data)) = telnet.receive(&mut rest) else { panic!() };
    assert_eq!((data.as_ptr(), data.len()), (input.as_ptr(), input.len()));
}

/// 200,000 inputs: random ones, and mutations of what real ends say.
#[test]
fn random_and_mutated_inputs() {
    let (mut a, mut b) = (server(), client());
    b.set_window(80, 24);
    a.start();
    b.start();
    let mut talk = [sent(&mut a), sent(&mut b)];
    for _ in 0..3 {
        let (to_a, to_b) = (talk[1].clone(), talk[0].clone());
        run_keeping(&mut a, &to_a);
        run_keeping(&mut b, &to_b);
        talk[0].extend(sent(&mut a));
        talk[1].extend(sent(&mut b));
    }
    let mut corpus = Vec::from(talk);
    corpus.push(b"logon ada\r\nengine\r\n\x03ls\xff\xf4\xff\xf2\xff\xf6\xff\xfd\x06".to_vec());
    corpus.push(
        b"\xff\xfb\x2a\xff\xfd\x2a\xff\xfa\x2a\x01;UTF-8;IBM037\xff\xf0\xff\xfa\x2a\x02IBM037\xff\xf0\x93\x96\x87\x96\x95\x0d\x25\x15\xff\xfa\x2a\x03\xff\xf0\xff\xfa\x2a\x04\x01;\xff\xf0"
            .to_vec(),
    );
    corpus.push(
        b"help\r\nnews\r\nnetstat\r\nlogon\r\nada\r\nx\r\n\x1dstatus\rtoggle binary\rsend ayt synch\r"
            .to_vec(),
    );
    let mut random = Random::from_number(854);
    for number in 0..200_000 {
        let input = match random.public_below(3) {
            0 => (0..random.public_below(48)).map(|_| telnet_octet(&mut random)).collect(),
            _ => mutated(&mut random, &corpus),
        };
        crate::fuzz::fuzz_protocol(&input);
        if number % 100 == 0 {
            crate::fuzz::fuzz_unread(&input);
        }
    }
}

fn telnet_octet(random: &mut Random) -> u8 {
    match random.public_below(4) {
        0 => IAC,
        1 => 236 + random.public_below(20) as u8,
        2 => TelnetOption::ALL[random.public_below(TelnetOption::ALL.len() as u32) as usize].code(),
        _ => random.public_u64() as u8,
    }
}

fn mutated(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = corpus[random.public_below(corpus.len() as u32) as usize].clone();
    for _ in 0..random.public_below(6) {
        let at = random.public_below(input.len() as u32 + 1) as usize;
        match random.public_below(4) {
            0 if at < input.len() => input[at] = telnet_octet(random),
            1 => input.insert(at, telnet_octet(random)),
            2 => input.truncate(at),
            _ => {
                let other = &corpus[random.public_below(corpus.len() as u32) as usize];
                let from = random.public_below(other.len() as u32) as usize;
                let to = (from + random.public_below(32) as usize).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
    input
}
