//! Tables, and text both ways.

use inhost_base::Random;

use super::*;

fn translator(charset: &str, tabs: u8, table: &str) -> Translator {
    let charset = Charset::from_name(charset).unwrap();
    let table = Table::parse(table, charset).unwrap();
    Translation { charset, tabs: NonZeroU8::new(tabs), table }.start()
}
/// The keys of another host: none has a meaning here.
fn raw() -> TerminalKeys {
    TerminalKeys {
        canonical: false,
        signals: false,
        traps: false,
        flow_control: false,
        ..TerminalKeys::default()
    }
}
fn typed(translator: &mut Translator, text: &[u8], keys: &TerminalKeys) -> Vec<u8> {
    let mut octets = VecDeque::new();
    text.iter().for_each(|&octet| translator.typed(octet, keys, &mut octets));
    octets.into()
}

#[test]
fn ebcdic_is_met_in_utf_8() {
    let mut program = translator("IBM037", 8, "");
    assert_eq!(
        program.shown(b"\xc1\x05\x51\x15\xc2\x0d\x25\xc3\x0d\x15"),
        "A       é\r\nB\r\nC\r\n".as_bytes()
    );
    assert_eq!(program.shown(b"\x0d\x0a"), b"\r\n", "from the line discipline");
    assert_eq!(typed(&mut program, "Aé\r".as_bytes(), &raw()), b"\xc1\x51\x15");
    assert_eq!(program.substituted_characters(), 0);
    assert_eq!(typed(&mut program, "€".as_bytes(), &raw()), b"\x3f");
    assert_eq!(program.substituted_characters(), 1);
}

#[test]
fn keys_of_the_terminal_reach_it() {
    let mut program = translator("IBM500", 0, "5f < ^x");
    let keys = TerminalKeys { canonical: true, signals: true, interrupt: 3, erase: 0x7f, ..raw() };
    assert_eq!(typed(&mut program, b"a\x7f^\r\x03", &keys), b"\x81\x7f\x5f\r\x03");
    assert_eq!(typed(&mut program, b"\x03\r", &raw()), b"\x03\x15");
}

#[test]
fn a_table_overrides_characters_both_ways() {
    let mut host = translator("IBM037", 0, "# signs\n4a = \\e[7mc\\e[m\n\n b0 < ^\n5f41 < ~~\n4f > \u{a6}");
    assert_eq!(host.shown(b"\x4a\x4f\xb0"), "\x1b[7mc\x1b[m\u{a6}^".as_bytes());
    let text = "^~~x~y\x1b[7mc\x1b[m\x1b[7z";
    let expected = b"\xb0\x5f\x41\xa7\xa1\xa8\x4a\x27\xba\xf7\xa9";
    assert_eq!(typed(&mut host, text.as_bytes(), &raw()), expected);
    // The beginning of a sequence waits.
    assert_eq!(typed(&mut host, b"~", &raw()), b"");
    assert_eq!(typed(&mut host, b"a", &raw()), b"\xa1\x81");
}

#[test]
fn utf_8_is_left_alone_but_for_the_table() {
    let mut program = translator("UTF-8", 0, "0f > \\e[m");
    assert_eq!(program.shown("é\u{0f}\r\n".as_bytes()), "é\x1b[m\r\n".as_bytes());
    assert_eq!(typed(&mut program, "é\r".as_bytes(), &raw()), "é\r".as_bytes());
}

#[test]
fn bad_tables_name_their_line() {
    let error = |text: &str| Table::parse(text, Charset::Utf8).unwrap_err();
    for (text, reason) in [
        ("41", "expected OCTETS, one of < > =, and TEXT"),
        ("41 > a b", "expected OCTETS, one of < > =, and TEXT"),
        ("41 ? a", "expected one of < > = between OCTETS and TEXT"),
        ("4 > a", "expected octets as pairs of hexadecimal digits, at most 8"),
        ("+1 > a", "expected octets as pairs of hexadecimal digits, at most 8"),
        ("é1 > a", "expected octets as pairs of hexadecimal digits, at most 8"),
        ("010203040506070809 < a", "expected octets as pairs of hexadecimal digits, at most 8"),
        ("4141 > a", "a single octet is shown, as two digits"),
        ("c1 > a", "beyond 7f an octet is not a character of UTF-8"),
        ("41 > \\t", "a tab is not shown: give spaces"),
        ("41 > \\", r"expected one of \e \s \t \r \n \\ \xNN behind the backslash"),
        ("41 > \\x4", r"expected one of \e \s \t \r \n \\ \xNN behind the backslash"),
        ("41 > \\q", r"expected one of \e \s \t \r \n \\ \xNN behind the backslash"),
        ("41 > 012345678901234567890123456789012", "TEXT is too long: at most 32 octets"),
    ] {
        assert_eq!(error(&format!("# a\n\n{text}\n")), TableError { line: 3, reason }, "{text}");
    }
    assert_eq!(error("41 > a\n41 > b").to_string(), "line 2: the octet is shown in two ways");
    assert_eq!(error("41 < ab\n42 < a").line, 2);
    assert_eq!(error(&"41 < a\n".repeat(2)).line, 2);
    let many: String = (0..=TABLE_ENTRIES).map(|number| format!("41 < \\e{number:03}\n")).collect();
    assert_eq!(error(&many).line, TABLE_ENTRIES + 1);
}

/// Whatever is said and typed, growth has its limits.
#[test]
fn growth_is_bounded() {
    let mut random = Random::from_number(2066);
    for charset in Charset::ALL {
        let mut program =
            translator(charset.name(), TABS, "41 = 01234567890123456789012345678901\n0102030405060708 < ab");
        for _ in 0..2_000 {
            let octets: Vec<u8> = (0..random.public_below(64)).map(|_| random.public_u64() as u8).collect();
            assert!(program.shown(&octets).len() <= SEQUENCE_BYTES * octets.len());
            let before = 3 + SEQUENCE_BYTES;
            let count = typed(&mut program, &octets, &raw()).len();
            assert!(count <= before + OCTETS * octets.len());
            assert!(program.held.len() <= SEQUENCE_BYTES);
        }
    }
}
