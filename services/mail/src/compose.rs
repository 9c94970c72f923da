//! Messages that people write, and those that programs hand over.

use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address;
use mail_builder::headers::text::Text;
use mail_parser::MessageParser;

use crate::codec::Mailbox;

/// A message that is being written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Draft {
    /// The author, with a name or without: `Ada <ada@example.net>`.
    pub from: String,
    /// Who gets it.
    pub to: Vec<String>,
    /// Who gets a copy.
    pub cc: Vec<String>,
    /// What it is about.
    pub subject: String,
    /// The text; lines end in line feeds.
    pub text: String,
    /// Files by name.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// The identifier of the message that it answers.
    pub in_reply_to: Option<String>,
    /// Identifiers of the messages before it.
    pub references: Vec<String>,
}

impl Draft {
    /// The message, its lines ending in CRLF, with `id` as its identifier.
    pub fn message(&self, unix_s: u64, id: &str) -> Vec<u8> {
        let mut builder = MessageBuilder::new()
            .date(i64::try_from(unix_s).unwrap_or(i64::MAX))
            .message_id(id)
            .from(address(&self.from))
            .to(list(&self.to))
            .subject(one_line(&self.subject));
        if !self.cc.is_empty() {
            builder = builder.cc(list(&self.cc));
        }
        if let Some(id) = &self.in_reply_to {
            builder = builder.header("In-Reply-To", Text::new(format!("<{id}>")));
        }
        if !self.references.is_empty() {
            let all: Vec<_> = self.references.iter().map(|id| format!("<{id}>")).collect();
            builder = builder.header("References", Text::new(all.join(" ")));
        }
        builder = builder.text_body(self.text.as_str());
        for (name, octets) in &self.attachments {
            builder = builder.attachment(kind_of(name), one_line(name), octets.as_slice());
        }
        // A return alone in the text would be refused everywhere.
        with_crlf(&builder.write_to_vec().unwrap_or_default())
    }
}

/// A text as a part of one line of a header: it begins no field of its own.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn list(texts: &[String]) -> Address<'_> {
    Address::new_list(texts.iter().map(|text| address(text)).collect())
}

/// `Name <mailbox>`, or a mailbox.
fn address(text: &str) -> Address<'_> {
    match text.trim().strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((name, mailbox)) => {
            let name = name.trim().trim_matches('"');
            Address::new_address((!name.is_empty()).then_some(name), mailbox)
        }
        None => Address::new_address(None::<&str>, text.trim()),
    }
}

/// The mailbox of `Name <mailbox>`, or of a mailbox alone.
pub fn mailbox_of(text: &str) -> Result<Mailbox, crate::codec::AddressError> {
    let text = text.trim();
    match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((_, mailbox)) => mailbox.parse(),
        None => text.parse(),
    }
}

/// A media type by the end of a file's name.
fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).as_deref() {
        Some("txt" | "log" | "md" | "toml") => "text/plain",
        Some("html" | "htm") => "text/html",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        Some("pdf") => "application/pdf",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("svg") => "image/svg+xml",
        Some("gz" | "tgz") => "application/gzip",
        Some("zip") => "application/zip",
        _ => "application/octet-stream",
    }
}

/// A text with its lines ending in CRLF, whatever they ended in.
///
/// ```
/// assert_eq!(inhost_mail::with_crlf(b"a\nb\r\nc\rd"), b"a\r\nb\r\nc\r\nd\r\n");
/// ```
pub fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len() + text.len() / 32);
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        lines.extend_from_slice(&rest[..at]);
        lines.extend_from_slice(b"\r\n");
        let skipped = if rest[at..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[at + skipped..];
    }
    lines.extend_from_slice(rest);
    if !rest.is_empty() {
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

/// What the header of a message says of who sends it to whom, as `sendmail -t` takes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Named {
    /// From.
    pub from: Option<Mailbox>,
    /// To, Cc and Bcc.
    pub recipients: Vec<Mailbox>,
}

impl Named {
    /// Of the message `text`.
    pub fn of(text: &[u8]) -> Named {
        let Some(parsed) = MessageParser::default().parse_headers(text) else { return Named::default() };
        let all = |list: Option<&mail_parser::Address<'_>>| {
            let addresses = list.into_iter().flat_map(|list| list.iter());
            addresses.filter_map(|one| one.address.as_deref()?.parse().ok()).collect::<Vec<Mailbox>>()
        };
        let mut recipients = all(parsed.to());
        recipients.extend(all(parsed.cc()));
        recipients.extend(all(parsed.bcc()));
        Named { from: all(parsed.from()).into_iter().next(), recipients }
    }
}

/// The message `text` without its Bcc fields, whose lines end in CRLF.
pub fn without_bcc(text: &[u8]) -> Vec<u8> {
    let (mut kept, mut rest, mut is_bcc) = (Vec::with_capacity(text.len()), text, false);
    while let Some(end) = memchr::memchr(b'\n', rest).map(|at| at + 1) {
        let (line, after) = rest.split_at(end);
        if line == b"\r\n" {
            break;
        }
        let is_folded = line.starts_with(b" ") || line.starts_with(b"\t");
        is_bcc =
            if is_folded { is_bcc } else { line.get(..4).is_some_and(|s| s.eq_ignore_ascii_case(b"bcc:")) };
        if !is_bcc {
            kept.extend_from_slice(line);
        }
        rest = after;
    }
    kept.extend_from_slice(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail_parser::MimeHeaders;

    #[test]
    fn a_draft_is_a_message() {
        let draft = Draft {
            from: "Ada Lövelace <ada@example.net>".into(),
            to: vec!["bob@example.org".into()],
            subject: "Grüße".into(),
            text: "One\n.\nFrom two\n".into(),
            attachments: vec![("notes.txt".into(), b"n".to_vec())],
            in_reply_to: Some("x@y".into()),
            ..Draft::default()
        };
        let message = draft.message(1_700_000_000, "id@example.net");
        assert!(message.is_ascii());
        let parsed = MessageParser::default().parse(&message).unwrap();
        assert_eq!(parsed.subject(), Some("Grüße"));
        assert_eq!(parsed.from().unwrap().first().unwrap().name(), Some("Ada Lövelace"));
        assert_eq!(parsed.body_text(0).unwrap().replace("\r\n", "\n"), draft.text);
        assert_eq!(parsed.attachment(0).unwrap().attachment_name(), Some("notes.txt"));
        assert_eq!(parsed.in_reply_to().as_text(), Some("x@y"));
        assert_eq!(Named::of(&message).recipients, ["bob@example.org".parse().unwrap()]);
    }

    #[test]
    fn neither_a_subject_nor_a_file_name_begins_a_field() {
        let draft = Draft {
            from: "ada@example.net".into(),
            to: vec!["bob@example.org".into()],
            subject: "Lunch\r\nX-Evil: yes\r\n\r\nbody".into(),
            attachments: vec![("a\r\nX-Evil: yes\r\n.txt".into(), b"n".to_vec())],
            ..Draft::default()
        };
        let message = draft.message(1_700_000_000, "id@example.net");
        assert!(!String::from_utf8(message.clone()).unwrap().lines().any(|line| line.starts_with("X-Evil")));
        let parsed = MessageParser::default().parse(&message).unwrap();
        assert_eq!(parsed.subject(), Some("Lunch  X-Evil: yes    body"));
    }

    #[test]
    fn blind_copies_are_blind() {
        let text = b"To: a@b\r\nBcc: c@d,\r\n e@f\r\nSubject: x\r\n\r\nBcc: stays\r\n";
        assert_eq!(Named::of(text).recipients.len(), 3);
        assert_eq!(without_bcc(text), b"To: a@b\r\nSubject: x\r\n\r\nBcc: stays\r\n");
    }
}
