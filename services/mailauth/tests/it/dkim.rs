//! DKIM: the examples of the RFCs, and what happens to messages that are changed.

use crate::zone::{NOW, Zone, check};
use inhost_mailauth::{
    Answer, DkimResult, DkimVerdict, Envelope, SignError, Signer, SigningKey, generate_ed25519, generate_rsa,
    sign,
};

const BRISBANE: &str = "v=DKIM1; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYt\
    IxN2SnFCjxOCKG9v3b4jYfcTNh5ijSsq631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4OuKhi\
    tdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB";
const FOOTBALL_RSA: &str = "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bd\
    OKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G\
    +2kryOTIKT+l/K4w3QIDAQAB";
const FOOTBALL_ED25519: &str = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

fn keys() -> Zone {
    Zone::of(&[
        ("brisbane._domainkey.example.com", BRISBANE),
        ("brisbane._domainkey.football.example.com", FOOTBALL_ED25519),
        ("test._domainkey.football.example.com", FOOTBALL_RSA),
    ])
}

fn dkim(message: &[u8], zone: &Zone) -> Vec<DkimResult> {
    let envelope = Envelope::new([192, 0, 2, 1].into(), "client.example", "");
    check(envelope, message, |query| zone.answer(query)).0.dkim
}

fn verdicts(message: &[u8], zone: &Zone) -> Vec<DkimVerdict> {
    dkim(message, zone).iter().map(|result| result.verdict).collect()
}

fn crlf(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

/// RFC 6376 appendix A.2 and RFC 8463 appendix A.3. spec: RFC6376 3.7, RFC8463 3
#[test]
fn the_examples_of_the_rfcs_verify() {
    let simple = include_str!("../vectors/rfc6376.eml");
    let relaxed = include_str!("../vectors/rfc8463.eml");
    assert_eq!(verdicts(&crlf(simple), &keys()), [DkimVerdict::Pass]);
    assert_eq!(verdicts(&crlf(relaxed), &keys()), [DkimVerdict::Pass; 2]);
    // A file with LF alone is the same message.
    assert_eq!(verdicts(relaxed.as_bytes(), &keys()), [DkimVerdict::Pass; 2]);
    // Each octet counts, or is one that the relaxed form forgives.
    let blank = relaxed.replace("Joe.\n", "Joe. \t\n\n\n").replace("Subject: ", "SUBJECT :\n\t ");
    assert_eq!(verdicts(&crlf(&blank), &keys()), [DkimVerdict::Pass; 2]);
    for (was, is) in [
        ("We lost", "We won"),
        ("Is dinner", "Dinner is"),
        ("Joe.\n", "Joe.\n.\n"),
        ("From: Joe", "From: Jim"),
    ] {
        assert_eq!(verdicts(&crlf(&relaxed.replace(was, is)), &keys()), [DkimVerdict::Fail; 2], "{is}");
        assert_eq!(verdicts(&crlf(&simple.replace(was, is)), &keys()), [DkimVerdict::Fail], "{is}");
    }
    assert_eq!(verdicts(&crlf(&simple.replace("Subject: ", "Subject:  ")), &keys()), [DkimVerdict::Fail]);
    // The list names From and Subject twice, so that a second one cannot be added.
    let added = relaxed.replace("From: Joe", "From: Eve <eve@example.net>\nFrom: Joe");
    assert_eq!(verdicts(&crlf(&added), &keys()), [DkimVerdict::Fail; 2]);
}

/// spec: RFC6376 6.1, RFC8301 3.1, RFC8301 3.2
#[test]
fn a_key_or_signature_that_is_wrong_is_named() {
    let message = include_str!("../vectors/rfc8463.eml");
    let with_key = |text: &str| {
        let mut zone = keys();
        zone.0.insert("test._domainkey.football.example.com".into(), vec![text.to_owned()]);
        let result = dkim(&crlf(message), &zone).pop().unwrap();
        (result.verdict, result.reason)
    };
    let short = "v=DKIM1; p=MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALvIZcWLUPXtvLyVgcwlGMlkvF2TBNu8cE4n0gNJzRDyjJYbN4CAGdBIrJCO0J1w\
                 K9VJKyQG4xgEwXSfB3tPn7cCAwEAAQ==";
    let other_hash = FOOTBALL_RSA.replace("k=rsa;", "h=sha1;");
    let other_service = FOOTBALL_RSA.replace("k=rsa;", "s=tlsrpt;");
    let late_version = format!("{}; v=DKIM1", FOOTBALL_RSA.strip_prefix("v=DKIM1; ").unwrap());
    let revoked = "v=DKIM1; p=";
    for text in [
        short,
        &other_hash,
        &other_service,
        &late_version,
        revoked,
        FOOTBALL_ED25519,
        "v=DKIM1; k=new; p=AAAA",
        "x",
    ] {
        let (verdict, reason) = with_key(text);
        let wanted = if text == FOOTBALL_ED25519 { DkimVerdict::Fail } else { DkimVerdict::PermError };
        assert_eq!(verdict, wanted, "{text}: {reason}");
        assert!(!reason.is_empty());
    }
    assert_eq!(with_key("FAILED").0, DkimVerdict::TempError);
    assert_eq!(
        with_key(&FOOTBALL_RSA.replace("k=rsa;", "t=s:y; s=email;")),
        (DkimVerdict::Pass, String::new())
    );

    let with_tags = |was: &str, is: &str| {
        let text = message.replace(was, is);
        assert_ne!(text, message, "{was}");
        dkim(&crlf(&text), &keys())[0].verdict
    };
    for (was, is, wanted) in [
        ("v=1; a=ed", "v=2; a=ed", DkimVerdict::PermError),
        ("a=ed25519-sha256", "a=rsa-sha1", DkimVerdict::PermError),
        ("i=@football.example.com", "i=@example.com", DkimVerdict::PermError),
        ("q=dns/txt", "q=http/well-known", DkimVerdict::PermError),
        ("t=1528637909", "x=1528637910", DkimVerdict::PermError),
        ("h=from : to :\n subject : date : message-id : from :", "h=to :", DkimVerdict::PermError),
        ("t=1528637909", "t=soon", DkimVerdict::Neutral),
        ("v=1; a=ed", "a=ed", DkimVerdict::Neutral),
        ("v=1; a=ed", "v=1; v=1; a=ed", DkimVerdict::Neutral),
        ("s=brisbane;", "s=;", DkimVerdict::Neutral),
        ("t=1528637909", "l=3", DkimVerdict::Fail),
    ] {
        assert_eq!(with_tags(was, is), wanted, "{was} -> {is}");
    }
}

#[test]
fn new_keys_sign_what_verifies() {
    let mut counter = 0_u64;
    // Not secret, and the same for each run.
    let mut fill = |octets: &mut [u8]| {
        for chunk in octets.chunks_mut(32) {
            counter += 1;
            let digest = ring::digest::digest(&ring::digest::SHA256, &counter.to_le_bytes());
            chunk.copy_from_slice(&digest.as_ref()[..chunk.len()]);
        }
    };
    assert!(generate_rsa(1024, &mut fill).is_none());
    let rsa = generate_rsa(2048, &mut fill).unwrap();
    let ed25519 = generate_ed25519(&[9; 32]).unwrap();
    assert!(!format!("{rsa:?}").contains("PRIVATE") && rsa.zone_line("example.com", "r").contains("\" \""));
    let signer = |selector, pem: &str| {
        Signer::new("Example.com", selector, SigningKey::from_pem(pem.as_bytes()).unwrap()).unwrap()
    };
    let signers = [signer("r", &rsa.pem), signer("e", &ed25519.pem).with_lifetime_seconds(3600)];
    let zone =
        Zone::of(&[("r._domainkey.example.com", &rsa.record), ("e._domainkey.example.com", &ed25519.record)]);
    assert_eq!(signers[1].record(), ("e._domainkey.example.com".to_owned(), ed25519.record.clone()));
    let message = "From: ada@example.com\r\nList-Id: x\r\nSubject: a\r\n long  subject\r\n\r\nbody\r\n\r\n";
    let fields = sign(&signers, message.as_bytes(), NOW - 1).unwrap();
    assert!(fields.lines().all(|line| line.len() <= 78), "{fields}");
    let signed = format!("{fields}{message}");
    assert_eq!(verdicts(signed.as_bytes(), &zone), [DkimVerdict::Pass; 2]);
    for field in
        ["From: eve@example.com", "Subject: b", "Reply-To: eve@example.net", "Content-Type: text/html"]
    {
        let changed = format!("{fields}{field}\r\n{message}");
        assert_eq!(verdicts(changed.as_bytes(), &zone), [DkimVerdict::Fail; 2], "{field}");
    }
    let received = format!("Received: here\r\n{signed}");
    assert_eq!(verdicts(received.as_bytes(), &zone), [DkimVerdict::Pass; 2]);
    // An old one has expired.
    let old = sign(&signers, message.as_bytes(), NOW - 3602).unwrap() + message;
    assert_eq!(verdicts(old.as_bytes(), &zone), [DkimVerdict::Pass, DkimVerdict::PermError]);
    for bad in ["Subject: x\r\n\r\n", "From: a@b.example\r\nFrom: c@d.example\r\n\r\n"] {
        assert_eq!(sign(&signers, bad.as_bytes(), NOW), Err(SignError::NotOneFrom));
    }
}

/// A message has no more work in it than its limits allow.
#[test]
fn many_signatures_cost_no_more_than_a_few() {
    let message = include_str!("../vectors/rfc8463.eml");
    let many = message.repeat(1000);
    let header = many.split("\n\n").next().unwrap();
    let signature = header.split("From:").next().unwrap();
    let text = format!("{}{message}", signature.repeat(500));
    let envelope = Envelope::new([192, 0, 2, 1].into(), "client.example", "");
    let (report, asked) = check(envelope, &crlf(&text), |_| Answer::NoSuchName);
    assert_eq!(report.dkim.len(), 8);
    assert!(asked.len() < 20, "{asked:?}");
}
