//! New keys for a domain.

use data_encoding::BASE64;
use rsa::pkcs8::EncodePrivateKey;
use rsa::rand_core::{TryCryptoRng, TryRng};
use std::convert::Infallible;
use std::fmt;

use super::sign::SigningKey;

/// PKCS #8 header of the 32 octets of an Ed25519 key (RFC 8410 §7).
const ED25519_PREFIX: &[u8] =
    &[0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A newly generated key.
#[non_exhaustive]
pub struct NewKey {
    /// The private key in PEM, PKCS #8: a secret for a file that only the signing program can read.
    pub pem: String,
    /// The text of the TXT record to publish at `selector._domainkey.domain`.
    pub record: String,
}

impl fmt::Debug for NewKey {
    /// Shows the public part only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("record", &self.record).finish_non_exhaustive()
    }
}

impl NewKey {
    fn of(der: &[u8]) -> Option<NewKey> {
        let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
        for line in BASE64.encode(der).as_bytes().chunks(64) {
            pem += &String::from_utf8_lossy(line);
            pem.push('\n');
        }
        pem += "-----END PRIVATE KEY-----\n";
        let record = SigningKey::from_pem(pem.as_bytes()).ok()?.record();
        Some(NewKey { pem, record })
    }
    /// The record as a line of a zone file, its text in strings of at most 255 octets (RFC 1035 §5.1).
    pub fn zone_line(&self, domain: &str, selector: &str) -> String {
        let strings =
            self.record.as_bytes().chunks(255).map(|text| format!("\"{}\"", String::from_utf8_lossy(text)));
        let strings: Vec<String> = strings.collect();
        format!("{selector}._domainkey.{domain}. IN TXT ( {} )", strings.join(" "))
    }
}

/// Generates an Ed25519 key from secret entropy (RFC 8463).
pub fn generate_ed25519(entropy: &[u8; 32]) -> Option<NewKey> {
    NewKey::of(&[ED25519_PREFIX, entropy].concat())
}

/// Generates an RSA key of `bits` (2048 to 4096). `fill` fills a buffer with secret entropy. This may take seconds, so call it
/// on another thread. `None` where `bits` is out of range.
pub fn generate_rsa(bits: usize, fill: &mut dyn FnMut(&mut [u8])) -> Option<NewKey> {
    if !(2048..=4096).contains(&bits) {
        return None;
    }
    let key = rsa::PrivateKey::new(&mut Entropy(fill), bits).ok()?;
    NewKey::of(key.to_pkcs8_der().ok()?.as_bytes())
}

/// The caller's entropy source, as the crate `rsa` takes it.
struct Entropy<'a>(&'a mut dyn FnMut(&mut [u8]));

impl TryRng for Entropy<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut octets = [0; 4];
        (self.0)(&mut octets);
        Ok(u32::from_le_bytes(octets))
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut octets = [0; 8];
        (self.0)(&mut octets);
        Ok(u64::from_le_bytes(octets))
    }
    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Infallible> {
        (self.0)(octets);
        Ok(())
    }
}

impl TryCryptoRng for Entropy<'_> {}
