//! Texts that end with an octet of zero, one after another.

/// A text is too long, or not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidText;

/// Whether a text can be the name of a user: it is not empty, and has no control characters, which would reach logs and
/// terminals.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

/// Reads one text after another, of bounded length.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    text: Vec<u8>,
}

impl Fields {
    /// Takes octets from the front of `input`: a whole text of at most `limit_bytes`, or `None` when there
    /// is not a whole one yet.
    ///
    /// # Errors
    /// It is longer, or not UTF-8.
    pub fn take(&mut self, input: &mut &[u8], limit_bytes: usize) -> Result<Option<String>, InvalidText> {
        while let Some((&octet, rest)) = input.split_first() {
            *input = rest;
            if octet == 0 {
                return String::from_utf8(std::mem::take(&mut self.text)).map(Some).map_err(|_| InvalidText);
            }
            if self.text.len() >= limit_bytes {
                return Err(InvalidText);
            }
            self.text.push(octet);
        }
        Ok(None)
    }
}
