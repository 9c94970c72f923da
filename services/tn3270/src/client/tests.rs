use inhost_base::Instant;

use super::*;
use crate::codec::*;
use crate::machine::{Event, OUTPUT_BYTES, ServerConfig, Tn3270};
use crate::screen::{Key, Keyboard};
use crate::transfer::{Direction, TransferCommand};

/// A host and a terminal that are ready. `functions` are the host's.
fn pair(functions: Functions) -> (Tn3270, Terminal) {
    let config = ServerConfig { functions, ..ServerConfig::default() };
    let (mut host, mut terminal) = (Tn3270::server(config), Terminal::new(TerminalConfig::default()));
    host.start();
    while !terminal.is_ready() || !host.pending().is_empty() {
        carry(&mut host, &mut terminal);
    }
    (host, terminal)
}

/// Carries octets both ways once, and gives the host's events.
pub(super) fn carry(host: &mut Tn3270, terminal: &mut Terminal) -> Vec<Event> {
    terminal.receive(&mut host.pending());
    host.sent(usize::MAX);
    let octets = terminal.pending().to_vec();
    terminal.sent(octets.len());
    let (mut input, mut events) = (&octets[..], Vec::new());
    while let Some(event) = host.receive(&mut input) {
        if matches!(event, Event::DeviceRequested { .. }) {
            host.accept_device("LU001");
        }
        events.push(event);
    }
    events
}

fn records(events: Vec<Event>) -> Vec<Vec<u8>> {
    events
        .into_iter()
        .filter_map(|event| match event {
            Event::Record { data, .. } => Some(data),
            _ => None,
        })
        .collect()
}

pub(super) fn send(host: &mut Tn3270, terminal: &mut Terminal, record: &[u8]) -> Vec<Event> {
    host.send_record(DataType::Data3270, RESPONSE_ALWAYS, record);
    carry(host, terminal)
}

#[test]
fn records_are_responded_to() {
    let (mut host, mut terminal) = pair(Functions::of(&[Function::Responses]));
    let ok = |sequence| Event::Response { sequence, outcome: Ok(()) };
    assert_eq!(send(&mut host, &mut terminal, &[0xf5, 0xc3, 0xc8]), [ok(0)]);
    let bad = |sequence, sense| Event::Response { sequence, outcome: Err(sense) };
    assert_eq!(send(&mut host, &mut terminal, &[0x77]), [bad(1, Sense::CommandReject)]);
    assert_eq!(send(&mut host, &mut terminal, &[0xf1, 0xc3, 0x11]), [bad(2, Sense::OperationCheck)]);
    assert_eq!(terminal.errors(), 2);
}

#[test]
fn text_before_3270_mode_is_clean_and_bounded() {
    let mut terminal = Terminal::new(TerminalConfig::default());
    terminal.receive(&mut &b"Welcome\r\n\x1b[2Jto \xe4 host\r\n"[..]);
    assert_eq!(terminal.nvt_text(), "Welcome\n\u{fffd}[2Jto ä host\n");
    for _ in 0..1000 {
        terminal.receive(&mut "ü and more text\r\n".as_bytes());
    }
    assert!((NVT_BYTES - 4..=NVT_BYTES).contains(&terminal.nvt_text().len()));
    assert_eq!(terminal.press(Key::Enter), Err(PressError::NotReady));
}

/// spec: RFC2355 9
#[test]
fn before_a_bind_keys_go_to_the_sscp() {
    let (mut host, mut terminal) = pair(Functions::ALL);
    host.send_record(DataType::SscpLu, RESPONSE_NONE, &CodePage::Cp037.encode("LOGON?\u{85}"));
    carry(&mut host, &mut terminal);
    assert_eq!(terminal.screen().line(0).trim_end(), "LOGON?");
    assert_eq!(terminal.press(Key::Pf(3)), Err(PressError::NotReady));
    terminal.type_text("tso").unwrap();
    terminal.press(Key::Enter).unwrap();
    let events = carry(&mut host, &mut terminal);
    let [Event::Record { header, data }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((header.data_type, CodePage::Cp037.decode(data)), (DataType::SscpLu, "tso".into()));
    host.send_record(DataType::BindImage, RESPONSE_NONE, &[0x31]);
    host.send_record(DataType::Data3270, RESPONSE_NONE, &[0xf5, 0xc3]);
    carry(&mut host, &mut terminal);
    terminal.press(Key::Pf(3)).unwrap();
    assert_eq!(records(carry(&mut host, &mut terminal)), [vec![0xf3, 0x40, 0x40]]);
}

pub(super) fn fields(all: &[Ddm<'_>]) -> Vec<u8> {
    let mut record = vec![0xf3];
    all.iter().for_each(|ddm| ddm.write(&mut record));
    record
}

pub(super) fn ready_to_transfer() -> (Tn3270, Terminal) {
    let (mut host, mut terminal) = pair(Functions::NONE);
    send(&mut host, &mut terminal, &[0xf5, 0xc3]);
    (host, terminal)
}

#[test]
fn a_host_can_read_a_piece_again() {
    let (mut host, mut terminal) = ready_to_transfer();
    let command = TransferCommand::binary(Direction::Upload, "x");
    terminal.transfer(&command, b"some data").unwrap();
    assert_eq!(terminal.press(Key::Enter), Err(PressError::Transfer));
    let typed = records(carry(&mut host, &mut terminal));
    assert!(CodePage::Cp037.decode(&typed[0]).ends_with("IND$FILE PUT x"));
    let open = fields(&[Ddm::Open { name: *OPEN_DATA, is_upload: true }]);
    assert_eq!(records(send(&mut host, &mut terminal, &open)).len(), 1);
    let get = records(send(&mut host, &mut terminal, &fields(&[Ddm::SetCursor, Ddm::Get])));
    // Read Modified gives the same once more, without going on.
    assert_eq!(records(send(&mut host, &mut terminal, &[0xf6])), get);
    let end = records(send(&mut host, &mut terminal, &fields(&[Ddm::Get])));
    let Ok(Inbound::Fields(fields)) = Inbound::parse(&end[0]) else { panic!() };
    let [InboundField::Ddm(body)] = fields[..] else { panic!() };
    assert_eq!(Ddm::parse(body), Ok(Ddm::Error { request: 0x46, error: DdmError::EndOfFile }));
}

#[test]
fn what_a_host_says_of_a_transfer_is_clean() {
    let (mut host, mut terminal) = ready_to_transfer();
    terminal.transfer(&TransferCommand::binary(Direction::Download, "x"), &[]).unwrap();
    send(&mut host, &mut terminal, &fields(&[Ddm::Open { name: *OPEN_MESSAGE, is_upload: false }]));
    let message = Ddm::InsertData(b"TRANS17 \x1b[2Jno such file$ and more");
    send(&mut host, &mut terminal, &fields(&[Ddm::Insert, message]));
    let outcome = terminal.take_transfer().unwrap();
    assert_eq!(outcome, Err(TransferError::Host("TRANS17 \u{fffd}[2Jno such file".into())));
    assert!(!terminal.is_transferring());
}

#[test]
fn a_host_that_asks_for_what_was_not_offered_is_refused() {
    let (mut host, mut terminal) = ready_to_transfer();
    let refused = |records: Vec<Vec<u8>>| {
        let Ok(Inbound::Fields(fields)) = Inbound::parse(&records[0]) else { panic!() };
        let [InboundField::Ddm(body)] = fields[..] else { panic!() };
        matches!(Ddm::parse(body), Ok(Ddm::Error { error: DdmError::Failed, .. }))
    };
    // Nobody has asked for a transfer.
    let open = fields(&[Ddm::Open { name: *OPEN_DATA, is_upload: true }]);
    assert!(refused(records(send(&mut host, &mut terminal, &open))));
    // A download is asked for, and the host wants a file.
    terminal.transfer(&TransferCommand::binary(Direction::Download, "x"), &[]).unwrap();
    carry(&mut host, &mut terminal);
    send(&mut host, &mut terminal, &open);
    assert!(refused(records(send(&mut host, &mut terminal, &fields(&[Ddm::Get])))));
    // A file that never ends is refused in time.
    let piece = vec![0; 32_000];
    let mut pieces = 0;
    loop {
        let answer = records(send(&mut host, &mut terminal, &fields(&[Ddm::InsertData(&piece)])));
        if refused(answer) {
            break;
        }
        pieces += 1;
    }
    assert_eq!(pieces, TRANSFER_BYTES / piece.len());
}

#[test]
fn a_file_that_is_too_large_is_not_sent() {
    let (_, mut terminal) = ready_to_transfer();
    let file = vec![0; TRANSFER_BYTES + 1];
    let outcome = terminal.transfer(&TransferCommand::binary(Direction::Upload, "x"), &file);
    assert_eq!(outcome, Err(StartError::File(TransferError::TooLarge)));
    assert_eq!(terminal.screen().keyboard(), Keyboard::Unlocked);
}

/// A host that asks and does not read: each request of a few octets is answered by a screen.
#[test]
fn a_host_that_asks_and_never_reads_costs_bounded_memory() {
    let (mut host, mut terminal) = pair(Functions::NONE);
    let mut screen = vec![0xf5, 0xc3];
    screen.extend([0xc1; 1920]);
    send(&mut host, &mut terminal, &screen);
    for _ in 0..10_000 {
        host.send_record(DataType::Data3270, RESPONSE_NONE, &[0xf2]);
    }
    let mut input = host.pending();
    terminal.receive(&mut input);
    assert!(!input.is_empty());
    assert!((OUTPUT_BYTES..OUTPUT_BYTES + 4096).contains(&terminal.pending().len()));
    // It goes on where it was.
    let mut answers = 0;
    loop {
        let ends = terminal.pending().windows(2).filter(|pair| *pair == [0xff, 0xef]);
        answers += ends.count();
        terminal.sent(usize::MAX);
        if input.is_empty() {
            break;
        }
        terminal.receive(&mut input);
    }
    assert_eq!(answers, 10_000);
}

/// One record of a file transfer that asks for thousands of pieces.
#[test]
fn a_record_that_asks_for_many_pieces_costs_bounded_memory() {
    let (mut host, mut terminal) = ready_to_transfer();
    terminal.transfer(&TransferCommand::binary(Direction::Upload, "x"), &vec![7; 4 << 20]).unwrap();
    carry(&mut host, &mut terminal);
    send(&mut host, &mut terminal, &fields(&[Ddm::Open { name: *OPEN_DATA, is_upload: true }]));
    host.send_record(DataType::Data3270, RESPONSE_NONE, &fields(&[Ddm::Get; 5000]));
    terminal.receive(&mut host.pending());
    assert!(terminal.pending().len() < OUTPUT_BYTES + (64 << 10));
}

#[test]
fn a_printer_prints_buffers_and_scs() {
    let mut host = Tn3270::server(ServerConfig::default());
    let mut printer = Printer::new(None, CodePage::Cp037);
    host.start();
    let mut events = Vec::new();
    let mut carry = |host: &mut Tn3270, printer: &mut Printer| {
        printer.advance(Instant::ZERO);
        printer.receive(&mut host.pending());
        host.sent(usize::MAX);
        let octets = printer.pending().to_vec();
        printer.sent(octets.len());
        let mut input = &octets[..];
        while let Some(event) = host.receive(&mut input) {
            if matches!(event, Event::DeviceRequested { .. }) {
                host.accept_device("PR001");
            }
            events.push(event);
        }
    };
    for _ in 0..4 {
        carry(&mut host, &mut printer);
    }
    assert!(printer.is_ready());
    let page = CodePage::Cp037;
    let scs = [page.encode("one"), vec![0x15], page.encode("two"), vec![0x0c]].concat();
    host.send_record(DataType::Scs, RESPONSE_ALWAYS, &scs);
    let buffer = [vec![0xf5, 0xc8], page.encode("three")].concat();
    host.send_record(DataType::Data3270, RESPONSE_ALWAYS, &buffer);
    host.send_record(DataType::Data3270, RESPONSE_ALWAYS, &[0x77]);
    host.send_record(DataType::PrintEoj, RESPONSE_NONE, &[]);
    host.send_record(DataType::Scs, RESPONSE_NONE, &page.encode("four"));
    carry(&mut host, &mut printer);
    assert_eq!(printer.take_job(), Some(vec!["one".to_owned(), "two".into(), "three".into()]));
    assert_eq!(printer.take_job(), None);
    // The host closes without an end of the job.
    printer.finish();
    assert_eq!(printer.take_job(), Some(vec!["four".to_owned()]));
    printer.finish();
    assert_eq!(printer.take_job(), None);
    let responses: Vec<bool> = events
        .iter()
        .filter_map(|event| match event {
            Event::Response { outcome, .. } => Some(outcome.is_ok()),
            _ => None,
        })
        .collect();
    assert_eq!(responses, [true, true, false]);
}
