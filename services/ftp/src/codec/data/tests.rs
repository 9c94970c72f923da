use super::*;
use crate::codec::{Format, Mode, Parameters, Representation, Structure};
use crate::fuzz::one_line_end;

/// A file and its markers, each with its place.
type Decoding = (Vec<u8>, Vec<(String, usize)>);

const TYPES: [Representation; 4] = [
    Representation::Ascii(Format::NonPrint),
    Representation::Ebcdic(Format::NonPrint),
    Representation::Image,
    Representation::Local(8),
];

fn encoded(parameters: Parameters, file: &[u8], piece: usize) -> Vec<u8> {
    let (mut encoder, mut wire) = (Encoder::new(parameters, 0), Vec::new());
    file.chunks(piece).for_each(|piece| encoder.encode(piece, &mut wire));
    encoder.finish(&mut wire);
    wire
}

fn decoded(parameters: Parameters, wire: &[u8], piece: usize) -> Result<Decoding, DecodeError> {
    let (mut decoder, mut file, mut markers) = (Decoder::new(parameters), Vec::new(), Vec::new());
    for mut piece in wire.chunks(piece) {
        while !piece.is_empty() {
            match decoder.decode(&mut piece, &mut file)? {
                Decoded::Marker(text) => markers.push((text, file.len())),
                Decoded::End => break,
                Decoded::More => {}
            }
        }
    }
    decoder.finish(&mut file)?;
    Ok((file, markers))
}

fn all() -> impl Iterator<Item = Parameters> {
    TYPES.into_iter().flat_map(|representation| {
        [Structure::File, Structure::Record].into_iter().flat_map(move |structure| {
            [Mode::Stream, Mode::Block, Mode::Compressed].into_iter().map(move |mode| Parameters {
                representation,
                structure,
                mode,
            })
        })
    })
}

#[test]
fn every_type_structure_and_mode_gives_back_what_it_got() {
    let mut awkward: Vec<u8> = (0..=255).collect();
    awkward.extend_from_slice(b"\r\n\r\r\n\n\xff\xff\x01\xff\x02   \0\0\0\0aaaaaaaaa\r");
    let long: Vec<u8> =
        (0..100_000u32).map(|i| if i % 97 < 40 { b' ' } else { (i.wrapping_mul(i) >> 3) as u8 }).collect();
    for parameters in all() {
        let representation = parameters.representation;
        for file in [&b""[..], b"a", b"a\n", b"\n\n", b"no end", &awkward, &long, &[0; 1000]] {
            for piece in [1, 7, 65_536] {
                let wire = encoded(parameters, file, piece);
                let (back, _) = decoded(parameters, &wire, piece).unwrap();
                // In text CR LF is a line's end, and a line has one.
                let is_text = representation == TYPES[0] && parameters.structure == Structure::File;
                let expected = if is_text { one_line_end(file) } else { file.to_vec() };
                assert!(back == expected, "{parameters:?}, {} octets by {piece}", file.len());
            }
        }
    }
}

#[test]
fn the_wire_is_as_the_rfc_says() {
    let text = |mode, structure| Parameters { representation: TYPES[0], structure, mode };
    let stream = |structure| text(Mode::Stream, structure);
    assert_eq!(encoded(stream(Structure::File), b"a\nb", 9), b"a\r\nb");
    // A file that has the wire's line ends already goes as it is.
    for piece in [1, 2, 3, 9] {
        assert_eq!(encoded(stream(Structure::File), b"a\r\nb\n\r\n", piece), b"a\r\nb\r\n\r\n");
    }
    // RFC 959 §3.4.1: two-octet control codes, and all ones doubled.
    assert_eq!(encoded(stream(Structure::Record), b"a\xff\nb\n", 9), b"a\xff\xff\xff\x01b\xff\x01\xff\x02");
    assert_eq!(decoded(stream(Structure::Record), b"a\xff\x01b\xff\x03", 9).unwrap().0, b"a\nb\n");
    // RFC 959 §3.4.2: descriptor, count, data.
    assert_eq!(encoded(text(Mode::Block, Structure::Record), b"ab\n", 9), b"\x80\0\x02ab\x40\0\0");
    assert_eq!(decoded(text(Mode::Block, Structure::Record), b"\xc0\0\x02ab", 9).unwrap().0, b"ab\n");
    // The example of a restart marker there: descriptor 16, six octets.
    let mut marked = b"\0\0\x02ab\x10\0\x06rdct25\0\0\x01c\x40\0\0".to_vec();
    let found = decoded(text(Mode::Block, Structure::File), &marked, 1).unwrap();
    assert_eq!(found, (b"abc".to_vec(), vec![("rdct25".into(), 2)]));
    marked[0] = 32;
    assert_eq!(decoded(text(Mode::Block, Structure::File), &marked, 99), Err(DecodeError::Suspect));
    // RFC 959 §3.4.3: strings, repetitions, fillers, escapes.
    let image = Parameters { mode: Mode::Compressed, ..Parameters::IMAGE };
    let wire = b"\x03abc\x85x\xc4\0\x40\x01z";
    assert_eq!(decoded(image, wire, 1).unwrap().0, b"abcxxxxx\0\0\0\0z");
    assert_eq!(encoded(image, b"abcxxxxx\0\0\0\0z", 99), wire);
    let ebcdic = Parameters { representation: TYPES[1], ..Parameters::IMAGE };
    assert_eq!(encoded(ebcdic, b"Hi 1\n", 9), [0xc8, 0x89, 0x40, 0xf1, 0x15]);
}

#[test]
fn markers_cover_what_stands_before_them() {
    let file: Vec<u8> = (0..5 * MARKER_EVERY_BYTES / 2).map(|i| (i % 251) as u8).collect();
    for parameters in all().filter(|p| p.mode != Mode::Stream) {
        let wire = encoded(parameters, &file, 100_000);
        let (back, markers) = decoded(parameters, &wire, 77_777).unwrap();
        assert!(back == file);
        assert_eq!(markers.len(), 2);
        for (marker, at) in markers {
            assert_eq!(marker, at.to_string(), "{parameters:?}");
        }
    }
}

#[test]
fn what_is_cut_off_or_wrong_is_no_file() {
    for parameters in all().filter(|p| !(p.mode == Mode::Stream && p.structure == Structure::File)) {
        let wire = encoded(parameters, b"some lines\nof text\n", 99);
        for length in 0..wire.len() {
            assert_eq!(
                decoded(parameters, &wire[..length], 99),
                Err(DecodeError::Truncated),
                "{parameters:?} {length}"
            );
        }
    }
    let block = Parameters { mode: Mode::Block, ..Parameters::IMAGE };
    assert_eq!(decoded(block, b"\x01\0\0", 9), Err(DecodeError::Code(1)));
    assert_eq!(decoded(block, b"\x10\0\0", 9), Err(DecodeError::Marker));
    assert_eq!(decoded(block, b"\x10\xff\xff", 9), Err(DecodeError::Marker));
    assert_eq!(decoded(block, b"\x10\0\x02a\n", 9), Err(DecodeError::Marker));
}
