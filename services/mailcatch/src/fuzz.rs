//! Fuzz target. The input is what a person types, and what a client sends; the invariants are asserted.

use inhost_base::{Instant, IpAddr};

use crate::envelope::Envelope;
use crate::html::document;
use crate::message::{contents, part};
use crate::news::News;
use crate::rules::{Event, Rule, Rulebook, Script, Stage};
use crate::search::Search;
use crate::store::{Id, Message};

/// Octets of HTML that are made harmless: the sanitizer is others' work, and slow.
const HTML_BYTES: usize = 4096;

/// One input, as the text of a rule, of a script and of a search, and as a message.
pub fn fuzz_mailcatch(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    rules(&text);
    let envelope = Envelope { to: vec!["ada@example.net".into()], ..Envelope::default() };
    let message = Message::new(Id(input.len() as u64), 1_795_564_800_000, envelope, input.to_vec().into());
    let line = News::Message(&message).line();
    assert!(!line.chars().any(char::is_control), "one clean line: {line:?}");
    let json = News::Message(&message).json();
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok() && !json.chars().any(char::is_control));
    if let Ok(search) = text.parse::<Search>() {
        let _ = search.finds(&message);
    }
    let read = contents(input);
    for listed in read.parts.iter().take(8) {
        let (found, octets) = part(input, listed.number).expect("a part that is listed is there");
        assert_eq!((&found, octets.len()), (listed, listed.size));
    }
    let html = read.html.unwrap_or_else(|| text.chars().take(HTML_BYTES).collect());
    let shown = document(input, crate::message::cut(&html, HTML_BYTES), false).to_ascii_lowercase();
    for word in ["<script", "<iframe", "<object", "<form", "<meta http", "<link", "<base"] {
        assert!(!shown.contains(word), "{word} in {shown}");
    }
}

fn rules(text: &str) {
    let mut book = Rulebook::new(7);
    if let Ok(rule) = text.parse::<Rule>() {
        let written = rule.to_string();
        assert_eq!(written.parse::<Rule>().as_ref(), Ok(&rule), "{written}");
        let json: serde_json::Map<_, _> = (&rule).into();
        assert_eq!(Rule::try_from(&json).as_ref(), Ok(&rule), "{written}");
        book.add(rule);
    }
    if let Ok(script) = text.parse::<Script>() {
        book.play(script);
    }
    let recipients = ["Ada@Example.net".to_owned()];
    for (second, stage) in Stage::ALL.into_iter().cycle().take(50).enumerate() {
        let (client, sender) = (IpAddr::from([10, 0, 0, 9]), Some("bob@example.org"));
        let event = Event { stage, client, sender, recipients: &recipients, sessions: second as u64 };
        if let Some(fired) = book.decide(&event, Instant::from_millis(second as u64 * 1000)) {
            let refusal = fired.action.refusal.map(|refusal| refusal.to_string());
            assert!(refusal.is_none_or(|line| line.len() < 512 && !line.contains(['\r', '\n'])));
        }
    }
}
