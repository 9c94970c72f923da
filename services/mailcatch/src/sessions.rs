//! SMTP sessions: those that are open, and the dialogues of the last ones.

use std::collections::{BTreeMap, VecDeque};

use inhost_base::Endpoint;
use serde::Serialize;

use crate::message::cut;
use crate::store::Id;

/// Open sessions that are known. Beyond, the oldest is taken for ended.
const OPEN: usize = 4096;
/// Lines of a dialogue that are kept: the last ones.
const LINES: usize = 256;
/// Octets of a line that are kept.
const LINE_BYTES: usize = 512;
/// Messages, and rules that fired, that are kept of a session: the first ones.
const LISTED: usize = 100;

/// A line of a dialogue.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Since the session began, in milliseconds.
    pub at_ms: u64,
    /// `client`, `server` or `note`.
    pub speaker: &'static str,
    /// The text, cleaned.
    pub text: String,
}

/// A session.
#[derive(Serialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Session {
    /// Its number.
    pub number: u64,
    /// The client's address and port.
    pub client: String,
    /// The name that it gave itself.
    pub hello: String,
    /// The version of TLS.
    pub tls: Option<String>,
    /// The user who logged in.
    pub user: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub began_ms: u64,
    /// When it ended; none while it is open.
    pub ended_ms: Option<u64>,
    /// The rules that fired, as text, with their stages.
    pub rules: Vec<String>,
    /// The messages that came.
    pub messages: Vec<Id>,
    /// The dialogue, once the session has ended.
    pub lines: Vec<Line>,
}

/// Sessions by their clients, and the last ones that ended.
#[derive(Debug)]
pub struct Sessions {
    kept: usize,
    numbered: u64,
    open: BTreeMap<Endpoint, Session>,
    ended: VecDeque<Session>,
}

impl Sessions {
    /// None yet; the last `kept` that end are remembered.
    pub fn new(kept: usize) -> Sessions {
        Sessions { kept, numbered: 0, open: BTreeMap::new(), ended: VecDeque::new() }
    }
    /// The open session of a client; a new one if there is none.
    pub fn of(&mut self, client: Endpoint, now_ms: u64) -> &mut Session {
        if self.open.len() >= OPEN && !self.open.contains_key(&client) {
            let oldest =
                self.open.iter().min_by_key(|(_, session)| session.number).map(|(&client, _)| client);
            oldest.into_iter().for_each(|client| self.end(client, Vec::new(), now_ms));
        }
        let numbered = &mut self.numbered;
        self.open.entry(client).or_insert_with(|| {
            *numbered += 1;
            Session { number: *numbered, client: client.to_string(), began_ms: now_ms, ..Session::default() }
        })
    }
    /// Sessions that are open.
    pub fn open(&self) -> u64 {
        self.open.len() as u64
    }
    /// A session has ended, with the dialogue `lines`.
    pub fn end(&mut self, client: Endpoint, mut lines: Vec<Line>, now_ms: u64) {
        let Some(mut session) = self.open.remove(&client) else { return };
        lines.drain(..lines.len().saturating_sub(LINES));
        for line in &mut lines {
            line.text = cut(&line.text, LINE_BYTES).to_owned();
        }
        (session.lines, session.ended_ms) = (lines, Some(now_ms));
        self.ended.push_back(session);
        while self.ended.len() > self.kept {
            self.ended.pop_front();
        }
    }
    /// The sessions that are known, the newest first.
    pub fn list(&self) -> Vec<&Session> {
        let mut all: Vec<&Session> = self.open.values().chain(&self.ended).collect();
        all.sort_unstable_by_key(|session| std::cmp::Reverse(session.number));
        all
    }
    /// A session.
    pub fn session(&self, number: u64) -> Option<&Session> {
        self.open.values().chain(&self.ended).find(|session| session.number == number)
    }
}

impl Session {
    /// A rule has fired.
    pub fn fired(&mut self, rule: String) {
        if self.rules.len() < LISTED {
            self.rules.push(rule);
        }
    }
    /// A message has come.
    pub fn received(&mut self, id: Id) {
        if self.messages.len() < LISTED {
            self.messages.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_dialogues_are_kept() {
        let (mut sessions, client) = (Sessions::new(2), |port| Endpoint::new([10, 0, 0, 1], port));
        for port in 1..=4 {
            assert_eq!(sessions.of(client(port), 5).number, u64::from(port));
        }
        sessions.of(client(1), 6).fired("x".into());
        let line = |_| Line { at_ms: 1, speaker: "client", text: "ä".repeat(1000) };
        for port in 1..=3 {
            sessions.end(client(port), (0..1000).map(line).collect(), 7);
        }
        let numbers: Vec<u64> = sessions.list().iter().map(|session| session.number).collect();
        assert_eq!((numbers, sessions.open()), (vec![4, 3, 2], 1));
        let ended = sessions.session(3).unwrap();
        assert_eq!((ended.lines.len(), ended.lines[0].text.len()), (LINES, LINE_BYTES));
        for port in 100..100 + 2 * OPEN as u16 {
            sessions.of(client(port), 8);
        }
        assert_eq!(sessions.open(), OPEN as u64);
    }
}
