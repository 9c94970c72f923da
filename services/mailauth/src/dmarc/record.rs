//! DMARC records (RFC 9989 §4.6, §4.7).

use super::Policy;

/// A record. Invalid tags have their defaults (RFC 9989 §4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// `None`: the record asks for nothing, so DMARC does not apply (RFC 9989 §4.10.1).
    pub(crate) policies: Option<Policies>,
    pub(crate) is_dkim_strict: bool,
    pub(crate) is_spf_strict: bool,
    /// `psd=y` or `psd=n`.
    pub(crate) is_suffix: Option<bool>,
    /// `t=y`.
    pub(crate) is_test: bool,
}

/// Policies for a domain, for existing subdomains, and for subdomains that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policies {
    pub(crate) domain: Policy,
    pub(crate) below: Policy,
    pub(crate) missing: Policy,
}

impl Record {
    /// Reads a record. `None` where the text is not one.
    pub(crate) fn parse(text: &[u8]) -> Option<Record> {
        let text = std::str::from_utf8(text).ok()?;
        let mut parts = text.split(';').map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (name.trim_matches([' ', '\t']), value.trim_matches([' ', '\t']))
        });
        if parts.next() != Some(("v", "DMARC1")) {
            return None;
        }
        let mut record = Record {
            policies: None,
            is_dkim_strict: false,
            is_spf_strict: false,
            is_suffix: None,
            is_test: false,
        };
        let (mut domain, mut below, mut missing, mut has_reports) = (None, None, None, false);
        for (name, value) in parts {
            let is = |text: &str| value.eq_ignore_ascii_case(text);
            match name.to_ascii_lowercase().as_str() {
                "p" => domain = Some(policy(value)),
                "sp" => below = Some(policy(value)),
                "np" => missing = Some(policy(value)),
                "adkim" => record.is_dkim_strict = is("s"),
                "aspf" => record.is_spf_strict = is("s"),
                "psd" => {
                    record.is_suffix = [("y", true), ("n", false)].iter().find(|(t, _)| is(t)).map(|p| p.1)
                }
                "t" => record.is_test = is("y"),
                "rua" => has_reports = value.split(',').any(is_report_address),
                _ => {}
            }
        }
        record.policies = policies(domain, below, missing, has_reports);
        Some(record)
    }
}

fn policies(
    domain: Option<Option<Policy>>,
    below: Option<Option<Policy>>,
    missing: Option<Option<Policy>>,
    has_reports: bool,
) -> Option<Policies> {
    let none = Policies { domain: Policy::None, below: Policy::None, missing: Policy::None };
    // RFC 9989 §4.10.1: p= is missing or invalid, or sp= or np= is invalid.
    let (Some(Some(domain)), false, false) = (domain, below == Some(None), missing == Some(None)) else {
        return has_reports.then_some(none);
    };
    let below = below.flatten().unwrap_or(domain);
    Some(Policies { domain, below, missing: missing.flatten().unwrap_or(below) })
}

fn policy(text: &str) -> Option<Policy> {
    [Policy::None, Policy::Quarantine, Policy::Reject]
        .into_iter()
        .find(|policy| text.eq_ignore_ascii_case(&policy.to_string()))
}

/// Whether reports could be sent there.
fn is_report_address(uri: &str) -> bool {
    let address = uri.trim().get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
    address.is_some() && uri.contains('@')
}
