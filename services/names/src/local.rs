//! Names that are answered without asking anybody: the table of hosts, and those that RFCs keep from the servers of
//! the Internet.

use crate::answer::Answer;
use crate::asked::Question;
use crate::hosts::{Hosts, folded};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::{A, AAAA, PTR, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use inhost_base::{Duration, IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// TTL of answers from the hosts table, which may change at any time.
pub const LOCAL_TIME_TO_LIVE_SECONDS: u32 = 10;

/// Trees of which the servers of the Internet know nothing, and must not be asked: RFC 6761 §6.4, RFC 7686 §2 and, of
/// mDNS, RFC 6762 §22.1; RFC 8375's home.arpa is for the local servers, which are asked.
const KEPT: [&str; 5] = ["invalid", "onion", "local", "254.169.in-addr.arpa", "8.e.f.ip6.arpa"];

/// Local answer to `question`; `None` where a server must be asked.
pub(crate) fn answer(question: &Question, hosts: &Hosts) -> Option<Answer> {
    let name = folded(&question.name.to_ascii());
    if let Some(addresses) = table(&name, hosts) {
        return Some(of_addresses(question, &addresses));
    }
    if let Ok(network) = question.name.parse_arpa_name()
        && let Some(names) = reverse(network.addr(), network.prefix_len() == network.max_prefix_len(), hosts)
    {
        return Some(of_names(question, &names));
    }
    let is_kept = |tree: &str| name == tree || name.ends_with(&format!(".{tree}"));
    KEPT.into_iter().find(|tree| is_kept(tree)).map(|tree| nothing(question, ResponseCode::NXDomain, tree))
}

/// The addresses of a name that the table has, or that is this host itself (RFC 6761 §6.3).
fn table(name: &str, hosts: &Hosts) -> Option<Vec<IpAddr>> {
    if let Some(addresses) = hosts.look_up(name) {
        return Some(addresses.to_vec());
    }
    let is_here = name == "localhost" || name.ends_with(".localhost");
    is_here.then(|| vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()])
}

/// The names of an address.
fn reverse(address: IpAddr, is_whole: bool, hosts: &Hosts) -> Option<Vec<String>> {
    let names = if is_whole { hosts.names_of(address) } else { Vec::new() };
    match names.is_empty() {
        false => Some(names),
        true => (is_whole && address.is_loopback()).then(|| vec!["localhost".to_owned()]),
    }
}

fn of_addresses(question: &Question, addresses: &[IpAddr]) -> Answer {
    let wanted = |kind| matches!(question.kind, RecordType::ANY) || question.kind == kind;
    let data = addresses.iter().filter_map(|address| match address {
        IpAddr::V4(a) if wanted(RecordType::A) => Some(RData::A(A(*a))),
        IpAddr::V6(a) if wanted(RecordType::AAAA) => Some(RData::AAAA(AAAA(*a))),
        _ => None,
    });
    records(question, data.collect())
}

fn of_names(question: &Question, names: &[String]) -> Answer {
    let wanted = matches!(question.kind, RecordType::ANY | RecordType::PTR);
    let name = |text: &String| Name::from_str(&format!("{text}.")).ok();
    let data = names.iter().filter(|_| wanted).filter_map(name).map(|name| RData::PTR(PTR(name)));
    records(question, data.collect())
}

fn records(question: &Question, data: Vec<RData>) -> Answer {
    if data.is_empty() {
        return nothing(question, ResponseCode::NoError, &question.name.to_ascii());
    }
    let record = |data| Record::from_rdata(question.name.clone(), LOCAL_TIME_TO_LIVE_SECONDS, data);
    Answer {
        code: ResponseCode::NoError,
        records: data.into_iter().map(record).collect(),
        proof: Vec::new(),
        keep_for: Duration::from_secs(u64::from(LOCAL_TIME_TO_LIVE_SECONDS)),
        unfinished: None,
        left_out: 0,
    }
}

/// That there is nothing, with a record by which others may keep that (RFC 2308 §5).
fn nothing(question: &Question, code: ResponseCode, zone: &str) -> Answer {
    let owner = Name::from_ascii(format!("{}.", zone.trim_end_matches('.')));
    let soa = SOA::new(
        Name::from_ascii("localhost.").unwrap_or_default(),
        Name::from_ascii("nobody.invalid.").unwrap_or_default(),
        1,
        3600,
        1200,
        604_800,
        LOCAL_TIME_TO_LIVE_SECONDS,
    );
    let owner = owner.unwrap_or_else(|_| question.name.clone());
    Answer {
        code,
        records: Vec::new(),
        proof: vec![Record::from_rdata(owner, LOCAL_TIME_TO_LIVE_SECONDS, RData::SOA(soa))],
        keep_for: Duration::from_secs(u64::from(LOCAL_TIME_TO_LIVE_SECONDS)),
        unfinished: None,
        left_out: 0,
    }
}

/// The name under which an address has its names (RFC 1035 §3.5, RFC 3596 §2.5).
pub fn reverse_name(address: IpAddr) -> Name {
    Name::from(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, kind: RecordType) -> Option<(ResponseCode, Vec<String>)> {
        let hosts = Hosts::parse("10.0.0.7 Multics.lan multics\nfd00::7 multics.lan\n");
        let question = Question::new(Name::from_str(name).unwrap(), kind);
        let answer = answer(&question, &hosts)?;
        assert!(!answer.records.is_empty() || answer.proof.len() == 1);
        Some((answer.code, answer.records.iter().map(|record| record.data.to_string()).collect()))
    }

    #[test]
    fn the_table_answers_both_ways() {
        let found =
            |list: &[&str]| Some((ResponseCode::NoError, list.iter().map(ToString::to_string).collect()));
        assert_eq!(said("MULTICS.lan.", RecordType::A), found(&["10.0.0.7"]));
        assert_eq!(said("multics.lan.", RecordType::AAAA), found(&["fd00::7"]));
        assert_eq!(said("multics.", RecordType::AAAA), found(&[]), "the name is there, the address is not");
        assert_eq!(said("multics.lan.", RecordType::MX), found(&[]));
        assert_eq!(said("7.0.0.10.in-addr.arpa.", RecordType::PTR), found(&["multics.lan.", "multics."]));
        let six = reverse_name("fd00::7".parse().unwrap()).to_string();
        assert_eq!(said(&six, RecordType::PTR), found(&["multics.lan."]));
        assert_eq!(said("8.0.0.10.in-addr.arpa.", RecordType::PTR), None);
        assert_eq!(said("0.10.in-addr.arpa.", RecordType::PTR), None);
    }

    /// spec: RFC6761 6.3, RFC6761 6.4, RFC6762 22.1, RFC7686 2
    #[test]
    fn what_no_server_is_asked() {
        assert_eq!(said("localhost.", RecordType::A).unwrap().1, ["127.0.0.1"]);
        assert_eq!(said("x.localhost.", RecordType::AAAA).unwrap().1, ["::1"]);
        assert_eq!(said("1.0.0.127.in-addr.arpa.", RecordType::PTR).unwrap().1, ["localhost."]);
        for name in ["printer.local.", "a.onion.", "x.invalid.", "1.1.254.169.in-addr.arpa."] {
            assert_eq!(said(name, RecordType::A), Some((ResponseCode::NXDomain, Vec::new())), "{name}");
        }
        for name in ["mit.edu.", "notlocal.", "local.example.", "."] {
            assert_eq!(said(name, RecordType::A), None, "{name}");
        }
    }
}
