//! Fuzz target. The input is what strangers write: records of the DNS, header fields, a message, a key file.

use crate::dkim::{PublicKey, SigningKey, Tags};
use crate::dns::Answer;
use crate::{CheckConfig, Envelope, Plan, SpfVerdict, Verdict, dmarc, sign, spf, without_forged_results};

/// One input, to everything that reads from the network or from a file. Two zero octets divide
/// it: first the answer to each TXT query, then the sender's address, then the message.
pub fn fuzz_mailauth(input: &[u8]) {
    let mut parts = input.splitn(3, |octet| *octet == 0);
    let (record, sender, message) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let _ = (spf::Record::parse(record), PublicKey::parse(record), SigningKey::from_pem(record));
    let _ = Tags::parse(&String::from_utf8_lossy(record));
    if let Some(record) = dmarc::Record::parse(record) {
        assert!(record.policies.is_none() || record_begins(record_of(input)));
    }
    let cleaned = without_forged_results(message, &["mx.example"]).map(std::borrow::Cow::into_owned);
    if let Ok(cleaned) = &cleaned {
        let again = without_forged_results(cleaned, &["mx.example"]).unwrap();
        assert_eq!(&*again, cleaned.as_slice(), "nothing forged is left");
    }
    let sender = String::from_utf8_lossy(sender);
    let envelope = Envelope::new([192, 0, 2, 1].into(), "mail.example.com", &sender);
    let mut plan = Plan::new(&CheckConfig::new("mx.example"), envelope, message, 1_800_000_000);
    let mut asked = 0;
    loop {
        let missing = plan.missing();
        if missing.is_empty() {
            break;
        }
        for query in missing {
            asked += 1;
            let answer = match query.kind {
                crate::Kind::Txt => Answer::Texts(vec![record.to_vec()]),
                crate::Kind::Mx | crate::Kind::Ptr => {
                    Answer::Names(vec!["a.example.com".into(), "b.example".into()])
                }
                _ if asked % 3 == 0 => Answer::Failed,
                _ => Answer::Addresses(vec![[192, 0, 2, asked as u8].into()]),
            };
            plan.answer(query, answer);
        }
    }
    assert!(asked <= 100, "{asked} look-ups");
    let report = plan.verify(message);
    let field = report.field();
    assert!(field.is_ascii() && field.ends_with("\r\n"));
    let lines = field.trim_end().split("\r\n\t");
    assert!(lines.clone().all(|line| !line.contains(|c: char| c.is_control())), "{field:?}");
    assert!(
        report.spf.verdict != SpfVerdict::None || report.verdict != Verdict::Pass || !report.dkim.is_empty()
    );
    // Any message can be given to the signer.
    let _ = sign(&[], message, 1_800_000_000);
}

fn record_of(input: &[u8]) -> &[u8] {
    input.split(|octet| *octet == 0).next().unwrap_or_default()
}

/// Whether a text begins as every DMARC record does.
fn record_begins(record: &[u8]) -> bool {
    let text: Vec<u8> = record.iter().copied().filter(|octet| !b" \t".contains(octet)).collect();
    text.starts_with(b"v=DMARC1")
}
