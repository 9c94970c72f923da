//! OpenDKIM, dkimpy and OpenDMARC against this crate, both ways. None of them queries a server of the Internet.

use crate::zone::{NOW, RECEIVER, Zone, check};
use inhost_interop::{Running, left_out, output, own_network, run};
use inhost_mailauth::{
    DkimVerdict, DmarcVerdict, Envelope, Policy, Signer, SigningKey, generate_ed25519, generate_rsa, sign,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that `lab/interop/peers` unpacks. `None`: without root the test is left out.
fn peer(name: &str) -> Option<PathBuf> {
    inhost_interop::peer(name, &format!("usr/sbin/{name}"))
}

/// Whether dkimpy is there; without root the test is left out.
fn has_dkimpy() -> bool {
    let is_there =
        output(Command::new("/usr/bin/python3").args(["-c", "import dkim, nacl"])).status.success();
    if !is_there && !rustix::process::geteuid().is_root() {
        left_out("python3-dkim and python3-nacl missing; lab/interop/peers as root installs them");
        return false;
    }
    assert!(is_there, "python3-dkim and python3-nacl are needed; lab/interop/peers installs them");
    true
}

/// A folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mailauth-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Messages that are hard to canonicalize. OpenDKIM's test mode reads the first [`OPENDKIM_READS`] unchanged. It changes blanks
/// after a colon, and does not read a last line without a line end.
const OPENDKIM_READS: usize = 4;
const MESSAGES: [&str; 6] = [
    "From: Ada <ada@example.com>\r\nTo: bob@example.net\r\nSubject: plain\r\n\r\nHello.\r\n",
    "From: ada@example.com\r\nSubject: no body\r\n\r\n",
    "Received: one\r\nReceived: two\r\nFrom: ada@example.com\r\nSubject: =?utf-8?q?=C3=A9?=\r\n\r\n\r\n\r\nlate \u{e9}\r\n.\r\n",
    "Subject: folded\r\n \t and  spaced \r\nfrom: \"A, B\" <ada@example.com>\r\nX-Empty:\r\n\r\n a  b\t\tc \r\n\r\n\r\n",
    "Subject:   folded\r\n \t and  spaced \r\nfrom:\t\"A, B\" <ada@example.com>\r\nX-Empty:\r\n\r\n a  b\t\tc \r\n\r\n\r\n",
    "From: ada@example.com\r\nList-Id: <x.example.com>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nno end",
];

/// A key with the name that it has in the DNS.
struct Named {
    selector: &'static str,
    pem: String,
    record: String,
}

fn keys() -> [Named; 2] {
    let mut counter = 7_u8;
    // Not secret, and the same for each run.
    let mut fill = |octets: &mut [u8]| {
        for chunk in octets.chunks_mut(32) {
            counter = counter.wrapping_add(1);
            let digest = ring::digest::digest(&ring::digest::SHA256, &[counter; 3]);
            chunk.copy_from_slice(&digest.as_ref()[..chunk.len()]);
        }
    };
    let (rsa, ed25519) = (generate_rsa(2048, &mut fill).unwrap(), generate_ed25519(&[5; 32]).unwrap());
    [("rsa", rsa), ("ed", ed25519)].map(|(selector, key)| Named {
        selector,
        pem: key.pem,
        record: key.record,
    })
}

fn zone(keys: &[Named]) -> Zone {
    let mut zone = Zone::default();
    for key in keys {
        zone.0.insert(format!("{}._domainkey.example.com", key.selector), vec![key.record.clone()]);
    }
    zone
}

fn signed(key: &Named, message: &str) -> String {
    let signer =
        Signer::new("example.com", key.selector, SigningKey::from_pem(key.pem.as_bytes()).unwrap()).unwrap();
    sign(&[signer], message.as_bytes(), NOW - 86_400 * 365).unwrap() + message
}

/// What this crate says of the first signature of a message.
fn verdict(message: &[u8], keys: &[Named]) -> DkimVerdict {
    let zone = zone(keys);
    let envelope = Envelope::new([192, 0, 2, 1].into(), "client.example", "");
    check(envelope, message, |query| zone.answer(query)).0.dkim[0].verdict
}

/// The message with a body that is not the signed one.
fn changed(message: &str) -> String {
    format!("{message}more\r\n")
}

/// Configuration of OpenDKIM with its keys.
fn opendkim_config(folder: &Path, keys: &[Named], more: &str) -> PathBuf {
    let records: Vec<String> =
        keys.iter().map(|key| format!("{}._domainkey.example.com {}\n", key.selector, key.record)).collect();
    fs::write(folder.join("keys"), records.concat()).unwrap();
    let config = folder.join("config");
    let text = format!(
        "TestPublicKeys {}\nSyslog no\nAuthservID {RECEIVER}\nUserID root\nRequireSafeKeys no\n{more}",
        folder.join("keys").display()
    );
    fs::write(&config, text).unwrap();
    config
}

fn opendkim(program: &Path, config: &Path, message: &[u8]) -> String {
    let file = config.with_file_name("message");
    fs::write(&file, message).unwrap();
    let done = output(Command::new(program).arg("-x").arg(config).arg("-vvv").arg("-t").arg(file));
    String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
}

#[test]
fn opendkim_verifies_what_is_signed_here() {
    let Some(program) = peer("opendkim") else { return };
    let (folder, keys) = (folder("opendkim-verifies"), keys());
    let config = opendkim_config(&folder, &keys, "Mode v\n");
    for key in &keys {
        for message in &MESSAGES[..OPENDKIM_READS] {
            let message = signed(key, message);
            let said = opendkim(&program, &config, message.as_bytes());
            assert!(said.contains("dkim=pass") && said.contains("succeeded"), "{message}\n{said}");
            let said = opendkim(&program, &config, changed(&message).as_bytes());
            assert!(said.contains("dkim=fail"), "{message}\n{said}");
        }
    }
}

#[test]
fn what_opendkim_signs_verifies_here() {
    let Some(program) = peer("opendkim") else { return };
    let (folder, keys) = (folder("opendkim-signs"), keys());
    // Ed25519 signatures of OpenDKIM 2.11 with a simple header are invalid: dkimpy rejects them too.
    let forms = ["simple/simple", "simple/relaxed", "relaxed/simple", "relaxed/relaxed"];
    for (key, algorithm, forms) in
        [(&keys[0], "rsa-sha256", &forms[..]), (&keys[1], "ed25519-sha256", &forms[2..])]
    {
        let file = folder.join("key");
        fs::write(&file, &key.pem).unwrap();
        for form in forms {
            let more = format!(
                "Mode s\nDomain example.com\nSelector {}\nKeyFile {}\nCanonicalization {form}\nSignatureAlgorithm {algorithm}\n\
                 OversignHeaders From\n",
                key.selector,
                file.display()
            );
            let config = opendkim_config(&folder, &keys, &more);
            for message in &MESSAGES[..OPENDKIM_READS] {
                let said = opendkim(&program, &config, message.as_bytes());
                let (_, value) =
                    said.split_once("hname='DKIM-Signature' hvalue='").unwrap_or_else(|| panic!("{said}"));
                let value = value.split('\'').next().unwrap().replace("\r\n", "\n").replace('\n', "\r\n");
                let message = format!("DKIM-Signature: {value}\r\n{message}");
                assert_eq!(verdict(message.as_bytes(), &keys), DkimVerdict::Pass, "{form}\n{message}");
                assert_eq!(
                    verdict(changed(&message).as_bytes(), &keys),
                    DkimVerdict::Fail,
                    "{form}\n{message}"
                );
            }
        }
    }
}

/// Reads a file of keys, and one with lines of JSON: a message that is to be verified, or signed with a key, in a form. Answers
/// each with a line: whether it verifies, or its signature.
const DKIMPY: &str = r#"
import dkim, json, sys
records = dict(line.rstrip(b'\n').split(b' ', 1) for line in open(sys.argv[1], 'rb'))
for line in open(sys.argv[2]):
    message, *form = (text.encode() for text in json.loads(line))
    if not form:
        print(json.dumps(dkim.verify(message, dnsfunc=lambda name, timeout=5: records.get(name.rstrip(b'.')))))
        continue
    selector, key, header, body = form
    algorithm = b'rsa-sha256' if selector == b'rsa' else b'ed25519-sha256'
    print(json.dumps(dkim.sign(message, selector, b'example.com', key, canonicalize=(header, body), signature_algorithm=algorithm).decode()))
"#;

/// What dkimpy answers to each line. One process for all of them: it takes half a second to start.
fn dkimpy(folder: &Path, asked: &[Vec<String>]) -> Vec<serde_json::Value> {
    let lines: Vec<String> = asked.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
    let file = folder.join("asked");
    fs::write(&file, lines.concat()).unwrap();
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", DKIMPY]).arg(folder.join("keys")).arg(file);
    let answers: Vec<serde_json::Value> =
        run(&mut command).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), asked.len());
    answers
}

#[test]
fn dkimpy_verifies_what_is_signed_here() {
    if !has_dkimpy() {
        return;
    }
    let (folder, keys) = (folder("dkimpy-verifies"), keys());
    opendkim_config(&folder, &keys, "");
    let signed: Vec<String> =
        keys.iter().flat_map(|key| MESSAGES.map(|message| signed(key, message))).collect();
    let asked: Vec<_> = signed.iter().flat_map(|text| [vec![text.clone()], vec![changed(text)]]).collect();
    for (text, verdicts) in signed.iter().zip(dkimpy(&folder, &asked).chunks(2)) {
        assert_eq!(verdicts, [true, false], "{text}");
    }
}

#[test]
fn what_dkimpy_signs_verifies_here() {
    if !has_dkimpy() {
        return;
    }
    let (folder, keys) = (folder("dkimpy-signs"), keys());
    opendkim_config(&folder, &keys, "");
    let mut asked = Vec::new();
    for key in &keys {
        // dkimpy has Ed25519 keys as their 32 octets in Base64.
        let seed = data_encoding::BASE64.encode(&[5; 32]);
        let secret = if key.selector == "rsa" { &key.pem } else { &seed };
        for message in MESSAGES {
            for (header, body) in [("simple", "simple"), ("relaxed", "relaxed"), ("simple", "relaxed")] {
                asked.push([message, key.selector, secret, header, body].map(str::to_owned).to_vec());
            }
        }
    }
    for (asked, signature) in asked.iter().zip(dkimpy(&folder, &asked)) {
        let text = signature.as_str().unwrap().to_owned() + &asked[0];
        assert_eq!(verdict(text.as_bytes(), &keys), DkimVerdict::Pass, "{text}");
        assert_eq!(verdict(changed(&text).as_bytes(), &keys), DkimVerdict::Fail, "{text}");
    }
}

/// The sender's domain, for which SPF passes, the domain of a good signature, and the record of example.com; the author is
/// at example.com or at news.example.com. OpenDMARC implements RFC 7489, so no case depends on what RFC 9989 changed. Version
/// 1.4.2 treats subdomains of the author's domain as aligned in strict mode, so strict alignment is tried the other way.
const DMARC: &[(&str, &str, &str, &str)] = &[
    ("example.com", "example.com", "", "v=DMARC1; p=reject"),
    ("example.com", "example.net", "", "v=DMARC1; p=reject"),
    ("example.com", "mail.example.com", "", "v=DMARC1; p=reject"),
    ("news.example.com", "example.com", "", "v=DMARC1; p=reject; aspf=s"),
    ("example.com", "example.net", "example.com", "v=DMARC1; p=reject"),
    ("example.com", "example.net", "sign.example.com", "v=DMARC1; p=reject"),
    ("news.example.com", "example.net", "sign.example.com", "v=DMARC1; p=reject; adkim=s"),
    ("example.com", "example.net", "badexample.com", "v=DMARC1; p=reject"),
    ("example.com", "example.net", "", "v=DMARC1; p=quarantine"),
    ("example.com", "example.net", "", "v=DMARC1; p=none"),
    ("example.com", "example.net", "", "v=DMARC1;p=reject;"),
    ("example.com", "example.net", "", "v=spf1 -all"),
    ("news.example.com", "example.com", "", "v=DMARC1; p=reject"),
    ("news.example.com", "mail.example.com", "", "v=DMARC1; p=reject"),
    ("news.example.com", "example.net", "", "v=DMARC1; p=reject; sp=none"),
    ("news.example.com", "example.net", "", "v=DMARC1; p=none; sp=reject"),
];

#[test]
fn opendmarc_judges_as_this_crate_does() {
    let Some(program) = peer("opendmarc") else { return };
    if !own_network() {
        return;
    }
    let folder = folder("opendmarc");
    fs::write(folder.join("resolv.conf"), "nameserver 127.0.0.1\noptions timeout:1\n").unwrap();
    fs::write(folder.join("suffixes"), "com\nnet\norg\n").unwrap();
    let config = format!(
        "AuthservID {RECEIVER}\nTrustedAuthservIDs {RECEIVER}\nSyslog false\nRejectFailures true\nUserID root\nPublicSuffixList {}\n",
        folder.join("suffixes").display()
    );
    fs::write(folder.join("config"), config).unwrap();
    let keys = keys();
    for (author, sender, signer, record) in DMARC {
        let mut zone = zone(&keys);
        zone.0.insert("_dmarc.example.com".into(), vec![(*record).to_owned()]);
        zone.0.insert("news.example.com".into(), Vec::new());
        zone.0.insert((*sender).to_owned(), vec!["v=spf1 ip4:192.0.2.1 -all".to_owned()]);
        let from =
            format!("From: ada@{author}\r\nDate: Fri, 11 Jul 2003 21:00:37 -0700\r\nSubject: x\r\n\r\nx\r\n");
        let mut message = from.clone();
        if !signer.is_empty() {
            zone.0.insert(format!("rsa._domainkey.{signer}"), vec![keys[0].record.clone()]);
            let key = SigningKey::from_pem(keys[0].pem.as_bytes()).unwrap();
            message =
                sign(&[Signer::new(signer, "rsa", key).unwrap()], from.as_bytes(), NOW).unwrap() + &from;
        }
        let envelope = Envelope::new([192, 0, 2, 1].into(), "", &format!("b@{sender}"));
        let (report, _) = check(envelope, message.as_bytes(), |query| zone.answer(query));
        let wanted = match (report.dmarc.verdict, report.dmarc.policy) {
            (DmarcVerdict::Pass, _) => "dmarc=pass",
            (DmarcVerdict::Fail, Policy::Reject) => "rejected by DMARC policy",
            (DmarcVerdict::Fail, _) => "dmarc=fail",
            (DmarcVerdict::None, _) => "dmarc=none",
            other => panic!("{other:?}"),
        };
        // OpenDMARC reads our field and looks the policy up itself.
        let server = crate::look_up::System::serve(zone);
        // OpenDMARC 1.4.2 does not match a full address with its domain, so the field has the domain only.
        let field = report.field().replace("smtp.mailfrom=b@", "smtp.mailfrom=");
        fs::write(folder.join("message"), field + &from).unwrap();
        let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(folder.join("resolv.conf")).arg(&program);
        command.arg("-c").arg(folder.join("config")).arg("-vvv").arg("-t").arg(folder.join("message"));
        command.env("OPENDMARC_TEST_ENVFROM", format!("<b@{sender}>"));
        let mut running = Running::start(&mut command);
        running.wait();
        let said = running.printed();
        assert!(server.asked("_dmarc."), "{said}");
        assert!(
            said.contains(wanted),
            "{author} {sender} {signer} {record}: {wanted}\n{}\n{said}",
            report.field()
        );
    }
}
