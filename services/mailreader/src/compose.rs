//! A message that a person writes: answers, forwards, the file that an editor gets, and what is sent at the end.

use std::rc::Rc;

use inhost_mail::codec::Mailbox;
use inhost_mail::compose::{Draft, mailbox_of};

use crate::document::Document;
use crate::summary::REFERENCES;

/// Octets of a text that a person writes.
pub const TEXT_BYTES: usize = 4 << 20;
/// Octets of all attachments.
pub const ATTACHMENT_BYTES: usize = 64 << 20;

/// A message that is being written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Composition {
    /// The author: `Ada <ada@example.net>`.
    pub from: String,
    /// Who gets it, divided by commas.
    pub to: String,
    /// Who gets a copy.
    pub cc: String,
    /// Who gets a copy of which others are not told.
    pub bcc: String,
    /// What it is about.
    pub subject: String,
    /// The text.
    pub text: String,
    /// Files by name.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// The identifier of the message that it answers.
    pub in_reply_to: Option<String>,
    /// Identifiers of the messages before it.
    pub references: Vec<String>,
    /// The message of the mailbox that it answers or forwards, by its unique name.
    pub about: Option<(Rc<str>, About)>,
}

/// What a message that is written does with another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// It answers it.
    Answers,
    /// It forwards it.
    Forwards,
    /// It is that message, a draft, which goes once this is sent or saved.
    Continues,
}

/// A message with its envelope, ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finished {
    /// Where reports go.
    pub sender: Mailbox,
    /// Who gets it.
    pub recipients: Vec<Mailbox>,
    /// The message; lines end in CRLF, and it does not name recipients of blind copies.
    pub text: Vec<u8>,
}

impl Composition {
    /// An empty one by `from`.
    pub fn new(from: &str) -> Composition {
        Composition { from: from.to_owned(), ..Composition::default() }
    }
    /// An answer to `document`, by `from`; if `is_to_all`, its other recipients get a copy.
    pub fn reply(document: &Document, from: &str, is_to_all: bool) -> Composition {
        let own = mailbox_of(from).ok();
        let is_own = |text: &String| own.is_some() && mailbox_of(text).ok().as_ref() == own.as_ref();
        let mut to = match document.reply_to.is_empty() {
            true => document.from.clone(),
            false => document.reply_to.clone(),
        };
        // An answer to one's own message goes to those who got it.
        if to.iter().all(is_own) && !document.to.is_empty() {
            to.clone_from(&document.to);
        }
        let mut cc = Vec::new();
        if is_to_all {
            for other in document.to.iter().chain(&document.cc) {
                let is_there = |one: &String| mailbox_of(one).ok() == mailbox_of(other).ok();
                if !is_own(other) && !to.iter().any(is_there) && !cc.iter().any(is_there) {
                    cc.push(other.clone());
                }
            }
        }
        let mut references = document.references.clone();
        references.extend(document.id.clone());
        references.drain(..references.len().saturating_sub(REFERENCES));
        Composition {
            to: to.join(", "),
            cc: cc.join(", "),
            subject: prefixed("Re: ", &["re:", "aw:"], &document.subject),
            text: quote(document),
            in_reply_to: document.id.clone(),
            references,
            ..Composition::new(from)
        }
    }
    /// `document` for somebody else, by `from`. Its attachments are for the caller to add.
    pub fn forward(document: &Document, from: &str) -> Composition {
        let mut text = String::from("\n\n---------- Forwarded message ----------\n");
        for (name, value) in &document.fields {
            text += &format!("{name}: {value}\n");
        }
        text += &format!("\n{}", document.text);
        Composition {
            subject: prefixed("Fwd: ", &["fwd:", "fw:"], &document.subject),
            text,
            ..Composition::new(from)
        }
    }
    /// A draft, taken up again.
    pub fn resume(octets: &[u8], unique: Rc<str>) -> Composition {
        let document = Document::parse(octets, "");
        let attachments = document.attachments.iter().enumerate().filter_map(|(index, attachment)| {
            Some((attachment.name.clone(), Document::attachment(octets, index)?))
        });
        Composition {
            from: document.from.join(", "),
            to: document.to.join(", "),
            cc: document.cc.join(", "),
            bcc: document.bcc.join(", "),
            attachments: attachments.collect(),
            subject: document.subject,
            text: document.text,
            in_reply_to: document.in_reply_to,
            references: document.references,
            about: Some((unique, About::Continues)),
        }
    }
    /// What an editor gets: header lines, an empty line, the text.
    pub fn to_file(&self) -> String {
        let Composition { from, to, cc, bcc, subject, text, .. } = self;
        format!("From: {from}\nTo: {to}\nCc: {cc}\nBcc: {bcc}\nSubject: {subject}\n\n{text}")
    }
    /// What an editor gave back. Header lines that are missing are empty, and others are ignored.
    pub fn take_file(&mut self, file: &str) {
        let file = &file[..file.floor_char_boundary(TEXT_BYTES)];
        let mut fields: [(&str, String); 5] =
            ["from", "to", "cc", "bcc", "subject"].map(|name| (name, String::new()));
        let (mut rest, mut current) = (file, None);
        while let Some((line, after)) = rest.split_once('\n').or((!rest.is_empty()).then_some((rest, ""))) {
            let line = line.trim_end_matches('\r');
            let folded = line.starts_with([' ', '\t']);
            if line.is_empty() {
                rest = after;
                break;
            }
            if !folded {
                let Some((name, _)) = line.split_once(':').filter(|(name, _)| !name.contains(' ')) else {
                    break;
                };
                current = fields.iter().position(|(field, _)| name.eq_ignore_ascii_case(field));
            }
            let value = if folded { line } else { line.split_once(':').map_or("", |(_, value)| value) };
            if let Some(index) = current {
                let field = &mut fields[index].1;
                field.push(' ');
                field.push_str(value.trim());
            }
            rest = after;
        }
        let [from, to, cc, bcc, subject] = fields.map(|(_, value)| value.trim().to_owned());
        if !from.is_empty() {
            self.from = from;
        }
        (self.to, self.cc, self.bcc, self.subject) = (to, cc, bcc, subject);
        self.text = rest.replace("\r\n", "\n");
    }
    /// Who gets it. The error names the address that is not one.
    pub fn recipients(&self) -> Result<Vec<Mailbox>, String> {
        let mut recipients = Vec::new();
        for text in [&self.to, &self.cc, &self.bcc].into_iter().flat_map(|list| split(list)) {
            let mailbox = mailbox_of(&text).map_err(|why| format!("{text:?} is not an address: {why}"))?;
            if !recipients.contains(&mailbox) {
                recipients.push(mailbox);
            }
        }
        Ok(recipients)
    }
    /// The message with its envelope. `unix_s` and `unique` become its date and the first part of its identifier.
    pub fn finish(&self, unix_s: u64, unique: &str) -> Result<Finished, String> {
        let sender =
            mailbox_of(&self.from).map_err(|why| format!("From {:?} is not an address: {why}", self.from))?;
        let recipients = self.recipients()?;
        if recipients.is_empty() {
            return Err("nobody gets it: press t to name somebody".into());
        }
        let text = self.message(unix_s, unique);
        Ok(Finished { sender, recipients, text })
    }
    /// The message for a folder of drafts: it names recipients of blind copies.
    pub fn draft(&self, unix_s: u64, unique: &str) -> Vec<u8> {
        let mut text = match split(&self.bcc).is_empty() {
            true => Vec::new(),
            false => {
                format!("Bcc: {}\r\n", split(&self.bcc).join(", ").replace(|c: char| !c.is_ascii(), "?"))
                    .into_bytes()
            }
        };
        text.extend(self.message(unix_s, unique));
        text
    }
    /// Octets of its attachments.
    pub fn attachment_bytes(&self) -> usize {
        self.attachments.iter().map(|(_, octets)| octets.len()).sum()
    }
    fn message(&self, unix_s: u64, unique: &str) -> Vec<u8> {
        let domain =
            mailbox_of(&self.from).map_or_else(|_| "localhost".into(), |from| from.domain().to_owned());
        let mut draft = Draft::default();
        draft.from.clone_from(&self.from);
        (draft.to, draft.cc) = (split(&self.to), split(&self.cc));
        draft.subject.clone_from(&self.subject);
        draft.text.clone_from(&self.text);
        draft.attachments.clone_from(&self.attachments);
        draft.in_reply_to.clone_from(&self.in_reply_to);
        draft.references.clone_from(&self.references);
        draft.message(unix_s, &format!("{unique}@{domain}"))
    }
}

/// Addresses of a list: divided by commas that do not stand in quotes or brackets.
pub fn split(list: &str) -> Vec<String> {
    let (mut addresses, mut one) = (Vec::new(), String::new());
    let (mut is_quoted, mut is_escaped, mut is_inside) = (false, false, false);
    for character in list.chars().chain([',']) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '<' if !is_quoted => is_inside = true,
            '>' if !is_quoted => is_inside = false,
            ',' if !is_quoted && !is_inside => {
                let address = core::mem::take(&mut one).trim().to_owned();
                if !address.is_empty() {
                    addresses.push(address);
                }
                continue;
            }
            _ => {}
        }
        one.push(if character.is_control() { ' ' } else { character });
    }
    // What is in quotes that do not end is one address, and no right one.
    let rest = one.trim().trim_end_matches(',').trim();
    if !rest.is_empty() {
        addresses.push(rest.to_owned());
    }
    addresses
}

fn prefixed(prefix: &str, known: &[&str], subject: &str) -> String {
    let lower = subject.to_lowercase();
    match known.iter().any(|one| lower.starts_with(one)) {
        true => subject.to_owned(),
        false => format!("{prefix}{subject}"),
    }
}

/// The text of a message as an answer quotes it.
fn quote(document: &Document) -> String {
    let author = document.from.first().map_or("somebody", |from| match from.rsplit_once(" <") {
        Some((name, _)) => name.trim_matches('"'),
        None => from,
    });
    let mut text = match document.date.is_empty() {
        true => format!("{author} wrote:\n"),
        false => format!("On {}, {author} wrote:\n", document.date),
    };
    // What stands below the signature's line is not quoted.
    for line in document.text.trim_end().lines().take_while(|line| *line != "-- ") {
        text += match line {
            "" => ">",
            line if line.starts_with('>') => ">",
            _ => "> ",
        };
        text += line;
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Document {
        let text = b"From: \"Lovelace, Ada\" <ada@example.net>\nTo: bob@example.org, eve@example.org\n\
            Cc: Carl <carl@example.org>\nSubject: Lunch?\nDate: Wed, 25 Nov 2026 02:08:36 +0100\n\
            Message-ID: <2@x>\nReferences: <1@x>\n\nAt one?\n> Or\n\n-- \nAda\n";
        Document::parse(text, "")
    }

    #[test]
    fn an_answer_goes_to_the_author_and_quotes() {
        let answer = Composition::reply(&question(), "Bob <bob@example.org>", false);
        assert_eq!((answer.to.as_str(), answer.cc.as_str()), ("\"Lovelace, Ada\" <ada@example.net>", ""));
        assert_eq!(answer.subject, "Re: Lunch?");
        assert_eq!(answer.text, "On 2026-11-25 02:08, Lovelace, Ada wrote:\n> At one?\n>> Or\n>\n\n");
        assert_eq!((answer.in_reply_to.as_deref(), answer.references.len()), (Some("2@x"), 2));
        let all = Composition::reply(&question(), "Bob <bob@example.org>", true);
        assert_eq!(all.cc, "eve@example.org, Carl <carl@example.org>");
        let own = Composition::reply(&question(), "ada@example.net", false);
        assert_eq!(own.to, "bob@example.org, eve@example.org");
    }

    #[test]
    fn what_an_editor_gives_back_is_taken() {
        let mut answer = Composition::reply(&question(), "bob@example.org", true);
        let before = answer.clone();
        answer.take_file(&before.to_file());
        assert_eq!(answer, before, "unchanged, it is the same");
        answer.take_file("To: a@b.example,\n c@d.example\nX-Other: y\n z\nsubject: S\n\nText\n\nmore");
        assert_eq!((answer.to.as_str(), answer.cc.as_str()), ("a@b.example, c@d.example", ""));
        assert_eq!((answer.subject.as_str(), answer.text.as_str()), ("S", "Text\n\nmore"));
        answer.take_file("no header at all\n");
        assert_eq!(answer.text, "no header at all\n");
        assert!(answer.finish(0, "1").unwrap_err().contains("nobody"));
    }

    #[test]
    fn blind_copies_are_in_the_envelope_and_in_drafts_alone() {
        let mut one = Composition::new("Bob <bob@example.org>");
        one.to = "\"Lovelace, Ada\" <ada@example.net>".into();
        one.bcc = "eve@example.org".into();
        one.subject = "S".into();
        one.text = "T\n".into();
        one.attachments = vec![("n.txt".into(), b"x".to_vec())];
        let finished = one.finish(1_700_000_000, "1").unwrap();
        assert_eq!(finished.recipients.len(), 2);
        assert!(!String::from_utf8(finished.text).unwrap().contains("eve@"));
        let again = Composition::resume(&one.draft(1_700_000_000, "1"), "u".into());
        assert_eq!(again.about, Some(("u".into(), About::Continues)));
        assert_eq!(Composition { about: None, ..again }, one);
        one.cc = "not an address".into();
        assert!(one.finish(0, "1").unwrap_err().contains("not an address"));
        assert_eq!(split("a@b, \"x, y\" <c@d>, , e"), ["a@b", "\"x, y\" <c@d>", "e"]);
    }
}
