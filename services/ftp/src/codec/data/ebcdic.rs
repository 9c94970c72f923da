//! EBCDIC, code page 1047: the one of Unix services on the mainframes, one to one with ISO 8859-1.

use inhost_common::CodePage;

/// Line feed is NL here, as RFC 959 §3.1.1.2 has it.
const TO: [u8; 256] = CodePage::Cp1047.from_latin();
const FROM: [u8; 256] = CodePage::Cp1047.to_latin();

/// The EBCDIC octet of one of ISO 8859-1.
pub fn to_ebcdic(octet: u8) -> u8 {
    TO[usize::from(octet)]
}

/// The octet of ISO 8859-1 of one of EBCDIC.
pub fn from_ebcdic(octet: u8) -> u8 {
    FROM[usize::from(octet)]
}
