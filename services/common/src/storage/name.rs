//! Names as text, with an escape for octets that are not UTF-8.
//!
//! A name is octets, on the wire and on the disk. Here it is text: octets that are not UTF-8 stand as characters of
//! Unicode's private use area, and turn into themselves again on their way out. So a name in Latin-1 is asked for, and
//! kept, as it was listed.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The character that stands for octet 0x80; 0xff is 127 further.
const FIRST: u32 = 0xef80;
const FIRST_OCTET: u8 = 0x80;

/// What stands around the name of an unfinished upload.
pub(super) const PREFIX: &str = ".";
pub(super) const SUFFIX: &str = ".inhost-part";

/// Octets as text.
pub fn name_text(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len());
    let stand_in = |octet: u8| char::from_u32(FIRST + u32::from(octet - FIRST_OCTET));
    for chunk in octets.utf8_chunks() {
        for character in chunk.valid().chars() {
            match octet(character) {
                None => text.push(character),
                // The escape character itself is represented by its own octets.
                Some(_) => text.extend(character.encode_utf8(&mut [0; 4]).bytes().filter_map(stand_in)),
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(stand_in));
    }
    text
}

/// The octets of such a text.
pub fn name_octets(text: &str) -> Cow<'_, [u8]> {
    if !text.chars().any(|character| octet(character).is_some()) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut octets = Vec::with_capacity(text.len());
    for character in text.chars() {
        match octet(character) {
            Some(octet) => octets.push(octet),
            None => octets.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(octets)
}

/// A path or name as the system has it.
pub(super) fn system(name: &str) -> PathBuf {
    OsString::from_vec(name_octets(name).into_owned()).into()
}

/// Whether a name is that of an unfinished upload, which only those see who may write.
pub fn is_partial(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// The octet that a character stands for.
fn octet(character: char) -> Option<u8> {
    let place = u32::from(character).checked_sub(FIRST)?;
    let place = u8::try_from(place).ok().filter(|&place| place < FIRST_OCTET)?;
    Some(FIRST_OCTET + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_come_out_as_they_went_in() {
        for octets in [
            &b"plain"[..],
            "Mädchen 東京".as_bytes(),
            b"M\xfcller",
            b"\xff\xfe\x80",
            b"\xe6\x9d",
            "\u{ef80}\u{efff}x".as_bytes(),
            "\u{ef80}\u{fc}".as_bytes(),
            b"tab\t and \x1b",
        ] {
            assert_eq!(&*name_octets(&name_text(octets)), octets);
        }
        assert_eq!(name_text("Mädchen".as_bytes()), "Mädchen");
    }
}
