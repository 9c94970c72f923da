//! Sessions whose peer reads nothing.

use super::*;
use crate::machine::{OUTPUT_BYTES, REPLY_BURST_BYTES};
use crate::pty::TerminalKeys;
use inhost_base::Instant;
use inhost_common::users::{Account, Verdict};

/// What may wait for such a peer: the limit, the replies that negotiation may draw, and one text.
const LIMIT_BYTES: usize = OUTPUT_BYTES + REPLY_BURST_BYTES as usize + TEXT_BYTES;
/// The longest of the texts here.
const TEXT_BYTES: usize = 16 << 10;

/// Sends `input` again and again, two megabytes in all, as far as the session takes it. With `urgent`, the mark of a
/// Synch runs ahead of it all the time. Gives the most that waited to be sent.
fn most_waiting(input: &[u8], urgent: bool, logged_in: bool) -> usize {
    let now = Instant::from_millis(1);
    let mut session = Session::new(ServerConfig::default(), now);
    let keys = TerminalKeys::default();
    if logged_in {
        session.network(b"logon ada\r\nengine\r\n", keys, now);
        session.verdict(Verdict::Granted(Account { name: "ada".into(), shell: None }));
        session.shell_started(now);
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
                Action::News | Action::Netstat => session.reply(&text),
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
    let inputs: [(&str, &[u8]); 15] = [
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
        ("status", &[IAC, 253, 5, IAC, 250, 5, 1, IAC, 240]),
    ];
    for (what, input) in inputs {
        for (urgent, logged_in) in [(false, false), (true, false), (false, true), (true, true)] {
            let most = most_waiting(input, urgent, logged_in);
            assert!(
                most <= LIMIT_BYTES,
                "{what}, urgent {urgent}, logged in {logged_in}: {most} octets wait"
            );
        }
    }
}
