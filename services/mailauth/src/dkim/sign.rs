//! Signing messages (RFC 6376 §5, RFC 8463).

use super::Algorithm;
use super::canonical::Canonical;
use super::verify::{hash, own_text, selected};
use crate::domain::{domain, is_askable};
use crate::message::{Message, MessageError};
use data_encoding::BASE64;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use std::fmt;

/// Oversigned fields: each is listed once more than it occurs, so that nobody can add one (RFC 6376 §5.4, §8.15).
pub const OVERSIGNED: &[&str] = &[
    "from",
    "to",
    "cc",
    "subject",
    "date",
    "reply-to",
    "message-id",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
];
/// Other fields that are signed where they occur (RFC 6376 §5.4.1).
pub const SIGNED: &[&str] = &[
    "sender",
    "in-reply-to",
    "references",
    "content-id",
    "content-description",
    "resent-date",
    "resent-from",
    "resent-to",
    "resent-cc",
    "resent-message-id",
    "list-id",
    "list-help",
    "list-subscribe",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "list-owner",
    "list-archive",
    "list-post",
];
/// Columns of a line of the signature's field.
const COLUMNS: usize = 72;

/// Why a file is not a usable signing key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// The file has no private key in PEM, or the key is encrypted.
    NotPem,
    /// The key is neither Ed25519 nor RSA of 2048 to 8192 bits.
    NotUsable,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyError::NotPem => "it is not a private key in PEM without a passphrase",
            KeyError::NotUsable => "the key is neither Ed25519 nor RSA of 2048 to 8192 bits",
        })
    }
}
impl std::error::Error for KeyError {}

/// A private key.
pub struct SigningKey(Pair);

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a key in PEM: PKCS #8, or PKCS #1 for RSA.
    pub fn from_pem(pem: &[u8]) -> Result<SigningKey, KeyError> {
        let pair = match PrivateKeyDer::from_pem_slice(pem).map_err(|_| KeyError::NotPem)? {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).ok().map(rsa),
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                let ed25519 = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(Pair::Ed25519);
                ed25519.or_else(|| RsaKeyPair::from_pkcs8(der).ok().map(rsa))
            }
            _ => None,
        };
        pair.map(SigningKey).ok_or(KeyError::NotUsable)
    }
    /// The signature algorithm.
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            Pair::Rsa(_) => Algorithm::RsaSha256,
            Pair::Ed25519(_) => Algorithm::Ed25519Sha256,
        }
    }
    /// The text of the TXT record to publish (RFC 6376 §3.6.1, RFC 8463 §4).
    pub fn record(&self) -> String {
        match &self.0 {
            Pair::Rsa(pair) => {
                let key = subject_public_key_info(pair.public_key().as_ref());
                format!("v=DKIM1; k=rsa; p={}", BASE64.encode(&key))
            }
            Pair::Ed25519(pair) => {
                format!("v=DKIM1; k=ed25519; p={}", BASE64.encode(pair.public_key().as_ref()))
            }
        }
    }
    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        match &self.0 {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).ok()?;
                Some(signature)
            }
            Pair::Ed25519(pair) => {
                let hash = ring::digest::digest(&ring::digest::SHA256, text);
                Some(pair.sign(hash.as_ref()).as_ref().to_vec())
            }
        }
    }
}

fn rsa(pair: RsaKeyPair) -> Pair {
    Pair::Rsa(Box::new(pair))
}

impl fmt::Debug for SigningKey {
    /// Shows the algorithm only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.algorithm())
    }
}

/// A signing key with its domain and selector.
#[derive(Debug)]
pub struct Signer {
    domain: String,
    selector: String,
    key: SigningKey,
    lifetime_seconds: Option<u64>,
}

impl Signer {
    /// Signs for `domain` with a key whose record is at `selector._domainkey.domain`.
    pub fn new(domain_name: &str, selector: &str, key: SigningKey) -> Result<Signer, SignError> {
        let name = domain(domain_name).ok_or(SignError::NotADomain)?;
        // A selector has the letters of a domain name.
        let probe = domain(&format!("{selector}.example")).filter(|_| is_askable(selector));
        let selector = probe.and_then(|probe| Some(probe.strip_suffix(".example")?.to_owned()));
        let selector = selector.ok_or(SignError::NotASelector)?;
        Ok(Signer { domain: name, selector, key, lifetime_seconds: None })
    }
    /// Sets how long signatures are valid, in seconds (`x=`). Default: without end.
    pub fn with_lifetime_seconds(mut self, lifetime_seconds: u64) -> Signer {
        self.lifetime_seconds = Some(lifetime_seconds);
        self
    }
    /// The domain that it signs for.
    pub fn domain(&self) -> &str {
        &self.domain
    }
    /// The name and the text of the TXT record to publish.
    pub fn record(&self) -> (String, String) {
        (format!("{}._domainkey.{}", self.selector, self.domain), self.key.record())
    }
}

/// Why a message was not signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SignError {
    /// The domain is not one.
    NotADomain,
    /// The selector is not a part of a domain name.
    NotASelector,
    /// The message does not have exactly one From field (RFC 5322 §3.6).
    NotOneFrom,
    /// The message cannot be read.
    Message(MessageError),
    /// The signature operation failed.
    Key,
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignError::NotADomain => f.write_str("the domain is not a domain name"),
            SignError::NotASelector => f.write_str("the selector is not a part of a domain name"),
            SignError::NotOneFrom => f.write_str("the message does not have exactly one From field"),
            SignError::Message(error) => write!(f, "the message cannot be signed: {error}"),
            SignError::Key => f.write_str("the signature operation failed"),
        }
    }
}
impl std::error::Error for SignError {}

/// Signs a message with each key. The result is the header fields to put in front of it, each with its line end. Pass the
/// message as it will be sent. A long body takes time to hash, so call this on another thread.
///
/// Canonicalization is relaxed/relaxed; [`OVERSIGNED`] and [`SIGNED`] list the signed fields.
pub fn sign(signers: &[Signer], message: &[u8], now_seconds: u64) -> Result<String, SignError> {
    let message = Message::parse(message).map_err(SignError::Message)?;
    if message.fields_of("From").count() != 1 {
        return Err(SignError::NotOneFrom);
    }
    let names = signed_names(&message);
    let mut header = Vec::new();
    selected(message.fields.iter(), &names, |field| {
        Canonical::Relaxed.field(field, &mut header);
        header.extend_from_slice(b"\r\n");
    });
    let (body_hash, _) = hash(Canonical::Relaxed, u64::MAX, message.body);
    let body_hash = BASE64.encode(body_hash.as_ref());
    let mut fields = String::new();
    for signer in signers {
        let mut field = Folded::new("DKIM-Signature:");
        field.word(" v=1;");
        field.word(&format!(" a={};", signer.key.algorithm()));
        field.word(" c=relaxed/relaxed;");
        field.word(&format!(" d={};", signer.domain));
        field.word(&format!(" s={};", signer.selector));
        field.word(&format!(" t={now_seconds};"));
        if let Some(lifetime) = signer.lifetime_seconds {
            field.word(&format!(" x={};", now_seconds.saturating_add(lifetime.max(1))));
        }
        field.word(" h=");
        for (number, name) in names.iter().enumerate() {
            field.word(&format!("{name}{}", if number + 1 < names.len() { ":" } else { ";" }));
        }
        field.word(&format!(" bh={body_hash};"));
        field.word(" b=");
        let mut text = header.clone();
        own_text(field.text.as_bytes(), Canonical::Relaxed, &mut text);
        let signature = BASE64.encode(&signer.key.sign(&text).ok_or(SignError::Key)?);
        signature
            .as_bytes()
            .chunks(COLUMNS / 4)
            .for_each(|piece| field.word(&String::from_utf8_lossy(piece)));
        fields += &field.text;
        fields += "\r\n";
    }
    Ok(fields)
}

/// The names for `h=`: one for each field, and one more for oversigned fields.
fn signed_names(message: &Message<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for (list, more) in [(OVERSIGNED, 1), (SIGNED, 0)] {
        for name in list {
            let times = message.fields_of(name).count() + more;
            names.extend(std::iter::repeat_n((*name).to_owned(), times));
        }
    }
    names
}

/// A header field, folded between words.
struct Folded {
    text: String,
    column: usize,
}

impl Folded {
    fn new(name: &str) -> Folded {
        Folded { text: name.to_owned(), column: name.len() }
    }
    fn word(&mut self, word: &str) {
        let mut word = word;
        if self.column + word.len() > COLUMNS {
            self.text += "\r\n\t";
            self.column = 8;
            word = word.trim_start();
        }
        self.text += word;
        self.column += word.len();
    }
}

/// A SubjectPublicKeyInfo around an RSAPublicKey (RFC 3279 §2.3.1).
fn subject_public_key_info(key: &[u8]) -> Vec<u8> {
    /// rsaEncryption with its parameter NULL.
    const ALGORITHM: &[u8] =
        &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
    let bits = der(0x03, &[&[0], key].concat());
    der(0x30, &[ALGORITHM, &bits].concat())
}

/// A DER value.
fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len().to_be_bytes();
    let length = &length[length.iter().position(|octet| *octet != 0).unwrap_or(length.len() - 1)..];
    let mut value = vec![tag];
    if contents.len() > 0x7f {
        value.push(0x80 + length.len() as u8);
    }
    value.extend_from_slice(length);
    value.extend_from_slice(contents);
    value
}
