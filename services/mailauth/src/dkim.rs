//! DKIM: signatures by domains (RFC 6376), with Ed25519 (RFC 8463) and without SHA-1 (RFC 8301).

mod canonical;
mod generate;
mod key;
mod sign;
mod signature;
mod tags;
mod verify;

pub use generate::{NewKey, generate_ed25519, generate_rsa};
pub use sign::{KeyError, OVERSIGNED, SIGNED, SignError, Signer, SigningKey, sign};

pub(crate) use key::PublicKey;
pub(crate) use signature::{Signature, SignatureError};
pub(crate) use tags::Tags;
pub(crate) use verify::{Bodies, key_of, verify};

use std::fmt;

/// Algorithm of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSA with SHA-256 (RFC 6376 §3.3.2).
    RsaSha256,
    /// Ed25519 with SHA-256 (RFC 8463 §3).
    Ed25519Sha256,
}

impl fmt::Display for Algorithm {
    /// As in the `a=` tag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::RsaSha256 => "rsa-sha256",
            Algorithm::Ed25519Sha256 => "ed25519-sha256",
        })
    }
}

/// Result of the check of one signature (RFC 8601 §2.7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DkimVerdict {
    /// The domain signed this message.
    Pass,
    /// The message or its signature was changed.
    Fail,
    /// The signature is valid, but a part of the body is not signed.
    Policy,
    /// The signature cannot be understood.
    Neutral,
    /// The DNS did not answer. A later attempt may succeed.
    TempError,
    /// The signature has expired, or there is no usable key for it.
    PermError,
}

impl fmt::Display for DkimVerdict {
    /// As in RFC 8601 §2.7.1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DkimVerdict::Pass => "pass",
            DkimVerdict::Fail => "fail",
            DkimVerdict::Policy => "policy",
            DkimVerdict::Neutral => "neutral",
            DkimVerdict::TempError => "temperror",
            DkimVerdict::PermError => "permerror",
        })
    }
}

/// What DKIM says of one signature.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DkimResult {
    /// The result.
    pub verdict: DkimVerdict,
    /// The domain that signed (`d=`); empty where the signature cannot be read.
    pub domain: String,
    /// The selector of its key (`s=`).
    pub selector: String,
    /// The algorithm (`a=`).
    pub algorithm: Option<Algorithm>,
    /// The beginning of the signature in Base64, which tells signatures apart (RFC 6008).
    pub signature: String,
    /// Why. Clean text.
    pub reason: String,
}
