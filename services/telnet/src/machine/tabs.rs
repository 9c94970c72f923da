//! Logical tab stops in every Nth column (UCLA §2.6.6), for terminals that have none.

use core::num::NonZeroU8;

/// Turns HT into spaces. It follows the column through CR, LF and BS, and takes every other control
/// character, and the continuation octets of UTF-8, as having no width.
#[derive(Clone, Debug)]
pub struct TabExpansion {
    every: NonZeroU8,
    column: usize,
}

impl TabExpansion {
    /// Stops in every `every`th column; 8 is usual.
    pub fn new(every: NonZeroU8) -> TabExpansion {
        TabExpansion { every, column: 0 }
    }
    /// Appends `input` to `output`, every tab of it as spaces: at most 255 octets for one.
    pub fn expand(&mut self, input: &[u8], output: &mut Vec<u8>) {
        let every = usize::from(self.every.get());
        for &octet in input {
            match octet {
                b'\t' => {
                    let spaces = every - self.column % every;
                    output.resize(output.len() + spaces, b' ');
                    self.column = (self.column + spaces) % every;
                    continue;
                }
                b'\r' => self.column = 0,
                0x08 => self.column = self.column.saturating_sub(1),
                0..0x20 | 0x7f | 0x80..0xc0 => {}
                _ => self.column = self.column.wrapping_add(1),
            }
            output.push(octet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_reach_the_next_stop() {
        let mut tabs = TabExpansion::new(NonZeroU8::new(8).unwrap());
        let mut output = Vec::new();
        tabs.expand(b"ab\tc\r\n\tx\x08\ty", &mut output);
        tabs.expand(b"\t.\xc3\xa9\t|", &mut output);
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text, "ab      c\r\n        x\x08        y       .é      |");
    }
}
