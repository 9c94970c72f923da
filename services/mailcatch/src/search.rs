//! Searches: words and conditions that a message must meet.

use std::str::FromStr;

use inhost_common::service::size_bytes;

use crate::message::unix_seconds;
use crate::rules::RuleError as SearchError;
use crate::store::Message;

/// The longest text of a search.
pub const SEARCH_BYTES: usize = 1024;
/// The most words of a search.
const TERMS: usize = 16;

/// A search. All of its terms must hold.
///
/// `from:ada to:@example.org subject:"two words" has:attachment larger:10K after:2026-11-25 -spam hello`
///
/// A word is looked for in senders, recipients, subject and text. Upper and lower case are the same. `-` in front of a
/// term turns it round; a value with spaces stands in double quotes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Search {
    terms: Vec<(bool, Term)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Term {
    Word(String),
    From(String),
    To(String),
    Subject(String),
    Text(String),
    Id(String),
    Attachment,
    Html,
    Unread,
    Larger(usize),
    Smaller(usize),
    Before(i64),
    After(i64),
}

impl FromStr for Search {
    type Err = SearchError;
    fn from_str(text: &str) -> Result<Search, SearchError> {
        if text.len() > SEARCH_BYTES {
            return Err(SearchError::new(format!("a search has at most {SEARCH_BYTES} octets")));
        }
        let (mut terms, mut rest) = (Vec::new(), text.trim_start());
        while !rest.is_empty() {
            if terms.len() == TERMS {
                return Err(SearchError::new(format!("a search has at most {TERMS} terms")));
            }
            let bare = rest
                .strip_prefix('-')
                .filter(|rest| !rest.is_empty() && !rest.starts_with(char::is_whitespace));
            let (word, is_quoted, behind) = word(bare.unwrap_or(rest));
            terms.push((bare.is_none(), term(&word, is_quoted)?));
            rest = behind.trim_start();
        }
        Ok(Search { terms })
    }
}

/// A word, whether a quote begins it, and what is behind it. Quotes hold spaces together; one without an end ends with
/// the text.
fn word(text: &str) -> (String, bool, &str) {
    let (mut word, mut in_quotes) = (String::new(), false);
    for (at, character) in text.char_indices() {
        match character {
            '"' => in_quotes = !in_quotes,
            c if c.is_whitespace() && !in_quotes => {
                return (word, text.starts_with('"'), text.get(at..).unwrap_or_default());
            }
            other => word.push(other),
        }
    }
    (word, text.starts_with('"'), "")
}

fn term(word: &str, is_quoted: bool) -> Result<Term, SearchError> {
    let folded = word.to_lowercase();
    let Some((key, value)) = folded.split_once(':').filter(|_| !is_quoted) else {
        return Ok(Term::Word(folded));
    };
    let wrong = |expected: &str| SearchError::new(format!("{key}:{value}: give {expected}"));
    let size = || size_bytes(&value.to_uppercase()).ok_or_else(|| wrong("a size such as 10K"));
    let time = || {
        unix_seconds(&value.to_uppercase())
            .ok_or_else(|| wrong("a day such as 2026-11-25 or a time of RFC 3339"))
    };
    let value_text = value.to_owned();
    Ok(match key {
        "from" => Term::From(value_text),
        "to" => Term::To(value_text),
        "subject" => Term::Subject(value_text),
        "text" => Term::Text(value_text),
        "id" => Term::Id(value_text),
        "has" => match value {
            "attachment" => Term::Attachment,
            "html" => Term::Html,
            _ => return Err(wrong("attachment or html")),
        },
        "is" => match value {
            "unread" => Term::Unread,
            _ => return Err(wrong("unread")),
        },
        "larger" => Term::Larger(size()?),
        "smaller" => Term::Smaller(size()?),
        "before" => Term::Before(time()?),
        "after" => Term::After(time()?),
        // An address of the web, say.
        _ => Term::Word(folded),
    })
}

impl Search {
    /// Whether it finds everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
    /// Whether a message meets it.
    pub fn finds(&self, message: &Message) -> bool {
        self.terms.iter().all(|(wanted, term)| term.holds(message) == *wanted)
    }
}

impl Term {
    fn holds(&self, message: &Message) -> bool {
        let (folded, summary) = (&message.folded, &message.summary);
        let received = i64::try_from(message.received_ms / 1000).unwrap_or(i64::MAX);
        match self {
            Term::Word(word) => [&folded.subject, &folded.from, &folded.to, &folded.text]
                .into_iter()
                .any(|text| text.contains(&**word)),
            Term::From(word) => folded.from.contains(&**word),
            Term::To(word) => folded.to.contains(&**word),
            Term::Subject(word) => folded.subject.contains(&**word),
            Term::Text(word) => folded.text.contains(&**word),
            Term::Id(word) => {
                let id = summary.message_id.as_deref().unwrap_or_default().to_lowercase();
                id == word.trim_matches(['<', '>'])
            }
            Term::Attachment => summary.attachments > 0,
            Term::Html => summary.has_html,
            Term::Unread => message.is_unread.get(),
            Term::Larger(bytes) => message.raw.len() > *bytes,
            Term::Smaller(bytes) => message.raw.len() < *bytes,
            Term::Before(time) => received < *time,
            Term::After(time) => received >= *time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Envelope;
    use crate::store::Id;

    #[test]
    fn terms_find_what_they_say() {
        let raw = "From: Ada <ada@Example.net>\r\nTo: bob@example.org\r\nSubject: Two Words\r\nMessage-ID: <M1@x>\r\n\r\nHello: see http://x.example/y\r\n";
        let envelope = Envelope { to: vec!["hidden@example.com".into()], ..Default::default() };
        let message = Message::new(Id(1), 1_795_564_800_000, envelope, raw.into());
        for (search, found) in [
            ("", true),
            ("ADA two", true),
            ("from:ada@example.net to:hidden subject:\"two words\"", true),
            ("\"two  words\"", false),
            ("-from:ada", false),
            ("-from:eve -has:attachment", true),
            ("has:html", false),
            ("is:unread larger:10 smaller:1K", true),
            ("larger:1K", false),
            ("after:2026-11-25 before:2026-11-26", true),
            ("before:2026-11-25", false),
            ("after:2026-11-25t00:00:01z", false),
            ("http://x.example/y", true),
            ("text:hello -text:two", true),
            ("id:<m1@x>", true),
            ("\"hello: see", true),
            ("-", false),
        ] {
            let parsed: Search = search.parse().unwrap_or_else(|error| panic!("{search}: {error}"));
            assert_eq!(parsed.finds(&message), found, "{search}");
        }
        for wrong in ["has:teeth", "is:red", "larger:big", "before:noon", &"a ".repeat(17), &"x".repeat(1025)]
        {
            assert!(wrong.parse::<Search>().is_err(), "{wrong}");
        }
    }
}
