//! What a message says: its header fields, texts and parts (RFC 5322, RFC 2045), read with mail-parser.

use mail_parser::{
    Address, DateTime, HeaderValue, Message as Parsed, MessageParser, MessagePart, MimeHeaders, PartType,
};
use serde::Serialize;

use crate::envelope::Envelope;

/// The most parts of a message that are listed.
const PARTS: usize = 256;
/// The most addresses of a field that are listed.
const ADDRESSES: usize = 100;
/// The most header fields that are listed.
const FIELDS: usize = 1000;
/// The most octets of a text that are shown.
const TEXT_BYTES: usize = 1 << 20;
/// Octets of a text in which searches look.
const SEARCH_BYTES: usize = 32 << 10;
/// Characters of a text that a list shows.
const SNIPPET_CHARACTERS: usize = 140;

/// A mailbox of a header field.
#[derive(Serialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Person {
    /// The display name; empty for none.
    pub name: String,
    /// The address; empty where the field has none.
    pub address: String,
}

/// What a list of messages shows of one.
#[derive(Serialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The field From.
    pub from: Vec<Person>,
    /// The field To.
    pub to: Vec<Person>,
    /// The field Cc.
    pub cc: Vec<Person>,
    /// The subject, decoded.
    pub subject: String,
    /// The field Date as RFC 3339.
    pub date: Option<String>,
    /// The message identifier, without angle brackets.
    pub message_id: Option<String>,
    /// The beginning of the text.
    pub snippet: String,
    /// Whether there is HTML.
    pub has_html: bool,
    /// Parts that are attachments.
    pub attachments: usize,
}

/// What searches look at, in lower case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folded {
    /// Senders: of the header and of the envelope.
    pub from: String,
    /// Recipients: of the header and of the envelope.
    pub to: String,
    /// The subject.
    pub subject: String,
    /// The beginning of the text.
    pub text: String,
}

/// A message, read.
#[derive(Serialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// The header fields in order: name and value, unfolded.
    pub headers: Vec<(String, String)>,
    /// The field Reply-To.
    pub reply_to: Vec<Person>,
    /// The text for people: a part `text/plain`, or that of the HTML.
    pub text: Option<String>,
    /// The HTML as it came. Nothing of it is safe to show.
    pub html: Option<String>,
    /// The parts that are not containers.
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its number, by which it is asked for.
    pub number: u32,
    /// Its media type.
    pub media_type: String,
    /// The file name; empty for none.
    pub name: String,
    /// The content identifier, without angle brackets.
    pub content_id: Option<String>,
    /// Octets, decoded.
    pub size: usize,
    /// Whether it is an attachment, rather than shown as text.
    pub is_attachment: bool,
}

/// The message of `raw`; what is hardly one is its text.
fn parse(raw: &[u8]) -> Parsed<'_> {
    let is_one = |message: &Parsed<'_>| !message.parts.is_empty();
    MessageParser::default().parse(raw).filter(is_one).unwrap_or_else(|| Parsed {
        text_body: vec![0],
        parts: vec![MessagePart {
            body: PartType::Text(String::from_utf8_lossy(raw)),
            ..MessagePart::default()
        }],
        ..Parsed::default()
    })
}

/// What a list shows of a message, and what searches look at.
pub fn summarize(raw: &[u8], envelope: &Envelope) -> (Summary, Folded) {
    let message = parse(raw);
    let text = text_of(&message, SEARCH_BYTES).unwrap_or_default();
    let summary = Summary {
        from: people(message.from()),
        to: people(message.to()),
        cc: people(message.cc()),
        subject: message.subject().map(line).unwrap_or_default(),
        date: message.date().filter(|date| date.is_valid()).map(DateTime::to_rfc3339),
        message_id: message.message_id().map(line),
        snippet: text
            .split_whitespace()
            .flat_map(|word| [word, " "])
            .flat_map(str::chars)
            .take(SNIPPET_CHARACTERS)
            .collect(),
        has_html: html_of(&message).is_some(),
        attachments: message.attachments.iter().filter(|&&number| is_attachment(&message, number)).count(),
    };
    let fold = |people: &[&Vec<Person>], envelope: &[String]| {
        let people = people.iter().copied().flatten().flat_map(|person| [&person.name, &person.address]);
        let all: Vec<&str> = people.chain(envelope).map(String::as_str).collect();
        all.join("\n").to_lowercase()
    };
    let folded = Folded {
        from: fold(&[&summary.from], envelope.from.as_slice()),
        to: fold(&[&summary.to, &summary.cc], &envelope.to),
        subject: summary.subject.to_lowercase(),
        text: text.to_lowercase(),
    };
    (summary, folded)
}

/// A message, read.
pub fn contents(raw: &[u8]) -> Contents {
    let message = parse(raw);
    let numbered = (0..).zip(&message.parts);
    let leaves = numbered.filter(|(_, part)| !matches!(part.body, PartType::Multipart(_)));
    Contents {
        headers: message.headers().iter().take(FIELDS).filter_map(|header| field(raw, header)).collect(),
        reply_to: people(message.reply_to()),
        text: text_of(&message, TEXT_BYTES),
        html: html_of(&message).map(|html| cut(html, TEXT_BYTES).to_owned()),
        parts: leaves.take(PARTS).map(|(number, part)| describe(&message, number, part)).collect(),
    }
}

/// The media type and the octets of a part.
pub fn part(raw: &[u8], number: u32) -> Option<(Part, Vec<u8>)> {
    let message = parse(raw);
    let part = message.parts.get(usize::try_from(number).ok()?)?;
    (!matches!(part.body, PartType::Multipart(_)))
        .then(|| (describe(&message, number, part), part.contents().to_owned()))
}

/// The inline images by content identifier, with their media types, up to `bytes` of them.
pub fn inline_images(raw: &[u8], bytes: usize) -> Vec<(String, String, Vec<u8>)> {
    let message = parse(raw);
    let mut left = bytes;
    let image = |part: &MessagePart<'_>| {
        let (media_type, id) = (media_type(part), part.content_id()?);
        if !is_safe_image(&media_type) || part.contents().len() > left {
            return None;
        }
        left -= part.contents().len();
        Some((id.to_owned(), media_type, part.contents().to_owned()))
    };
    message.parts.iter().take(PARTS).filter_map(image).collect()
}

/// Whether a browser may show a type as an image. SVG is a document, and may hold scripts.
pub fn is_safe_image(media_type: &str) -> bool {
    matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "image/bmp" | "image/avif")
}

/// A time as RFC 3339 in UTC.
pub fn rfc3339(unix_seconds: u64) -> String {
    DateTime::from_timestamp(i64::try_from(unix_seconds).unwrap_or(i64::MAX)).to_rfc3339()
}

/// The time that a text of RFC 3339 means, in seconds since 1970, or the beginning of a day `2026-11-25`.
pub fn unix_seconds(text: &str) -> Option<i64> {
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let is_shaped =
        whole.len() <= 32 && whole.as_bytes().get(10).is_some_and(|octet| matches!(octet, b'T' | b't'));
    let date = DateTime::parse_rfc3339(&whole).filter(DateTime::is_valid)?;
    is_shaped.then(|| date.to_timestamp())
}

fn describe(message: &Parsed<'_>, number: u32, part: &MessagePart<'_>) -> Part {
    Part {
        number,
        media_type: media_type(part),
        name: part.attachment_name().map(line).unwrap_or_default(),
        content_id: part.content_id().map(line),
        size: part.contents().len(),
        is_attachment: is_attachment(message, number),
    }
}

/// Whether a part is an attachment. An image with an identifier belongs to the HTML.
fn is_attachment(message: &Parsed<'_>, number: u32) -> bool {
    let belongs = |part: &MessagePart<'_>| part.content_id().is_some() && is_safe_image(&media_type(part));
    let has_html = html_of(message).is_some();
    message.attachments.contains(&number)
        && message.parts.get(number as usize).is_some_and(|part| !(has_html && belongs(part)))
}

fn media_type(part: &MessagePart<'_>) -> String {
    let named = part.content_type().map(|given| match given.subtype() {
        Some(subtype) => format!("{}/{subtype}", given.ctype()),
        None => given.ctype().to_owned(),
    });
    let fallback = match &part.body {
        PartType::Text(_) => "text/plain",
        PartType::Html(_) => "text/html",
        PartType::Message(_) => "message/rfc822",
        _ => "application/octet-stream",
    };
    let token = |text: &String| {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+/".contains(c);
        text.len() <= 100 && text.contains('/') && text.chars().all(is_token)
    };
    named.map(|name| name.to_ascii_lowercase()).filter(token).unwrap_or_else(|| fallback.to_owned())
}

fn text_of(message: &Parsed<'_>, limit: usize) -> Option<String> {
    message.body_text(0).map(|text| cut(&text, limit).to_owned())
}

fn html_of<'a>(message: &'a Parsed<'_>) -> Option<&'a str> {
    message.html_bodies().find_map(|part| match &part.body {
        PartType::Html(html) => Some(&**html),
        _ => None,
    })
}

fn people(address: Option<&Address<'_>>) -> Vec<Person> {
    let all = address.map(Address::iter).into_iter().flatten().take(ADDRESSES);
    let text = |text: Option<&str>| text.map(line).unwrap_or_default();
    all.map(|person| Person { name: text(person.name()), address: text(person.address()) }).collect()
}

/// A field's name and its value without the line ends of its folds (RFC 5322 §2.2.3).
fn field(raw: &[u8], header: &mail_parser::Header<'_>) -> Option<(String, String)> {
    let value = match &header.value {
        HeaderValue::Text(text) => line(text),
        _ => {
            let octets = raw.get(header.offset_start as usize..header.offset_end as usize)?;
            line(&String::from_utf8_lossy(octets))
        }
    };
    Some((header.name().to_owned(), value.trim().to_owned()))
}

/// A text as one line.
fn line(text: &str) -> String {
    let lines = cut(text, TEXT_BYTES).split(['\r', '\n']).map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// The beginning of a text, of at most `limit` octets.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_everything() {
        let raw = b"Received: from a\r\n\tby b\r\nFrom: =?utf-8?Q?Ada_L=C3=B6ve?= <ada@example.net>\r\n\
            To: Bob <bob@example.org>, eve@example.org\r\nSubject: =?utf-8?B?8J+SjA==?= two\r\n words\r\n\
            Date: Wed, 25 Nov 2026 10:00:00 +0100\r\nMessage-ID: <m1@example.net>\r\nMIME-Version: 1.0\r\n\
            Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: multipart/alternative; boundary=y\r\n\r\n\
            --y\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
            Gr=FC=DFe\r\n--y\r\nContent-Type: text/html\r\n\r\n<p>Hi <img src=\"cid:i1\">\r\n--y--\r\n\
            --x\r\nContent-Type: IMAGE/PNG; name=p.png\r\nContent-ID: <i1>\r\nContent-Disposition: inline\r\n\
            Content-Transfer-Encoding: base64\r\n\r\niVBORw==\r\n--x\r\nContent-Type: text/csv\r\n\
            Content-Disposition: attachment; filename=\"a b.csv\"\r\n\r\na,b\r\n--x--\r\n";
        let envelope = Envelope {
            from: Some("bounce@example.net".into()),
            to: vec!["hidden@example.org".into()],
            ..Default::default()
        };
        let (summary, folded) = summarize(raw, &envelope);
        assert_eq!((&*summary.subject, &*summary.from[0].name), ("💌 two words", "Ada Löve"));
        assert_eq!((summary.to.len(), summary.date.as_deref()), (2, Some("2026-11-25T10:00:00+01:00")));
        assert_eq!((&*summary.snippet, summary.has_html, summary.attachments), ("Grüße ", true, 1));
        assert!(
            folded.from.contains("bounce@") && folded.to.contains("hidden@") && folded.text.contains("grüße")
        );
        let contents = contents(raw);
        assert_eq!(contents.headers[0], ("Received".into(), "from a by b".into()));
        let names: Vec<_> =
            contents.parts.iter().map(|part| (&*part.media_type, &*part.name, part.size)).collect();
        let expected = [
            ("text/plain", "", 7),
            ("text/html", "", 24),
            ("image/png", "p.png", 4),
            ("text/csv", "a b.csv", 3),
        ];
        assert_eq!(names, expected);
        let (csv, octets) = part(raw, contents.parts[3].number).unwrap();
        assert_eq!((csv.is_attachment, &octets[..]), (true, &b"a,b"[..]));
        assert_eq!(part(raw, 0), None, "a container");
        assert_eq!(inline_images(raw, 10), [("i1".into(), "image/png".into(), b"\x89PNG".to_vec())]);
        assert_eq!(inline_images(raw, 3), []);
    }

    #[test]
    fn what_is_hardly_a_message_is_shown_all_the_same() {
        for raw in [
            &b""[..],
            b"\r\n",
            b"no header at all\xff",
            b"A: b",
            b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x",
        ] {
            let (summary, _) = summarize(raw, &Envelope::default());
            assert_eq!(summary.subject, "");
            let _ = contents(raw);
        }
        assert_eq!(cut("aäb", 2), "a");
        assert_eq!(
            (unix_seconds("1970-01-02"), unix_seconds("1970-01-01T01:00:00+01:00")),
            (Some(86_400), Some(0))
        );
        assert_eq!([unix_seconds("yesterday"), unix_seconds("1970-13-41"), unix_seconds("äöüäö")], [None; 3]);
    }
}
