//! Any record of a name, with who said so and how long it took: what a person asks for.

use crate::answer::{Answer, Source};
use crate::asked::Question;
use crate::machine::{Attempt, AttemptOutcome, Failed, Transport};
use crate::mdns::{self, MdnsReport};
use crate::{LookUpError, Names, local, reverse_name};
use futures_lite::future;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, RData, RecordType};
use inhost_base::{Duration, Endpoint, IpAddr};
use inhost_common::Cleaner;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Types asked for at a time.
const KINDS_LIMIT: usize = 8;

/// A record query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RecordsRequest {
    /// A name, or an address, whose names are looked for.
    pub name: String,
    /// The types; those of [`kinds_of`] where there are none.
    pub kinds: Vec<RecordType>,
    /// The server to ask, and nobody else: not the table either.
    pub server: Option<Endpoint>,
    /// Asks over TCP from the start.
    pub over_tcp: bool,
    /// Asks by mDNS for any name.
    pub on_the_link: bool,
}

impl RecordsRequest {
    /// Asks for the types of [`kinds_of`], of whom names are asked otherwise.
    ///
    /// ```
    /// use inhost_names::RecordsRequest;
    /// let mut request = RecordsRequest::new("www.example.com");
    /// request.over_tcp = true;
    /// assert!(request.kinds.is_empty() && request.server.is_none());
    /// ```
    pub fn new(name: &str) -> RecordsRequest {
        RecordsRequest { name: name.to_owned(), ..RecordsRequest::default() }
    }
}

/// One question with what came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordsResult {
    /// The question.
    pub question: Question,
    /// The servers that were asked.
    pub source: Source,
    /// The answer, or why there is none.
    pub result: Result<Answer, Failed>,
    /// Each server that was asked, in order; of the link, who answered.
    pub attempts: Vec<Attempt>,
    /// Total elapsed time.
    pub took: Duration,
}

/// The types that are asked for where a person names none: of an address its names, of a name its addresses.
pub fn kinds_of(name: &str) -> Vec<RecordType> {
    match address(name) {
        Some(_) => vec![RecordType::PTR],
        None => vec![RecordType::A, RecordType::AAAA],
    }
}

/// The address that a text is, in brackets or without.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text).parse().ok()
}

/// Whether a text is a name that is looked for on the link.
pub(crate) fn is_of_the_link(text: &str) -> bool {
    Name::from_str(text).is_ok_and(|name| mdns::is_of_the_link(&name))
}

impl Names {
    /// The records that `request` asks for, a result for each type. An error only where the name can be none.
    pub async fn records(&self, request: &RecordsRequest) -> Result<Vec<RecordsResult>, LookUpError> {
        let name = match address(&request.name) {
            Some(address) => reverse_name(address),
            None => full_name(&request.name)?,
        };
        let own = kinds_of(&request.name);
        let kinds = if request.kinds.is_empty() { &own } else { &request.kinds };
        let mut all = Vec::new();
        // One after the other would take a dead server's time for each.
        for pair in kinds[..kinds.len().min(KINDS_LIMIT)].chunks(2) {
            let question = |kind: &RecordType| Question::new(name.clone(), *kind);
            match pair {
                [one, other] => {
                    let (one, other) = future::zip(
                        self.record(request, question(one)),
                        self.record(request, question(other)),
                    )
                    .await;
                    all.extend([one, other]);
                }
                one => {
                    for kind in one {
                        all.push(self.record(request, question(kind)).await);
                    }
                }
            }
        }
        Ok(all)
    }
    async fn record(&self, request: &RecordsRequest, question: Question) -> RecordsResult {
        let began = self.host.now();
        if request.on_the_link || (request.server.is_none() && mdns::is_of_the_link(&question.name)) {
            let report = self.asker.ask_link(question).await;
            return of_link(report, self.host.now().since(began));
        }
        let home = self.home.borrow().clone().filter(|_| request.server.is_none());
        if let Some(home) = home {
            return home.record(question, request.over_tcp).await;
        }
        let known = match request.server {
            None => local::answer(&question, &self.hosts.borrow()),
            Some(_) => None,
        };
        if let Some(answer) = known {
            let (attempts, took) = (Vec::new(), Duration::ZERO);
            return RecordsResult { question, source: Source::Table, result: Ok(answer), attempts, took };
        }
        let configured = self.servers.borrow().servers.clone();
        let servers = request.server.map_or(configured, |server| vec![server]);
        let asked = question.clone();
        let report = self.asker.ask_to_the_end(question, &servers, request.over_tcp).await;
        RecordsResult {
            question: asked,
            source: Source::Servers,
            result: report.result,
            attempts: report.attempts,
            took: self.host.now().since(began),
        }
    }
    /// The addresses that somebody on the link has under `name`.
    pub(crate) async fn look_up_on_the_link(&self, name: &str) -> Result<Vec<IpAddr>, LookUpError> {
        let full = full_name(name)?;
        let ask = |kind| self.asker.ask_link(Question::new(full.clone(), kind));
        let (six, four) = future::zip(ask(RecordType::AAAA), ask(RecordType::A)).await;
        let records = |report: MdnsReport| report.answer.map_or(Vec::new(), |answer| answer.records);
        let found: Vec<IpAddr> = records(six)
            .into_iter()
            .chain(records(four))
            .filter_map(|record| record.data.ip_addr())
            .collect();
        match found.is_empty() {
            true => Err(LookUpError::NobodyHas { name: name.to_owned() }),
            false => Ok(found),
        }
    }
}

/// A name that is not completed by search domains: it is looked up as it stands.
pub(crate) fn full_name(text: &str) -> Result<Name, LookUpError> {
    let mut name = parse_name(text)?;
    name.set_fqdn(true);
    Ok(name)
}

/// A name as it is written, in any script.
pub(crate) fn parse_name(text: &str) -> Result<Name, LookUpError> {
    let parsed = Name::from_str(text).or_else(|_| Name::from_utf8(text));
    parsed.map_err(|_| LookUpError::NotAName { name: text.to_owned() })
}

fn of_link(report: MdnsReport, took: Duration) -> RecordsResult {
    let MdnsReport { question, answer, responders, .. } = report;
    let attempts = responders
        .into_iter()
        .map(|(server, took)| Attempt {
            server,
            transport: Transport::Multicast,
            at: inhost_base::Instant::ZERO,
            took,
            outcome: AttemptOutcome::Answered(ResponseCode::NoError),
            mismatches: BTreeMap::new(),
        })
        .collect();
    RecordsResult { question, source: Source::Link, result: answer.ok_or(Failed::Silence), attempts, took }
}

/// The data of a record as people read it: names without their final dot, texts in quotes, and nothing in it that a
/// terminal would obey.
pub fn data_shown(data: &RData) -> String {
    let text = match data {
        RData::CNAME(name) => name.0.to_string(),
        RData::PTR(name) => name.0.to_string(),
        RData::NS(name) => name.0.to_string(),
        RData::MX(mx) => format!("{} {}", mx.preference, mx.exchange),
        RData::SRV(srv) => format!("{} {} {} {}", srv.priority, srv.weight, srv.port, srv.target),
        RData::TXT(txt) => return Cleaner::line(&txt.txt_data.concat()),
        // RFC 3597 §5.
        RData::Unknown { rdata, .. } => {
            let octets: String = rdata.anything.iter().map(|octet| format!("{octet:02X}")).collect();
            return format!("\\# {} {octets}", rdata.anything.len()).trim_end().to_owned();
        }
        other => return Cleaner::line(other.to_string().as_bytes()),
    };
    let text = Cleaner::line(text.as_bytes());
    match text.strip_suffix('.') {
        Some(bare) if !bare.is_empty() && !bare.ends_with(' ') => bare.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::rr::rdata::{PTR, TXT};

    #[test]
    fn an_address_of_either_family_has_names() {
        for text in ["192.0.2.7", "::1", "2001:db8::5", "[fd09::1]"] {
            assert!(crate::check_name(text).is_ok(), "{text}");
            assert_eq!(kinds_of(text), [RecordType::PTR], "{text}");
        }
        assert!(crate::check_name("2001:db8::x").is_err());
    }

    #[test]
    fn what_a_terminal_obeys_is_not_shown() {
        let text = TXT::from_bytes(vec![b"\x1b]0;title\x07", b"\r\nforged has address 192.0.2.66 \x9b\xfc"]);
        let shown = data_shown(&RData::TXT(text));
        assert_eq!(shown, "\u{fffd}]0;title\u{fffd}\u{fffd}forged has address 192.0.2.66 \u{fffd}\u{fc}");
        let name = Name::from_labels([&b"\x1b[2J"[..], "\u{202e}\u{9b}".as_bytes(), b"example"]).unwrap();
        for text in [data_shown(&RData::PTR(PTR(name.clone()))), crate::shown(&name)] {
            assert!(text.ends_with("example"), "{text}");
            assert!(text.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{text:?}");
        }
    }
}
