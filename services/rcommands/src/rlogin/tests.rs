use super::{Action, Login, Opening};
use std::fmt::Write;

fn opening() -> Opening {
    Opening {
        local_user: "ada".into(),
        remote_user: "charles".into(),
        terminal: "vt100".into(),
        speed: 38_400,
        window: (80, 24),
        escape: Some(b'~'),
        has_urgent: true,
    }
}
/// A session that has begun.
fn open() -> Login {
    let mut login = Login::new(&opening());
    login.sent(usize::MAX);
    login.network(b"\0");
    login
}
fn drain(login: &mut Login) -> Vec<u8> {
    let output = login.output().to_vec();
    login.sent(output.len());
    output
}

#[test]
fn it_begins_as_rfc_1282_says() {
    let mut login = Login::new(&opening());
    assert_eq!(drain(&mut login), b"\0ada\0charles\0vt100/38400\0");
    login.network(b"\0Last login: today\r\n");
    assert_eq!(login.screen(), b"Last login: today\r\n");
}

#[test]
fn a_refusal_is_told_and_a_close_without_words_too() {
    let mut login = Login::new(&opening());
    login.network(b"\x01rlogind: Permission denied.\r\n");
    assert_eq!(login.action(), Some(Action::Refused("rlogind: Permission denied.".into())));
    let mut login = Login::new(&opening());
    login.network(b"\x01no end");
    login.network_ended();
    assert_eq!(login.action(), Some(Action::Refused("no end".into())));
    let mut login = Login::new(&opening());
    login.network_ended();
    assert!(matches!(login.action(), Some(Action::Refused(_))));
}

#[test]
fn the_window_is_told_when_asked_and_from_then_on() {
    let mut login = open();
    login.resized(100, 40);
    assert_eq!(drain(&mut login), b"", "not asked yet");
    login.urgent(1);
    login.network(b"\x80login");
    assert_eq!(drain(&mut login), [0xff, 0xff, b's', b's', 0, 40, 0, 100, 0, 0, 0, 0]);
    assert_eq!(login.screen(), b"login");
    login.resized(100, 40);
    assert_eq!(drain(&mut login), b"", "no other than before");
    login.resized(300, 50);
    assert_eq!(drain(&mut login), [0xff, 0xff, b's', b's', 0, 50, 1, 44, 0, 0, 0, 0]);
}

#[test]
fn flush_throws_away_what_was_not_shown() {
    let mut login = open();
    login.network(b"pages and pages");
    login.shown(5);
    // The mark stands behind more data than has come.
    login.urgent(11);
    login.network(b" of te");
    assert_eq!(login.screen(), b" and pages of te");
    login.network(b"xts.\x02^C\r\n$ ");
    assert_eq!(login.screen(), b"^C\r\n$ ");
}

#[test]
fn an_octet_that_is_not_urgent_is_data() {
    let mut login = open();
    login.network(b"x\x80\x02\x10");
    assert_eq!((login.screen(), login.output()), (&b"x\x80\x02\x10"[..], &b""[..]));
    // Of two signals at once the first has lost its mark.
    let mut login = open();
    login.urgent(2);
    login.network(b"\x80\x10$ ");
    assert_eq!((login.screen(), login.output().len()), (&b"$ "[..], 12));
    // Where nothing tells of urgent data, the server's first octet may be its wish to know the window.
    let mut login = Login::new(&Opening { has_urgent: false, ..opening() });
    login.sent(usize::MAX);
    login.network(b"\0");
    login.network(b"\x80$ \x80");
    assert_eq!((login.screen(), login.output().len()), (&b"$ \x80"[..], 12));
}

#[test]
fn stop_and_start_are_the_clients_until_the_server_wants_them() {
    let mut login = open();
    login.typed(b"a\x13");
    login.network(b"text");
    assert_eq!((drain(&mut login), login.screen()), (b"a".to_vec(), &b""[..]));
    login.typed(b"\x11");
    assert_eq!(login.screen(), b"text");
    login.typed(b"\x13");
    login.urgent(1);
    login.network(b"\x10");
    assert_eq!(login.screen(), b"text", "raw mode starts what was stopped");
    login.typed(b"\x13\x11");
    assert_eq!(drain(&mut login), b"\x13\x11");
    login.urgent(1);
    login.network(b"\x20");
    login.typed(b"\x13");
    assert_eq!((drain(&mut login), login.screen()), (b"".to_vec(), &b""[..]));
}

#[test]
fn what_is_not_shown_is_bounded_and_a_signal_still_gets_through() {
    let mut login = open();
    login.typed(b"\x13");
    while login.takes_network() {
        login.network(&[b'x'; 4096]);
    }
    login.urgent(4097);
    assert!(login.takes_network());
    login.network(&[b'x'; 4096]);
    login.network(b"\x02");
    login.typed(b"\x11");
    assert_eq!(login.screen(), b"");
}

#[test]
fn names_cannot_break_the_first_line() {
    let mut login = Login::new(&Opening {
        local_user: "a\0b".into(),
        remote_user: "x".repeat(1000),
        terminal: String::new(),
        ..opening()
    });
    let sent = drain(&mut login);
    assert_eq!(sent.iter().filter(|&&octet| octet == 0).count(), 4);
    assert!(sent.len() < 300);
}

/// What every octet that means something does in every state.
#[test]
fn transition_table() {
    let mut table = String::new();
    for (state, cooked, typed, urgent) in [
        ("cooked, line start", true, &b""[..], false),
        ("cooked, within", true, b"x", false),
        ("cooked, escaped", true, b"~", false),
        ("cooked, stopped", true, b"\x13", false),
        ("raw, line start", false, b"", false),
        ("raw, escaped", false, b"~", false),
        ("cooked, urgent", true, b"", true),
        ("raw, urgent", false, b"", true),
        ("cooked, stopped, urgent", true, b"\x13", true),
    ] {
        let names: [(&str, u8); 9] = match urgent {
            true => [
                ("nothing", 0),
                ("flush", 2),
                ("raw", 0x10),
                ("cooked", 0x20),
                ("window", 0x80),
                ("flush and window", 0x82),
                ("raw and cooked", 0x30),
                ("all", 0xff),
                ("unknown", 1),
            ],
            false => [
                ("letter", b'a'),
                ("return", b'\r'),
                ("tilde", b'~'),
                ("dot", b'.'),
                ("^D", 4),
                ("^Z", 0x1a),
                ("^S", 0x13),
                ("^Q", 0x11),
                ("0x80", 0x80),
            ],
        };
        for (name, octet) in names {
            let mut login = open();
            if !cooked {
                login.urgent(1);
                login.network(b"\x10");
            }
            login.network(b"text");
            login.typed(typed);
            login.sent(usize::MAX);
            match urgent {
                true => {
                    login.urgent(1);
                    login.network(&[octet]);
                }
                false => login.typed(&[octet]),
            }
            let output: Vec<String> = login.output().iter().map(|octet| format!("{octet:02x}")).collect();
            let (screen, action) = (String::from_utf8_lossy(login.screen()).into_owned(), login.action());
            // What comes next shows the state that it is in now.
            login.sent(usize::MAX);
            login.typed(b"\x13");
            let after = if login.output().contains(&0x13) { "raw" } else { "cooked" };
            writeln!(
                table,
                "{state:<24} {name:<17} sends [{}] shows {screen:?} does {action:?} then {after}",
                output.join(" ")
            )
            .unwrap();
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rlogin/table.txt");
    if std::env::var_os("INHOST_BLESS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    assert_eq!(table, include_str!("table.txt"), "INHOST_BLESS=1 writes the new one");
}
