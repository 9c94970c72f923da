//! Answers that are kept for as long as they say themselves, and no more of them than there is room for.

use crate::answer::Answer;
use crate::asked::Question;
use crate::codec;
use hickory_proto::op::{Message, OpCode, ResponseCode};
use inhost_base::{Duration, Instant};
use std::collections::BTreeMap;

/// Memory of an entry beside its message and its name, counted twice: the tree nodes.
const ENTRY_BYTES: usize = 400;

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

/// An answer as a message: a record that was read takes many times the octets that it was read from, and how many
/// depends on who wrote it.
struct Entry {
    message: Box<[u8]>,
    code: ResponseCode,
    keep_for: Duration,
    left_out: usize,
    stored: Instant,
    bytes: usize,
    turn: u64,
}

impl Entry {
    fn answer(&self) -> Option<Answer> {
        let message = codec::read(&self.message)?;
        Some(Answer {
            code: self.code,
            records: message.answers,
            proof: message.authorities,
            keep_for: self.keep_for,
            unfinished: None,
            left_out: self.left_out,
        })
    }
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
        let answer = match age < entry.keep_for {
            true => entry.answer(),
            false => None,
        };
        let Some(answer) = answer else {
            self.forget(&key);
            return None;
        };
        self.turns.remove(&entry.turn);
        self.turn += 1;
        entry.turn = self.turn;
        self.turns.insert(self.turn, key);
        Some((answer.aged(age), age))
    }
    /// Keeps an answer for as long as it says.
    pub fn store(&mut self, question: &Question, answer: &Answer, now: Instant) {
        let key = Key::of(question);
        self.forget(&key);
        if answer.keep_for == Duration::ZERO || answer.unfinished.is_some() {
            return;
        }
        let mut message = Message::response(0, OpCode::Query);
        message.answers.clone_from(&answer.records);
        message.authorities.clone_from(&answer.proof);
        // A record that cannot be encoded is dropped.
        let Ok(message) = message.to_vec() else { return };
        let bytes = ENTRY_BYTES + 2 * key.name.capacity() + message.len();
        while self.bytes + bytes > self.limit_bytes {
            let Some((_, oldest)) = self.turns.first_key_value() else { return };
            let oldest = oldest.clone();
            self.forget(&oldest);
        }
        self.turn += 1;
        self.bytes += bytes;
        self.turns.insert(self.turn, key.clone());
        let Answer { code, keep_for, left_out, .. } = *answer;
        let message = message.into_boxed_slice();
        let entry = Entry { message, code, keep_for, left_out, stored: now, bytes, turn: self.turn };
        self.entries.insert(key, entry);
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
    use hickory_proto::rr::rdata::{A, TXT};
    use hickory_proto::rr::{Name, RData, Record, RecordType};
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
        let mut one = Cache::new(1 << 20);
        one.store(&question("n999.example."), &answer("n999.example.", 600), at(1));
        let mut cache = Cache::new(100 * one.used_bytes());
        for n in 0..1000 {
            let name = format!("n{n}.example.");
            cache.store(&question(&name), &answer(&name, 600), at(1));
            assert!(n == 0 || cache.look_up(&question("n0.example."), at(1)).is_some());
        }
        assert!((100..=102).contains(&cache.len()) && cache.turns.len() == cache.len(), "{}", cache.len());
        assert!(cache.used_bytes() <= cache.limit_bytes);
        let known =
            |cache: &mut Cache, n: u32| cache.look_up(&question(&format!("n{n}.example.")), at(2)).is_some();
        assert!(known(&mut cache, 999) && known(&mut cache, 905) && !known(&mut cache, 890));
    }

    #[test]
    fn an_answer_counts_by_its_octets_and_not_by_its_records() {
        let mut cache = Cache::new(1 << 20);
        let text = |n: u8| RData::TXT(TXT::from_bytes(vec![&[n; 250]; 16]));
        for n in 0..200 {
            let name = format!("n{n}.example.");
            let owner = Name::from_str(&name).unwrap();
            let records = (0..15).map(|n| Record::from_rdata(owner.clone(), 600, text(n))).collect();
            cache.store(&question(&name), &Answer { records, ..answer(&name, 600) }, at(1));
        }
        assert!((15..=17).contains(&cache.len()), "{} answers of 60 KB in 1 MiB", cache.len());
        let (kept, _) = cache.look_up(&question("n199.example."), at(1)).unwrap();
        assert_eq!((kept.records.len(), &kept.records[14].data), (15, &text(14)));
    }
}
