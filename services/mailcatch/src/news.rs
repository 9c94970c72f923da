//! What happens, as lines for a terminal and as JSON.

use inhost_common::Cleaner;
use serde::Serialize;

use crate::envelope::Envelope;
use crate::message::{Person, rfc3339};
use crate::rules::{Fired, Stage};
use crate::store::Message;

/// Characters of a subject, and of an address, that a line shows.
const SHOWN: usize = 60;

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum News<'a> {
    /// A message has come.
    Message(&'a Message),
    /// A rule has fired.
    Fired {
        /// When, in milliseconds since 1970.
        at_ms: u64,
        /// The rule.
        fired: &'a Fired,
        /// Where.
        stage: Stage,
        /// The client's address and port.
        client: &'a str,
    },
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Json<'a> {
    Message {
        id: String,
        received: String,
        subject: &'a str,
        from: &'a [Person],
        size: usize,
        attachments: usize,
        envelope: &'a Envelope,
    },
    Rule {
        time: String,
        number: u64,
        rule: &'a str,
        stage: &'static str,
        client: &'a str,
    },
}

impl News<'_> {
    /// One line for a person, cleaned for a terminal, without a line end.
    ///
    /// `10:00:01  ada@example.net > bob@example.org  "Hello"  1.2K  2 attachments`
    pub fn line(&self) -> String {
        match self {
            News::Message(message) => {
                let (envelope, summary) = (&message.envelope, &message.summary);
                let from = envelope.from.as_deref().unwrap_or("<>");
                let to = match &envelope.to[..] {
                    [] => String::new(),
                    [one] => short(one),
                    [first, rest @ ..] => format!("{} and {} more", short(first), rest.len()),
                };
                let attachments = match summary.attachments {
                    0 => String::new(),
                    1 => "  1 attachment".to_owned(),
                    count => format!("  {count} attachments"),
                };
                let (time, size) = (time(message.received_ms), size(message.raw.len()));
                format!(
                    "{time}  {} > {to}  \"{}\"  {size}{attachments}",
                    short(from),
                    short(&summary.subject)
                )
            }
            News::Fired { at_ms, fired, stage, client } => {
                let (time, stage) = (time(*at_ms), stage.name());
                let rule = Cleaner::line(fired.text.as_bytes());
                format!(
                    "{time}  {} at {stage}: rule {}: {rule}",
                    Cleaner::line(client.as_bytes()),
                    fired.number
                )
            }
        }
    }
    /// One object of JSON, without a line end. Its control characters are escaped.
    pub fn json(&self) -> String {
        let json = match self {
            News::Message(message) => Json::Message {
                id: message.id.to_string(),
                received: rfc3339(message.received_ms / 1000),
                subject: &message.summary.subject,
                from: &message.summary.from,
                size: message.raw.len(),
                attachments: message.summary.attachments,
                envelope: &message.envelope,
            },
            News::Fired { at_ms, fired, stage, client } => Json::Rule {
                time: rfc3339(at_ms / 1000),
                number: fired.number,
                rule: &fired.text,
                stage: stage.name(),
                client,
            },
        };
        // What a terminal might obey beyond ASCII is escaped as well.
        let text = serde_json::to_string(&json).unwrap_or_default();
        let clean = |c: char| match c.is_control()
            || Cleaner::line(c.encode_utf8(&mut [0; 4]).as_bytes()) != c.to_string()
        {
            true => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
            false => String::from(c),
        };
        text.chars().map(clean).collect()
    }
}

fn short(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    let dots = if shown.len() < text.len() { "..." } else { "" };
    Cleaner::line(format!("{shown}{dots}").as_bytes())
}

fn time(unix_ms: u64) -> String {
    rfc3339(unix_ms / 1000).get(11..19).unwrap_or_default().to_owned()
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{:.1}K", bytes as f64 / 1024.0),
        _ => format!("{:.1}M", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Id;

    #[test]
    fn a_line_is_one_line_whatever_came() {
        let envelope = Envelope { from: None, to: vec!["a@b".into(), "c@d".into()], ..Envelope::default() };
        let raw = "Subject: =?utf-8?Q?one=1B[2J=0Atwo=E2=80=AE?=\r\n\r\n";
        let message = Message::new(Id(1), 36_001_000, envelope, raw.into());
        let (line, json) = (News::Message(&message).line(), News::Message(&message).json());
        assert_eq!(line, "10:00:01  <> > a@b and 1 more  \"one\u{fffd}[2J two\u{fffd}\"  49B");
        assert!(json.starts_with(r#"{"event":"message","id":"000000000001","#), "{json}");
        assert!(json.contains(r#""subject":"one\u001b[2J two\u202e""#), "{json}");
        let action = crate::rules::Action::default();
        let fired = Fired { number: 3, text: "stage=mail drop".into(), action };
        let news = News::Fired { at_ms: 0, fired: &fired, stage: Stage::Mail, client: "10.0.0.1:5" };
        assert_eq!(news.line(), "00:00:00  10.0.0.1:5 at mail: rule 3: stage=mail drop");
    }
}
