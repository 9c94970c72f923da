//! Fuzz targets. The input is what a server says, and what the keyboard does; the invariants are asserted.

use crate::codec::ReplyReader;
use crate::rcp::{Event, Expected, Options, Sink, check};
use crate::rlogin::{Action, Login, Opening};
use crate::server;
use inhost_base::Instant;
use inhost_common::users::Verdict;
use inhost_telnet::pty::TerminalKeys;

/// One input to a session: pieces for the network, marked urgent or not, keys, and changes of the window.
pub fn fuzz_rlogin(input: &[u8]) {
    let opening = Opening {
        local_user: "ada".into(),
        remote_user: "charles".into(),
        terminal: "xterm".into(),
        speed: 38_400,
        window: (80, 24),
        escape: Some(b'~'),
        has_urgent: !input.len().is_multiple_of(3),
    };
    let mut login = Login::new(&opening);
    let (mut network_bytes, mut screen_bytes, mut output_bytes) = (0, 0, login.output().len());
    login.sent(output_bytes);
    output_bytes = 0;
    let mut rest = input;
    let (mut controls, mut keys) = (0, 0);
    while let [what, after @ ..] = rest {
        let (piece, after) = after.split_at(after.len().min(usize::from(what / 8)));
        rest = after;
        match what % 8 {
            0 => {
                login.typed(piece);
                keys += piece.len();
            }
            1 => {
                login.resized(u16::from(*what), piece.len() as u16);
                controls += 1;
            }
            2 => login.urgent(piece.len() / 2),
            3 => login.urgent(piece.len()),
            _ => {
                login.network(piece);
                network_bytes += piece.len();
                controls += piece.iter().filter(|&&octet| octet & 0x80 != 0).count();
            }
        }
        output_bytes += login.output().len();
        login.sent(usize::MAX);
        screen_bytes += login.screen().len();
        login.shown(login.screen().len());
        match login.action() {
            Some(Action::Quit | Action::Refused(_)) => break,
            Some(Action::Suspend) | None => {}
        }
    }
    assert!(screen_bytes <= network_bytes);
    assert!(output_bytes <= 2 * keys + 12 * controls, "{output_bytes} octets out");
    login.network_ended();
}

/// One input to the servers: what a client of rlogin or rsh says, in pieces.
pub fn fuzz_rservers(input: &[u8]) {
    let now = Instant::from_millis(1);
    let mut session = server::Session::new(server::SessionConfig::default(), now);
    let (mut sent_bytes, mut typed_bytes) = (0, 0);
    for piece in input.chunks(1 + input.len() % 7) {
        session.network(piece, TerminalKeys::default(), now);
        while let Some(action) = session.action() {
            match action {
                server::Action::Decide { client_user, .. } => {
                    session.decide(Some(client_user.len() % 2 == 0))
                }
                server::Action::Authenticate { .. } => session.verdict(Verdict::Denied),
                server::Action::Denied { .. } => session.denied(),
                server::Action::StartShell(request) => {
                    assert!(request.terminal.len() <= 40 && !request.account.name.is_empty());
                    session.shell_started(false, now);
                }
                _ => {}
            }
        }
        typed_bytes += session.typed().len();
        session.taken(usize::MAX);
        sent_bytes += session.pending_bytes();
        session.sent(usize::MAX);
    }
    assert!(typed_bytes <= input.len());
    assert!(sent_bytes <= 256 + input.len(), "{sent_bytes} octets out");
    session.end_input();

    let (mut request, mut rest) = (server::Request::default(), input);
    while request.take(&mut rest) == Ok(true) && request.who_and_what().is_none() {}
    if let Some((client_user, server_user, command)) = request.who_and_what() {
        assert!(client_user.len() + server_user.len() + command.len() <= input.len());
    }
}

/// One input to the end of rcp that gets files, whose folder takes or refuses as the input chooses.
pub fn fuzz_rcp(input: &[u8]) {
    for options in [Options::default(), Options { recursive: true, preserve: true }] {
        for expected in [Expected::Any, Expected::of("dir/f*")] {
            sink(options, expected, input);
        }
    }
    let _ = Expected::of(&String::from_utf8_lossy(input)).allows(input);
}

fn sink(options: Options, expected: Expected, input: &[u8]) {
    let mut sink = Sink::new(options, expected.clone());
    let (mut depth, mut data_bytes, mut promised_bytes, mut answers) = (0usize, 0, 0u64, sink.output().len());
    let mut rest = input;
    while let Some(event) = sink.receive(&mut rest) {
        // Names of an odd length are taken, and what has none; `None` when there is nothing to decide.
        let verdict = match event {
            Event::Enter { name, mode, .. } => {
                assert!(options.recursive && check(&name).is_ok() && mode <= 0o777);
                assert!(depth > 0 || expected.allows(&name));
                let taken = name.len() % 2 == 1;
                depth += usize::from(taken);
                Some(taken)
            }
            Event::Leave => {
                assert!(depth > 0, "out of the folder that was to be filled");
                depth -= 1;
                Some(true)
            }
            Event::Begin { name, mode, size_bytes, .. } => {
                assert!(check(&name).is_ok() && mode <= 0o777);
                assert!(depth > 0 || expected.allows(&name));
                let taken = name.len() % 2 == 1;
                promised_bytes = promised_bytes.saturating_add(if taken { size_bytes } else { 0 });
                Some(taken)
            }
            Event::Data(data) => {
                data_bytes += data.len();
                assert!(data_bytes as u64 <= promised_bytes);
                None
            }
            Event::Finished | Event::Spoiled(_) => Some(true),
            Event::Warning(_) | Event::Refused(..) => None,
            Event::Failed(_) => {
                assert!(sink.receive(&mut rest).is_none());
                break;
            }
        };
        if verdict.is_some() {
            assert!(sink.receive(&mut rest).is_none(), "it waits for a word");
        }
        match verdict {
            Some(true) => sink.accept(),
            Some(false) => sink.refuse("no"),
            None => {}
        }
        answers += sink.output().len();
    }
    assert!(answers <= 1 + 128 * (input.len() + 1));
    let _ = sink.end();
    let mut answer = ReplyReader::default();
    let mut rest = input;
    while answer.take(&mut rest).is_some() {}
}
