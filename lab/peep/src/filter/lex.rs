//! Words of a filter.

use super::FilterError;

/// The longest filter, in bytes, and so the most words.
pub(super) const MAX_BYTES: usize = 8192;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// A name, an address, a number or a range of numbers.
    Word(&'a str),
    /// An operator or a bracket.
    Symbol(&'static str),
}

/// Longer ones first.
const SYMBOLS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "(", ")", "[", "]", "!", "=", "<", ">", "+", "-", "*",
    "/", "%", "&", "|", "^",
];

/// Tokens with their places.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, FilterError> {
    if text.len() > MAX_BYTES {
        return Err(FilterError { at: MAX_BYTES, text: format!("a filter has at most {MAX_BYTES} bytes") });
    }
    let bytes = text.as_bytes();
    let (mut tokens, mut at, mut brackets) = (Vec::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() || byte == b',' {
            at += 1;
            continue;
        }
        // A backslash says that what follows is a name and not a keyword.
        if byte == b'\\' {
            at += 1;
        }
        let is_in_word = |byte: u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'.' | b'_')
                || brackets == 0 && matches!(byte, b'-' | b':')
        };
        let length = bytes[at..].iter().take_while(|&&byte| is_in_word(byte)).count();
        let starts = bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b':');
        // Names of flags and types have hyphens within brackets, too.
        let is_name = bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
        let length = match is_name {
            true => bytes[at..]
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(byte))
                .count(),
            false => length,
        };
        if starts && length > 0 && !(brackets > 0 && bytes[at] == b':') {
            let name = &text[at..at + length];
            // `tcp[tcpflags]`, and the size behind a name within brackets.
            let name = if brackets > 0 { name.split(':').next().unwrap_or(name) } else { name };
            tokens.push((at, Token::Word(name)));
            at += name.len().max(1);
            continue;
        }
        if brackets > 0 && byte == b':' {
            tokens.push((at, Token::Symbol(":")));
            at += 1;
            continue;
        }
        let Some(symbol) = SYMBOLS.iter().find(|symbol| text[at..].starts_with(**symbol)) else {
            let found = text[at..].chars().next().unwrap_or(' ');
            return Err(FilterError { at, text: format!("{found:?} has no meaning here") });
        };
        match *symbol {
            "[" => brackets += 1,
            "]" => brackets = 0,
            _ => {}
        }
        tokens.push((at, Token::Symbol(symbol)));
        at += symbol.len();
    }
    Ok(tokens)
}
