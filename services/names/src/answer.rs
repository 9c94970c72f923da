//! The part of an answer that belongs to its question: records that nobody asked for are left out, so that a server
//! cannot speak of names that are not its business (RFC 2181 §5.4.1, RFC 5452 §6).

use crate::asked::Question;
use crate::denial::{Signature, denials};
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use inhost_base::Duration;
use inhost_common::Cleaner;
use std::fmt;

/// Aliases that are followed from one name.
pub const ALIASES_LIMIT: usize = 16;
/// Records of one answer: one with more is not believed, since a part of it would be false.
pub const RECORDS_LIMIT: usize = 1024;
/// Signatures kept of one SOA record.
const SIGNATURES_LIMIT: usize = 16;
/// The longest time for which a record is kept.
pub const TIME_TO_LIVE_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// The longest time for which it is kept that something is not there (RFC 2308 §5).
pub const NEGATIVE_LIMIT: Duration = Duration::from_secs(3 * 3600);

/// By whom a question was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The host's own table, or what RFCs say of the name.
    Table,
    /// Name servers.
    Servers,
    /// Name servers before now: the forwarder of the host has kept it.
    Kept,
    /// The link: mDNS.
    Link,
}

/// Answer to a question.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The verdict: no error, or that there is no such name.
    pub code: ResponseCode,
    /// Aliases in their order, then the records that were asked for.
    pub records: Vec<Record>,
    /// The authority section: the SOA record by which a negative answer may be kept, and, where signatures were asked
    /// for, the NSEC and NSEC3 records that deny names or types, those that a wildcard needs included.
    pub proof: Vec<Record>,
    /// Cache lifetime; zero if it must not be cached.
    pub keep_for: Duration,
    /// The name that still has to be asked for, where the answer ends with an alias.
    pub unfinished: Option<Name>,
    /// Records that were left out because nobody asked for them.
    pub left_out: usize,
}

/// Why an answer of a server is of no use.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AnswerError {
    /// The server says that it failed, refuses, or does not understand.
    Code(ResponseCode),
    /// It names others to ask: it does not look names up for us.
    Referral,
    /// The name is an alias of itself by way of these.
    AliasLoop(Vec<Name>),
    /// More aliases than [`ALIASES_LIMIT`].
    TooManyAliases,
    /// More records than [`RECORDS_LIMIT`].
    TooManyRecords,
    /// It is cut off, over TCP too.
    CutOff,
    /// It cannot be read.
    Unreadable,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerError::Code(code) => f.write_str(code_name(*code)),
            AnswerError::Referral => f.write_str("it names other servers and does not ask them"),
            AnswerError::AliasLoop(names) => {
                f.write_str("the aliases go round: ")?;
                for (at, name) in names.iter().enumerate() {
                    write!(f, "{}{}", if at > 0 { " -> " } else { "" }, shown(name))?;
                }
                Ok(())
            }
            AnswerError::TooManyAliases => write!(f, "more than {ALIASES_LIMIT} aliases one after the other"),
            AnswerError::TooManyRecords => write!(f, "more than {RECORDS_LIMIT} records"),
            AnswerError::CutOff => f.write_str("the answer is cut off, over TCP too"),
            AnswerError::Unreadable => f.write_str("the answer cannot be read"),
        }
    }
}

/// A response code in words.
pub fn code_name(code: ResponseCode) -> &'static str {
    match code {
        ResponseCode::NoError => "no error",
        ResponseCode::FormErr => "the server does not understand the question",
        ResponseCode::ServFail => "the server failed",
        ResponseCode::NXDomain => "there is no such name",
        ResponseCode::NotImp => "the server does not do that",
        ResponseCode::Refused => "the server refuses",
        _ => "the server answers with an error",
    }
}

/// A name without the final dot, for people, and without what a terminal would obey.
pub fn shown(name: &Name) -> String {
    let text = Cleaner::line(name.to_string().as_bytes());
    match text.strip_suffix('.') {
        Some("") | None => text,
        Some(bare) => bare.to_owned(),
    }
}

impl Answer {
    /// Reads what `message` says of `question`.
    pub(crate) fn read(message: &Message, question: &Question) -> Result<Answer, AnswerError> {
        let code = message.metadata.response_code;
        let mut walk = Walk::start(question);
        // Servers that go round themselves say that they failed, and show where: the loop says more.
        while walk.step(&message.answers, question)? {}
        if !matches!(code, ResponseCode::NoError | ResponseCode::NXDomain) {
            return Err(AnswerError::Code(code));
        }
        let Walk { records, at, found, passed, .. } = walk;
        let mut answer = Answer {
            code: if found { ResponseCode::NoError } else { code },
            left_out: message.answers.len().saturating_sub(records.len()),
            records,
            proof: Vec::new(),
            keep_for: Duration::ZERO,
            unfinished: None,
        };
        if !found {
            answer.proof = negative(&message.authorities, &at, question);
        }
        if question.signed {
            // RFC 4035 §3.1.3.3: each alias on the way may come of a wildcard, and its zone proves that by itself.
            let names: Vec<&Name> = passed.iter().chain([&at]).collect();
            answer.proof.extend(denials(&message.authorities, &names).take(RECORDS_LIMIT).cloned());
        }
        answer.level_times();
        let own_limit = answer.least_time(TIME_TO_LIVE_LIMIT);
        if found {
            answer.keep_for = own_limit;
            return Ok(answer);
        }
        // RFC 2308 §5: the time is the lesser of the record's own and its last field; without a record none.
        let negative = answer.proof.iter().find_map(|record| match &record.data {
            RData::SOA(soa) => Some(Duration::from_secs(u64::from(soa.minimum))),
            _ => None,
        });
        match negative {
            Some(limit) => answer.keep_for = own_limit.min(limit).min(NEGATIVE_LIMIT),
            None if code == ResponseCode::NXDomain => {}
            None if !answer.records.is_empty() => {
                (answer.unfinished, answer.keep_for) = (Some(at), own_limit);
            }
            // RFC 2308 §2.2: servers without a proof are a referral.
            None if message.authorities.iter().any(|record| record.record_type() == RecordType::NS) => {
                return Err(AnswerError::Referral);
            }
            None => {}
        }
        Ok(answer)
    }
    /// Puts what was found out about [`Answer::unfinished`] behind this answer.
    pub(crate) fn continued(mut self, rest: &Answer) -> Result<Answer, AnswerError> {
        let aliases =
            |records: &[Record]| records.iter().filter(|r| r.record_type() == RecordType::CNAME).count();
        if aliases(&self.records) + aliases(&rest.records) > ALIASES_LIMIT {
            return Err(AnswerError::TooManyAliases);
        }
        if let Some(again) = rest.unfinished.as_ref()
            && self.records.iter().any(|record| record.name == *again)
        {
            let mut names: Vec<Name> = self.records.iter().map(|record| record.name.clone()).collect();
            names.extend(rest.records.iter().map(|record| record.name.clone()));
            names.push(again.clone());
            return Err(AnswerError::AliasLoop(names));
        }
        if self.records.len() + rest.records.len() > RECORDS_LIMIT {
            return Err(AnswerError::TooManyRecords);
        }
        self.records.extend(rest.records.iter().cloned());
        self.code = rest.code;
        let room = RECORDS_LIMIT.saturating_sub(self.proof.len());
        self.proof.extend(rest.proof.iter().take(room).cloned());
        self.keep_for = self.keep_for.min(rest.keep_for);
        self.unfinished.clone_from(&rest.unfinished);
        Ok(self)
    }
    /// The same after `age`: times to live are what is left of them.
    pub(crate) fn aged(mut self, age: Duration) -> Answer {
        let seconds = u32::try_from(age.as_secs()).unwrap_or(u32::MAX);
        for record in self.records.iter_mut().chain(&mut self.proof) {
            record.ttl = record.ttl.saturating_sub(seconds);
        }
        self.keep_for -= age;
        self
    }
    /// Whether there is no such name.
    pub fn is_no_such_name(&self) -> bool {
        self.code == ResponseCode::NXDomain
    }
    /// The records that were asked for, without the aliases that lead to them.
    pub fn wanted(&self, kind: RecordType) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| kind == RecordType::ANY || record.record_type() == kind)
    }
    /// RFC 2181 §5.2 and §8: the records of one set have one time, and a time with the highest bit is none.
    fn level_times(&mut self) {
        for record in self.records.iter_mut().chain(&mut self.proof) {
            record.ttl = seconds(record.ttl);
        }
        for at in 0..self.records.len() {
            let (name, kind) = (self.records[at].name.clone(), self.records[at].record_type());
            let same = |record: &&Record| record.name == name && record.record_type() == kind;
            let least = self.records.iter().filter(same).map(|record| record.ttl).min();
            self.records[at].ttl = least.unwrap_or(0);
        }
    }
    fn least_time(&self, limit: Duration) -> Duration {
        let all = self.records.iter().chain(&self.proof);
        all.map(|record| Duration::from_secs(u64::from(record.ttl))).fold(limit, Duration::min)
    }
}

fn seconds(ttl: u32) -> u32 {
    let limit = TIME_TO_LIVE_LIMIT.as_secs() as u32;
    if ttl > i32::MAX as u32 { 0 } else { ttl.min(limit) }
}

/// The way from the name that was asked for over its aliases.
struct Walk {
    at: Name,
    passed: Vec<Name>,
    records: Vec<Record>,
    found: bool,
}

impl Walk {
    fn start(question: &Question) -> Walk {
        Walk { at: question.name.clone(), passed: Vec::new(), records: Vec::new(), found: false }
    }
    /// Takes the records at one name; true when an alias leads further.
    fn step(&mut self, answers: &[Record], question: &Question) -> Result<bool, AnswerError> {
        let at = self.at.clone();
        let here = |record: &&Record| record.dns_class == DNSClass::IN && record.name == at;
        let is_wanted =
            |record: &Record| question.kind == RecordType::ANY || record.record_type() == question.kind;
        let signs = |record: &Record, kind: RecordType| {
            question.signed && Signature::of(record).is_some_and(|signature| signature.covers == kind)
        };
        if answers.iter().filter(here).any(is_wanted) {
            self.found = true;
            let taken = answers
                .iter()
                .filter(here)
                .filter(|record| is_wanted(record) || signs(record, question.kind));
            self.take(taken, &at)?;
            return Ok(false);
        }
        let alias = answers.iter().filter(here).find_map(|record| match &record.data {
            RData::CNAME(target) => Some((record, target.0.clone())),
            _ => None,
        });
        let Some((record, target)) = alias else { return Ok(false) };
        // RFC 6672 §3.2: a redirected tree's record comes before the alias that was made of it.
        let redirects = answers.iter().filter(|record| {
            (record.record_type() == RecordType::DNAME || signs(record, RecordType::DNAME))
                && record.dns_class == DNSClass::IN
                && record.name.zone_of(&at)
                && record.name != at
        });
        self.take(redirects, &Name::root())?;
        let signatures = answers.iter().filter(here).filter(|record| signs(record, RecordType::CNAME));
        self.take(std::iter::once(record).chain(signatures), &at)?;
        self.passed.push(at);
        if self.passed.contains(&target) {
            let mut names = std::mem::take(&mut self.passed);
            names.push(target);
            return Err(AnswerError::AliasLoop(names));
        }
        if self.passed.len() > ALIASES_LIMIT {
            return Err(AnswerError::TooManyAliases);
        }
        self.at = target;
        Ok(true)
    }
    /// Keeps records once each. Those of the name that was asked for get its letters, whatever the server wrote.
    fn take<'a>(&mut self, records: impl Iterator<Item = &'a Record>, at: &Name) -> Result<(), AnswerError> {
        for record in records {
            if self.records.contains(record) {
                continue;
            }
            if self.records.len() == RECORDS_LIMIT {
                return Err(AnswerError::TooManyRecords);
            }
            let mut record = record.clone();
            if record.name == *at {
                record.name = at.clone();
            }
            self.records.push(record);
        }
        Ok(())
    }
}

/// The record by which it is kept that there is nothing at `name`, with its signatures: of a zone that `name` is in, and
/// of no other.
fn negative(authorities: &[Record], name: &Name, question: &Question) -> Vec<Record> {
    let of_zone = |record: &&Record| record.dns_class == DNSClass::IN && record.name.zone_of(name);
    let soa = authorities.iter().filter(of_zone).find(|record| record.record_type() == RecordType::SOA);
    let Some(soa) = soa else { return Vec::new() };
    let signs = |record: &&Record| {
        question.signed
            && record.name == soa.name
            && Signature::of(record).is_some_and(|signature| signature.covers == RecordType::SOA)
    };
    std::iter::once(soa).chain(authorities.iter().filter(signs).take(SIGNATURES_LIMIT)).cloned().collect()
}

#[cfg(test)]
mod tests;
