//! The code of CUT mode: any octet as one or two characters that every terminal can show.
//!
//! Each octet is in one of four quadrants, which have 77 places. A character that is not one of the places selects the
//! quadrant of those that follow. The frames on a screen of 24 rows of 80 columns are as IBM's "3270 Control Unit Terminal"
//! protocol has them.

/// The places, in EBCDIC: blank, A–Z, a–z, 0–9, and `%&_()<+,-./:>?`.
const PLACES: [u8; 77] = *b"\x40\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xd1\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\
    \x81\x82\x83\x84\x85\x86\x87\x88\x89\x91\x92\x93\x94\x95\x96\x97\x98\x99\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\
    \xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\x6c\x50\x6d\x4d\x5d\x4c\x4e\x6b\x60\x4b\x61\x7a\x6e\x6f";

/// The selectors of the quadrants, in EBCDIC: `;`, `=`, `*` and `'`.
const SELECTORS: [u8; 4] = [0x5e, 0x7e, 0x5c, 0x7d];

/// The octets of each quadrant by place. Zero is none, but for the first place of the last two quadrants.
const QUADRANTS: [[u8; 77]; 4] = [
    PLACES,
    *b"\x20ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%&'()*+,-./:;?",
    {
        let mut quadrant = [0; 77];
        let mut index = 0;
        while index <= 0x19 {
            quadrant[1 + index] = index as u8;
            index += 1;
        }
        let rest = *b"\x3c\x3d\x3e\x00\xfa\xfb\xfc\xfd\xfe\xff\x7b\x7c\x7d\x7e\x7f\x1a\x1b\x1c\x1d\x1e\x1f\x00\x00\x00";
        let mut index = 0;
        while index < rest.len() {
            quadrant[53 + index] = rest[index];
            index += 1;
        }
        quadrant
    },
    *b"\x00\xa0\xa1\xea\xeb\xec\xed\xee\xef\xe0\xe1\xaa\xab\xac\xad\xae\xaf\xb0\xb1\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\
        \x80\x00\xca\xcb\xcc\xcd\xce\xcf\xc0\x00\x8a\x8b\x8c\x8d\x8e\x8f\x90\x00\xda\xdb\xdc\xdd\xde\xdf\xd0\x00\
        \x00\x21\x22\x23\x24\x5b\x5c\x00\x5e\x5f\x00\x9c\x9d\x9e\x9f\xba\xbb\xbc\xbd\xbe\xbf\x9a\x9b\x00",
];

/// The place of a null in the third quadrant.
const NULL_PLACE: u8 = 0xc1;

/// Six bits as a character: `a`–`z`, `&-.,:+`, `A`–`Z`, `0`–`5`.
const SIX: [u8; 64] = *b"\x81\x82\x83\x84\x85\x86\x87\x88\x89\x91\x92\x93\x94\x95\x96\x97\x98\x99\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\
    \x50\x60\x4b\x6b\x7a\x4e\
    \xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xd1\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\
    \xf0\xf1\xf2\xf3\xf4\xf5";

/// The address of the attribute behind the frame.
pub(crate) const FRAME_END: u16 = 1919;
/// The frame's type, at address 0.
pub(crate) const FRAME_TYPE: u16 = 0;
/// The types of frames of the host.
pub(crate) const CONTROL: u8 = 0xc3;
pub(crate) const DATA_REQUEST: u8 = 0xc2;
pub(crate) const RETRANSMIT: u8 = 0x4c;
pub(crate) const DATA: u8 = 0xc1;
/// Control: the status code, and the message.
pub(crate) const STATUS: u16 = 2;
pub(crate) const MESSAGE: u16 = 4;
pub(crate) const MESSAGE_COLUMNS: u16 = 80;
pub(crate) const HOST_ACK: [u8; 2] = [0x81, 0x81];
pub(crate) const TRANSFER_COMPLETE: [u8; 2] = [0x81, 0x89];
pub(crate) const ABORT_FILE: [u8; 2] = [0x81, 0x94];
pub(crate) const ABORT_TRANSFER: [u8; 2] = [0x81, 0x98];
/// Data from the host: sequence, checksum, length, and the data up to the response area.
pub(crate) const DOWN_SEQUENCE: u16 = 1;
pub(crate) const DOWN_LENGTH: u16 = 3;
pub(crate) const DOWN_DATA: u16 = 5;
pub(crate) const DOWN_MOST: u16 = RESPONSE - DOWN_DATA;
/// Data to the host.
pub(crate) const REQUEST_SEQUENCE: u16 = 3;
pub(crate) const UP_SEQUENCE: u16 = 3;
pub(crate) const UP_CHECKSUM: u16 = 4;
pub(crate) const UP_LENGTH: u16 = 5;
pub(crate) const UP_DATA: u16 = 7;
pub(crate) const UP_MOST: u16 = FRAME_END - UP_DATA;
/// The response area of the terminal.
pub(crate) const RESPONSE: u16 = FRAME_END - 5;
/// What a data frame holds at the end of a file.
pub(crate) const END_OF_FILE: [u8; 2] = [0x5c, 0xa9];

/// A number of six bits as a character in EBCDIC.
pub(crate) fn six(value: u16) -> u8 {
    SIX[usize::from(value & 0x3f)]
}
/// The number that a character stands for.
pub(crate) fn from_six(octet: u8) -> Option<u16> {
    let at = SIX.iter().position(|&six| six == octet)?;
    u16::try_from(at).ok()
}
/// A length in two characters.
pub(crate) fn length(octets: [u8; 2]) -> Option<u16> {
    Some(from_six(octets[0])? << 6 | from_six(octets[1])?)
}

/// Makes characters of octets.
#[derive(Clone, Debug, Default)]
pub(crate) struct CutEncoder {
    quadrant: Option<usize>,
}

impl CutEncoder {
    /// Appends the one or two characters of an octet.
    pub(crate) fn put(&mut self, octet: u8, out: &mut Vec<u8>) {
        let place = |quadrant: usize| {
            if octet == 0 {
                return (quadrant == 2).then_some(NULL_PLACE);
            }
            let at = QUADRANTS.get(quadrant)?.iter().position(|&other| other == octet)?;
            PLACES.get(at).copied()
        };
        if let Some(character) = self.quadrant.and_then(place) {
            out.push(character);
            return;
        }
        let found = (0..QUADRANTS.len()).find_map(|quadrant| Some((quadrant, place(quadrant)?)));
        if let Some((quadrant, character)) = found {
            self.quadrant = Some(quadrant);
            out.extend(SELECTORS.get(quadrant).copied());
            out.push(character);
        }
    }
}

/// Makes octets of characters.
#[derive(Clone, Debug, Default)]
pub(crate) struct CutDecoder {
    quadrant: Option<usize>,
}

impl CutDecoder {
    /// Appends the octets of characters; `None` where one is not of the code.
    pub(crate) fn take(&mut self, characters: &[u8], out: &mut Vec<u8>) -> Option<()> {
        for &character in characters {
            if let Some(quadrant) = SELECTORS.iter().position(|&selector| selector == character) {
                self.quadrant = Some(quadrant);
                continue;
            }
            let quadrant = self.quadrant?;
            let place = PLACES.iter().position(|&place| place == character)?;
            let &octet = QUADRANTS.get(quadrant)?.get(place)?;
            if octet == 0 && !(quadrant == 2 && matches!(character, NULL_PLACE | 0x40)) {
                return None;
            }
            out.push(octet);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_goes_both_ways() {
        let (mut encoder, mut characters) = (CutEncoder::default(), Vec::new());
        let all: Vec<u8> = (0..=255).chain((0..=255).rev()).chain([0, 0, 0x41, 0]).collect();
        all.iter().for_each(|&octet| encoder.put(octet, &mut characters));
        assert!(characters.len() < 2 * all.len());
        assert!(
            characters.iter().all(|character| PLACES.contains(character) || SELECTORS.contains(character))
        );
        let (mut decoder, mut octets) = (CutDecoder::default(), Vec::new());
        assert_eq!(decoder.take(&characters, &mut octets), Some(()));
        assert_eq!(octets, all);
        assert_eq!(CutDecoder::default().take(&[0xc1], &mut octets), None, "no quadrant is selected");
    }

    #[test]
    fn lengths_go_both_ways() {
        for value in 0..1 << 12 {
            assert_eq!(length([six(value >> 6), six(value)]), Some(value));
        }
        assert_eq!(from_six(0), None);
    }
}
