//! Macros of SPF (RFC 7208 §7).

use super::request::SpfRequest;
use crate::domain::{NAME_BYTES, of_address};
use inhost_base::IpAddr;

/// Longest text that an expansion may give, in octets.
const EXPANDED_BYTES: usize = 4096;

/// Where a macro string occurs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// A domain-spec: it must end as a domain does.
    Domain,
    /// The value of a modifier that is not known.
    Unknown,
    /// An explanation: spaces and three more macros are allowed.
    Explanation,
}

/// A macro string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(char),
    /// `%%`, `%_` or `%-`.
    Escape(&'static str),
    Macro(Macro),
}

/// `%{letter parts r delimiters}`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Macro {
    letter: char,
    /// Parts kept, from the right. `None`: all.
    parts: Option<usize>,
    is_reversed: bool,
    delimiters: String,
    is_escaped: bool,
}

impl Text {
    /// Reads a text. `None` where its syntax is wrong.
    pub(crate) fn parse(text: &str, context: Context) -> Option<Text> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(first) = rest.chars().next() {
            let after = &rest[first.len_utf8()..];
            (rest, _) = match first {
                '%' => {
                    let (piece, length) = escape_or_macro(after, context)?;
                    (&after[length..], pieces.push(piece))
                }
                ' ' if context == Context::Explanation => (after, pieces.push(Piece::Literal(' '))),
                c if c.is_ascii_graphic() => (after, pieces.push(Piece::Literal(c))),
                _ => return None,
            };
        }
        let text = Text(pieces);
        (context != Context::Domain || text.ends_as_domain()).then_some(text)
    }
    /// Start of the prefix lengths after a domain-spec, which may have slashes itself.
    pub(crate) fn end_of_domain(text: &str) -> usize {
        let without = |text: &str, slashes: &str| {
            let bare = text.trim_end_matches(|c: char| c.is_ascii_digit());
            bare.strip_suffix(slashes).filter(|_| bare.len() < text.len()).map_or(text.len(), str::len)
        };
        let six = without(text, "//");
        without(&text[..six], "/")
    }
    /// RFC 7208 §7.1: `domain-end`, a macro or a dot with a top label.
    fn ends_as_domain(&self) -> bool {
        let tail: String = self.0.rsplit(|piece| !matches!(piece, Piece::Literal(_))).next().map_or_else(
            String::new,
            |literals| {
                literals.iter().map(|piece| if let Piece::Literal(c) = piece { *c } else { '.' }).collect()
            },
        );
        if tail.is_empty() {
            return !self.0.is_empty();
        }
        let Some((_, top)) = tail.strip_suffix('.').unwrap_or(&tail).rsplit_once('.') else { return false };
        let is_letter_or_digit = |c: char| c.is_ascii_alphanumeric();
        top.starts_with(is_letter_or_digit)
            && top.ends_with(is_letter_or_digit)
            && top.chars().all(|c| c == '-' || is_letter_or_digit(c))
            && !top.chars().all(|c| c.is_ascii_digit())
    }
    /// Whether the validated name of the client is needed.
    pub(crate) fn needs_name(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Macro(Macro { letter: 'p', .. })))
    }
    /// The text with values for its macros; `name` is the validated name of the client.
    pub(crate) fn expand(&self, request: &SpfRequest<'_>, domain: &str, name: &str) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(c) => text.push(*c),
                Piece::Escape(escape) => text.push_str(escape),
                Piece::Macro(the) => the.expand(&value(the.letter, request, domain, name), &mut text),
            }
            if text.len() > EXPANDED_BYTES {
                break;
            }
        }
        text
    }
    /// The expanded domain. Labels on the left are removed until it fits (RFC 7208 §7.3).
    pub(crate) fn expand_domain(&self, request: &SpfRequest<'_>, domain: &str, name: &str) -> String {
        let text = self.expand(request, domain, name);
        let mut rest = text.strip_suffix('.').unwrap_or(&text);
        while rest.len() > NAME_BYTES {
            let Some((_, shorter)) = rest.split_once('.') else { break };
            rest = shorter;
        }
        rest.to_ascii_lowercase()
    }
}

/// What follows a per cent sign, and its length.
fn escape_or_macro(text: &str, context: Context) -> Option<(Piece, usize)> {
    for (sign, escape) in [('%', "%"), ('_', " "), ('-', "%20")] {
        if text.starts_with(sign) {
            return Some((Piece::Escape(escape), 1));
        }
    }
    let inner = text.strip_prefix('{')?.split_once('}')?.0;
    let letter = inner.chars().next()?;
    let rest = inner.get(1..)?;
    let known = if context == Context::Explanation { "slodiphvcrt" } else { "slodiphv" };
    if !known.contains(letter.to_ascii_lowercase()) {
        return None;
    }
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let parts = match &rest[..digits] {
        "" => None,
        digits => Some(digits.parse::<usize>().unwrap_or(usize::MAX)).filter(|parts| *parts > 0).map(Some)?,
    };
    let rest = &rest[digits..];
    let is_reversed = rest.starts_with(['r', 'R']);
    let delimiters = &rest[usize::from(is_reversed)..];
    if !delimiters.chars().all(|c| ".-+,/_=".contains(c)) {
        return None;
    }
    let delimiters = if delimiters.is_empty() { "." } else { delimiters }.to_owned();
    let is_escaped = letter.is_ascii_uppercase();
    let letter = letter.to_ascii_lowercase();
    Some((Piece::Macro(Macro { letter, parts, is_reversed, delimiters, is_escaped }), inner.len() + 2))
}

impl Macro {
    fn expand(&self, value: &str, text: &mut String) {
        let mut parts: Vec<&str> = value.split(|c| self.delimiters.contains(c)).collect();
        if self.is_reversed {
            parts.reverse();
        }
        let first = parts.len().saturating_sub(self.parts.unwrap_or(usize::MAX));
        let value = parts[first..].join(".");
        for octet in value.bytes() {
            let is_plain = octet.is_ascii_alphanumeric() || b"-._~".contains(&octet);
            match self.is_escaped && !is_plain {
                true => text.push_str(&format!("%{octet:02X}")),
                false if octet.is_ascii() => text.push(char::from(octet)),
                // A local part that is not ASCII matches no name.
                false => text.push('?'),
            }
        }
    }
}

fn value(letter: char, request: &SpfRequest<'_>, domain: &str, name: &str) -> String {
    let local = request.sender.rsplit_once('@').map_or(request.sender, |(local, _)| local);
    match letter {
        's' => request.sender.to_owned(),
        'l' => local.to_owned(),
        'o' => of_address(request.sender).to_owned(),
        'd' => domain.to_owned(),
        'i' => match request.client {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let nibbles = |octet: u8| [octet >> 4, octet & 15].map(|nibble| format!("{nibble:X}"));
                address.octets().into_iter().flat_map(nibbles).collect::<Vec<_>>().join(".")
            }
        },
        'p' => name.to_owned(),
        'v' => if request.client.is_ipv4() { "in-addr" } else { "ip6" }.to_owned(),
        'h' => request.helo.to_owned(),
        'c' => request.client.to_string(),
        'r' => request.receiver.to_owned(),
        _ => request.now_seconds.to_string(),
    }
}
