use inhost_base::Random;

use super::*;
use crate::codec::*;

fn screen(model: Model) -> Screen {
    Screen::new(ScreenConfig::new(model))
}

fn written(make: impl FnOnce(&mut StreamWriter)) -> Screen {
    let mut writer =
        StreamWriter::new(Command::EraseWrite, WriteControl::RESTORE_KEYBOARD | WriteControl::RESET, 1920);
    make(&mut writer);
    let mut screen = screen(Model::Two);
    assert_eq!(screen.receive(&writer.finish()), Ok(None));
    screen
}

/// A label, an input field of eight positions, and a numeric one of three.
fn form() -> Screen {
    written(|writer| {
        writer.start_field(FieldAttribute::PROTECTED);
        writer.text(&CodePage::Cp037.encode("Name"));
        writer.start_field(FieldAttribute::UNPROTECTED);
        writer.insert_cursor();
        writer.set_address(14);
        writer.start_field(FieldAttribute::SKIP);
        writer.set_address(80);
        writer.start_field(FieldAttribute::UNPROTECTED.numeric());
        writer.set_address(84);
        writer.start_field(FieldAttribute::PROTECTED);
    })
}

fn keys(screen: &mut Screen, text: &str) {
    for character in text.chars() {
        assert_eq!(screen.press(Key::Character(character)), Ok(None));
    }
}

fn enter(screen: &mut Screen) -> Vec<(Option<u16>, String)> {
    let record = screen.press(Key::Enter).unwrap().unwrap();
    let Ok(Inbound::Read { aid: Aid::Enter, data, .. }) = Inbound::parse(&record) else { panic!() };
    let fields = ModifiedField::parse(data).unwrap();
    fields.into_iter().map(|field| (field.address, CodePage::Cp037.decode(&field.text))).collect()
}

#[test]
fn typing_fills_a_field_and_goes_on_to_the_next() {
    let mut screen = form();
    assert_eq!(screen.cursor(), 6);
    keys(&mut screen, "lovelace");
    // The field behind is skipped.
    assert_eq!(screen.cursor(), 81);
    keys(&mut screen, "12");
    assert_eq!(enter(&mut screen), [(Some(6), "lovelace".into()), (Some(81), "12".into())]);
    assert_eq!(screen.press(Key::Tab), Err(Keyboard::System));
    assert_eq!(screen.press(Key::Reset), Ok(None), "Reset does not unlock what the host has locked");
    assert_eq!(screen.press(Key::Tab), Err(Keyboard::System));
    assert_eq!(screen.receive(&[0xf1, 0xc2]), Ok(None));
    assert_eq!(screen.press(Key::Tab), Ok(None));
}

#[test]
fn errors_lock_the_keyboard_until_reset() {
    let mut screen = form();
    screen.press(Key::Cursor(2)).unwrap();
    let error = Err(Keyboard::Error(OperatorError::Protected));
    assert_eq!(screen.press(Key::Character('x')), error);
    assert_eq!(screen.press(Key::Home), error);
    screen.press(Key::Reset).unwrap();
    screen.press(Key::Home).unwrap();
    assert_eq!(screen.cursor(), 6);
    assert_eq!(screen.press(Key::Character('漢')), Err(Keyboard::Error(OperatorError::NotOnPage)));
    screen.press(Key::Reset).unwrap();
    keys(&mut screen, "lovelace");
    screen.press(Key::Home).unwrap();
    screen.press(Key::Insert).unwrap();
    assert_eq!(screen.press(Key::Character('x')), Err(Keyboard::Error(OperatorError::Overflow)));
    screen.config.has_numeric_lock = true;
    screen.press(Key::Reset).unwrap();
    screen.press(Key::Tab).unwrap();
    assert_eq!(screen.press(Key::Character('x')), Err(Keyboard::Error(OperatorError::Numeric)));
}

#[test]
fn inserting_deleting_and_erasing() {
    let mut screen = form();
    keys(&mut screen, "ace");
    screen.press(Key::Home).unwrap();
    screen.press(Key::Insert).unwrap();
    keys(&mut screen, "pl");
    assert_eq!((screen.field_text(6), screen.cursor()), ("place".into(), 8));
    screen.press(Key::Delete).unwrap();
    screen.press(Key::Backspace).unwrap();
    assert_eq!((screen.field_text(6), screen.cursor()), ("pce".into(), 7));
    screen.press(Key::End).unwrap();
    assert_eq!(screen.cursor(), 9);
    screen.press(Key::Left).unwrap();
    screen.press(Key::EraseEof).unwrap();
    assert_eq!(screen.field_text(6), "pc");
    screen.press(Key::Tab).unwrap();
    keys(&mut screen, "7");
    screen.press(Key::EraseInput).unwrap();
    assert_eq!((screen.field_text(6), screen.cursor()), (String::new(), 6));
    assert_eq!(enter(&mut screen), []);
}

#[test]
fn the_cursor_goes_where_keys_say() {
    let mut screen = form();
    let mut go = |key| {
        screen.press(key).unwrap();
        screen.cursor()
    };
    assert_eq!([Key::Tab, Key::Tab, Key::BackTab, Key::BackTab].map(&mut go), [81, 6, 81, 6]);
    assert_eq!([Key::NewLine, Key::Left, Key::BackTab].map(&mut go), [81, 80, 6]);
    assert_eq!([Key::Up, Key::Down, Key::Home].map(&mut go), [1846, 6, 6]);
    assert_eq!([Key::Cursor(1919), Key::Right, Key::Left].map(&mut go), [1919, 0, 1919]);
    assert_eq!(go(Key::Cursor(40_000)), 1919);
}

#[test]
fn short_reads_and_clear() {
    let mut screen = form();
    keys(&mut screen, "ada");
    let record = screen.press(Key::Pa(1)).unwrap();
    assert_eq!(record, Some(vec![0x6c]));
    // The host reads on: Read Modified stays short, Read Modified All does not.
    assert_eq!(screen.receive(&[0xf6]), Ok(Some(vec![0x6c])));
    assert_eq!(screen.receive(&[0x6e]).unwrap().unwrap()[..6], [0x6c, 0x40, 0xc9, 0x11, 0x40, 0xc6]);
    screen.receive(&[0xf1, 0xc2]).unwrap();
    assert_eq!(screen.receive(&[0xf6]).unwrap().unwrap()[0], 0x60);
    assert_eq!(screen.press(Key::Clear), Ok(Some(vec![0x6d])));
    assert_eq!((screen.cursor(), screen.is_formatted()), (0, false));
    screen.receive(&[0xf1, 0xc2]).unwrap();
    keys(&mut screen, "hi");
    assert_eq!(enter(&mut screen), [(None, "hi".into())]);
}

#[test]
fn sizes_change_with_erase_write_alternate() {
    let mut screen = screen(Model::Five);
    assert_eq!((screen.rows(), screen.columns()), (24, 80));
    screen.receive(&[0x7e, 0xc3]).unwrap();
    assert_eq!((screen.rows(), screen.columns(), screen.cells().len()), (27, 132, 3564));
    assert_eq!(screen.receive(&[0xf1, 0xc3, 0x11, 0x0d, 0xec]), Err(DataError::Address(3564)));
    screen.receive(&[0xf3, 0x00, 0x06, 0x40, 0x00, 0xf5, 0xc3]).unwrap();
    assert_eq!(screen.rows(), 27, "a write in a structured field keeps the size");
    screen.receive(&[0xf5, 0xc3]).unwrap();
    assert_eq!(screen.rows(), 24);
    screen.receive(&[0xf3, 0x00, 0x04, 0x03, 0x80]).unwrap();
    assert_eq!(screen.rows(), 27);
}

#[test]
fn program_tab_repeat_and_erase() {
    let mut screen = form();
    keys(&mut screen, "lovelace");
    // PT behind an order goes on without erasing, behind a character it erases the rest of the field.
    screen.receive(&[0xf1, 0xc2, 0x11, 0x40, 0x40, 0x05, 0xa7, 0x05, 0xa8]).unwrap();
    assert_eq!((screen.field_text(6), screen.field_text(81)), ("x".into(), "y".into()));
    screen.receive(&[0xf1, 0xc2, 0x11, 0x40, 0xc7, 0x3c, 0x40, 0x4b, 0x60]).unwrap();
    assert_eq!(screen.field_text(6), "x----");
    // EUA leaves what is protected.
    screen.receive(&[0xf1, 0xc2, 0x11, 0x40, 0x40, 0x12, 0x40, 0x40]).unwrap();
    assert_eq!(screen.line(0).trim_end(), " Name");
    assert_eq!(screen.field_text(81), "");
    // RA to where it begins is the whole screen.
    screen.receive(&[0xf1, 0xc2, 0x11, 0x40, 0x40, 0x3c, 0x40, 0x40, 0x4b]).unwrap();
    assert!(!screen.is_formatted() && screen.lines().iter().all(|line| *line == ".".repeat(80)));
}

#[test]
fn modify_field_and_modified_data_tags() {
    let mut screen = form();
    keys(&mut screen, "a");
    assert!(screen.attribute_at(6).is_modified());
    screen.receive(&[0xf1, 0xc1]).unwrap();
    assert!(!screen.attribute_at(6).is_modified());
    screen.receive(&[0xf1, 0xc0, 0x11, 0x40, 0xc5, 0x2c, 0x02, 0xc0, 0xc9, 0x42, 0xf2]).unwrap();
    let cell = screen.cell(5);
    assert_eq!((cell.field.unwrap().bits(), cell.attributes.foreground), (0x09, Color::RED));
    assert_eq!(screen.fields()[1].length, 8);
}

#[test]
fn a_mono_terminal_has_no_colours_and_an_old_one_no_structured_fields() {
    let mut config = ScreenConfig::default();
    (config.has_color, config.is_extended) = (false, false);
    let mut screen = Screen::new(config);
    screen.receive(&[0xf5, 0xc3, 0x29, 0x03, 0xc0, 0x60, 0x42, 0xf2, 0x41, 0xf2]).unwrap();
    assert_eq!(screen.cell(0).attributes.foreground, Color::DEFAULT);
    assert_eq!(screen.cell(0).attributes.highlight, Highlight::REVERSE);
    assert_eq!(screen.receive(&[0xf3, 0, 5, 1, 0xff, 2]), Err(DataError::Command(0xf3)));
    assert_eq!(screen.config().terminal_type(false), "IBM-3278-2");
}

#[test]
fn queries_are_answered() {
    let mut screen = screen(Model::Four);
    let record = screen.receive(&[0xf3, 0, 5, 1, 0xff, 2]).unwrap().unwrap();
    let Ok(Inbound::Fields(fields)) = Inbound::parse(&record) else { panic!() };
    let InboundField::Query(QueryReply::Summary(codes)) = &fields[0] else { panic!() };
    assert_eq!(codes.len(), fields.len());
    assert!(fields.iter().any(|field| matches!(
        field,
        InboundField::Query(QueryReply::ImplicitPartition { alternate: (80, 43), .. })
    )));
    let list = screen.receive(&[0xf3, 0, 7, 1, 0xff, 3, 0, 0x88]).unwrap().unwrap();
    assert_eq!(list, [0x88, 0, 7, 0x81, 0x88, 0, 1, 2]);
    let none = screen.receive(&[0xf3, 0, 7, 1, 0xff, 3, 0, 0x99]).unwrap().unwrap();
    assert_eq!(none, [0x88, 0, 4, 0x81, 0xff]);
}

#[test]
fn a_record_that_writes_without_end_is_cut_off() {
    let mut screen = screen(Model::Five);
    let mut record = vec![0xf5, 0xc3];
    for _ in 0..10_000 {
        record.extend_from_slice(&[0x3c, 0x40, 0x40, 0x60]);
    }
    assert_eq!(screen.receive(&record), Err(DataError::Work));
}

/// Fields of one record share its limit, and one that is over it is not answered by those before it.
#[test]
fn a_record_whose_fields_work_without_end_is_cut_off() {
    let read_buffer = [0, 5, 1, 0, 0xf2];
    let repeat = [0, 11, 0x40, 0, 0xf1, 0xc3, 0x3c, 0x40, 0x40, 0x60, 0x3c];
    for field in [&read_buffer[..], &[0, 4, 3, 0], &repeat] {
        let mut screen = screen(Model::Five);
        let record = [&[0xf3], &field.repeat(10)[..]].concat();
        assert_ne!(screen.receive(&record), Err(DataError::Work), "{field:02x?}");
        let record = [&[0xf3], &field.repeat(1000)[..]].concat();
        assert_eq!(screen.receive(&record), Err(DataError::Work), "{field:02x?}");
    }
}

#[test]
fn what_a_printer_prints() {
    let text = |text: &str| CodePage::Cp037.encode(text);
    let screen = written(|writer| {
        writer.text(&text("one"));
        writer.text(&[0x15]);
        writer.text(&text("two"));
        writer.text(&[0x0c]);
        writer.text(&text("three"));
        writer.text(&[0x19]);
        writer.text(&text("not this"));
    });
    assert_eq!(printed(&screen, WriteControl::START_PRINT), ["one", "two", "three"]);
    let screen = written(|writer| {
        writer.text(&text("a"));
        writer.set_address(80);
        writer.text(&text("b"));
    });
    assert_eq!(printed(&screen, WriteControl::START_PRINT | WriteControl::from_octet(0x30)), ["a", "b"]);
}

/// A record of random orders, most of them right.
pub(crate) fn random_record(random: &mut Random, positions: u16, length: u32) -> Vec<u8> {
    let mut below = |limit: u32| random.public_below(limit);
    let command = [Command::Write, Command::EraseWrite, Command::EraseWriteAlternate][below(3) as usize];
    let mut writer =
        StreamWriter::new(command, WriteControl::from_octet(below(128) as u8), usize::from(positions));
    for _ in 0..length {
        let address = below(u32::from(positions)) as u16;
        match below(14) {
            0 => writer.set_address(address),
            1 => writer.start_field(FieldAttribute::from_octet(below(64) as u8)),
            2 => {
                let attributes = Attributes {
                    highlight: Highlight([0, 0xf1, 0xf2, 0xf4][below(4) as usize]),
                    foreground: Color([0, 0xf1, 0xf7][below(3) as usize]),
                    ..Attributes::default()
                };
                writer.start_field_extended(FieldAttribute::from_octet(below(64) as u8), attributes);
            }
            3 => writer.insert_cursor(),
            4 => writer.program_tab(),
            5 => writer.repeat_to(address, 0x40 + below(0xa0) as u8),
            6 => writer.erase_unprotected_to(address),
            7 => writer.graphic(0x40 + below(0xa0) as u8),
            8 => writer.modify_field(&[AttributePair::new(AttributeType::Foreground, 0xf2)]),
            9 => writer.set_attribute(AttributePair::new(AttributeType::Highlight, 0xf2)),
            _ => {
                let text: Vec<u8> =
                    (0..below(20)).map(|_| [0, 0x40, 0xc1, 0xf7, 0x5a][below(5) as usize]).collect();
                writer.text(&text);
            }
        }
    }
    writer.finish()
}

/// What Read Buffer gives can be written to another screen, which then is the same; nothing panics, whatever comes.
#[test]
fn a_screen_that_is_read_and_written_is_the_same() {
    let mut random = Random::from_number(32_792);
    for round in 0..600 {
        let model = Model::ALL[random.public_below(4) as usize];
        let mut one = screen(model);
        for _ in 0..4 {
            let positions = one.config().model.alternate();
            let record = random_record(&mut random, positions.0 * positions.1, 30);
            let _ = one.receive(&record);
            let key =
                [Key::Tab, Key::EraseEof, Key::Character('q'), Key::Delete, Key::Backspace, Key::NewLine]
                    [random.public_below(6) as usize];
            let _ = one.press(key);
        }
        one.reply_mode = ReplyMode::Character;
        one.reply_attributes = vec![0x41, 0x42, 0x45];
        let read = one.read_buffer(Aid::Enter);
        let command = if one.is_alternate() { Command::EraseWriteAlternate } else { Command::EraseWrite };
        let mut record = vec![command.octet(), WriteControl::NONE.octet()];
        record.extend_from_slice(&read[3..]);
        let mut two = screen(model);
        two.receive(&record).unwrap();
        for (address, (a, b)) in one.cells().iter().zip(two.cells()).enumerate() {
            assert_eq!(a, b, "round {round} address {address}");
        }
    }
}

#[test]
fn nothing_that_comes_panics() {
    let mut random = Random::from_number(9);
    let commands = [0xf1, 0xf5, 0x7e, 0x6f, 0xf2, 0xf6, 0x6e, 0xf3, 0x00];
    let mut one = screen(Model::Five);
    for _ in 0..6000 {
        let length = random.public_below(60);
        let mut record = vec![commands[random.public_below(9) as usize]];
        let orders = [0x11, 0x12, 0x13, 0x1d, 0x28, 0x29, 0x2c, 0x3c, 0x05, 0x08];
        for _ in 0..length {
            let octet = match random.public_below(3) {
                0 => orders[random.public_below(10) as usize],
                _ => random.public_below(256) as u8,
            };
            record.push(octet);
        }
        if let Ok(Some(answer)) = one.receive(&record) {
            Inbound::parse(&answer).unwrap();
        }
        let _ =
            (one.snapshot(), one.press(Key::Reset), one.press(Key::Insert), one.press(Key::Character('a')));
    }
}
