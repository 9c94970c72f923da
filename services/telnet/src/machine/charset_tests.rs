//! CHARSET between two ends, and against ends that mean no good.

use std::fmt::Write;

use super::*;
use crate::codec::{Charset, DO, DONT, IAC, SB, SE, Side, TelnetOption, WILL};
use inhost_common::CodePage;

const CHARSET: u8 = 42;
const PAGE_037: Charset = Charset::Ebcdic(CodePage::Cp037);

fn server() -> Telnet {
    Telnet::new(Config::server())
}
fn client() -> Telnet {
    Telnet::new(Config::client("vt100"))
}
fn sent(telnet: &mut Telnet) -> Vec<u8> {
    let mut all = Vec::new();
    while telnet.pending_bytes() > 0 {
        let bytes = telnet.pending().0.to_vec();
        telnet.sent(bytes.len());
        all.extend(bytes);
    }
    all
}
/// The text that octets give, and the other events.
fn heard(telnet: &mut Telnet, octets: &[u8]) -> (String, Vec<String>) {
    let (mut text, mut events, mut rest) = (Vec::new(), Vec::new(), octets);
    while let Some(event) = telnet.receive(&mut rest) {
        match event {
            Event::Data(data) => text.extend_from_slice(data),
            Event::Text(more) => text.extend(more),
            other => events.push(format!("{other:?}")),
        }
    }
    (String::from_utf8_lossy(&text).into_owned(), events)
}
fn settle(a: &mut Telnet, b: &mut Telnet) {
    for _ in 0..12 {
        let octets = sent(a);
        heard(b, &octets);
        let octets = sent(b);
        heard(a, &octets);
        if a.pending_bytes() == 0 && b.pending_bytes() == 0 {
            return;
        }
    }
    panic!("the ends do not settle");
}
fn said(body: &[u8]) -> Vec<u8> {
    [&[IAC, SB, CHARSET], body, &[IAC, SE]].concat()
}
fn with(mut config: Config, charsets: &[Charset]) -> Telnet {
    config.charsets = charsets.to_vec();
    Telnet::new(config)
}

/// Either end asks, and text goes both ways in what the asker likes best of what both have.
/// spec: RFC2066
#[test]
fn both_ends_agree_on_a_charset() {
    for (charset, octets) in [
        (Charset::Utf8, "A€é\r\n".as_bytes()),
        (Charset::Latin1, b"A?\xe9\r\n"),
        (Charset::Ascii, b"A??\r\n"),
        (PAGE_037, b"\xc1\x3f\x51\x0d\x25"),
    ] {
        for client_asks in [false, true] {
            let (mut a, mut b) = (with(Config::server(), &[charset]), client());
            if client_asks {
                (a, b) = (server(), with(Config::client("vt100"), &[charset]));
                b.ask_charset(true);
            } else {
                a.enable(Side::Local, TelnetOption::Charset);
            }
            settle(&mut a, &mut b);
            assert_eq!((a.charset(), b.charset()), (Some(charset), Some(charset)));
            a.send("A€é\r\n".as_bytes());
            let wire = sent(&mut a);
            assert_eq!(wire, octets, "{charset}");
            let back = heard(&mut b, &wire).0;
            assert_eq!(back.chars().next().zip(back.lines().next()).map(|(first, _)| first), Some('A'));
            assert!(back.ends_with("\r\n"), "{back:?}");
            b.send("x\r".as_bytes());
            let wire = sent(&mut b);
            assert_eq!(heard(&mut a, &wire).0, "x\r", "{charset}");
        }
    }
}

/// Text before the agreement stays as it is.
/// spec: RFC2066
#[test]
fn text_changes_with_the_agreement() {
    let mut server = server();
    heard(&mut server, &[IAC, WILL, CHARSET]);
    sent(&mut server);
    let input = [b"a", &said(b"\x01 KOI8-R ibm037")[..], b"\x81\xff\xff\x0d\x00\x82\x15"].concat();
    let (text, events) = heard(&mut server, &input);
    assert_eq!(text, "aa\u{9f}\rb\r");
    assert_eq!(events, ["Charset(Ebcdic(Cp037))"]);
    assert_eq!(sent(&mut server), said(b"\x02ibm037"), "the name as it was written");
    server.send("\u{9f}a\rb\u{9f}".as_bytes());
    assert_eq!(sent(&mut server), b"\xff\xff\x81\x0d\x00\x82\xff\xff");
    assert_eq!(server.counters().substituted_characters, 0);
    server.send("€".as_bytes());
    assert_eq!((sent(&mut server), server.counters().substituted_characters), (vec![0x3f], 1));
    // With the option ends the agreement.
    heard(&mut server, &[IAC, 252, CHARSET]);
    assert_eq!((server.charset(), heard(&mut server, b"a").0), (None, "a".to_owned()));
}

/// What an end that asked, and one that did not, make of every message.
/// spec: RFC2066 2
#[test]
fn the_whole_exchange() {
    let messages = [
        ("REQUEST UTF-8", &b"\x01;UTF-8"[..]),
        ("REQUEST KOI8-R", b"\x01;KOI8-R"),
        ("REQUEST TTABLE", b"\x01[TTABLE]\x01;KOI8-R;IBM500"),
        ("REQUEST nothing", b"\x01"),
        ("ACCEPTED UTF-8", b"\x02UTF-8"),
        ("ACCEPTED KOI8-R", b"\x02KOI8-R"),
        ("REJECTED", b"\x03"),
        ("TTABLE-IS", b"\x04\x01;a;b"),
        ("TTABLE-REJECTED", b"\x05"),
        ("TTABLE-ACK", b"\x06"),
    ];
    let mut text = String::from("end      asked  message           charset  answer           event\n");
    for (end, asked) in [("server", false), ("server", true), ("client", false), ("client", true)] {
        for (name, body) in messages {
            let mut config = if end == "server" { Config::server() } else { Config::client("") };
            config.asks_charset = asked;
            let mut telnet = Telnet::new(config);
            heard(&mut telnet, &[IAC, DO, CHARSET, IAC, WILL, CHARSET]);
            sent(&mut telnet);
            let (_, events) = heard(&mut telnet, &said(body));
            let answer = sent(&mut telnet);
            let answer = match answer.get(3..answer.len().max(5) - 2) {
                Some([2, name @ ..]) => format!("ACCEPTED {}", String::from_utf8_lossy(name)),
                Some([3]) => "REJECTED".to_owned(),
                Some([5]) => "TTABLE-REJECTED".to_owned(),
                _ => "-".to_owned(),
            };
            let charset = telnet.charset().map_or("-", Charset::name);
            let event = events.first().map_or("-", |event| event);
            writeln!(text, "{end:<8} {asked:<6} {name:<17} {charset:<8} {answer:<16} {event}").unwrap();
        }
    }
    assert_eq!(text, include_str!("charset-exchange.txt"), "the exchange is now:\n{text}");
}

/// spec: RFC2066
#[test]
fn requests_that_cross_end_in_the_servers() {
    let (mut a, mut b) = (with(Config::server(), &[Charset::Latin1, PAGE_037]), client());
    for telnet in [&mut a, &mut b] {
        telnet.ask_charset(true);
    }
    let (from_a, from_b) = (sent(&mut a), sent(&mut b));
    heard(&mut a, &from_b);
    heard(&mut b, &from_a);
    settle(&mut a, &mut b);
    assert_eq!((a.charset(), b.charset()), (Some(Charset::Latin1), Some(Charset::Latin1)));
    b.ask_charset(true);
    settle(&mut a, &mut b);
    assert_eq!(b.charset(), Some(Charset::Latin1), "a later request is answered too");
    b.ask_charset(false);
    settle(&mut a, &mut b);
    assert_eq!((a.charset(), b.charset()), (None, None));
}

#[test]
fn a_charset_that_was_not_agreed_on_is_not_taken() {
    let mut telnet = client();
    assert_eq!(heard(&mut telnet, &said(b"\x01;IBM037")).1.len(), 0, "the option is not in force");
    assert!(sent(&mut telnet).is_empty());
    heard(&mut telnet, &[IAC, DO, CHARSET]);
    sent(&mut telnet);
    heard(&mut telnet, &said(b"\x02IBM037"));
    assert_eq!(telnet.charset(), None, "nobody asked");
    let mut telnet = with(Config::client(""), &[Charset::Latin1]);
    telnet.ask_charset(true);
    heard(&mut telnet, &[IAC, DO, CHARSET]);
    heard(&mut telnet, &said(b"\x02IBM037"));
    assert_eq!(telnet.charset(), None, "it was not in the list");
}

#[test]
fn a_peer_that_asks_for_ever_is_in_violation() {
    for body in [&b"\x01;IBM037"[..], b"\x01;x", b"\x04\x01", b"\x01;UTF-8"] {
        for mut telnet in [server(), client()] {
            heard(&mut telnet, &[IAC, WILL, CHARSET]);
            sent(&mut telnet);
            let (mut answered, mut is_violation) = (0, false);
            for _ in 0..100_000 {
                is_violation |=
                    heard(&mut telnet, &said(body)).1.iter().any(|event| event.contains("Violation"));
                answered += sent(&mut telnet).len();
                if is_violation {
                    break;
                }
            }
            assert!(is_violation && answered <= REPLY_BURST_BYTES as usize, "{answered} octets");
        }
    }
    let mut telnet = server();
    let flood = [IAC, DO, CHARSET, IAC, DONT, CHARSET].repeat(10_000);
    assert_eq!(heard(&mut telnet, &flood).1.last().unwrap(), "Violation(ReplyBudget)");
}

/// In any pieces text is the same, and never more than three times as long.
#[test]
fn text_comes_in_any_pieces() {
    for name in Charset::ALL.map(Charset::name) {
        let all: Vec<u8> = (0..=255)
            .chain([13, 10, 13, 0, 13, 0x25, 13, 0x15, 13])
            .flat_map(|octet| if octet == IAC { vec![IAC, IAC] } else { vec![octet] })
            .collect();
        let mut whole = None;
        for size in [all.len(), 1, 2, 3, 7] {
            let mut telnet = client();
            heard(&mut telnet, &[IAC, DO, CHARSET]);
            heard(&mut telnet, &said(&[b"\x01 ", name.as_bytes()].concat()));
            let mut text = Vec::new();
            for piece in all.chunks(size) {
                let mut rest = piece;
                while let Some(event) = telnet.receive(&mut rest) {
                    match event {
                        Event::Data(data) => text.extend_from_slice(data),
                        Event::Text(more) => text.extend(more),
                        _ => {}
                    }
                }
            }
            assert!(text.len() <= 3 * all.len());
            assert_eq!(*whole.get_or_insert(text.clone()), text, "{name} by {size}");
        }
    }
}
