//! From records and authenticated domains to a result (RFC 9989 §5.3).

use super::walk::Walk;
use super::{DmarcResult, DmarcVerdict, Policy, Record};
use crate::dns::{Answer, Answers, Kind, Missing};
use crate::domain::is_within;

/// A domain that SPF or DKIM speaks for.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated {
    pub(crate) domain: String,
    pub(crate) is_spf: bool,
    /// `false`: the check ended in a temporary error.
    pub(crate) is_pass: bool,
}

/// Everything that [`evaluate`] may ask for, for any results of SPF and DKIM.
pub(crate) fn needs(author: &str, candidates: &[Authenticated], answers: &Answers) -> Result<(), Missing> {
    evaluate(author, candidates, answers).map(drop)?;
    let mut missing = Missing::new();
    for candidate in candidates {
        let alone = std::slice::from_ref(candidate);
        missing.extend(evaluate(author, alone, answers).err().unwrap_or_default());
    }
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

/// Organizational domain of `author`.
pub(crate) fn organization(author: &str, answers: &Answers) -> Result<String, Missing> {
    Walk::new(author, answers).map(|walk| walk.organization().to_owned())
}

/// DMARC for one author domain.
pub(crate) fn evaluate(
    author: &str,
    authenticated: &[Authenticated],
    answers: &Answers,
) -> Result<DmarcResult, Missing> {
    let result = |verdict, policy_domain: &str, policy, reason: String| DmarcResult {
        verdict,
        domain: author.to_owned(),
        policy_domain: policy_domain.to_owned(),
        policy,
        reason,
    };
    let no_answer = |at: &str| {
        result(DmarcVerdict::TempError, at, Policy::None, "no answer for a DMARC record".to_owned())
    };
    let walk = Walk::new(author, answers)?;
    // A pass of the author's own domain does not depend on the records above it.
    let is_known = walk.found.iter().any(|(name, record)| *name == author && record.policies.is_some());
    let is_own = |one: &Authenticated| one.is_pass && one.domain == author;
    if walk.is_cut && !(is_known && authenticated.iter().any(is_own)) {
        return Ok(no_answer(""));
    }
    let nothing = |why: &str| result(DmarcVerdict::None, "", Policy::None, why.to_owned());
    let Some((at, record)) = walk.record() else { return Ok(nothing("there is no DMARC record")) };
    if record.policies.is_none() {
        return Ok(nothing("the DMARC record asks for nothing"));
    }
    let mut undecided = None;
    for one in authenticated {
        match is_aligned(one, author, &record, walk.organization(), answers)? {
            Some(true) if one.is_pass => {
                let by = if one.is_spf { "SPF" } else { "DKIM" };
                return Ok(result(DmarcVerdict::Pass, at, Policy::None, format!("{by} of {}", one.domain)));
            }
            Some(true) => undecided = Some(format!("no answer for the check of {}", one.domain)),
            Some(false) => {}
            None => undecided = Some(format!("no answer for the DMARC record of {}", one.domain)),
        }
    }
    let policy = policy(author, at, &record, answers)?;
    match undecided {
        Some(reason) => Ok(result(DmarcVerdict::TempError, at, Policy::None, reason)),
        None => {
            let reason = "neither SPF nor DKIM is of the author's domain".to_owned();
            Ok(result(DmarcVerdict::Fail, at, policy, reason))
        }
    }
}

/// Policy of the record at `at` for mail from `author` (RFC 9989 §4.10.1).
fn policy(author: &str, at: &str, record: &Record, answers: &Answers) -> Result<Policy, Missing> {
    let Some(policies) = record.policies else { return Ok(Policy::None) };
    let policy = match author == at {
        true => policies.domain,
        false if policies.below == policies.missing => policies.below,
        false => match answers.ask(author, Kind::A)? {
            Answer::NoSuchName => policies.missing,
            _ => policies.below,
        },
    };
    Ok(match policy {
        // RFC 9989 §4.7: test mode lowers the policy by one step.
        Policy::Reject if record.is_test => Policy::Quarantine,
        Policy::Quarantine if record.is_test => Policy::None,
        policy => policy,
    })
}

/// Identifier alignment (RFC 9989 §4.4): whether a domain is the author's, or of the same organization. `None`: the DNS did
/// not answer.
fn is_aligned(
    one: &Authenticated,
    author: &str,
    record: &Record,
    organization: &str,
    answers: &Answers,
) -> Result<Option<bool>, Missing> {
    if one.domain == author {
        return Ok(Some(true));
    }
    let is_strict = if one.is_spf { record.is_spf_strict } else { record.is_dkim_strict };
    // A domain outside the organizational domain needs no walk.
    if is_strict || !is_within(&one.domain, organization) {
        return Ok(Some(false));
    }
    let walk = Walk::new(&one.domain, answers)?;
    Ok((!walk.is_cut).then(|| walk.organization() == organization))
}
