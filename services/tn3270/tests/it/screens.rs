//! Our screen beside s3270's, position by position: the same records, the same keys, the same answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use inhost_base::Random;
use inhost_interop::DEADLINE;
use inhost_tn3270::codec::{
    AttributePair, AttributeType, Attributes, Color, Command, DataType, FieldAttribute, Function, Functions,
    Highlight, OutboundField, QueryRequest, RESPONSE_ALWAYS, ReplyMode, StreamWriter, WriteControl,
};
use inhost_tn3270::machine::{Event, ServerConfig, Tn3270};
use inhost_tn3270::screen::{Cell, Key, Model, Screen, ScreenConfig};

use crate::s3270::S3270;

/// A host that sends what a test wants.
struct RawHost {
    machine: Tn3270,
    stream: TcpStream,
    events: Vec<Event>,
}

impl RawHost {
    fn accept(listener: &TcpListener) -> RawHost {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        // Without BIND image records can be sent at once.
        let mut config = ServerConfig::default();
        config.functions = Functions::of(&[Function::Responses]);
        let mut host = RawHost { machine: Tn3270::server(config), stream, events: Vec::new() };
        host.machine.start();
        while !host.machine.is_ready() {
            host.exchange();
        }
        host.events.clear();
        // s3270 takes commands once something was written.
        host.send(&[0xf5, 0xc2]).unwrap();
        host
    }
    fn flush(&mut self) {
        let octets = self.machine.pending().to_vec();
        self.stream.write_all(&octets).unwrap();
        self.machine.sent(octets.len());
    }
    fn exchange(&mut self) {
        self.flush();
        let mut buffer = [0; 8192];
        let count = self.stream.read(&mut buffer).unwrap();
        assert!(count > 0, "s3270 has closed");
        let mut input = &buffer[..count];
        while let Some(event) = self.machine.receive(&mut input) {
            if matches!(event, Event::DeviceRequested { .. }) {
                self.machine.accept_device("LU001");
            }
            self.events.push(event);
        }
        self.flush();
    }
    fn next(&mut self) -> Event {
        while self.events.is_empty() {
            self.exchange();
        }
        self.events.remove(0)
    }
    /// Sends a record, and gives what comes of it: an answer, or whether it was executed.
    fn send(&mut self, record: &[u8]) -> Result<Option<Vec<u8>>, ()> {
        let is_read = matches!(record[0], 0xf2 | 0xf6 | 0x6e) || record.starts_with(&[0xf3, 0, 5, 1]);
        self.machine.send_record(DataType::Data3270, RESPONSE_ALWAYS, record).unwrap();
        match self.next() {
            // A read is responded to and answered.
            Event::Response { outcome: Ok(()), .. } if is_read => {
                let Event::Record { data, .. } = self.next() else { panic!() };
                Ok(Some(data))
            }
            Event::Response { outcome, .. } => outcome.map(|()| None).map_err(|_| ()),
            Event::Record { data, .. } => Ok(Some(data)),
            other => panic!("{other:?}"),
        }
    }
}

/// The screen in the words of s3270's `ReadBuffer(Ebcdic)`.
fn dump(screen: &Screen) -> Vec<String> {
    let highlight = |cell: &Cell| cell.attributes.highlight.0 & 0x0f;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut last = (0, 0, 0, 0);
    for (at, cell) in screen.cells().iter().enumerate() {
        if at % usize::from(screen.columns()) == 0 {
            rows.push(Vec::new());
        }
        let row = rows.last_mut().unwrap();
        let is = (
            cell.attributes.foreground.0,
            cell.attributes.background.0,
            highlight(cell),
            cell.attributes.character_set,
        );
        if let Some(attribute) = cell.field {
            let mut text = format!("SF(c0={:02x}", attribute.bits() | 0xc0);
            for (kind, value) in [("42", is.0), ("45", is.1), ("41", is.2), ("43", is.3)] {
                if value != 0 {
                    text += &format!(",{kind}={:02x}", if kind == "41" { value | 0xf0 } else { value });
                }
            }
            row.push(text + ")");
            continue;
        }
        let mut changes = Vec::new();
        for (kind, value, before) in
            [("42", is.0, last.0), ("45", is.1, last.1), ("41", is.2, last.2), ("43", is.3, last.3)]
        {
            if value != before {
                changes.push(format!("{kind}={:02x}", if kind == "41" { value | 0xf0 } else { value }));
            }
        }
        last = is;
        if !changes.is_empty() {
            row.push(format!("SA({})", changes.join(",")));
        }
        row.push(match cell.graphic {
            true => format!("GE({:02x})", cell.character),
            false => format!("{:02x}", cell.character),
        });
    }
    rows.into_iter().map(|row| row.join(" ")).collect()
}

fn random_attributes(random: &mut Random) -> Attributes {
    let mut pick = |values: &[u8]| values[random.public_below(values.len() as u32) as usize];
    Attributes {
        highlight: Highlight(pick(&[0, 0xf1, 0xf2, 0xf4])),
        foreground: Color(pick(&[0, 0xf1, 0xf2, 0xf7])),
        // s3270 has no background colours, and sends other character sets by Graphic Escape.
        ..Attributes::default()
    }
}

/// A write with random orders. Now and then an address is beyond the screen.
fn random_write(random: &mut Random, (rows, columns): (u16, u16)) -> Vec<u8> {
    let positions = rows * columns;
    let command = match random.public_below(8) {
        0 => Command::EraseWrite,
        1 => Command::EraseWriteAlternate,
        _ => Command::Write,
    };
    let size = if command == Command::EraseWrite { 1920 } else { positions };
    let control = WriteControl::from_octet(random.public_below(128) as u8 & 0x43 | 0x02);
    let mut writer = StreamWriter::new(command, control, usize::from(positions));
    for _ in 0..random.public_below(40) {
        let beyond = random.public_below(100) == 0;
        let address = random.public_below(u32::from(if beyond { size + 50 } else { size })) as u16;
        let mut octet = || 0x40 + random.public_below(0xbe) as u8;
        match octet() % 16 {
            0 | 1 => writer.set_address(address),
            2 => writer.start_field(FieldAttribute::from_octet(octet())),
            3 | 4 => {
                let attribute = FieldAttribute::from_octet(octet());
                let attributes = random_attributes(random);
                writer.start_field_extended(attribute, attributes);
            }
            5 => writer.insert_cursor(),
            6 => writer.program_tab(),
            7 => writer.repeat_to(address, octet()),
            8 => {
                // s3270 looks for the field at SBA, and not again when a character replaces its attribute.
                writer.set_address(random.public_below(u32::from(size)) as u16);
                writer.erase_unprotected_to(address);
            }
            9 => writer.graphic(octet()),
            10 => {
                let pair =
                    AttributePair::new(AttributeType::Field, FieldAttribute::from_octet(octet()).octet());
                let mut pairs = vec![pair];
                pairs.extend(random_attributes(random).pairs());
                writer.modify_field(&pairs);
            }
            11 => random_attributes(random).pairs().for_each(|pair| writer.set_attribute(pair)),
            12 => writer.repeat_graphic_to(address, octet()),
            13 => writer.text(&[
                [0x15, 0x0c, 0x0d, 0x19, 0x1c, 0x1e, 0x3f, 0x25, 0xff, 0][usize::from(octet() % 10)]
            ]),
            _ => {
                let count = random.public_below(30);
                let text: Vec<u8> = (0..count)
                    .map(|_| [0, 0x40, 0xc1, 0xf7, 0x5a, 0x81][random.public_below(6) as usize])
                    .collect();
                writer.text(&text);
            }
        }
    }
    writer.finish()
}

fn random_record(random: &mut Random, size: (u16, u16)) -> Vec<u8> {
    let field = |field: OutboundField<'_>| {
        let mut record = vec![Command::WriteStructuredField.octet()];
        field.write(&mut record);
        record
    };
    match random.public_below(20) {
        0 => vec![Command::EraseAllUnprotected.octet()],
        1 => vec![Command::ReadBuffer.octet()],
        2 => vec![Command::ReadModified.octet()],
        3 => vec![Command::ReadModifiedAll.octet()],
        4 => field(OutboundField::SetReplyMode { mode: ReplyMode::Field, attributes: &[] }),
        5 => field(OutboundField::SetReplyMode { mode: ReplyMode::ExtendedField, attributes: &[] }),
        6 => field(OutboundField::SetReplyMode {
            mode: ReplyMode::Character,
            attributes: &[0x41, 0x42, 0x43, 0x45],
        }),
        7 => field(OutboundField::EraseReset { is_alternate: random.public_below(2) == 0 }),
        8 => field(OutboundField::ReadPartition(QueryRequest::ReadModifiedAll)),
        _ => random_write(random, size),
    }
}

/// Keys in our words and in s3270's.
const KEYS: [(Key, &str); 18] = [
    (Key::Tab, "Tab()"),
    (Key::BackTab, "BackTab()"),
    (Key::Home, "Home()"),
    (Key::NewLine, "Newline()"),
    (Key::Left, "Left()"),
    (Key::Right, "Right()"),
    (Key::Up, "Up()"),
    (Key::Down, "Down()"),
    (Key::EraseEof, "EraseEOF()"),
    (Key::EraseInput, "EraseInput()"),
    (Key::Delete, "Delete()"),
    (Key::Backspace, "Erase()"),
    (Key::End, "FieldEnd()"),
    (Key::Character('Q'), "Key(Q)"),
    (Key::Character('5'), "Key(5)"),
    (Key::Insert, "Insert()"),
    (Key::Dup, "Dup()"),
    (Key::FieldMark, "FieldMark()"),
];
const SENDING: [(Key, &str); 5] = [
    (Key::Enter, "Enter()"),
    (Key::Pf(13), "PF(13)"),
    (Key::Pa(2), "PA(2)"),
    (Key::Clear, "Clear()"),
    (Key::Enter, "Enter()"),
];

#[test]
fn records_and_keys_do_the_same_as_in_s3270() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (mut cells, mut answers, mut refused, mut typed) = (0, 0, 0, 0);
    for (seed, model) in (1..).zip(Model::ALL) {
        let mut random = Random::from_number(seed);
        // A 3278 fills with nulls.
        let (model_name, address) = (format!("3279-{}-E", model.number()), format!("127.0.0.1:{port}"));
        let options = ["-clear", "blankFill", "-model", &model_name, &address];
        let (mut theirs, mut host) = S3270::start_with(&options, || RawHost::accept(&listener));
        let mut ours = Screen::new(ScreenConfig::new(model));
        let (rows, columns) = model.alternate();
        for round in 0..250 {
            let mut keys = Vec::new();
            let at = format!("model {}, round {round}", model.number());
            let record = random_record(&mut random, (rows, columns));
            let answer = host.send(&record);
            let own = ours.receive(&record).map_err(|_| ());
            assert_eq!(own, answer, "{at}: {record:02x?}");
            answers += usize::from(matches!(answer, Ok(Some(_))));
            refused += usize::from(answer.is_err());
            if random.public_below(3) == 0 {
                // What is read after a key without a restored keyboard is not of interest.
                host.send(&[0xf1, 0x02]).unwrap();
                ours.receive(&[0xf1, 0x02]).unwrap();
                for _ in 0..random.public_below(6) {
                    let (key, name) = KEYS[random.public_below(KEYS.len() as u32) as usize];
                    // s3270 goes back in protected fields as well, and over the beginning of the screen.
                    let cursor = ours.cursor();
                    let is_input =
                        !ours.attribute_at(cursor).is_protected() && ours.cell(cursor).field.is_none();
                    if key == Key::Backspace && (cursor == 0 || !is_input) {
                        continue;
                    }
                    keys.push(key);
                    let _ = theirs.attempt(name);
                    if ours.press(key).is_err() {
                        ours.press(Key::Reset).unwrap();
                        theirs.command("Reset()");
                    }
                    let cursor = theirs.command("Query(Cursor)").join(" ");
                    assert_eq!(
                        cursor,
                        format!("{} {}", ours.cursor() / ours.columns(), ours.cursor() % ours.columns()),
                        "{at}: {key:?}"
                    );
                    typed += 1;
                }
                if random.public_below(4) == 0 {
                    let (key, name) = SENDING[random.public_below(SENDING.len() as u32) as usize];
                    // s3270 waits for the host to restore its keyboard.
                    let unlocked = std::thread::scope(|scope| {
                        let pressing = scope.spawn(|| theirs.attempt(name));
                        let Event::Record { data, .. } = host.next() else { panic!() };
                        assert_eq!(Ok(Some(data)), ours.press(key), "{at}: {key:?}");
                        host.send(&[0xf1, 0x02]).unwrap();
                        pressing.join().unwrap()
                    });
                    unlocked.unwrap();
                    ours.receive(&[0xf1, 0x02]).unwrap();
                    typed += 1;
                }
            }
            let dumped = dump(&ours);
            let expected = theirs.command("ReadBuffer(Ebcdic)");
            for (row, (own, expected)) in dumped.iter().zip(&expected).enumerate() {
                assert_eq!(own, expected, "{at}, row {row}: {record:02x?} {keys:?}");
            }
            assert_eq!(dumped.len(), expected.len(), "{at}");
            cells += ours.cells().len();
        }
    }
    println!("{cells} positions, {answers} answers, {refused} refused records, {typed} keys are the same");
    assert!(answers > 100 && refused > 10 && typed > 100);
}

/// Each octet of each code page shows as the same character.
#[test]
fn code_pages_are_those_of_s3270() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for (page, name) in [
        ("037", "cp037"),
        ("273", "cp273"),
        ("277", "cp277"),
        ("278", "cp278"),
        ("280", "cp280"),
        ("284", "cp284"),
        ("285", "cp285"),
        ("297", "cp297"),
        ("500", "cp500"),
        ("871", "cp871"),
        ("1047", "cp1047"),
        ("1140", "cp1140"),
        ("1141", "cp1141"),
        ("1142", "cp1142"),
        ("1143", "cp1143"),
        ("1144", "cp1144"),
        ("1145", "cp1145"),
        ("1146", "cp1146"),
        ("1147", "cp1147"),
        ("1148", "cp1148"),
        ("1149", "cp1149"),
    ] {
        let options = ["-codepage", name, &format!("127.0.0.1:{port}")];
        let (mut theirs, mut host) = S3270::start_with(&options, || RawHost::accept(&listener));
        let mut config = ScreenConfig::default();
        config.code_page = page.parse().unwrap();
        let mut ours = Screen::new(config);
        let mut record = vec![0xf5, 0xc2];
        record.extend(0x40..=0xfe);
        host.send(&record).unwrap();
        ours.receive(&record).unwrap();
        let shown = theirs.command("Ascii()");
        for (row, theirs) in (0..3).zip(&shown) {
            // A space that does not break is a space here.
            let theirs = theirs.replace('\u{a0}', " ").replace('\u{ad}', "-");
            let ours = ours.line(row);
            assert_eq!(theirs.trim_end(), ours.trim_end(), "page {page}");
        }
    }
}
