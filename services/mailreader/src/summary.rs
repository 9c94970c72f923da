//! A message as a line of the list: what its header says.

use mail_parser::{Address, DateTime, HeaderValue, MessageParser};

use crate::text::clean_line;

/// Octets of a header that are read.
pub const HEADER_BYTES: usize = 64 << 10;
/// Characters of a name or a subject that are kept.
const TEXT_CHARACTERS: usize = 250;
/// Identifiers of earlier messages that are kept.
pub(crate) const REFERENCES: usize = 10;
/// Octets of an identifier of a message.
const ID_BYTES: usize = 250;

/// What the list shows of a message. All texts are clean.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// The author's name, else the address.
    pub from: String,
    /// The author's address.
    pub address: String,
    /// The first recipient.
    pub to: String,
    /// What it is about.
    pub subject: String,
    /// When it was written, in seconds since 1970; when it was delivered, if it does not say.
    pub date_s: i64,
    /// The same as its author's clock showed it: `2026-11-25 14:03`.
    pub date: String,
    /// Its size in octets.
    pub size_bytes: u64,
    /// Its identifier.
    pub id: Option<String>,
    /// Identifiers of the messages before it; the last is that which it answers.
    pub references: Vec<String>,
}

impl Summary {
    /// Of a message that begins with `octets`.
    pub fn parse(octets: &[u8], size_bytes: u64, delivered_s: i64) -> Summary {
        let octets = octets.get(..HEADER_BYTES).unwrap_or(octets);
        let Some(parsed) = MessageParser::default().parse_headers(octets) else {
            return Summary {
                size_bytes,
                date_s: delivered_s,
                date: shown(delivered_s),
                ..Summary::default()
            };
        };
        let (from, address) = first(parsed.from());
        let date = parsed.date().filter(|date| date.is_valid());
        let mut references = identifiers(parsed.references());
        // An answer names what it answers last (RFC 5322 §3.6.4).
        if let Some(answered) = identifiers(parsed.in_reply_to()).into_iter().next()
            && references.last() != Some(&answered)
        {
            references.push(answered);
        }
        references.drain(..references.len().saturating_sub(REFERENCES));
        Summary {
            from,
            address,
            to: first(parsed.to()).0,
            subject: clean_line(parsed.subject().unwrap_or_default(), TEXT_CHARACTERS),
            date_s: date.map_or(delivered_s, DateTime::to_timestamp),
            date: date.map_or_else(|| shown(delivered_s), written),
            size_bytes,
            id: parsed.message_id().and_then(identifier),
            references,
        }
    }
}

/// The first address: its name, else itself; and itself.
fn first(list: Option<&Address<'_>>) -> (String, String) {
    let Some(one) = list.and_then(Address::first) else { return Default::default() };
    let text = |text: Option<&str>| clean_line(text.unwrap_or_default(), TEXT_CHARACTERS);
    let (name, address) = (text(one.name()), text(one.address()));
    (if name.is_empty() { address.clone() } else { name }, address)
}

/// An identifier of a message that may stand in a header: printable ASCII without brackets.
pub(crate) fn identifier(text: &str) -> Option<String> {
    let text = text.trim();
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | ',');
    (!text.is_empty() && text.len() <= ID_BYTES && text.chars().all(is_plain)).then(|| text.to_owned())
}

/// Identifiers of a header field.
pub(crate) fn identifiers(value: &HeaderValue<'_>) -> Vec<String> {
    match value {
        HeaderValue::Text(text) => identifier(text).into_iter().collect(),
        HeaderValue::TextList(all) => all.iter().filter_map(|text| identifier(text)).collect(),
        _ => Vec::new(),
    }
}

fn shown(unix_s: i64) -> String {
    written(&DateTime::from_timestamp(unix_s))
}

/// `2026-11-25 14:03`.
pub(crate) fn written(date: &DateTime) -> String {
    format!("{:04}-{:02}-{:02} {:02}:{:02}", date.year, date.month, date.day, date.hour, date.minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_becomes_a_line() {
        let text = b"From: =?utf-8?q?Ada_L=C3=B6velace?= <ada@example.net>\nTo: bob@example.org\n\
            Subject: =?utf-8?b?R3LDvMOfZQ==?=\n =?utf-8?q?_=1B[2J?=\nDate: Wed, 25 Nov 2026 02:08:36 +0100\n\
            Message-ID: <1@x>\nReferences: <a@x> <b@x>\nIn-Reply-To: <b@x>\n\ntext";
        let summary = Summary::parse(text, 7, 1);
        assert_eq!((summary.from.as_str(), summary.address.as_str()), ("Ada Lövelace", "ada@example.net"));
        assert_eq!(summary.subject, "Grüße \u{fffd}[2J");
        assert_eq!((summary.date_s, summary.date.as_str()), (1_795_568_916, "2026-11-25 02:08"));
        assert_eq!((summary.id.as_deref(), summary.references.len()), (Some("1@x"), 2));
        let empty = Summary::parse(b"", 0, 86_400);
        assert_eq!((empty.date.as_str(), empty.from.as_str()), ("1970-01-02 00:00", ""));
    }
}
