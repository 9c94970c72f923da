//! Fuzz targets. Random octets go to both roles, in pieces and with urgent marks that the octets choose themselves; the
//! invariants are asserted.

use core::num::NonZeroU8;
use std::collections::VecDeque;

use inhost_base::{Duration, Instant};

use crate::client::{ClientAction, Console, Emulation, SessionId, Settings, Start};
use crate::codec::Charset;
use crate::machine::{Config, Event, OUTPUT_BYTES, REPLY_BURST_BYTES, Telnet};
use crate::pty::TerminalKeys;
use crate::server::{Action, ServerConfig, Session};
use crate::translation::{OCTETS, SEQUENCE_BYTES, TABS, Table, Translation};
use inhost_common::users::{Account, Verdict};

/// Octets that a machine may say unasked at its start, and a client's console or a server's dialogue in
/// answer to one octet.
const START_BYTES: usize = 512;
const PER_OCTET: usize = 16;
/// Screen octets for a HELP that one typed line draws.
const PER_LINE: usize = 1024;

/// Pieces of input that a peer who reads nothing sends.
const PIECES_UNREAD: usize = 100;
/// Lines of the longest text that a host tells.
const TEXT_LINES: usize = 100;
/// Octets of the shell's output in one read.
const UNREAD_PIECE: usize = 2048;
/// What may wait for a peer who reads nothing: the limit, and what one key, one read or one text goes beyond it.
const UNREAD_BYTES: usize = OUTPUT_BYTES + 2 * UNREAD_PIECE + 28 * TEXT_LINES;
/// What may wait for a screen that takes nothing: the limit, and one read of the most talkative octets.
const SCREEN_UNREAD_BYTES: usize = 96 * 1024;
/// The client's escape key.
const ESCAPE: u8 = 0x1d;

/// One input, to every machine that reads from the network.
pub fn fuzz_protocol(input: &[u8]) {
    machine(Config::server(), input);
    machine(Config::client("xterm"), input);
    server(input);
    client(input);
    translation(input);
}

/// The same, to machines whose output nobody reads.
pub fn fuzz_unread(input: &[u8]) {
    server_unread(input, false);
    server_unread(input, true);
    client_unread(input);
}

/// The bare machine: data never exceeds the input, replies never the budget, and the queue empties.
fn machine(config: Config, input: &[u8]) {
    let mut telnet = Telnet::new(config);
    telnet.start();
    let (mut data_bytes, mut text_bytes, mut output_bytes) = (0, 0, drain(&mut telnet));
    assert!(output_bytes <= START_BYTES);
    output_bytes = 0;
    for piece in pieces(input) {
        if let [first, _, third, ..] = piece
            && first % 8 == 0
        {
            telnet.urgent(usize::from(*third));
        }
        let mut rest = piece;
        while let Some(event) = telnet.receive(&mut rest) {
            match event {
                Event::Data(data) => data_bytes += data.len(),
                Event::Text(text) => text_bytes += text.len(),
                Event::Violation(_) => break,
                _ => {}
            }
        }
        output_bytes += drain(&mut telnet);
    }
    assert!(data_bytes <= input.len());
    assert!(text_bytes <= 3 * input.len());
    assert!(output_bytes <= REPLY_BURST_BYTES as usize, "{output_bytes} octets of replies");
}

/// A table that the input is, and text of an application and of its caller that it is: growth has its limits.
fn translation(input: &[u8]) {
    let charset = Charset::ALL[input.len() % Charset::ALL.len()];
    let table = Table::parse(&String::from_utf8_lossy(input), charset).unwrap_or_default();
    let mut translator = Translation { charset, tabs: NonZeroU8::new(TABS), table }.start();
    assert!(translator.shown(input).len() <= SEQUENCE_BYTES * input.len());
    let mut octets = VecDeque::new();
    input.iter().for_each(|&octet| translator.typed(octet, &TerminalKeys::default(), &mut octets));
    assert!(octets.len() <= OCTETS * input.len());
}

/// A whole server session, whose shell says nothing and whose verdict the input chooses.
fn server(input: &[u8]) {
    let mut now = Instant::from_millis(1);
    let mut session = Session::new(ServerConfig::default(), now);
    let mut output_bytes = drain(session.telnet());
    for piece in pieces(input) {
        now += Duration::from_millis(1);
        session.network(piece, TerminalKeys::default(), now);
        while let Some(action) = session.action() {
            match action {
                Action::Authenticate { user, .. } if piece.len() % 2 == 0 => {
                    session.verdict(Verdict::Granted(Account {
                        name: user,
                        shell: None,
                        is_operator: piece.len() % 4 == 0,
                    }));
                }
                Action::Authenticate { .. } => session.verdict(Verdict::Denied),
                Action::News | Action::Netstat | Action::Figures | Action::Order(_) => session.reply("text"),
                Action::StartShell(_) => session.shell_started(now),
                Action::Denied { .. } => session.resume(),
                _ => {}
            }
        }
        let typed = session.typed().len();
        session.taken(typed);
        output_bytes += drain(session.telnet());
    }
    let lines = input.iter().filter(|&&octet| octet == b'\r' || octet == b'\n' || octet >= 0xec).count();
    let limit = START_BYTES + REPLY_BURST_BYTES as usize + PER_OCTET * input.len() + PER_LINE * lines;
    assert!(output_bytes <= limit + PER_LINE, "{output_bytes} octets for {} in", input.len());
}

/// A server session whose peer reads nothing: the input comes again and again, as far as the session takes it, and what
/// waits to be sent stays within its limit. With a `shell`, somebody is logged in, and the shell has much to say.
fn server_unread(input: &[u8], shell: bool) {
    let mut now = Instant::from_millis(1);
    let mut session = Session::new(ServerConfig::default(), now);
    if shell {
        session.network(b"logon ada\r\nengine\r\n", TerminalKeys::default(), now);
        session.verdict(Verdict::Granted(Account {
            name: "ada".to_owned(),
            shell: None,
            is_operator: false,
        }));
        session.shell_started(now);
    }
    let text = "A text of the host's own.\n".repeat(TEXT_LINES);
    for piece in pieces(input).cycle().take(PIECES_UNREAD) {
        now += Duration::from_millis(1);
        if let [first, _, third, ..] = piece
            && first % 8 == 0
        {
            session.telnet().urgent(usize::from(*third) << 8);
        }
        if session.takes_input() {
            session.network(piece, TerminalKeys::default(), now);
        }
        while let Some(action) = session.action() {
            match action {
                Action::Authenticate { .. } => session.verdict(Verdict::Busy),
                Action::News | Action::Netstat | Action::Figures | Action::Order(_) => session.reply(&text),
                Action::Close(_) => return,
                _ => {}
            }
        }
        if session.takes_output(now) {
            session.output(&[b'y'; UNREAD_PIECE], now);
        }
        session.resume_typing();
        let (waiting, typed) = (session.telnet().pending_bytes(), session.typed().len());
        assert!(waiting <= UNREAD_BYTES + REPLY_BURST_BYTES as usize, "{waiting} octets wait to be sent");
        assert!(typed <= UNREAD_BYTES, "{typed} octets wait for the shell");
    }
}

/// A client whose server reads nothing and whose screen takes nothing.
fn client_unread(input: &[u8]) {
    let Some((mut console, id)) = opened() else { return };
    for (index, piece) in pieces(input).cycle().take(PIECES_UNREAD).enumerate() {
        let now = Instant::from_millis(index as u64);
        if index % 3 == 2 && console.takes_keys() {
            // The user stays with the session: each command at the command level is typed by a person.
            let keys: Vec<u8> = piece.iter().copied().filter(|&key| key != ESCAPE).collect();
            console.typed(&keys);
        } else if console.takes_input(id) {
            console.network(id, piece, now);
        }
        while console.action().is_some() {}
        let Some(connection) = console.connection(id) else { return };
        let waiting = connection.telnet().pending_bytes();
        assert!(waiting <= UNREAD_BYTES + REPLY_BURST_BYTES as usize, "{waiting} octets wait to be sent");
        let shown = console.screen().len();
        assert!(shown <= SCREEN_UNREAD_BYTES, "{shown} octets wait for the screen");
    }
}

/// A client whose keys and whose server are the input both.
fn client(input: &[u8]) {
    let Some((mut console, id)) = opened() else { return };
    let mut output_bytes = 0;
    for (index, piece) in pieces(input).enumerate() {
        if index % 3 == 2 {
            console.typed(piece);
        } else {
            console.network(id, piece, Instant::from_millis(1));
        }
        while console.action().is_some() {}
        console.shown(usize::MAX);
        if let Some(connection) = console.connection(id) {
            output_bytes += drain(connection.telnet());
        }
    }
    let limit = START_BYTES + REPLY_BURST_BYTES as usize + PER_OCTET * input.len();
    assert!(output_bytes <= limit, "{output_bytes} octets for {} in", input.len());
}

/// A client with one open session.
fn opened() -> Option<(Console, SessionId)> {
    let start = Start {
        open: Some(("host".to_owned(), 23)),
        config: Config::client("xterm"),
        settings: Settings { emulation: Emulation::Heath19, ..Settings::default() },
        window: (80, 24),
    };
    let mut console = Console::new(start);
    let Some(ClientAction::Connect { id, .. }) = console.action() else { return None };
    console.opened(id, "192.0.2.1");
    Some((console, id))
}

fn drain(telnet: &mut Telnet) -> usize {
    let count = telnet.pending_bytes();
    while telnet.pending_bytes() > 0 {
        let sent = telnet.pending().0.len();
        telnet.sent(sent);
    }
    count
}

/// The input in pieces whose lengths are its own octets.
fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = input;
    core::iter::from_fn(move || {
        let first = *rest.first()?;
        let (piece, after) = rest.split_at(rest.len().min(1 + usize::from(first % 32)));
        rest = after;
        Some(piece)
    })
}
