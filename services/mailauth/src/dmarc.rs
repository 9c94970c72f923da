//! DMARC: what a domain asks receivers to do with mail that it did not send (RFC 9989, which replaced RFC 7489 and RFC 9091).

mod evaluate;
mod record;
mod walk;

pub(crate) use evaluate::{Authenticated, evaluate, needs, organization};
pub(crate) use record::Record;

use std::fmt;

/// What a domain asks receivers to do with mail that fails (RFC 9989 §4.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Policy {
    /// Nothing.
    None,
    /// It is suspicious.
    Quarantine,
    /// It is not from the domain.
    Reject,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::None => "none",
            Policy::Quarantine => "quarantine",
            Policy::Reject => "reject",
        })
    }
}

/// Result of DMARC (RFC 9989 §9, IANA's result names).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DmarcVerdict {
    /// The author's domain has no DMARC record.
    None,
    /// SPF or DKIM says that the author's domain sent it.
    Pass,
    /// Neither does.
    Fail,
    /// The DNS did not answer. A later attempt may succeed.
    TempError,
    /// The message does not have exactly one author domain.
    PermError,
}

impl fmt::Display for DmarcVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DmarcVerdict::None => "none",
            DmarcVerdict::Pass => "pass",
            DmarcVerdict::Fail => "fail",
            DmarcVerdict::TempError => "temperror",
            DmarcVerdict::PermError => "permerror",
        })
    }
}

/// What DMARC says of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DmarcResult {
    /// The result.
    pub verdict: DmarcVerdict,
    /// The author's domain; empty where there is none.
    pub domain: String,
    /// Domain whose record decided; empty where there is none.
    pub policy_domain: String,
    /// What the record asks for where the result is [`DmarcVerdict::Fail`], else [`Policy::None`].
    pub policy: Policy,
    /// Why. Clean text.
    pub reason: String,
}
