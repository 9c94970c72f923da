//! A message as a person reads it: header, text, attachments; and what an answer to it needs.

use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::summary::{REFERENCES, identifier, identifiers, written};
use crate::text::{clean, clean_line, unflow};

/// Octets of text that are shown.
pub const TEXT_BYTES: usize = 1 << 20;
/// Octets of HTML that are read.
const HTML_BYTES: usize = 256 << 10;
/// Elements of HTML within one another; with more, only its text is taken.
const HTML_DEPTH: usize = 100;
/// Columns of text that was HTML.
const HTML_COLUMNS: usize = 78;
/// Characters of a header field that are shown.
const FIELD_CHARACTERS: usize = 2000;
/// Header fields that are shown, and attachments that are listed.
const FIELDS: usize = 500;
/// Addresses of a message that an answer goes to.
const ADDRESSES: usize = 200;
/// Multiparts and messages that a message may hold; with more, it is shown as it is.
const CONTAINERS: usize = 200;
/// Characters of a file's name.
const NAME_CHARACTERS: usize = 100;

/// What the receiving host found about the sender (RFC 8601).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checks {
    /// Whether DMARC passed, or SPF or DKIM where there is no DMARC.
    pub is_pass: bool,
    /// Each method with its result: `dmarc=pass spf=pass`.
    pub text: String,
}

/// A part that can be saved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// A name without folders, fit for a file.
    pub name: String,
    /// Media type.
    pub kind: String,
    /// Its size in octets.
    pub size_bytes: usize,
}

/// A message that is read. All texts are clean, besides those that [`Document::attachment`] gives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Document {
    /// Header fields that matter.
    pub fields: Vec<(&'static str, String)>,
    /// Lines of the whole header, as they are.
    pub header: Vec<String>,
    /// What our host found about the sender; none if it has not checked.
    pub checks: Option<Checks>,
    /// The text; lines end in line feeds.
    pub text: String,
    /// Whether the text was HTML.
    pub is_html: bool,
    /// Whether more text is there than is shown.
    pub is_cut: bool,
    /// Parts that can be saved.
    pub attachments: Vec<Attachment>,
    /// Author, and where answers go.
    pub from: Vec<String>,
    /// See `from`.
    pub reply_to: Vec<String>,
    /// Recipients.
    pub to: Vec<String>,
    /// Recipients of copies.
    pub cc: Vec<String>,
    /// Recipients that others are not told of; in drafts.
    pub bcc: Vec<String>,
    /// What it is about.
    pub subject: String,
    /// When it was written, as its author's clock showed it.
    pub date: String,
    /// Its identifier.
    pub id: Option<String>,
    /// The identifier of what it answers.
    pub in_reply_to: Option<String>,
    /// Identifiers of the messages before it.
    pub references: Vec<String>,
}

impl Document {
    /// Reads a message. Only `host` is believed about checks of the sender.
    pub fn parse(octets: &[u8], host: &str) -> Document {
        let Some(parsed) = parse(octets) else {
            let (text, is_cut) = limited(&String::from_utf8_lossy(octets));
            return Document { text: clean(&text), is_cut, ..Document::default() };
        };
        let (text, is_html, is_cut) = body(&parsed);
        let mut document = Document {
            header: header(octets, &parsed),
            checks: checks(octets, &parsed, host),
            text: clean(&text),
            is_html,
            is_cut,
            attachments: attachments(&parsed),
            from: addresses(parsed.from()),
            reply_to: addresses(parsed.reply_to()),
            to: addresses(parsed.to()),
            cc: addresses(parsed.cc()),
            bcc: addresses(parsed.bcc()),
            subject: clean_line(parsed.subject().unwrap_or_default(), FIELD_CHARACTERS),
            date: parsed.date().filter(|date| date.is_valid()).map(written).unwrap_or_default(),
            id: parsed.message_id().and_then(identifier),
            in_reply_to: identifiers(parsed.in_reply_to()).into_iter().next(),
            references: identifiers(parsed.references()),
            fields: Vec::new(),
        };
        document.references.drain(..document.references.len().saturating_sub(REFERENCES));
        document.fields = document.brief(parsed.date().map(mail_parser::DateTime::to_rfc822));
        document
    }
    /// The octets of an attachment of the message `octets`.
    pub fn attachment(octets: &[u8], index: usize) -> Option<Vec<u8>> {
        let parsed = parse(octets)?;
        let part = part(&parsed, *parsed.attachments.get(index)?)?;
        match &part.body {
            PartType::Message(_) => octets
                .get(part.raw_body_offset() as usize..part.raw_end_offset() as usize)
                .map(<[u8]>::to_vec),
            _ => Some(part.contents().to_vec()),
        }
    }
    /// Whether `needle`, which is in lower case, is in the text of the message that begins with `octets`.
    pub fn contains(octets: &[u8], needle: &str) -> bool {
        let Some(parsed) = parse(octets) else { return false };
        let parts = parsed.text_body.iter().filter_map(|index| part(&parsed, *index));
        parts.filter_map(MessagePart::text_contents).any(|text| text.to_lowercase().contains(needle))
    }
    /// The message as text: for pipes and printers.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.fields {
            text += &format!("{name}: {value}\n");
        }
        if let Some(checks) = &self.checks {
            text += &format!("Checked: {}\n", checks.text);
        }
        text += &format!("\n{}", self.text);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        for (index, attachment) in self.attachments.iter().enumerate() {
            let Attachment { name, kind, size_bytes } = attachment;
            text += &format!("\n[{}: {name}, {kind}, {size_bytes} octets]\n", index + 1);
        }
        text
    }
    fn brief(&self, date: Option<String>) -> Vec<(&'static str, String)> {
        let fields = [
            ("From", self.from.join(", ")),
            ("Reply-To", if self.reply_to == self.from { String::new() } else { self.reply_to.join(", ") }),
            ("To", self.to.join(", ")),
            ("Cc", self.cc.join(", ")),
            ("Date", date.unwrap_or_default()),
            ("Subject", self.subject.clone()),
        ];
        fields.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// The parts of a message, unless it holds so many that it was made to do harm.
fn parse(octets: &[u8]) -> Option<Message<'_>> {
    let lines = octets.split(|octet| *octet == b'\n');
    let is_container = |line: &[u8]| {
        let line = line.to_ascii_lowercase();
        let contains = |word: &[u8]| line.windows(word.len()).any(|part| part == word);
        contains(b"multipart/") || contains(b"message/rfc822") || contains(b"message/global")
    };
    let short = lines.filter(|line| line.len() < 4096);
    let containers =
        short.filter(|line| line.contains(&b'/') && is_container(line)).take(CONTAINERS + 1).count();
    match containers > CONTAINERS {
        true => MessageParser::default().parse_headers(octets),
        false => MessageParser::default().parse(octets),
    }
}

fn part<'a, 'x>(parsed: &'a Message<'x>, index: u32) -> Option<&'a MessagePart<'x>> {
    parsed.parts.get(index as usize)
}

/// The text of a message, whether it was HTML, and whether it is cut.
fn body(parsed: &Message<'_>) -> (String, bool, bool) {
    let (mut text, mut is_html, mut is_cut) = (String::new(), false, false);
    let is_blank = |index: &u32| {
        part(parsed, *index).and_then(MessagePart::text_contents).is_none_or(|text| text.trim().is_empty())
    };
    // An alternative in plain text that says nothing does not hide that in HTML.
    let indexes = if parsed.text_body.iter().all(is_blank) { &parsed.html_body } else { &parsed.text_body };
    for index in indexes {
        let Some(part) = part(parsed, *index) else { continue };
        let one = match &part.body {
            PartType::Html(html) => {
                is_html = true;
                let cut = html.floor_char_boundary(HTML_BYTES);
                is_cut |= cut < html.len();
                plain_of_html(&html[..cut])
            }
            PartType::Text(content) => {
                let (content, cut) = limited(content);
                is_cut |= cut;
                let kind = part.content_type();
                let attribute = |name| kind.and_then(|kind| kind.attribute(name)).unwrap_or_default();
                match attribute("format").eq_ignore_ascii_case("flowed") {
                    true => unflow(&content, attribute("delsp").eq_ignore_ascii_case("yes")),
                    false => content,
                }
            }
            _ => continue,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text += &one;
        if text.len() > TEXT_BYTES {
            text.truncate(text.floor_char_boundary(TEXT_BYTES));
            return (text, is_html, true);
        }
    }
    (text, is_html, is_cut)
}

fn limited(text: &str) -> (String, bool) {
    let cut = text.floor_char_boundary(TEXT_BYTES);
    (text[..cut].to_owned(), cut < text.len())
}

/// HTML as text, with links as notes at its end. What is nested too deeply is taken without its shape.
fn plain_of_html(html: &str) -> String {
    let config = html2text::config::plain().raw_mode(true).link_footnotes(true).allow_width_overflow();
    let rendered = match depth(html) > HTML_DEPTH {
        true => None,
        false => config.string_from_read(html.as_bytes(), HTML_COLUMNS).ok(),
    };
    rendered.unwrap_or_else(|| mail_parser::decoders::html::html_to_text(html))
}

/// Elements that are open at once, at most: more than a parser finds, since it closes some itself.
fn depth(html: &str) -> usize {
    const VOID: [&str; 10] = ["br", "img", "hr", "meta", "link", "input", "col", "area", "base", "wbr"];
    let (mut open, mut deepest) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        let is_end = tag.starts_with('/');
        let name = tag.trim_start_matches('/');
        let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        if name.is_empty() || VOID.iter().any(|void| name.eq_ignore_ascii_case(void)) {
            continue;
        }
        open = if is_end { open.saturating_sub(1) } else { open + 1 };
        deepest = deepest.max(open);
    }
    deepest
}

fn header(octets: &[u8], parsed: &Message<'_>) -> Vec<String> {
    let end = parsed.root_part().raw_body_offset() as usize;
    let head = octets.get(..end.min(octets.len())).unwrap_or_default();
    let lines = head.split(|octet| *octet == b'\n').take(FIELDS);
    let cleaned = lines.map(|line| {
        let line =
            String::from_utf8_lossy(line.get(..FIELD_CHARACTERS).unwrap_or(line)).replace('\t', "        ");
        let indent = line.len() - line.trim_start_matches(' ').len();
        format!("{}{}", " ".repeat(indent.min(8)), clean_line(&line, FIELD_CHARACTERS))
    });
    cleaned.filter(|line| !line.trim().is_empty()).collect()
}

/// The topmost results of our own host.
fn checks(octets: &[u8], parsed: &Message<'_>, host: &str) -> Option<Checks> {
    let is_results = |name: &str| name.eq_ignore_ascii_case("Authentication-Results");
    let fields = parsed.headers().iter().filter(|header| is_results(header.name()));
    for field in fields {
        let raw = octets.get(field.offset_start() as usize..field.offset_end() as usize)?;
        let value = String::from_utf8_lossy(raw);
        let mut parts = value.split(';').map(str::trim);
        let server = parts.next().unwrap_or_default().split_whitespace().next().unwrap_or_default();
        if host.is_empty() || !server.eq_ignore_ascii_case(host) {
            continue;
        }
        let results: Vec<(String, String)> = parts.take(20).filter_map(result).collect();
        let passed = |method: &str| {
            let mut all = results.iter().filter(|(name, _)| name == method);
            all.clone().next().map(|_| all.any(|(_, result)| result == "pass"))
        };
        let is_pass = passed("dmarc").unwrap_or(passed("spf") == Some(true) || passed("dkim") == Some(true));
        let words: Vec<_> = results.iter().map(|(method, result)| format!("{method}={result}")).collect();
        return Some(Checks { is_pass, text: words.join(" ") });
    }
    None
}

/// `spf=pass (…) smtp.mailfrom=…`: the method and its result.
fn result(text: &str) -> Option<(String, String)> {
    let word = text.split_whitespace().next()?;
    let (method, result) = word.split_once('=')?;
    let is_word = |text: &str| text.len() < 40 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (is_word(method) && is_word(result)).then(|| (method.to_ascii_lowercase(), result.to_ascii_lowercase()))
}

fn attachments(parsed: &Message<'_>) -> Vec<Attachment> {
    let parts = parsed.attachments.iter().take(FIELDS).filter_map(|index| part(parsed, *index));
    parts
        .enumerate()
        .map(|(index, part)| {
            let kind = part.content_type().map(|kind| {
                clean_line(&format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("*")), NAME_CHARACTERS)
            });
            let size_bytes = match &part.body {
                PartType::Message(_) => part.raw_end_offset().saturating_sub(part.raw_body_offset()) as usize,
                _ => part.len(),
            };
            let name = file_name(part.attachment_name().unwrap_or_default());
            let end = if matches!(part.body, PartType::Message(_)) { ".eml" } else { "" };
            let name = if name.is_empty() { format!("attachment-{}{end}", index + 1) } else { name };
            Attachment { name, kind: kind.unwrap_or_else(|| "text/plain".into()), size_bytes }
        })
        .collect()
}

/// A stranger's name for a file, without folders, and not hidden.
fn file_name(text: &str) -> String {
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = clean_line(last, NAME_CHARACTERS).replace(['\u{fffd}', '…', ':'], "");
    name.trim_start_matches(['.', '-', ' ', '~']).trim_end().to_owned()
}

/// Addresses as they are written: `Ada <ada@example.net>`.
fn addresses(list: Option<&Address<'_>>) -> Vec<String> {
    let all = list.into_iter().flat_map(|list| list.iter()).take(ADDRESSES);
    all.filter_map(|one| {
        let address = clean_line(one.address()?, FIELD_CHARACTERS);
        let name = clean_line(one.name().unwrap_or_default(), FIELD_CHARACTERS);
        Some(match name.is_empty() || name == address {
            true => address,
            false => format!("{} <{address}>", quoted(&name)),
        })
    })
    .collect()
}

/// A name as it stands before an address: in quotes where a comma would divide it.
fn quoted(name: &str) -> String {
    let name = name.replace(['"', '\\', '<', '>'], "");
    match name.contains([',', ';', ':', '@', '(', ')', '[', ']']) {
        true => format!("\"{name}\""),
        false => name,
    }
}

#[cfg(test)]
mod tests;
