//! The graphic characters behind Graphic Escape; the code pages are those of `inhost_common`.

/// What a terminal shows for an octet behind Graphic Escape: the box-drawing characters and a few signs of code page 310.
/// Others, which are APL, give a middle dot.
pub fn graphic_character(octet: u8) -> char {
    match octet {
        0x00 | 0x40 => ' ',
        0x85 | 0xbf => '│',
        0xa2 => '─',
        0xc5 => '┌',
        0xd5 => '┐',
        0xc4 => '└',
        0xd4 => '┘',
        0xc6 => '├',
        0xd6 => '┤',
        0xc7 => '┴',
        0xd7 => '┬',
        0xd3 => '┼',
        0x8c => '≤',
        0xae => '≥',
        0xbe => '≠',
        0xb8 => '÷',
        0xb6 => '×',
        0xa3 => '•',
        0x8a => '↑',
        0x8b => '↓',
        0x8f => '→',
        0x9f => '←',
        _ => '·',
    }
}
