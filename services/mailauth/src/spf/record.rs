//! SPF records (RFC 7208 §4.5, §4.6, §12).

use super::SpfVerdict;
use super::expand::{Context, Text};
use inhost_base::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest record that is read, in octets. RFC 7208 §3.4 advises 450.
const RECORD_BYTES: usize = 8192;

/// An SPF record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) directives: Vec<Directive>,
    pub(crate) redirect: Option<Text>,
    pub(crate) explanation: Option<Text>,
}

/// A mechanism with its qualifier.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) verdict: SpfVerdict,
    pub(crate) mechanism: Mechanism,
    /// The term as written, for reports.
    pub(crate) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    All,
    Include(Text),
    A(Option<Text>, Prefixes),
    Mx(Option<Text>, Prefixes),
    Ptr(Option<Text>),
    Network(IpAddr, u8),
    Exists(Text),
}

/// Lengths of network prefixes in bits, of both families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    pub(crate) four: u8,
    pub(crate) six: u8,
}

impl Record {
    /// Whether a TXT record is an SPF record (RFC 7208 §4.5).
    pub(crate) fn is_one(text: &[u8]) -> bool {
        let (version, rest) = text.split_at(text.len().min(6));
        version.eq_ignore_ascii_case(b"v=spf1") && matches!(rest.first(), None | Some(b' '))
    }
    /// Reads a record. The error says what is wrong with it.
    pub(crate) fn parse(text: &[u8]) -> Result<Record, String> {
        if text.len() > RECORD_BYTES {
            return Err(format!("the record has more than {RECORD_BYTES} octets"));
        }
        let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii());
        let text = text.ok_or("the record is not ASCII")?;
        let mut record = Record { directives: Vec::new(), redirect: None, explanation: None };
        for term in text.split(' ').skip(1).filter(|term| !term.is_empty()) {
            record.term(term).ok_or_else(|| format!("{term:?} is not valid"))?;
        }
        // spec: RFC7208 6.1 — a redirect is ignored in a record with "all".
        if record.directives.iter().any(|directive| directive.mechanism == Mechanism::All) {
            record.redirect = None;
        }
        Ok(record)
    }
    fn term(&mut self, term: &str) -> Option<()> {
        let end = term.find([':', '/', '=']).unwrap_or(term.len());
        if term[end..].starts_with('=') {
            return self.modifier(&term[..end], &term[end + 1..]);
        }
        let (verdict, rest) = match term.as_bytes()[0] {
            b'+' => (SpfVerdict::Pass, &term[1..]),
            b'-' => (SpfVerdict::Fail, &term[1..]),
            b'~' => (SpfVerdict::SoftFail, &term[1..]),
            b'?' => (SpfVerdict::Neutral, &term[1..]),
            _ => (SpfVerdict::Pass, term),
        };
        let mechanism = mechanism(rest)?;
        self.directives.push(Directive { verdict, mechanism, text: term.to_owned() });
        Some(())
    }
    fn modifier(&mut self, name: &str, value: &str) -> Option<()> {
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(letters) {
            return None;
        }
        let place = match name.to_ascii_lowercase().as_str() {
            "redirect" => &mut self.redirect,
            "exp" => &mut self.explanation,
            // Its value must still be well formed.
            _ => return Text::parse(value, Context::Unknown).map(drop),
        };
        // Each at most once (RFC 7208 §6).
        if place.is_some() {
            return None;
        }
        *place = Some(Text::parse(value, Context::Domain)?);
        Some(())
    }
}

fn mechanism(text: &str) -> Option<Mechanism> {
    let end = text.find([':', '/']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let argument = rest.strip_prefix(':');
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "all" if rest.is_empty() => Mechanism::All,
        "include" => Mechanism::Include(Text::parse(argument?, Context::Domain)?),
        "exists" => Mechanism::Exists(Text::parse(argument?, Context::Domain)?),
        "ptr" if rest.is_empty() => Mechanism::Ptr(None),
        "ptr" => Mechanism::Ptr(Some(Text::parse(argument?, Context::Domain)?)),
        "a" | "mx" => {
            let (target, prefixes) = match argument {
                None => (None, rest),
                Some(argument) => {
                    let slash = Text::end_of_domain(argument);
                    (Some(Text::parse(&argument[..slash], Context::Domain)?), &argument[slash..])
                }
            };
            let prefixes = Prefixes::parse(prefixes)?;
            if name == "a" { Mechanism::A(target, prefixes) } else { Mechanism::Mx(target, prefixes) }
        }
        "ip4" | "ip6" => {
            let (address, length) = match argument?.split_once('/') {
                None => (argument?, None),
                Some((address, length)) => (address, Some(length)),
            };
            let (address, most): (IpAddr, u8) = match name.as_str() {
                "ip4" => (address.parse::<Ipv4Addr>().ok()?.into(), 32),
                _ => (address.parse::<Ipv6Addr>().ok()?.into(), 128),
            };
            Mechanism::Network(address, length.map_or(Some(most), |text| prefix(text, most))?)
        }
        _ => return None,
    })
}

impl Prefixes {
    /// `[ "/" length of IPv4 ] [ "//" length of IPv6 ]`.
    fn parse(text: &str) -> Option<Prefixes> {
        let (four, six) = match text.split_once("//") {
            Some((four, six)) => (four, Some(six)),
            None => (text, None),
        };
        let four = match four.strip_prefix('/') {
            Some(length) => prefix(length, 32)?,
            None if four.is_empty() => 32,
            None => return None,
        };
        let six = six.map_or(Some(128), |length| prefix(length, 128))?;
        Some(Prefixes { four, six })
    }
}

/// A length in bits without leading zeros.
fn prefix(text: &str, most: u8) -> Option<u8> {
    let is_number = text.bytes().all(|c| c.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|length| is_number && *length <= most)
}

/// Whether `address` is in the network of `length_bits` around `network`.
pub(crate) fn contains(network: IpAddr, length_bits: u8, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length_bits)).unwrap_or(0);
            (u32::from(network) ^ u32::from(address)) & mask == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length_bits)).unwrap_or(0);
            (u128::from(network) ^ u128::from(address)) & mask == 0
        }
        _ => false,
    }
}
