//! Answers that are kept for as long as they say themselves, and no more of them than there is room for.

use crate::answer::Answer;
use crate::asked::Question;
use inhost_base::{Duration, Instant};
use std::collections::BTreeMap;

/// What an entry costs beside its records: its name twice, and the trees' nodes.
const ENTRY_BYTES: usize = 400;
/// What a record costs.
const RECORD_BYTES: usize = 320;

/// A question as it is looked up: the name's letters folded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    name: Vec<u8>,
    kind: u16,
    signed: bool,
    unchecked: bool,
}

impl Key {
    pub(crate) fn of(question: &Question) -> Key {
        let mut name = Vec::with_capacity(question.name.len() + 1);
        for label in question.name.iter() {
            name.push(label.len() as u8);
            name.extend(label.iter().map(u8::to_ascii_lowercase));
        }
        let Question { kind, signed, unchecked, .. } = question;
        Key { name, kind: u16::from(*kind), signed: *signed, unchecked: *unchecked }
    }
}

struct Entry {
    answer: Answer,
    stored: Instant,
    bytes: usize,
    turn: u64,
}

/// The answers. What was not used for longest goes first when there is no room.
pub struct Cache {
    limit_bytes: usize,
    entries: BTreeMap<Key, Entry>,
    /// Keys by the turn in which they were last used.
    turns: BTreeMap<u64, Key>,
    turn: u64,
    bytes: usize,
}

impl Cache {
    /// An empty cache for about `limit_bytes` of memory.
    pub fn new(limit_bytes: usize) -> Cache {
        Cache { limit_bytes, entries: BTreeMap::new(), turns: BTreeMap::new(), turn: 0, bytes: 0 }
    }
    /// Answers kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Memory that the answers take, about.
    pub fn used_bytes(&self) -> usize {
        self.bytes
    }
    /// The answer to a question with the times that are left, and how long ago it came.
    pub fn look_up(&mut self, question: &Question, now: Instant) -> Option<(Answer, Duration)> {
        let key = Key::of(question);
        let entry = self.entries.get_mut(&key)?;
        let age = now.since(entry.stored);
        if age >= entry.answer.keep_for {
            self.forget(&key);
            return None;
        }
        self.turns.remove(&entry.turn);
        self.turn += 1;
        entry.turn = self.turn;
        let answer = entry.answer.clone().aged(age);
        self.turns.insert(self.turn, key);
        Some((answer, age))
    }
    /// Keeps an answer for as long as it says.
    pub fn store(&mut self, question: &Question, answer: &Answer, now: Instant) {
        let key = Key::of(question);
        self.forget(&key);
        if answer.keep_for == Duration::ZERO {
            return;
        }
        let bytes = ENTRY_BYTES + RECORD_BYTES * (answer.records.len() + answer.proof.len());
        while self.bytes + bytes > self.limit_bytes {
            let Some((_, oldest)) = self.turns.first_key_value() else { return };
            let oldest = oldest.clone();
            self.forget(&oldest);
        }
        self.turn += 1;
        self.bytes += bytes;
        self.turns.insert(self.turn, key.clone());
        self.entries.insert(key, Entry { answer: answer.clone(), stored: now, bytes, turn: self.turn });
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Cache::new(self.limit_bytes);
    }
    fn forget(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.turns.remove(&entry.turn);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::proto::op::ResponseCode;
    use hickory_resolver::proto::rr::rdata::A;
    use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
    use std::str::FromStr;

    fn question(name: &str) -> Question {
        Question::new(Name::from_str(name).unwrap(), RecordType::A)
    }
    fn answer(name: &str, seconds: u32) -> Answer {
        let data = RData::A(A::new(192, 0, 2, 1));
        Answer {
            code: ResponseCode::NoError,
            records: vec![Record::from_rdata(Name::from_str(name).unwrap(), seconds, data)],
            proof: Vec::new(),
            keep_for: Duration::from_secs(u64::from(seconds)),
            unfinished: None,
            left_out: 0,
        }
    }
    fn at(seconds: u64) -> Instant {
        Instant::from_millis(1000 * seconds)
    }

    #[test]
    fn an_answer_is_kept_for_its_time_and_grows_old() {
        let mut cache = Cache::new(1 << 20);
        cache.store(&question("www.example."), &answer("www.example.", 60), at(1));
        let (kept, age) = cache.look_up(&question("WWW.Example."), at(41)).unwrap();
        assert_eq!((kept.records[0].ttl, age), (20, Duration::from_secs(40)));
        assert!(cache.look_up(&question("www.example."), at(61)).is_none());
        assert_eq!((cache.len(), cache.used_bytes(), cache.turns.len()), (0, 0, 0));
        cache.store(&question("www.example."), &answer("www.example.", 0), at(1));
        assert!(cache.is_empty());
        let signed = Question { signed: true, ..question("www.example.") };
        cache.store(&signed, &answer("www.example.", 60), at(1));
        assert!(cache.look_up(&question("www.example."), at(2)).is_none(), "another question");
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut cache = Cache::new(100 * (ENTRY_BYTES + RECORD_BYTES));
        for n in 0..1000 {
            let name = format!("n{n}.example.");
            cache.store(&question(&name), &answer(&name, 600), at(1));
            assert!(n == 0 || cache.look_up(&question("n0.example."), at(1)).is_some());
        }
        assert_eq!((cache.len(), cache.turns.len()), (100, 100));
        assert!(cache.used_bytes() <= cache.limit_bytes);
        let known =
            |cache: &mut Cache, n: u32| cache.look_up(&question(&format!("n{n}.example.")), at(2)).is_some();
        assert!(known(&mut cache, 999) && known(&mut cache, 901) && !known(&mut cache, 900));
    }
}
