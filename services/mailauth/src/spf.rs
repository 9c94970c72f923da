//! SPF: whether a client may send mail of a domain (RFC 7208).

mod check;
mod expand;
mod record;
mod request;

pub(crate) use check::check_host;
pub(crate) use record::Record;
pub(crate) use request::SpfRequest;

use std::fmt;

/// Mechanisms and modifiers that cause look-ups (RFC 7208 §4.6.4).
pub const TERMS_LIMIT: usize = 10;
/// Look-ups of one check that find nothing (RFC 7208 §4.6.4).
pub const VOID_LIMIT: usize = 2;

/// Result of an SPF check (RFC 7208 §2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpfVerdict {
    /// The domain has no SPF record, or there is no domain to check.
    None,
    /// The domain says nothing of this client.
    Neutral,
    /// The client may send mail of the domain.
    Pass,
    /// It may not.
    Fail,
    /// It probably may not.
    SoftFail,
    /// The DNS did not answer. A later attempt may succeed.
    TempError,
    /// The domain's records cannot be understood, or need more look-ups than is allowed.
    PermError,
}

impl fmt::Display for SpfVerdict {
    /// As in RFC 8601 §2.7.2.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SpfVerdict::None => "none",
            SpfVerdict::Neutral => "neutral",
            SpfVerdict::Pass => "pass",
            SpfVerdict::Fail => "fail",
            SpfVerdict::SoftFail => "softfail",
            SpfVerdict::TempError => "temperror",
            SpfVerdict::PermError => "permerror",
        })
    }
}

/// What SPF says of one identity.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SpfResult {
    /// The result.
    pub verdict: SpfVerdict,
    /// The domain whose record was read; empty where there is none.
    pub domain: String,
    /// Why: the mechanism that matched, or what went wrong. Clean text.
    pub reason: String,
    /// The domain's explanation of a refusal (RFC 7208 §6.2). A stranger's text, cleaned.
    pub explanation: Option<String>,
}
