//! `check_host()` (RFC 7208 §4): pure, over the DNS answers received so far.

use super::expand::{Context, Text};
use super::record::{Mechanism, Prefixes, Record, contains};
use super::request::SpfRequest;
use super::{SpfResult, SpfVerdict, TERMS_LIMIT, VOID_LIMIT};
use crate::dns::{Answer, Answers, Kind, Missing};
use crate::domain::{domain, is_within};
use inhost_base::IpAddr;
use inhost_common::Cleaner;

/// Exchanges of an `mx`, and names of a `ptr`, whose addresses are looked up (RFC 7208 §4.6.4).
const NAMES_LIMIT: usize = 10;
/// Longest explanation that is kept, in octets.
const EXPLANATION_BYTES: usize = 500;

/// Checks one identity. The error is the queries to look up before the next call.
pub(crate) fn check_host(request: &SpfRequest<'_>, answers: &Answers) -> Result<SpfResult, Missing> {
    let client = request.client.to_canonical();
    let Some(domain) = domain(request.domain) else {
        let reason = "there is no domain to check".to_owned();
        return Ok(SpfResult { verdict: SpfVerdict::None, domain: String::new(), reason, explanation: None });
    };
    let request = SpfRequest { client, ..*request };
    let mut check = Check { request: &request, answers, terms: 0, voids: 0 };
    let decided = match check.evaluate(&domain) {
        Ok(decided) => decided,
        Err(Stop::Missing(missing)) => return Err(missing),
        Err(Stop::TempError(reason)) => Decision::new(SpfVerdict::TempError, reason),
        Err(Stop::PermError(reason)) => Decision::new(SpfVerdict::PermError, reason),
    };
    let explanation = match (&decided.explanation, decided.verdict) {
        (Some((text, of)), SpfVerdict::Fail) => check.explanation(text, of)?,
        _ => None,
    };
    let reason = Cleaner::line(decided.reason.as_bytes());
    Ok(SpfResult { verdict: decided.verdict, domain, reason, explanation })
}

/// The result of a record, with its explanation and the domain to expand it for.
struct Decision {
    verdict: SpfVerdict,
    reason: String,
    explanation: Option<(Text, String)>,
}

impl Decision {
    fn new(verdict: SpfVerdict, reason: impl Into<String>) -> Decision {
        Decision { verdict, reason: reason.into(), explanation: None }
    }
}

/// Why an evaluation ends early.
enum Stop {
    Missing(Missing),
    TempError(String),
    PermError(String),
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Stop {
        Stop::Missing(missing)
    }
}

struct Check<'a> {
    request: &'a SpfRequest<'a>,
    answers: &'a Answers,
    terms: usize,
    voids: usize,
}

impl<'a> Check<'a> {
    /// The record of `domain`. Redirects and includes call it again, at most [`TERMS_LIMIT`] deep.
    fn evaluate(&mut self, domain: &str) -> Result<Decision, Stop> {
        let record = match self.record(domain)? {
            Some(record) => record,
            None => return Ok(Decision::new(SpfVerdict::None, format!("{domain} has no SPF record"))),
        };
        for directive in &record.directives {
            if self.matches(&directive.mechanism, domain)? {
                let reason = format!("{:?} of {domain}", directive.text);
                let explanation = record.explanation.map(|text| (text, domain.to_owned()));
                return Ok(Decision { verdict: directive.verdict, reason, explanation });
            }
        }
        let Some(redirect) = record.redirect else {
            return Ok(Decision::new(
                SpfVerdict::Neutral,
                format!("nothing in the record of {domain} matches"),
            ));
        };
        self.count_term()?;
        let target = self.target(Some(&redirect), domain)?;
        let decision = self.evaluate(&target)?;
        match decision.verdict {
            SpfVerdict::None => Err(Stop::PermError(format!("{target} has no SPF record to redirect to"))),
            _ => Ok(decision),
        }
    }
    /// The one SPF record of a domain (RFC 7208 §4.4, §4.5).
    fn record(&mut self, domain: &str) -> Result<Option<Record>, Stop> {
        let texts = match self.answers.ask(domain, Kind::Txt)? {
            Answer::Texts(texts) => texts.as_slice(),
            Answer::Failed => return Err(Stop::TempError(format!("no answer for the record of {domain}"))),
            _ => &[],
        };
        let mut records = texts.iter().filter(|text| Record::is_one(text));
        match (records.next(), records.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(Stop::PermError(format!("{domain} has more than one SPF record"))),
            (Some(text), None) => Record::parse(text)
                .map(Some)
                .map_err(|what| Stop::PermError(format!("in the record of {domain}, {what}"))),
        }
    }
    fn matches(&mut self, mechanism: &Mechanism, domain: &str) -> Result<bool, Stop> {
        if !matches!(mechanism, Mechanism::All | Mechanism::Network(..)) {
            self.count_term()?;
        }
        match mechanism {
            Mechanism::All => Ok(true),
            Mechanism::Network(network, length) => Ok(contains(*network, *length, self.request.client)),
            Mechanism::Include(target) => {
                let target = self.target(Some(target), domain)?;
                match self.evaluate(&target)?.verdict {
                    SpfVerdict::Pass => Ok(true),
                    SpfVerdict::None => {
                        Err(Stop::PermError(format!("{target} has no SPF record to include")))
                    }
                    _ => Ok(false),
                }
            }
            Mechanism::A(target, prefixes) => {
                let target = self.target(target.as_ref(), domain)?;
                self.has_client(&target, *prefixes)
            }
            Mechanism::Mx(target, prefixes) => {
                let target = self.target(target.as_ref(), domain)?;
                self.is_exchange(&target, *prefixes)
            }
            Mechanism::Ptr(target) => {
                let target = self.target(target.as_ref(), domain)?;
                Ok(self.names_of_client()?.iter().any(|name| is_within(name, &target)))
            }
            Mechanism::Exists(target) => {
                let target = self.target(Some(target), domain)?;
                // The query is for A records for IPv6 clients too (RFC 7208 §5.7).
                let found = self.look_up(&target, Kind::A)?;
                Ok(matches!(found, Answer::Addresses(list) if !list.is_empty()))
            }
        }
    }
    fn has_client(&mut self, name: &str, prefixes: Prefixes) -> Result<bool, Stop> {
        let client = self.request.client;
        let (kind, length) = match client {
            IpAddr::V4(_) => (Kind::A, prefixes.four),
            IpAddr::V6(_) => (Kind::Aaaa, prefixes.six),
        };
        match self.look_up(name, kind)? {
            Answer::Addresses(list) => Ok(list.iter().any(|address| contains(*address, length, client))),
            _ => Ok(false),
        }
    }
    fn is_exchange(&mut self, name: &str, prefixes: Prefixes) -> Result<bool, Stop> {
        let exchanges = match self.look_up(name, Kind::Mx)? {
            Answer::Names(names) => names.as_slice(),
            _ => &[],
        };
        if exchanges.len() > NAMES_LIMIT {
            return Err(Stop::PermError(format!("{name} has more than {NAMES_LIMIT} exchanges")));
        }
        self.need_addresses(exchanges)?;
        for exchange in exchanges {
            if self.has_client(exchange, prefixes)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
    /// The validated names of the client (RFC 7208 §5.5). DNS errors omit names.
    fn names_of_client(&mut self) -> Result<Vec<&'a str>, Stop> {
        let reverse = reverse_name(self.request.client);
        let answer = self.answers.ask(&reverse, Kind::Ptr)?;
        self.count_void(answer)?;
        let Answer::Names(names) = answer else { return Ok(Vec::new()) };
        let names = &names[..names.len().min(NAMES_LIMIT)];
        self.need_addresses(names)?;
        let mut found = Vec::new();
        for name in names {
            let answer = self.answers.ask(name, self.kind_of_address())?;
            if matches!(answer, Answer::Addresses(list) if list.contains(&self.request.client)) {
                found.push(name.as_str());
            }
        }
        Ok(found)
    }
    fn kind_of_address(&self) -> Kind {
        if self.request.client.is_ipv4() { Kind::A } else { Kind::Aaaa }
    }
    /// Asks for the addresses of all of them at once.
    fn need_addresses(&self, names: &[String]) -> Result<(), Missing> {
        let asked = names.iter().map(|name| self.answers.ask(name, self.kind_of_address()));
        let missing: Missing = asked.filter_map(Result::err).flatten().collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
    /// The target name of a mechanism.
    fn target(&mut self, text: Option<&Text>, domain: &str) -> Result<String, Stop> {
        let Some(text) = text else { return Ok(domain.to_owned()) };
        let name = self.name_for(text, domain)?;
        Ok(text.expand_domain(self.request, domain, &name))
    }
    /// The value of `%{p}` (RFC 7208 §7.3), where `text` has it.
    fn name_for(&mut self, text: &Text, domain: &str) -> Result<String, Stop> {
        if !text.needs_name() {
            return Ok(String::new());
        }
        let names = self.names_of_client()?;
        let same = names.iter().find(|name| name.eq_ignore_ascii_case(domain));
        let best = same.or_else(|| names.iter().find(|name| is_within(name, domain))).or(names.first());
        Ok(best.map_or_else(|| "unknown".to_owned(), ToString::to_string))
    }
    fn look_up(&mut self, name: &str, kind: Kind) -> Result<&'a Answer, Stop> {
        let answer = self.answers.ask(name, kind)?;
        if *answer == Answer::Failed {
            return Err(Stop::TempError(format!("no answer for {name}")));
        }
        self.count_void(answer)?;
        Ok(answer)
    }
    fn count_term(&mut self) -> Result<(), Stop> {
        self.terms += 1;
        match self.terms > TERMS_LIMIT {
            true => Err(Stop::PermError(format!("more than {TERMS_LIMIT} terms need look-ups"))),
            false => Ok(()),
        }
    }
    fn count_void(&mut self, answer: &Answer) -> Result<(), Stop> {
        self.voids += usize::from(answer.is_void());
        match self.voids > VOID_LIMIT {
            true => Err(Stop::PermError(format!("more than {VOID_LIMIT} look-ups found nothing"))),
            false => Ok(()),
        }
    }
    /// The domain's explanation of a refusal (RFC 7208 §6.2). `None` on any error.
    fn explanation(&mut self, target: &Text, domain: &str) -> Result<Option<String>, Missing> {
        self.voids = 0;
        let expanded = self.target(Some(target), domain);
        let Some(target) = of(expanded)? else { return Ok(None) };
        let Answer::Texts(texts) = self.answers.ask(&target, Kind::Txt)? else { return Ok(None) };
        let [text] = texts.as_slice() else { return Ok(None) };
        let ascii = std::str::from_utf8(text).ok().filter(|text| text.len() <= EXPLANATION_BYTES);
        let Some(text) = ascii.and_then(|text| Text::parse(text, Context::Explanation)) else {
            return Ok(None);
        };
        let named = self.name_for(&text, domain);
        let Some(name) = of(named)? else { return Ok(None) };
        let mut words = Cleaner::line(text.expand(self.request, domain, &name).as_bytes());
        words.truncate(words.floor_char_boundary(EXPLANATION_BYTES));
        Ok(Some(words))
    }
}

/// `None` for an error; missing queries are passed on.
fn of<T>(result: Result<T, Stop>) -> Result<Option<T>, Missing> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Stop::Missing(missing)) => Err(missing),
        Err(_) => Ok(None),
    }
}

/// The name under which an address has its names (RFC 1035 §3.5, RFC 3596 §2.5).
fn reverse_name(address: IpAddr) -> String {
    let labels: Vec<String> = match address {
        IpAddr::V4(address) => address.octets().iter().rev().map(u8::to_string).collect(),
        IpAddr::V6(address) => {
            let nibbles = |octet: &u8| [octet & 15, octet >> 4].map(|nibble| format!("{nibble:x}"));
            address.octets().iter().rev().flat_map(nibbles).collect()
        }
    };
    format!("{}.{}.arpa", labels.join("."), if address.is_ipv4() { "in-addr" } else { "ip6" })
}
