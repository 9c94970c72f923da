//! LINEMODE between two ends, and against ends that mean no good.

use inhost_base::Random;

use super::*;
use crate::codec::{DO, EditMode, Function, IAC, Level, SB, SE, Setting, Side, TelnetOption, WILL};

const LINE_MODE: u8 = 34;

fn server() -> Telnet {
    let mut server = Telnet::new(Config::server());
    server.set_special_characters(&[
        (Function::Interrupt, Setting::new(Some(3))),
        (Function::EraseCharacter, Setting::new(Some(127))),
        (Function::Suspend, Setting::new(Some(26))),
    ]);
    server
}
fn client() -> Telnet {
    let mut client = Telnet::new(Config::client("vt100"));
    client.accept(Side::Local, TelnetOption::LineMode);
    client.set_special_characters(&[
        (Function::Interrupt, Setting::new(Some(3))),
        (Function::EraseCharacter, Setting::new(Some(8))),
        (Function::AbortOutput, Setting::new(Some(15))),
    ]);
    client
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
fn heard(telnet: &mut Telnet, octets: &[u8]) -> Vec<String> {
    let mut rest = octets;
    std::iter::from_fn(|| telnet.receive(&mut rest).map(|event| format!("{event:?}"))).collect()
}
/// Carries octets until both are silent.
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
    [&[IAC, SB, LINE_MODE], body, &[IAC, SE]].concat()
}
/// A machine with LINEMODE in force that has said all it says of it.
fn begun(mut telnet: Telnet, verb: u8) -> Telnet {
    heard(&mut telnet, &[IAC, verb, LINE_MODE]);
    sent(&mut telnet);
    telnet
}

/// spec: RFC1184
#[test]
fn both_ends_agree_on_mode_and_characters() {
    let (mut server, mut client) = (server(), client());
    let mode = EditMode::EDIT.with(EditMode::TRAP_SIGNALS);
    server.set_edit_mode(mode);
    assert_eq!((server.edit_mode(), client.edit_mode()), (None, None));
    client.enable(Side::Local, TelnetOption::LineMode);
    settle(&mut server, &mut client);
    assert_eq!((server.edit_mode(), client.edit_mode()), (Some(mode), Some(mode)));
    // The client's characters hold, and what only one of them has is off.
    let character = |telnet: &Telnet, function| telnet.special_character(function).character();
    for (function, expected) in [
        (Function::Interrupt, Some(3)),
        (Function::EraseCharacter, Some(8)),
        (Function::AbortOutput, Some(15)),
        (Function::Suspend, None),
    ] {
        assert_eq!(character(&server, function), expected, "{function:?}");
        assert_eq!(character(&client, function), expected, "{function:?}");
    }
    server.set_special_characters(&[(Function::Interrupt, Setting::new(Some(24)))]);
    server.set_edit_mode(EditMode::NONE);
    settle(&mut server, &mut client);
    assert_eq!(character(&client, Function::Interrupt), Some(24));
    assert_eq!((server.edit_mode(), client.edit_mode()), (Some(EditMode::NONE), Some(EditMode::NONE)));
}

#[test]
fn a_mode_is_acknowledged_once_and_the_server_holds_to_its_own() {
    let mut client = begun(client(), DO);
    assert_eq!(heard(&mut client, &said(&[1, 3])), ["EditMode(EditMode(3))"]);
    assert_eq!(sent(&mut client), said(&[1, 7]));
    heard(&mut client, &said(&[1, 3]));
    heard(&mut client, &said(&[1, 7]));
    assert_eq!(sent(&mut client), b"", "neither the same mode nor an acknowledgment is answered");

    let mut server = begun(server(), WILL);
    server.set_edit_mode(EditMode::EDIT);
    sent(&mut server);
    assert!(heard(&mut server, &said(&[1, 2])).is_empty());
    assert_eq!(sent(&mut server), said(&[1, 1]), "a client's wish");
    assert!(heard(&mut server, &said(&[1, 4])).is_empty(), "the acknowledgment of an earlier mode");
    assert_eq!(heard(&mut server, &said(&[1, 5])), ["EditMode(EditMode(1))"]);
}

#[test]
fn forward_masks_and_unknown_functions_are_refused() {
    let mut client = begun(client(), DO);
    heard(&mut client, &said(&[DO, 2, 0xff, 0xff, 0x80]));
    // A mask of 255 is doubled on the wire; this one breaks off.
    sent(&mut client);
    heard(&mut client, &said(&[DO, 2, 0x12, 0x80]));
    assert_eq!(sent(&mut client), said(&[252, 2]));
    heard(&mut client, &said(&[254, 2]));
    assert_eq!(sent(&mut client), b"");
    let mut server = begun(server(), WILL);
    heard(&mut server, &said(&[WILL, 2]));
    assert_eq!(sent(&mut server), said(&[254, 2]));
    heard(&mut server, &said(&[3, 25, 2, 9, 25, 0, 0, 99, 0x83, 1]));
    assert_eq!(sent(&mut server), said(&[3, 25, 0, 0]), "no answer to an acknowledgment or to unsupported");
}

#[test]
fn all_characters_are_told_on_demand() {
    let mut server = begun(server(), WILL);
    heard(&mut server, &said(&[3, 3, 2, 9]));
    assert_eq!(sent(&mut server), said(&[3, 3, 0x82, 9]), "accepted");
    heard(&mut server, &said(&[3, 3, 2, 9, 3, 0x82, 7]));
    assert_eq!(sent(&mut server), b"", "agreed already, and an acknowledgment");
    assert_eq!(heard(&mut server, &said(&[3, 0, 3, 0, 0, 3, 0])), ["SpecialCharacters"]);
    let all = sent(&mut server);
    assert_eq!(all.len(), said(&[3]).len() + 3 * 18, "once, in one message");
    assert_eq!(server.special_character(Function::Interrupt).character(), Some(3));
    heard(&mut server, &said(&[3, 10, 3, 0]));
    assert!(sent(&mut server).is_empty() || server.special_character(Function::EraseCharacter).value == 127);
}

/// Both ends change characters at random moments, with messages crossing; the exchange ends each time.
#[test]
fn the_exchange_of_characters_ends() {
    let mut random = Random::from_number(1184);
    for _ in 0..500 {
        let (mut server, mut client) = (server(), client());
        client.enable(Side::Local, TelnetOption::LineMode);
        for _ in 0..random.public_below(12) {
            let which = random.public_below(18) as usize;
            let value = random.public_below(40) as u8;
            let level = [Level::Unsupported, Level::Fixed, Level::Value][random.public_below(3) as usize];
            let setting = Setting { level, ..Setting::new(Some(value)) };
            let end = if random.public_below(2) == 0 { &mut server } else { &mut client };
            end.set_special_characters(&[(Function::ALL[which], setting)]);
            if random.public_below(3) == 0 {
                settle(&mut server, &mut client);
            }
        }
        settle(&mut server, &mut client);
    }
}

#[test]
fn a_peer_that_changes_for_ever_is_in_violation() {
    for mut telnet in [begun(server(), WILL), begun(client(), DO)] {
        let mut answered = 0;
        let mut is_violation = false;
        for round in 0..100_000u32 {
            let octets = said(&[3, 3, 2, (round % 200) as u8]);
            is_violation = heard(&mut telnet, &octets).iter().any(|event| event.contains("Violation"));
            answered += sent(&mut telnet).len();
            if is_violation {
                break;
            }
        }
        assert!(is_violation && answered <= REPLY_BURST_BYTES as usize, "{answered} octets");
    }
}

/// spec: RFC1143 7
#[test]
fn a_refused_option_is_an_event() {
    let mut client = client();
    client.enable(Side::Local, TelnetOption::LineMode);
    let refused = heard(&mut client, &[IAC, 254, LINE_MODE, IAC, 254, LINE_MODE]);
    assert_eq!(refused, ["OptionRefused { side: Local, option: LineMode }"]);
    client.enable(Side::Local, TelnetOption::LineMode);
    heard(&mut client, &[IAC, DO, LINE_MODE]);
    client.disable(Side::Local, TelnetOption::LineMode);
    let events = heard(&mut client, &[IAC, 254, LINE_MODE]);
    assert!(!events.iter().any(|event| event.contains("Refused")), "{events:?}");
}
