//! Public keys in the DNS (RFC 6376 §3.6.1, RFC 8463 §4).

use super::Algorithm;
use super::tags::Tags;
use ring::signature::{ED25519, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};

/// Shortest accepted RSA key, in bits (RFC 8301 §3.2).
const RSA_BITS_LEAST: usize = 1024;
/// Longest accepted RSA key, in bits.
const RSA_BITS_MOST: usize = 8192;

/// A key record.
#[derive(Debug)]
pub(crate) struct PublicKey {
    algorithm: Algorithm,
    /// An RSAPublicKey of PKCS #1, or the 32 octets of an Ed25519 key. Empty: revoked.
    key: Vec<u8>,
    /// `t=s`: the key is not for subdomains.
    pub(crate) is_strict: bool,
}

impl PublicKey {
    /// Reads a record. The error says why no signature can be checked with it.
    pub(crate) fn parse(text: &[u8]) -> Result<PublicKey, &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| "the key record is not UTF-8")?;
        let tags = Tags::parse(text).ok_or("the key record is not a list of tags")?;
        match tags.value("v") {
            Some("DKIM1") if tags.first().is_some_and(|(name, _)| name == "v") => {}
            None => {}
            Some(_) => return Err("the key record is of another version"),
        }
        let allows = |name, mut is_one: Box<dyn FnMut(&str) -> bool>| {
            tags.items(name).is_none_or(|mut items| items.any(&mut *is_one))
        };
        if !allows("h", Box::new(|hash| hash == "sha256")) {
            return Err("the key is not for SHA-256");
        }
        if !allows("s", Box::new(|service| matches!(service, "*" | "email"))) {
            return Err("the key is not for mail");
        }
        let algorithm = match tags.value("k") {
            None | Some("rsa") => Algorithm::RsaSha256,
            Some("ed25519") => Algorithm::Ed25519Sha256,
            Some(_) => return Err("the type of the key is not known"),
        };
        let key = tags.base64("p").ok_or("the key record has no key")?;
        let key = match algorithm {
            _ if key.is_empty() => return Err("the key is revoked"),
            Algorithm::RsaSha256 => rsa_key(&key).ok_or("the key is not an RSA key")?.to_vec(),
            Algorithm::Ed25519Sha256 if key.len() == 32 => key,
            Algorithm::Ed25519Sha256 => return Err("the key is not an Ed25519 key"),
        };
        let is_strict = tags.items("t").is_some_and(|mut flags| flags.any(|flag| flag == "s"));
        let key = PublicKey { algorithm, key, is_strict };
        match key.rsa_bits() {
            Some(bits) if bits < RSA_BITS_LEAST => Err("the RSA key is shorter than 1024 bits (RFC 8301)"),
            Some(bits) if bits > RSA_BITS_MOST => Err("the RSA key is longer than 8192 bits"),
            _ => Ok(key),
        }
    }
    /// Whether this key made `signature` of `header`, the canonical text with the hash of the body in it.
    pub(crate) fn verify(
        &self,
        algorithm: Algorithm,
        header: &[u8],
        signature: &[u8],
    ) -> Result<(), &'static str> {
        if self.algorithm != algorithm {
            return Err("the key is of another type than the signature");
        }
        let is_good = match algorithm {
            Algorithm::RsaSha256 => {
                UnparsedPublicKey::new(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, &self.key)
                    .verify(header, signature)
            }
            // RFC 8463 §3: the signed data is the SHA-256 hash.
            Algorithm::Ed25519Sha256 => {
                let hash = ring::digest::digest(&ring::digest::SHA256, header);
                UnparsedPublicKey::new(&ED25519, &self.key).verify(hash.as_ref(), signature)
            }
        };
        is_good.map_err(|_| "the signature does not fit the message")
    }
    fn rsa_bits(&self) -> Option<usize> {
        if self.algorithm != Algorithm::RsaSha256 {
            return None;
        }
        let (modulus, _) = value(INTEGER, value(SEQUENCE, &self.key)?.0)?;
        let modulus = &modulus[modulus.iter().position(|octet| *octet != 0).unwrap_or(modulus.len())..];
        let first = modulus.first().map_or(0, |octet| 8 - octet.leading_zeros() as usize);
        Some(modulus.len().saturating_sub(1) * 8 + first)
    }
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// rsaEncryption, 1.2.840.113549.1.1.1.
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// The RSAPublicKey in a SubjectPublicKeyInfo; a bare RSAPublicKey is accepted too (RFC 6376 §3.6.1, erratum 3017).
fn rsa_key(der: &[u8]) -> Option<&[u8]> {
    let (inner, rest) = value(SEQUENCE, der)?;
    if !rest.is_empty() {
        return None;
    }
    if value(INTEGER, inner).is_some() {
        return Some(der);
    }
    let (algorithm, key) = value(SEQUENCE, inner)?;
    let (bits, rest) = value(BIT_STRING, key)?;
    let is_rsa = value(OBJECT, algorithm)?.0 == RSA_ENCRYPTION && rest.is_empty();
    bits.strip_prefix(&[0]).filter(|key| is_rsa && value(SEQUENCE, key).is_some())
}

/// The contents of the DER value of type `tag` at the front of `der`, and what follows it.
fn value(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = der.strip_prefix(&[tag])?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short @ 0..=0x7f => (short, rest),
        long @ 0x81..=0x83 => {
            let (octets, rest) = rest.split_at_checked(long - 0x80)?;
            (octets.iter().fold(0, |length, octet| length << 8 | usize::from(*octet)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
