//! Fuzz targets. Random octets go to each machine, in pieces that the octets choose themselves; the invariants are
//! asserted.

use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr};

use crate::client::{Action as ClientAction, Client, DataVia, Operation, Transfer, parse_listing};
use crate::codec::data::{Decoded, Decoder, Encoder};
use crate::codec::{Family, Mode, Parameters, Representation, Structure, parse_facts, parse_time, time_text};
use crate::server::{
    Action, FileReply, LogIn, Rights, ServerConfig, Session, TlsPolicy, TransferError, TransferEvent,
    TransferRequest,
};
use inhost_common::storage::{StorageError, VirtualPath};

/// Octets that a server may say for one command: HELP and FEAT are the longest.
const PER_COMMAND: usize = 2048;
/// How often a client that reads nothing says its words, and what is held for it at most: the limit of replies with the
/// longest reply on top, and input that waits with the lines of it; capacity is twice as much.
const UNREAD_ROUNDS: usize = 64;
const UNREAD_BYTES: usize = 256 * 1024;
/// Deadlines of a session that is left alone: a wrong password's answer, and that it ends.
const UNREAD_DEADLINES: usize = 8;
/// Octets said unasked, and for what is not a command.
const SPARE: usize = 1024;

/// A session whose client, users, files and transfers are the input.
pub fn fuzz_server(input: &[u8]) {
    let mut now = Instant::from_millis(1);
    let mut world = Outside::new(input);
    let mut session = world.session(input, now);
    let mut said = 0;
    for (index, piece) in pieces(input).enumerate() {
        now += Duration::from_millis(u64::from(piece[0]) * 20);
        let chosen = piece.len() + index;
        if session.takes_input() {
            session.network(piece, now);
        }
        world.answer(&mut session, piece.len() + 64, chosen, now);
        session.timeout(now);
        said += session.pending().len();
        session.sent(session.pending().len(), now);
    }
    let lines = input.iter().filter(|&&octet| octet == b'\n').count();
    let options = input.iter().filter(|&&octet| octet == 0xff).count();
    let limit = SPARE + PER_COMMAND * (lines + 1) + 2 * crate::codec::LINE_BYTES * lines + 3 * options;
    assert!(said <= limit, "{said} octets for {} in", input.len());
}

/// A session whose client says the input again and again, and reads nothing.
pub fn fuzz_unread(input: &[u8]) {
    let now = Instant::from_millis(1);
    let mut world = Outside::new(input);
    let mut session = world.session(input, now);
    for round in 0..UNREAD_ROUNDS {
        for (index, piece) in pieces(input).enumerate() {
            if session.takes_input() {
                session.network(piece, now);
            }
            world.answer(&mut session, piece.len() + 64, piece.len() + index + round, now);
            let held = session.held_bytes();
            assert!(held <= UNREAD_BYTES, "{held} octets for a client that reads nothing");
        }
    }
    // It is not kept for ever either; what may come later is for a client that reads.
    let mut last = now;
    for _ in 0..UNREAD_DEADLINES {
        let Some(at) = session.deadline() else { break };
        last = last.max(at);
        session.timeout(last);
        world.answer(&mut session, 64, 1, last);
    }
    let full = !session.takes_events();
    assert!(!full || session.deadline().is_none(), "a client that reads nothing is kept");
}

/// Environment of a session: users, files and transfers.
struct Outside {
    tls: TlsPolicy,
    encrypted: bool,
}

impl Outside {
    fn new(input: &[u8]) -> Outside {
        let tls = match input.first().map(|octet| octet % 3) {
            Some(0) => TlsPolicy::Off,
            Some(1) => TlsPolicy::Offered,
            _ => TlsPolicy::Required,
        };
        Outside { tls, encrypted: false }
    }
    fn session(&self, input: &[u8], now: Instant) -> Session {
        let third_party = input.len().is_multiple_of(2);
        let config = ServerConfig { tls: self.tls, third_party, ..ServerConfig::default() };
        Session::new(Rc::new(config), at(1, 21), at(9, 4000), false, now)
    }
    /// Does what the session asks for, at most so many things; `chosen` says how it ends.
    fn answer(&mut self, session: &mut Session, limit: usize, chosen: usize, now: Instant) {
        for _ in 0..limit {
            let Some(action) = session.action() else { break };
            match action {
                Action::Authenticate { user, .. } => {
                    let is_safe = self.tls != TlsPolicy::Required || self.encrypted;
                    assert!(is_safe, "no password in clear text");
                    let rights = Rights { write: user.len() % 2 == 0 };
                    let account = (chosen.is_multiple_of(5)).then(|| "account".to_owned());
                    let granted = LogIn::Granted { rights, account };
                    session
                        .authenticated(if chosen.is_multiple_of(4) { LogIn::Denied } else { granted }, now);
                }
                Action::StartTls => {
                    self.encrypted = !chosen.is_multiple_of(7);
                    session.tls_started(self.encrypted, now);
                }
                Action::EndTls => {
                    assert!(self.encrypted);
                    self.encrypted = false;
                    session.tls_ended(true, now);
                }
                Action::File(_) if chosen.is_multiple_of(3) => {
                    session.file_done(Err(StorageError::NotFound), now)
                }
                Action::File(_) => session.file_done(Ok(FileReply::Done), now),
                Action::Listen(_) => {
                    session.listening((!chosen.is_multiple_of(6)).then(|| at(1, 30_000)), now)
                }
                Action::Transfer(request) => self.transfer(session, &request, chosen, now),
                Action::Denied | Action::StopListening | Action::AbortTransfer | Action::Close(_) => {}
            }
        }
    }
    fn transfer(&self, session: &mut Session, request: &TransferRequest, chosen: usize, now: Instant) {
        assert!(session.user().is_some(), "no transfer for nobody: {request:?}");
        assert!(request.protected || self.tls != TlsPolicy::Required);
        if chosen.is_multiple_of(2) {
            session.transfer_event(TransferEvent::Opened { size_bytes: Some(1), name: None }, now);
        }
        // The data holds as many markers as it likes; they are reported while there is room.
        for _ in 0..chosen {
            if session.takes_events() {
                session.transfer_event(TransferEvent::Marker { theirs: "m".into(), ours: 1 }, now);
            }
        }
        if !chosen.is_multiple_of(3) {
            let failed = Err(TransferError::Lost("lost".into()));
            let outcome = if chosen.is_multiple_of(5) { failed } else { Ok(1) };
            session.transfer_event(TransferEvent::Ended(outcome), now);
        }
    }
}

fn at(last: u8, port: u16) -> Endpoint {
    Endpoint::new(Ipv4Addr::new(192, 0, 2, last), port)
}

/// A client whose server is the input.
pub fn fuzz_client(input: &[u8]) {
    let mut client = Client::new(if input.len().is_multiple_of(2) { Family::V4 } else { Family::V6 });
    let transfer = || {
        Operation::Transfer(Transfer {
            command: "RETR x".into(),
            parameters: Parameters::IMAGE,
            restart: Some(1),
            size_bytes: Some(2),
            via: if input.len().is_multiple_of(3) { DataVia::Active } else { DataVia::Passive },
        })
    };
    client.begin(Operation::Greet);
    let mut done = 0usize;
    for piece in pieces(input) {
        client.network(piece);
        for _ in 0..piece.len() + 8 {
            match client.action() {
                None => break,
                Some(ClientAction::Done(_)) => {
                    done += 1;
                    let login = || Operation::LogIn { user: "u".into(), password: "p".into(), account: None };
                    client.begin(match done % 5 {
                        1 => Operation::Secure,
                        2 => login(),
                        3 => Operation::Offer(Parameters::IMAGE),
                        4 => Operation::Command("STAT".into()),
                        _ => transfer(),
                    });
                }
                Some(ClientAction::StartTls) => client.tls_started(),
                Some(ClientAction::Listen) => client.listening(Endpoint::new(Ipv4Addr::LOCALHOST, 9)),
                Some(ClientAction::Move) => client.data_ended(Ok(())),
                Some(ClientAction::Connect(_) | ClientAction::DropData) => {}
            }
        }
        client.sent(client.pending().len());
    }
    let text = String::from_utf8_lossy(input);
    for facts in [true, false] {
        for listed in parse_listing(&text, facts).listed {
            assert!(!listed.name.contains('/') && listed.name != "..", "{:?} leads out", listed.name);
        }
    }
    if let Some((facts, _)) = parse_facts(&text)
        && let Some(time) = facts.modified
    {
        assert!(parse_time(&time_text(time)).is_some_and(|again| again.seconds == time.seconds));
    }
    let path = VirtualPath::root().join(&text).relative();
    assert!(path.split('/').all(|part| part != ".."), "{path:?} leads out");
}

/// Data that anybody sent, and a file that is sent and received.
pub fn fuzz_data(input: &[u8]) {
    let Some((&first, rest)) = input.split_first() else { return };
    let representation = match first % 4 {
        0 => Representation::Image,
        1 => Representation::Ebcdic(Default::default()),
        2 => Representation::Local(8),
        _ => Representation::default(),
    };
    let structure = if first & 4 == 0 { Structure::File } else { Structure::Record };
    let mode = [Mode::Stream, Mode::Block, Mode::Compressed][usize::from(first >> 3) % 3];
    let parameters = Parameters { representation, structure, mode };
    let (mut decoder, mut file) = (Decoder::new(parameters), Vec::new());
    'wire: for mut piece in pieces(rest) {
        loop {
            match decoder.decode(&mut piece, &mut file) {
                Ok(Decoded::More) => break,
                Ok(Decoded::Marker(_)) => {}
                Ok(Decoded::End) | Err(_) => break 'wire,
            }
        }
    }
    // A repetition of 63 in two octets is the most that comes of little.
    assert!(file.len() <= 64 * rest.len() + 1);
    let (mut encoder, mut wire) = (Encoder::new(parameters, 0), Vec::new());
    pieces(rest).for_each(|piece| encoder.encode(piece, &mut wire));
    encoder.finish(&mut wire);
    let (mut decoder, mut back) = (Decoder::new(parameters), Vec::new());
    let mut left = &wire[..];
    while !left.is_empty() {
        if decoder.decode(&mut left, &mut back) == Ok(Decoded::End) {
            break;
        }
    }
    assert_eq!(decoder.finish(&mut back), Ok(()));
    // In text CR LF is a line's end, on both sides.
    let is_text = matches!(representation, Representation::Ascii(_)) && structure == Structure::File;
    let expected = if is_text { one_line_end(rest) } else { rest.to_vec() };
    assert_eq!(back, expected, "{parameters:?}");
}

/// The same with LF for CR LF.
pub(crate) fn one_line_end(octets: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(octets.len());
    for &octet in octets {
        if octet == b'\n' && text.last() == Some(&b'\r') {
            text.pop();
        }
        text.push(octet);
    }
    text
}

/// The input in pieces whose lengths are its own octets.
fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = input;
    core::iter::from_fn(move || {
        let first = *rest.first()?;
        let (piece, after) = rest.split_at(rest.len().min(1 + usize::from(first % 64)));
        rest = after;
        Some(piece)
    })
}
