//! The `DKIM-Signature` field (RFC 6376 §3.5).

use super::Algorithm;
use super::canonical::Canonical;
use super::tags::{Tags, is_blank};
use crate::domain::{domain, is_askable, is_within};
use crate::message::Field;

/// Most names in `h=`.
const SIGNED_LIMIT: usize = 1000;

/// A signature as its field has it.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) algorithm: Algorithm,
    pub(crate) signature: Vec<u8>,
    pub(crate) body_hash: Vec<u8>,
    pub(crate) header_form: Canonical,
    pub(crate) body_form: Canonical,
    pub(crate) domain: String,
    /// Domain of the agent or user (`i=`), the same or one below.
    pub(crate) identity: String,
    pub(crate) selector: String,
    /// Names of the signed fields, in lower case.
    pub(crate) signed: Vec<String>,
    /// Octets of the canonical body that are signed. `None`: all.
    pub(crate) length_bytes: Option<u64>,
    pub(crate) expires_at_seconds: Option<u64>,
}

/// What is wrong with a signature's field.
#[derive(Clone, Debug)]
pub(crate) struct SignatureError {
    pub(crate) reason: &'static str,
    /// The field is well formed but not usable.
    pub(crate) is_permanent: bool,
}

impl Signature {
    pub(crate) fn parse(field: &Field<'_>) -> Result<Signature, SignatureError> {
        let syntax = |reason| SignatureError { reason, is_permanent: false };
        let permanent = |reason| SignatureError { reason, is_permanent: true };
        let text = std::str::from_utf8(field.value).map_err(|_| syntax("it is not UTF-8"))?;
        let tags = Tags::parse(text).ok_or(syntax("it is not a list of tags"))?;
        match tags.value("v") {
            Some("1") => {}
            Some(_) => return Err(permanent("its version is not 1")),
            None => return Err(syntax("it has no version")),
        }
        let algorithm =
            algorithm(tags.value("a").ok_or(syntax("it has no algorithm"))?).map_err(permanent)?;
        let (header_form, body_form) =
            forms(tags.value("c")).ok_or(permanent("its canonical form is not known"))?;
        if !tags.items("q").is_none_or(|mut methods| methods.any(|method| method == "dns/txt")) {
            return Err(permanent("its key is not in the DNS"));
        }
        let signing = domain(tags.value("d").unwrap_or_default()).ok_or(syntax("it has no domain"))?;
        let identity = match tags.value("i") {
            None => signing.clone(),
            Some(i) => i.rsplit_once('@').and_then(|(_, at)| domain(at)).ok_or(syntax("i= has no domain"))?,
        };
        if !is_within(&identity, &signing) {
            return Err(permanent("i= is not within d="));
        }
        let selector = tags.value("s").unwrap_or_default().to_ascii_lowercase();
        if !is_askable(&selector) || !selector.is_ascii() {
            return Err(syntax("it has no selector"));
        }
        let signed: Vec<String> =
            tags.items("h").into_iter().flatten().map(str::to_ascii_lowercase).collect();
        if signed.len() > SIGNED_LIMIT || signed.iter().any(String::is_empty) {
            return Err(syntax("its list of fields is empty or too long"));
        }
        if !signed.iter().any(|name| name == "from") {
            return Err(permanent("it does not sign the field From"));
        }
        let number = |name| tags.number(name).ok_or(syntax("a number is not valid"));
        let (signed_at, expires_at_seconds) = (number("t")?, number("x")?);
        if signed_at.zip(expires_at_seconds).is_some_and(|(signed, expires)| expires <= signed) {
            return Err(syntax("it expires before it was made"));
        }
        Ok(Signature {
            algorithm,
            signature: tags.base64("b").filter(|b| !b.is_empty()).ok_or(syntax("b= is not Base64"))?,
            body_hash: tags.base64("bh").ok_or(syntax("bh= is not Base64"))?,
            header_form,
            body_form,
            domain: signing,
            identity,
            selector,
            signed,
            length_bytes: number("l")?,
            expires_at_seconds,
        })
    }
    /// Name of the record with its key (RFC 6376 §3.6.2.1).
    pub(crate) fn key_name(&self) -> String {
        format!("{}._domainkey.{}", self.selector, self.domain)
    }
}

fn algorithm(name: &str) -> Result<Algorithm, &'static str> {
    match name.to_ascii_lowercase().as_str() {
        "rsa-sha256" => Ok(Algorithm::RsaSha256),
        "ed25519-sha256" => Ok(Algorithm::Ed25519Sha256),
        // spec: RFC8301 3.1 — rsa-sha1 is not a signature.
        "rsa-sha1" => Err("SHA-1 is not accepted (RFC 8301)"),
        _ => Err("its algorithm is not known"),
    }
}

/// `c=`: the form of the header, then of the body. Both default to simple.
fn forms(value: Option<&str>) -> Option<(Canonical, Canonical)> {
    let Some(value) = value else { return Some((Canonical::Simple, Canonical::Simple)) };
    match value.split_once('/') {
        Some((header, body)) => Some((Canonical::parse(header)?, Canonical::parse(body)?)),
        None => Some((Canonical::parse(value)?, Canonical::Simple)),
    }
}

/// A signature's field without the value of its `b=` tag (RFC 6376 §3.5, §3.7).
pub(crate) fn without_signature(whole: &[u8]) -> Vec<u8> {
    let colon = whole.iter().position(|octet| *octet == b':').map_or(0, |at| at + 1);
    let mut text = whole[..colon].to_vec();
    let parts: Vec<&[u8]> = whole[colon..].split(|octet| *octet == b';').collect();
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            text.push(b';');
        }
        let equals = part.iter().position(|octet| *octet == b'=').filter(|at| {
            let name = part[..*at].iter().filter(|octet| !is_blank(char::from(**octet)));
            name.eq(b"b")
        });
        text.extend_from_slice(match equals {
            Some(equals) => &part[..=equals],
            None => part,
        });
    }
    text
}
