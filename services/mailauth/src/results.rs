//! The `Authentication-Results` field (RFC 8601): what was checked, for the reader of the message; and strangers' fields
//! that claim to be ours.

use crate::check::Report;
use crate::dmarc::DmarcVerdict;
use crate::message::{Message, MessageError};
use crate::spf::SpfResult;
use std::borrow::Cow;

/// Name of the field.
pub const FIELD_NAME: &str = "Authentication-Results";
/// Octets of a value or of a reason that are shown.
const SHOWN_BYTES: usize = 300;

impl Report {
    /// The field `Authentication-Results` with its line end, for the front of the message (RFC 8601). It is
    /// always ASCII.
    pub fn field(&self) -> String {
        let mut field = format!("{FIELD_NAME}: {}", value(&self.authserv_id));
        let spf = |result: &SpfResult, property: &str, of: &str| {
            let reason = reason(&result.reason);
            format!("spf={}{reason} smtp.{property}={}", result.verdict, value(of))
        };
        let mut results = Vec::new();
        if !self.envelope.helo.is_empty() {
            results.push(spf(&self.spf_helo, "helo", &self.envelope.helo));
        }
        if !self.envelope.sender.is_empty() {
            results.push(spf(&self.spf, "mailfrom", &self.envelope.sender));
        }
        for result in &self.dkim {
            let mut text = format!("dkim={}{}", result.verdict, reason(&result.reason));
            let algorithm = result.algorithm.map(|algorithm| algorithm.to_string()).unwrap_or_default();
            let properties =
                [("d", &result.domain), ("s", &result.selector), ("a", &algorithm), ("b", &result.signature)];
            for (name, of) in properties.into_iter().filter(|(_, of)| !of.is_empty()) {
                text += &format!(" header.{name}={}", value(of));
            }
            results.push(text);
        }
        if self.dkim.is_empty() {
            results.push("dkim=none".to_owned());
        }
        let dmarc = &self.dmarc;
        let mut text = format!("dmarc={}{}", dmarc.verdict, reason(&dmarc.reason));
        if !dmarc.domain.is_empty() {
            text += &format!(" header.from={}", value(&dmarc.domain));
        }
        if dmarc.verdict == DmarcVerdict::Fail {
            text += &format!(" policy.dmarc={}", dmarc.policy);
        }
        results.push(text);
        for result in results {
            field += ";\r\n\t";
            field += &result;
        }
        field += "\r\n";
        field
    }
}

/// ` reason="…"`, where there is one.
fn reason(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" reason={}", quoted(text)) }
}

/// A value (RFC 8601 §2.2): a token or an address as it is, else in quotes.
fn value(text: &str) -> Cow<'_, str> {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`{|}~@".contains(&octet);
    match !text.is_empty() && text.len() <= SHOWN_BYTES && text.bytes().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(quoted(text)),
    }
}

/// A quoted string of printable ASCII; what else there was is a question mark.
fn quoted(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(SHOWN_BYTES)];
    let letter = |c: char| match c {
        '"' | '\\' => '\'',
        ' '..='~' => c,
        _ => '?',
    };
    format!("\"{}\"", shown.chars().map(letter).collect::<String>())
}

/// `message` without the fields `Authentication-Results` that say that they are from one of `authserv_ids`, or whose
/// author cannot be read (RFC 8601 §5). Signatures are checked before: they may cover such a field.
pub fn without_forged_results<'a>(
    message: &'a [u8],
    authserv_ids: &[&str],
) -> Result<Cow<'a, [u8]>, MessageError> {
    let parsed = Message::parse(message)?;
    let is_forged = |value: &[u8]| match authserv_id(&String::from_utf8_lossy(value)) {
        Some(id) => authserv_ids.iter().any(|own| bare(own).eq_ignore_ascii_case(bare(&id))),
        None => true,
    };
    let forged: Vec<&[u8]> = parsed
        .fields_of(FIELD_NAME)
        .filter(|field| is_forged(field.value))
        .map(|field| field.whole)
        .collect();
    if forged.is_empty() {
        return Ok(Cow::Borrowed(message));
    }
    let mut kept = Vec::with_capacity(message.len());
    let mut from = 0;
    for field in forged {
        let at = field.as_ptr().addr() - message.as_ptr().addr();
        kept.extend_from_slice(&message[from..at]);
        from = at + field.len();
    }
    kept.extend_from_slice(&message[from..]);
    Ok(Cow::Owned(kept))
}

fn bare(id: &str) -> &str {
    id.strip_suffix('.').unwrap_or(id)
}

/// The identifier at the front of a field's value: behind comments, as it is or in quotes. `None` where there is none.
fn authserv_id(value: &str) -> Option<String> {
    let (mut id, mut depth, mut is_quoted) = (String::new(), 0_u32, false);
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' if depth > 0 => {
                let _ = characters.next();
            }
            '\\' if is_quoted => id.push(characters.next()?),
            '"' if depth == 0 => is_quoted = !is_quoted,
            _ if is_quoted => id.push(c),
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            ';' => break,
            c if c.is_whitespace() => {
                if !id.is_empty() {
                    break;
                }
            }
            c if c.is_control() => return None,
            c => id.push(c),
        }
    }
    let is_whole = depth == 0 && !is_quoted && !id.is_empty();
    is_whole.then(|| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_results_are_removed_however_they_are_written() {
        for own in [
            "Authentication-Results: mx.example.org; spf=pass\r\n",
            "authentication-results :\r\n MX.example.ORG 1;\r\n\tdkim=pass\r\n",
            "Authentication-Results: (a (nested) comment) mx.example.org.; none\r\n",
            "Authentication-Results: \"mx.\\example.org\"; none\r\n",
            "Authentication-Results: mx.exa(c)mple.org; none\r\n",
            "Authentication-Results:mx.example.org(c);none\n",
            "Authentication-Results: ; spf=pass\r\n",
            "Authentication-Results: (mx.example.org; spf=pass\r\n",
        ] {
            let text = format!("A: 1\r\n{own}Authentication-Results: other.example; none\r\n{own}\r\n{own}");
            let cleaned = without_forged_results(text.as_bytes(), &["mx.example.org"]).unwrap();
            let wanted = format!("A: 1\r\nAuthentication-Results: other.example; none\r\n\r\n{own}");
            assert_eq!(String::from_utf8_lossy(&cleaned), wanted);
        }
        let clean = b"X-Authentication-Results: mx.example.org; none\r\n\r\n";
        assert!(matches!(without_forged_results(clean, &["mx.example.org"]), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn values_cannot_end_the_field() {
        assert_eq!(value("a@b.example"), "a@b.example");
        assert_eq!(value("a\r\nX: \"b\" \u{202e}"), "\"a??X: 'b' ?\"");
        assert_eq!(value(&"é".repeat(1000)).len(), 2 + SHOWN_BYTES / 2);
    }
}
