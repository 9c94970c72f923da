//! What a fake DNS knows.

use inhost_mailauth::{Answer, CheckConfig, Envelope, Kind, Plan, Query, Report};
use std::collections::BTreeMap;

/// Unix time of the tests.
pub const NOW: u64 = 1_800_000_000;

/// The receiver's name.
pub const RECEIVER: &str = "mx.example.org";

/// TXT records by name.
#[derive(Default)]
pub struct Zone(pub BTreeMap<String, Vec<String>>);

impl Zone {
    pub fn of(records: &[(&str, &str)]) -> Zone {
        let mut zone = Zone::default();
        for (name, text) in records {
            zone.0.entry((*name).to_owned()).or_default().push((*text).to_owned());
        }
        zone
    }
    pub fn answer(&self, query: &Query) -> Answer {
        match self.0.get(&query.name) {
            Some(texts) if texts.iter().any(|text| text == "FAILED") => Answer::Failed,
            Some(texts) if query.kind == Kind::Txt => {
                Answer::Texts(texts.iter().map(|text| text.as_bytes().to_vec()).collect())
            }
            Some(_) => Answer::Addresses(Vec::new()),
            None => Answer::NoSuchName,
        }
    }
}

/// Checks a message with these answers of the DNS, and gives what was asked as well.
pub fn check(envelope: Envelope, message: &[u8], answer: impl Fn(&Query) -> Answer) -> (Report, Vec<String>) {
    let mut plan = Plan::new(&CheckConfig::new(RECEIVER), envelope, message, NOW);
    let mut asked = Vec::new();
    loop {
        let missing = plan.missing();
        if missing.is_empty() {
            return (plan.verify(message), asked);
        }
        for query in missing {
            asked.push(query.name.clone());
            assert!(asked.len() <= 100, "too many look-ups: {asked:?}");
            let answered = answer(&query);
            plan.answer(query, answered);
        }
    }
}
