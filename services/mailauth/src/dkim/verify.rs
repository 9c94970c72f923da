//! Checking signatures (RFC 6376 §6).

use super::canonical::Canonical;
use super::signature::without_signature;
use super::{DkimResult, DkimVerdict, PublicKey, Signature, SignatureError};
use crate::dns::{Answer, Answers, Kind, Missing};
use crate::message::{Field, Message};
use inhost_common::Cleaner;
use ring::digest::{Context, Digest, SHA256};
use std::collections::BTreeMap;

/// The key of a signature, or why there is no usable one.
pub(crate) type KeyResult = Result<PublicKey, (DkimVerdict, &'static str)>;

/// The key of a signature (RFC 6376 §6.1.2).
pub(crate) fn key_of(signature: &Signature, answers: &Answers) -> Result<KeyResult, Missing> {
    let texts = match answers.ask(&signature.key_name(), Kind::Txt)? {
        Answer::Failed => return Ok(Err((DkimVerdict::TempError, "no answer for the key"))),
        Answer::Texts(texts) => texts.as_slice(),
        _ => &[],
    };
    // The RFC does not define several records; the first valid key is used.
    let mut keys = texts.iter().map(|text| PublicKey::parse(text));
    let first = keys.next().unwrap_or(Err("there is no key in the DNS"));
    Ok(first.or_else(|why| keys.find_map(Result::ok).ok_or(why)).map_err(|why| (DkimVerdict::PermError, why)))
}

/// Hashes of a body in each canonical form and length, each computed once.
#[derive(Default)]
pub(crate) struct Bodies(BTreeMap<(bool, u64), (Digest, u64)>);

impl Bodies {
    /// Hash of the first octets of the canonical body, and the length of the whole in octets.
    fn hash(&mut self, form: Canonical, length_bytes: Option<u64>, body: &[u8]) -> (Digest, u64) {
        let most = length_bytes.unwrap_or(u64::MAX);
        let hashed =
            self.0.entry((form == Canonical::Relaxed, most)).or_insert_with(|| hash(form, most, body));
        (hashed.0, hashed.1)
    }
}

/// Hash of the first `most` octets of a canonical body, and the length of the whole in octets.
pub(crate) fn hash(form: Canonical, most: u64, body: &[u8]) -> (Digest, u64) {
    let (mut context, mut length) = (Context::new(&SHA256), 0);
    form.body(body, &mut |piece| {
        let room = usize::try_from(most.saturating_sub(length)).unwrap_or(usize::MAX);
        context.update(&piece[..piece.len().min(room)]);
        length += piece.len() as u64;
    });
    (context.finish(), length)
}

/// Checks the signature of `field`.
pub(crate) fn verify(
    field: &Field<'_>,
    signature: &Result<Signature, SignatureError>,
    key: KeyResult,
    message: &Message<'_>,
    bodies: &mut Bodies,
    now_seconds: u64,
) -> DkimResult {
    let signature = match signature {
        Ok(signature) => signature,
        Err(error) => return unreadable(error),
    };
    let (verdict, reason) = match judge(field, signature, key, message, bodies, now_seconds) {
        Ok(()) => (DkimVerdict::Pass, String::new()),
        Err((verdict, reason)) => (verdict, reason.to_owned()),
    };
    let line = |text: &str| Cleaner::line(text.as_bytes());
    let mut beginning = data_encoding::BASE64.encode(&signature.signature);
    beginning.truncate(8);
    DkimResult {
        verdict,
        domain: line(&signature.domain),
        selector: line(&signature.selector),
        algorithm: Some(signature.algorithm),
        signature: beginning,
        reason,
    }
}

fn unreadable(error: &SignatureError) -> DkimResult {
    DkimResult {
        verdict: if error.is_permanent { DkimVerdict::PermError } else { DkimVerdict::Neutral },
        domain: String::new(),
        selector: String::new(),
        algorithm: None,
        signature: String::new(),
        reason: error.reason.to_owned(),
    }
}

fn judge(
    field: &Field<'_>,
    signature: &Signature,
    key: KeyResult,
    message: &Message<'_>,
    bodies: &mut Bodies,
    now_seconds: u64,
) -> Result<(), (DkimVerdict, &'static str)> {
    if signature.expires_at_seconds.is_some_and(|expires| expires < now_seconds) {
        return Err((DkimVerdict::PermError, "the signature has expired"));
    }
    let key = key?;
    if key.is_strict && signature.identity != signature.domain {
        return Err((DkimVerdict::PermError, "the key is not for subdomains"));
    }
    let header = header_text(field, signature, message);
    key.verify(signature.algorithm, &header, &signature.signature).map_err(|why| (DkimVerdict::Fail, why))?;
    // The body comes last: it may be long, and a signature that fails for the header does not need it.
    let (hash, length) = bodies.hash(signature.body_form, signature.length_bytes, message.body);
    if hash.as_ref() != signature.body_hash {
        return Err((DkimVerdict::Fail, "the body was changed"));
    }
    match signature.length_bytes {
        Some(signed) if signed < length => Err((DkimVerdict::Policy, "a part of the body is not signed")),
        Some(signed) if signed > length => Err((DkimVerdict::Fail, "a part of the body is missing")),
        _ => Ok(()),
    }
}

/// What is signed (RFC 6376 §3.7): the fields that `h=` names, for each name the last field first, then the signature's own
/// field with an empty `b=`.
fn header_text(own: &Field<'_>, signature: &Signature, message: &Message<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    let others = message.fields.iter().filter(|field| !std::ptr::eq(field.whole, own.whole));
    selected(others, &signature.signed, |field| {
        signature.header_form.field(field, &mut text);
        text.extend_from_slice(b"\r\n");
    });
    own_text(own.whole, signature.header_form, &mut text);
    text
}

/// Gives the fields that `names` selects (RFC 6376 §5.4.2). A name that occurs more often than its field selects nothing
/// further.
pub(crate) fn selected<'a, 'f: 'a>(
    fields: impl DoubleEndedIterator<Item = &'a Field<'f>>,
    names: &[String],
    mut take: impl FnMut(&Field<'f>),
) {
    let mut left: BTreeMap<Vec<u8>, Vec<&Field<'f>>> = BTreeMap::new();
    for field in fields {
        left.entry(field.name.to_ascii_lowercase()).or_default().push(field);
    }
    for name in names {
        if let Some(field) = left.get_mut(name.as_bytes()).and_then(Vec::pop) {
            take(field);
        }
    }
}

/// Puts the canonical form of a signature's own field, without its value, behind `text`.
pub(crate) fn own_text(whole: &[u8], form: Canonical, text: &mut Vec<u8>) {
    let whole = without_signature(whole);
    let colon = whole.iter().position(|octet| *octet == b':').unwrap_or(whole.len());
    let value = whole.get(colon + 1..).unwrap_or_default();
    form.field(&Field { name: whole[..colon].trim_ascii_end(), whole: &whole, value }, text);
}
