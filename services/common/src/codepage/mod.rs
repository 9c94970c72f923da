//! EBCDIC code pages: what 3270 terminals, files of type E and Telnet with other charsets share.

mod tables;

use core::fmt;
use core::str::FromStr;

use tables::Differences;

/// SUB, which stands for what a code page does not have.
const SUBSTITUTE: u8 = 0x3f;
/// NL in EBCDIC.
const NEW_LINE: u8 = 0x15;
/// LF in EBCDIC.
const LINE_FEED: u8 = 0x25;
/// The currency sign, in whose place the pages 1140 to 1149 have the euro sign.
const CURRENCY: u8 = 0xa4;

/// An EBCDIC code page with the characters of ISO 8859-1. Pages 1140 to 1149 have the euro sign in the place of the
/// currency sign.
///
/// ```
/// use inhost_common::codepage::CodePage;
/// let page: CodePage = "1047".parse().unwrap();
/// assert_eq!(page.encode("[x]"), [0xad, 0xa7, 0xbd]);
/// assert_eq!(page.decode(&[0xc8, 0x89]), "Hi");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum CodePage {
    /// 037: United States, Canada, Brazil, Netherlands, Portugal.
    #[default]
    Cp037,
    /// 273: Austria, Germany.
    Cp273,
    /// 277: Denmark, Norway.
    Cp277,
    /// 278: Finland, Sweden.
    Cp278,
    /// 280: Italy.
    Cp280,
    /// 284: Spain, Latin America.
    Cp284,
    /// 285: United Kingdom.
    Cp285,
    /// 297: France.
    Cp297,
    /// 500: international.
    Cp500,
    /// 871: Iceland.
    Cp871,
    /// 1047: Latin-1 of open systems.
    Cp1047,
    /// 1140: 037 with the euro sign.
    Cp1140,
    /// 1141: 273 with the euro sign.
    Cp1141,
    /// 1142: 277 with the euro sign.
    Cp1142,
    /// 1143: 278 with the euro sign.
    Cp1143,
    /// 1144: 280 with the euro sign.
    Cp1144,
    /// 1145: 284 with the euro sign.
    Cp1145,
    /// 1146: 285 with the euro sign.
    Cp1146,
    /// 1147: 297 with the euro sign.
    Cp1147,
    /// 1148: 500 with the euro sign.
    Cp1148,
    /// 1149: 871 with the euro sign.
    Cp1149,
}

impl CodePage {
    /// Every code page.
    pub const ALL: [CodePage; 21] = [
        CodePage::Cp037,
        CodePage::Cp273,
        CodePage::Cp277,
        CodePage::Cp278,
        CodePage::Cp280,
        CodePage::Cp284,
        CodePage::Cp285,
        CodePage::Cp297,
        CodePage::Cp500,
        CodePage::Cp871,
        CodePage::Cp1047,
        CodePage::Cp1140,
        CodePage::Cp1141,
        CodePage::Cp1142,
        CodePage::Cp1143,
        CodePage::Cp1144,
        CodePage::Cp1145,
        CodePage::Cp1146,
        CodePage::Cp1147,
        CodePage::Cp1148,
        CodePage::Cp1149,
    ];

    /// Its number: 37, 1047 …
    pub fn number(self) -> u16 {
        use CodePage::*;
        match self {
            Cp037 => 37,
            Cp273 => 273,
            Cp277 => 277,
            Cp278 => 278,
            Cp280 => 280,
            Cp284 => 284,
            Cp285 => 285,
            Cp297 => 297,
            Cp500 => 500,
            Cp871 => 871,
            Cp1047 => 1047,
            Cp1140 => 1140,
            Cp1141 => 1141,
            Cp1142 => 1142,
            Cp1143 => 1143,
            Cp1144 => 1144,
            Cp1145 => 1145,
            Cp1146 => 1146,
            Cp1147 => 1147,
            Cp1148 => 1148,
            Cp1149 => 1149,
        }
    }
    const fn differences(self) -> Differences {
        use CodePage::*;
        match self {
            Cp037 | Cp1140 => &[],
            Cp273 | Cp1141 => tables::CP273,
            Cp277 | Cp1142 => tables::CP277,
            Cp278 | Cp1143 => tables::CP278,
            Cp280 | Cp1144 => tables::CP280,
            Cp284 | Cp1145 => tables::CP284,
            Cp285 | Cp1146 => tables::CP285,
            Cp297 | Cp1147 => tables::CP297,
            Cp500 | Cp1148 => tables::CP500,
            Cp871 | Cp1149 => tables::CP871,
            Cp1047 => tables::CP1047,
        }
    }
    /// Where a page with the euro sign differs from the one beside it in more than that.
    fn own_differences(self) -> Differences {
        match self {
            CodePage::Cp1143 => tables::CP1143,
            CodePage::Cp1149 => tables::CP1149,
            _ => &[],
        }
    }
    fn has_euro(self) -> bool {
        self.number() >= 1140
    }
    /// The graphic character set and code page (CGCSGID) of a Query Reply: set 697 or 695, and the page.
    pub fn graphic_set(self) -> u32 {
        let set: u32 = if self.has_euro() { 695 } else { 697 };
        set << 16 | u32::from(self.number())
    }
    /// The character of an octet; a control character for most of those below X'40'.
    pub fn character(self, octet: u8) -> char {
        let mut all = self.own_differences().iter().chain(self.differences());
        let differs = all.find(|(ebcdic, _)| *ebcdic == octet);
        let latin = differs.map_or(tables::BASE[usize::from(octet)], |(_, latin)| *latin);
        if latin == CURRENCY && self.has_euro() { '€' } else { char::from(latin) }
    }
    /// The octet of a character, if the page has it.
    pub fn octet(self, character: char) -> Option<u8> {
        let latin = match character {
            '€' if self.has_euro() => CURRENCY,
            '¤' if self.has_euro() => return None,
            _ => u8::try_from(u32::from(character)).ok()?,
        };
        // The own differences of a page exchange two characters, so that none is found twice.
        let mut all = self.own_differences().iter().chain(self.differences());
        if let Some((ebcdic, _)) = all.find(|(_, other)| *other == latin) {
            return Some(*ebcdic);
        }
        let ebcdic = tables::BASE.iter().position(|&base| base == latin)?;
        u8::try_from(ebcdic).ok()
    }
    /// What `text` is in EBCDIC: an octet for each character, SUB (X'3F') for those that the page does not have.
    pub fn encode(self, text: &str) -> Vec<u8> {
        text.chars().map(|character| self.octet(character).unwrap_or(SUBSTITUTE)).collect()
    }
    /// What `octets` say, control characters included.
    pub fn decode(self, octets: &[u8]) -> String {
        octets.iter().map(|&octet| self.character(octet)).collect()
    }
    /// The octet of EBCDIC of each of ISO 8859-1, for a page without the euro sign. NL ends lines in EBCDIC: line feed is
    /// NL here, as RFC 959 §3.1.1.2 has it, and next line (U+0085) is the line feed of EBCDIC.
    pub const fn from_latin(self) -> [u8; 256] {
        let latin = self.to_latin();
        let mut table = [0; 256];
        let mut octet = 0;
        while octet < 256 {
            table[latin[octet] as usize] = octet as u8;
            octet += 1;
        }
        table
    }
    /// The octet of ISO 8859-1 of each of EBCDIC: what [`from_latin`](Self::from_latin) turns around.
    pub const fn to_latin(self) -> [u8; 256] {
        let mut table = tables::BASE;
        let differences = self.differences();
        let mut at = 0;
        while at < differences.len() {
            table[differences[at].0 as usize] = differences[at].1;
            at += 1;
        }
        let next_line = table[NEW_LINE as usize];
        table[NEW_LINE as usize] = table[LINE_FEED as usize];
        table[LINE_FEED as usize] = next_line;
        table
    }
    /// What a screen shows for an octet: blanks for nulls and controls, `*` for DUP and `;` for Field Mark.
    pub fn shown(self, octet: u8) -> char {
        match octet {
            0x1c => '*',
            0x1e => ';',
            0..=0x3f | 0xff => ' ',
            _ => match self.character(octet) {
                // A soft hyphen is a format character in Unicode, and a hyphen on a screen.
                '\u{ad}' => '-',
                // A space that does not break is one that terminals may show in their own way.
                '\u{a0}' => ' ',
                character => character,
            },
        }
    }
}

impl fmt::Display for CodePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03}", self.number())
    }
}

/// A name that is not one of a code page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownCodePage(String);

impl fmt::Display for UnknownCodePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a code page; try 037, 273, 500, 1047 or 1140", self.0)
    }
}
impl core::error::Error for UnknownCodePage {}

impl FromStr for CodePage {
    type Err = UnknownCodePage;
    /// A number, with or without `cp`, `ibm-` or zeros before it.
    fn from_str(text: &str) -> Result<CodePage, UnknownCodePage> {
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.trim_start_matches("ibm").trim_start_matches("cp").trim_start_matches('-');
        let number: Option<u16> = digits.parse().ok();
        let found = number.and_then(|number| CodePage::ALL.into_iter().find(|page| page.number() == number));
        found.ok_or_else(|| UnknownCodePage(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_permutations_whose_line_feed_is_new_line() {
        for page in CodePage::ALL.into_iter().filter(|page| !page.has_euro()) {
            let (to, from) = (page.from_latin(), page.to_latin());
            for octet in 0..=255u8 {
                assert_eq!(from[usize::from(to[usize::from(octet)])], octet, "{page}");
                let own = page.octet(char::from(octet)).unwrap();
                let expected = match octet {
                    b'\n' => NEW_LINE,
                    0x85 => LINE_FEED,
                    _ => own,
                };
                assert_eq!(to[usize::from(octet)], expected, "{page}");
            }
        }
    }
}
