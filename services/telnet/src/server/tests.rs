//! Sessions whose peer reads nothing.

use super::*;
use crate::machine::{OUTPUT_BYTES, REPLY_BURST_BYTES};
use crate::pty::TerminalKeys;
use inhost_base::Instant;
use inhost_common::users::{Account, Verdict};

/// What may wait for such a peer: the limit, the replies that negotiation may draw, and one text.
const LIMIT_BYTES: usize = OUTPUT_BYTES + REPLY_BURST_BYTES as usize + TEXT_BYTES;
/// The longest of the texts here.
const TEXT_BYTES: usize = super::login::TEXT_BYTES;

/// LINEMODE's interrupt character, changed twice.
const LINE_MODE_CHARACTERS: [u8; 18] =
    [255, 250, 34, 3, 3, 2, 9, 255, 240, 255, 250, 34, 3, 3, 2, 8, 255, 240];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Who {
    Visitor,
    User,
    Operator,
}

/// Sends `input` again and again, two megabytes in all, as far as the session takes it. With `urgent`, the mark of a
/// Synch runs ahead of it all the time. Gives the most that waited to be sent.
fn most_waiting(input: &[u8], urgent: bool, who: Who) -> usize {
    let now = Instant::from_millis(1);
    let mut session = Session::new(ServerConfig::default(), now);
    let keys = TerminalKeys::default();
    if who != Who::Visitor {
        let is_operator = who == Who::Operator;
        let command: &[u8] = if is_operator { b"operator" } else { b"logon" };
        session.network(&[command, b" ada\r\nengine\r\n"].concat(), keys, now);
        session.verdict(Verdict::Granted(Account { name: "ada".into(), shell: None, is_operator }));
        if who == Who::User {
            session.shell_started(now);
        }
        while session.action().is_some() {}
    }
    let text = "x".repeat(TEXT_BYTES);
    let read: Vec<u8> = input.iter().copied().cycle().take(2048).collect();
    let mut most = 0;
    for _ in 0..1000 {
        if urgent {
            session.telnet().urgent(1 << 20);
        }
        if session.takes_input() {
            session.network(&read, keys, now);
        }
        while let Some(action) = session.action() {
            match action {
                Action::News | Action::Netstat | Action::Figures | Action::Order(_) => session.reply(&text),
                Action::Close(_) => return most,
                _ => {}
            }
        }
        if session.takes_output(now) {
            session.output(&[b'y'; 2048], now);
        }
        session.resume_typing();
        most = most.max(session.telnet().pending_bytes());
        assert!(session.typed().len() <= 8192, "{} octets wait for the shell", session.typed().len());
    }
    most
}

#[test]
fn a_peer_who_reads_nothing_makes_nothing_grow() {
    const IAC: u8 = 255;
    let inputs: [(&str, &[u8]); 18] = [
        ("sysstat", b"sysstat\r\n"),
        ("help", b"?\r\n"),
        ("news", b"news\r\n"),
        ("netstat", b"netstat\r\n"),
        ("unknown commands", b"x\r\n"),
        ("empty lines", b"\r\n"),
        ("a line shown again", &[b"a".repeat(200), vec![0x12; 1800]].concat()),
        ("erased lines", &[b"a".repeat(200), vec![0x15]].concat()),
        ("interrupt keys", &[3]),
        ("are you there", &[IAC, 246]),
        ("interrupt process", &[IAC, 244]),
        ("abort output", &[IAC, 245]),
        ("erase character and line", &[IAC, 247, IAC, 248]),
        ("end of file", &[IAC, 236]),
        ("negotiation", &[IAC, 253, 3, IAC, 254, 3, IAC, 251, 99, IAC, 253, 6]),
        ("line mode", &[&[IAC, 251, 34][..], &LINE_MODE_CHARACTERS].concat()),
        ("charset", b"\xff\xfd\x2a\xff\xfa\x2a\x01;IBM037\xff\xf0\x88\x85\x93\x97\x0d\x25\xff\xfe\x2a"),
        ("status", &[IAC, 253, 5, IAC, 250, 5, 1, IAC, 240]),
    ];
    for (what, input) in inputs {
        for (urgent, who) in [false, true]
            .into_iter()
            .flat_map(|urgent| [Who::Visitor, Who::User, Who::Operator].map(|who| (urgent, who)))
        {
            let most = most_waiting(input, urgent, who);
            assert!(most <= LIMIT_BYTES, "{what}, urgent {urgent}, {who:?}: {most} octets wait");
        }
    }
}
