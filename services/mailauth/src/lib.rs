//! Mail authentication: SPF (RFC 7208), DKIM (RFC 6376, RFC 8463) and DMARC (RFC 9989) for received messages, and DKIM
//! signatures for messages to send.
//!
//! - [`Plan`]: a check, pure: the queries that it needs, their answers, the verification of the bytes;
//! - [`look_up`](fn@look_up): the look-ups of a plan through the host's resolver; [`check`](fn@check): all of it at once;
//! - [`Report`]: the results, the [`Verdict`], and the field `Authentication-Results` (RFC 8601);
//! - [`without_forged_results`]: a message without forged fields of that name;
//! - [`sign`], [`Signer`], [`SigningKey`]: signatures; [`generate_rsa`], [`generate_ed25519`]: new keys.
//!
//! ```
//! use inhost_mailauth::{CheckConfig, Envelope, Plan, Signer, SigningKey, SpfVerdict, Verdict, Answer};
//! let key = inhost_mailauth::generate_ed25519(&[7; 32]).unwrap();
//! let signer = Signer::new("example.com", "mail", SigningKey::from_pem(key.pem.as_bytes())?)?;
//! let message = "From: Ada <ada@example.com>\r\nSubject: Engines\r\n\r\nThey weave.\r\n";
//! let message = inhost_mailauth::sign(&[signer], message.as_bytes(), 1_800_000_000)? + message;
//!
//! let envelope = Envelope::new([192, 0, 2, 25].into(), "mx.example.com", "ada@example.com");
//! let config = CheckConfig::new("mx.example.org");
//! let mut plan = Plan::new(&config, envelope, message.as_bytes(), 1_800_000_000);
//! loop {
//!     let missing = plan.missing();
//!     if missing.is_empty() {
//!         break;
//!     }
//!     for query in missing {
//!         let texts = |text: &str| Answer::Texts(vec![text.as_bytes().to_vec()]);
//!         let answer = match query.name.as_str() {
//!             "mail._domainkey.example.com" => texts(&key.record),
//!             "example.com" => texts("v=spf1 ip4:192.0.2.0/24 -all"),
//!             "_dmarc.example.com" => texts("v=DMARC1; p=reject"),
//!             _ => Answer::NoSuchName,
//!         };
//!         plan.answer(query, answer);
//!     }
//! }
//! let report = plan.verify(message.as_bytes());
//! assert_eq!((report.spf.verdict, report.verdict), (SpfVerdict::Pass, Verdict::Pass));
//! assert!(report.is_signed_by("example.com"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod dkim;
mod dmarc;
mod dns;
mod domain;
#[doc(hidden)]
pub mod fuzz;
mod look_up;
mod message;
mod results;
mod spf;

pub use check::{CheckConfig, Envelope, Plan, Report, Verdict, check};
pub use dkim::{
    Algorithm, DkimResult, DkimVerdict, KeyError, NewKey, OVERSIGNED, SIGNED, SignError, Signer, SigningKey,
    generate_ed25519, generate_rsa, sign,
};
pub use dmarc::{DmarcResult, DmarcVerdict, Policy};
pub use dns::{Answer, Kind, Query};
pub use look_up::look_up;
pub use message::{AUTHORS_LIMIT, FIELDS_LIMIT, HEADER_BYTES_LIMIT, MessageError};
pub use results::{FIELD_NAME, without_forged_results};
pub use spf::{SpfResult, SpfVerdict, TERMS_LIMIT, VOID_LIMIT};
