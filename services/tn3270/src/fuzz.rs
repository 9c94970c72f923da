//! Fuzz targets. The input is what a peer sends; the invariants are asserted.

use inhost_base::{Instant, IpAddr};

use crate::client::{Printer, Terminal, TerminalConfig};
use crate::codec::{
    Aid, CodePage, Ddm, Inbound, InboundField, ModifiedField, Negotiation, Orders, OutboundField,
    OutboundFields,
};
use crate::machine::{OUTPUT_BYTES, RECORD_BYTES};
use crate::screen::{Key, Model, Screen, ScreenConfig};
use crate::server::{Action, FileAnswer, Input, Next, Panel, Session, SessionConfig, Visitor};
use crate::transfer::{HostKind, TransferCommand};

/// One input, to everything that reads the data stream: a record of a host, and one of a terminal.
pub fn fuzz_tn3270_stream(input: &[u8]) {
    assert!(Orders::new(input).count() <= input.len());
    for field in OutboundFields::new(input).flatten() {
        let mut written = Vec::new();
        field.write(&mut written);
        assert_eq!(OutboundFields::new(&written).next(), Some(Ok(field)));
        if let OutboundField::Ddm(body) = field
            && let Ok(ddm) = Ddm::parse(body)
        {
            let mut written = Vec::new();
            ddm.write(&mut written);
            assert!(!written.is_empty());
        }
    }
    if let Some(negotiation) = Negotiation::parse(input) {
        assert!(Negotiation::parse(&negotiation.body()).is_some());
    }
    if let Ok(Inbound::Fields(fields)) = Inbound::parse(input) {
        for field in fields {
            if let InboundField::Query(reply) = field {
                reply.write(&mut Vec::new());
            }
        }
    }
    let _ = ModifiedField::parse(input);
    let model = Model::ALL[input.len() % 4];
    let mut screen = Screen::new(ScreenConfig::new(model));
    // Records are separated by an octet that no command has.
    for record in input.split(|&octet| octet == 0xfe) {
        if let Ok(Some(answer)) = screen.receive(record) {
            assert!(Inbound::parse(&answer).is_ok());
        }
        let _ = screen.press(Key::Reset);
        for key in [Key::Tab, Key::Insert, Key::Character('a'), Key::Delete, Key::NewLine, Key::EraseEof] {
            let _ = screen.press(key);
        }
        assert!(screen.cursor() < screen.positions());
        assert_eq!(screen.cells().len(), usize::from(screen.positions()));
    }
    assert!(Inbound::parse(&screen.read_buffer(Aid::Enter)).is_ok());
    let snapshot = screen.snapshot();
    assert!(snapshot.text.iter().all(|line| !line.chars().any(char::is_control)));
    assert!(snapshot.fields.iter().all(|field| !field.text.chars().any(char::is_control)));
    if let Ok(command) = String::from_utf8_lossy(input).parse::<TransferCommand>() {
        assert!(!command.name.is_empty());
        let _ = command.typed(HostKind::Vm);
    }
}

/// One input, to the terminal and to the printer, as a host's octets.
pub fn fuzz_tn3270_client(input: &[u8]) {
    let config = TerminalConfig { has_tn3270e: input.len().is_multiple_of(2), ..TerminalConfig::default() };
    let (mut terminal, mut printer) = (Terminal::new(config), Printer::new(None, CodePage::Cp037));
    let command = "IND$FILE GET x".parse().ok();
    for piece in input.chunks(17) {
        terminal.receive(&mut &*piece);
        printer.receive(&mut &*piece);
        // One answer may go beyond the room, but not another one.
        assert!(terminal.pending().len() <= OUTPUT_BYTES + 2 * RECORD_BYTES);
        terminal.sent(usize::MAX);
        printer.sent(usize::MAX);
        let _ = terminal.press(Key::Enter);
        if let Some(command) = &command {
            let _ = terminal.transfer(command, &[]);
        }
        let _ = (terminal.take_transfer(), printer.take_job());
    }
    assert!(!terminal.nvt_text().chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
}

/// One input, to a session of the server, as a client's octets.
pub fn fuzz_tn3270_server(input: &[u8]) {
    let mut session = Session::new(SessionConfig::default());
    let now = Instant::ZERO;
    session.start(now);
    for mut piece in input.chunks(29) {
        for _ in 0..64 {
            session.receive(&mut piece, now);
            match session.action() {
                None => break,
                Some(Action::Device { .. }) => session.device(Ok("LU001")),
                Some(Action::Ready { device_type, .. }) => {
                    assert!(!device_type.chars().any(char::is_control));
                    let _ = Visitor::new(IpAddr::from([127, 0, 0, 1]), &device_type, "LU001");
                }
                Some(Action::Ask(entered)) => {
                    assert!(entered.values.values().all(|value| value.chars().count() <= 80));
                    let input = Input::new("field", 1, 10, 8).holding(entered.value("field"));
                    let panel = Panel::new("FORM", "Form").input(input).with_command();
                    session.next(Next::Show(Box::new(panel)), now);
                }
                Some(Action::File(_)) => session.file(FileAnswer::Data(vec![1, 2, 3]), now),
                Some(_) => {}
            }
        }
        session.sent(usize::MAX);
    }
}
