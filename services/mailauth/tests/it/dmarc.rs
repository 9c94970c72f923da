//! DMARC: policies, alignment, and what the verdict is.

use crate::zone::{Zone, check};
use inhost_mailauth::{Answer, DmarcVerdict, Envelope, Kind, Policy, SpfVerdict, Verdict};

/// From, sender, the records besides SPF's, the result, the policy and the verdict. SPF passes for every sender.
type Case =
    (&'static str, &'static str, &'static [(&'static str, &'static str)], DmarcVerdict, Policy, Verdict);

/// spec: RFC9989 4.4, RFC9989 4.7, RFC9989 4.10.1
const CASES: &[Case] = &[
    ("a@example.com", "b@example.com", &[], DmarcVerdict::None, Policy::None, Verdict::None),
    (
        "a@example.com",
        "b@example.com",
        &[("example.com", "v=DMARC1; p=reject")],
        DmarcVerdict::Pass,
        Policy::None,
        Verdict::Pass,
    ),
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=reject")],
        DmarcVerdict::Fail,
        Policy::Reject,
        Verdict::Reject,
    ),
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1;p=quarantine;")],
        DmarcVerdict::Fail,
        Policy::Quarantine,
        Verdict::Quarantine,
    ),
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=none")],
        DmarcVerdict::Fail,
        Policy::None,
        Verdict::None,
    ),
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=reject; t=y")],
        DmarcVerdict::Fail,
        Policy::Quarantine,
        Verdict::Quarantine,
    ),
    // Alignment, relaxed and strict, both ways.
    (
        "a@example.com",
        "b@mail.example.com",
        &[("example.com", "v=DMARC1; p=reject")],
        DmarcVerdict::Pass,
        Policy::None,
        Verdict::Pass,
    ),
    (
        "a@news.example.com",
        "b@example.com",
        &[("example.com", "v=DMARC1; p=reject")],
        DmarcVerdict::Pass,
        Policy::None,
        Verdict::Pass,
    ),
    (
        "a@news.example.com",
        "b@mail.example.com",
        &[("example.com", "v=DMARC1; p=reject")],
        DmarcVerdict::Pass,
        Policy::None,
        Verdict::Pass,
    ),
    (
        "a@example.com",
        "b@mail.example.com",
        &[("example.com", "v=DMARC1; p=reject; aspf=s")],
        DmarcVerdict::Fail,
        Policy::Reject,
        Verdict::Reject,
    ),
    (
        "a@example.com",
        "b@badexample.com",
        &[("example.com", "v=DMARC1; p=reject")],
        DmarcVerdict::Fail,
        Policy::Reject,
        Verdict::Reject,
    ),
    // Names below: sp= where they exist, np= where not.
    (
        "a@news.example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=reject; sp=none; np=quarantine"), ("news.example.com", "A")],
        DmarcVerdict::Fail,
        Policy::None,
        Verdict::None,
    ),
    (
        "a@gone.example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=none; sp=none; np=reject")],
        DmarcVerdict::Fail,
        Policy::Reject,
        Verdict::Reject,
    ),
    (
        "a@news.example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=none"), ("news.example.com", "v=DMARC1; p=reject")],
        DmarcVerdict::Fail,
        Policy::Reject,
        Verdict::Reject,
    ),
    // A public suffix speaks for those below that say nothing.
    (
        "a@bank.example",
        "b@example.net",
        &[("example", "v=DMARC1; p=reject; psd=y")],
        DmarcVerdict::Fail,
        Policy::Reject,
        Verdict::Reject,
    ),
    (
        "a@one.bank",
        "b@two.bank",
        &[("bank", "v=DMARC1; p=reject; psd=y")],
        DmarcVerdict::Fail,
        Policy::Reject,
        Verdict::Reject,
    ),
    // Records that are none, or ask for nothing.
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=reject"), ("example.com", "v=DMARC1; p=none")],
        DmarcVerdict::None,
        Policy::None,
        Verdict::None,
    ),
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "v=dmarc1; p=reject")],
        DmarcVerdict::None,
        Policy::None,
        Verdict::None,
    ),
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "p=reject; v=DMARC1")],
        DmarcVerdict::None,
        Policy::None,
        Verdict::None,
    ),
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=maybe")],
        DmarcVerdict::None,
        Policy::None,
        Verdict::None,
    ),
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "v=DMARC1; p=maybe; rua=mailto:r@example.com")],
        DmarcVerdict::Fail,
        Policy::None,
        Verdict::None,
    ),
    // The DNS is silent.
    (
        "a@example.com",
        "b@example.net",
        &[("example.com", "FAILED")],
        DmarcVerdict::TempError,
        Policy::None,
        Verdict::TemporaryError,
    ),
    // Several authors: the strictest of those that fail.
    (
        "a@example.com, c@example.org",
        "b@example.com",
        &[("example.com", "v=DMARC1; p=reject"), ("example.org", "v=DMARC1; p=quarantine")],
        DmarcVerdict::PermError,
        Policy::None,
        Verdict::Quarantine,
    ),
    (
        "a@example.com\r\nFrom: c@example.org",
        "b@example.com",
        &[("example.org", "v=DMARC1; p=reject")],
        DmarcVerdict::PermError,
        Policy::None,
        Verdict::Reject,
    ),
    (
        "a@example.com\r\nFrom: a@example.com",
        "b@example.com",
        &[("example.com", "v=DMARC1; p=reject")],
        DmarcVerdict::PermError,
        Policy::None,
        Verdict::None,
    ),
    (
        "a@a.example, a@b.example, a@c.example, a@d.example, a@e.example",
        "b@a.example",
        &[],
        DmarcVerdict::PermError,
        Policy::None,
        Verdict::Reject,
    ),
    ("nobody", "b@example.com", &[], DmarcVerdict::PermError, Policy::None, Verdict::None),
];

#[test]
fn policies_decide() {
    for (from, sender, records, verdict, policy, wanted) in CASES {
        let mut zone = Zone::default();
        for (name, text) in *records {
            match *text {
                "A" => zone.0.entry((*name).to_owned()).or_default(),
                _ => zone.0.entry(format!("_dmarc.{name}")).or_default(),
            }
            .push((*text).to_owned());
        }
        let envelope = Envelope::new([192, 0, 2, 1].into(), "client.example", sender);
        let message = format!("From: {from}\r\n\r\nx\r\n");
        let sending = sender.split_once('@').unwrap().1;
        let (report, asked) = check(envelope, message.as_bytes(), |query| match query.name == sending {
            true => Answer::Texts(vec![b"v=spf1 ip4:192.0.2.1".to_vec()]),
            false => zone.answer(query),
        });
        let got = (report.dmarc.verdict, report.dmarc.policy, report.verdict);
        assert_eq!(got, (*verdict, *policy, *wanted), "{from} {sender} {records:?}: {:?}", report.dmarc);
        assert!(asked.len() < 40, "{asked:?}");
        assert!(report.field().contains(&format!("dmarc={}", report.dmarc.verdict)), "{}", report.field());
    }
}

/// A null sender is checked by its HELO name (RFC 7208 §2.4).
#[test]
fn bounces_are_aligned_by_their_helo_name() {
    let zone = Zone::of(&[
        ("mx.example.com", "v=spf1 ip4:192.0.2.1 -all"),
        ("_dmarc.example.com", "v=DMARC1; p=reject"),
    ]);
    let message = b"From: <>, postmaster@example.com\r\n\r\n";
    for (client, verdict) in [([192, 0, 2, 1], Verdict::Pass), ([192, 0, 2, 2], Verdict::Reject)] {
        let envelope = Envelope::new(client.into(), "mx.example.com", "");
        let (report, _) = check(envelope, message, |query| zone.answer(query));
        assert_eq!(report.verdict, verdict, "{report:?}");
        assert!(!report.field().contains("smtp.mailfrom"), "{}", report.field());
    }
}

/// A stranger's records are looked up after those of the author's domain: they may be slow, or exceed the limit.
#[test]
fn a_stranger_cannot_use_up_the_look_ups_of_the_author() {
    let mechanisms: Vec<String> = (0..10).map(|number| format!("mx:m{number}.evil.example")).collect();
    let greedy = format!("v=spf1 {} -all", mechanisms.join(" "));
    let zone = Zone::of(&[
        ("victim.example", "v=spf1 include:x.victim.example include:y.victim.example -all"),
        ("x.victim.example", "v=spf1 -all"),
        ("y.victim.example", "v=spf1 include:z.victim.example -all"),
        ("z.victim.example", "v=spf1 -all"),
        ("_dmarc.victim.example", "v=DMARC1; p=reject"),
        ("evil.example", &greedy),
    ]);
    let message = b"From: a@victim.example\r\n\r\n";
    for sender in ["b@victim.example", "b@evil.example"] {
        let envelope = Envelope::new([192, 0, 2, 9].into(), "evil.example", sender);
        let (report, asked) = check(envelope, message, |query| match query.kind {
            Kind::Mx => Answer::Names((0..10).map(|number| format!("h{number}.{}", query.name)).collect()),
            Kind::A => Answer::Addresses(vec![[192, 0, 2, 1].into()]),
            _ => zone.answer(query),
        });
        assert_eq!(report.verdict, Verdict::Reject, "{sender}: {report:?}");
        assert_eq!((asked.len(), report.spf_helo.verdict), (100, SpfVerdict::TempError));
        let first = asked.iter().position(|name| name.ends_with("evil.example")).unwrap();
        assert!(!asked[first..].iter().any(|name| name.ends_with("victim.example")), "{asked:?}");
    }
}
