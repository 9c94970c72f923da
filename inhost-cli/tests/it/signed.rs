//! Signed zones through the forwarder: `delv`, a validating client, gets the same verdicts and records through it as from
//! BIND itself. Needs root.

use crate::common::names::{forwarder, until_up};
use crate::common::{Folder, peer};
use inhost_interop::{Running, output, own_network, run};
use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The parent zone, which holds the trust anchor.
const PARENT: &str = "$TTL 300\n@ IN SOA ns root ( 1 3600 900 604800 300 )\n IN NS ns.nsec\n\
    nsec IN NS ns.nsec\nnsec3 IN NS ns.nsec\nplain IN NS ns.nsec\nns.nsec IN A 127.0.0.1\n";

/// Wildcards, aliases by wildcards within the zone and out of it, and a redirected tree.
const CHILD: &str = "$TTL 300\n@ IN SOA ns.nsec.test. Root.nsec.test. ( 1 3600 900 604800 300 )\n IN NS ns.nsec.test.\n\
    www IN A 192.0.2.7\n IN AAAA 2001:db8::7\n*.wild IN A 192.0.2.8\n IN TXT \"any\" \"name\"\n\
    known.wild IN A 192.0.2.9\n*.alias IN CNAME www\n*.chain IN CNAME any.wild\n\
    *.empty IN CNAME nothing.wild\n*.gone IN CNAME missing\n";

/// A record of each type that BIND writes and whose form a forwarder could change.
const TYPES: &str = "all IN A 192.0.2.1\nall IN AAAA 2001:db8::1\nall IN MX 10 Mail.nsec.test.\nall IN TXT \"a\" \"\" \"\\000\\255\"\n\
    all IN SRV 0 5 23 WWW.nsec.test.\nall IN CAA 128 issue \"ca.example; x=1\"\nall IN CAA 0 contactemail \"a@example\"\n\
    all IN NAPTR 1 2 \"s\" \"SIP+D2U\" \"!^.*$!sip:x@example!\" Target.nsec.test.\n\
    all IN NAPTR 1 2 \"weird flags\" \"\" \"\" .\nall IN HINFO \"PDP-10\" \"ITS\"\n\
    all IN RP Ada.nsec.test. Text.nsec.test.\nall IN AFSDB 1 AFS.nsec.test.\nall IN KX 1 KX.nsec.test.\n\
    all IN MINFO A.nsec.test. B.nsec.test.\nall IN MB Mailbox.nsec.test.\nall IN RT 1 RT.nsec.test.\n\
    all IN PX 1 A.nsec.test. B.nsec.test.\nall IN LOC 42 21 54 N 71 06 18 W -24m 30m\n\
    all IN SSHFP 4 2 123456789abcdef67890123456789abcdef67890123456789abcdef123456789\n\
    all IN SSHFP 9 9 12\nall IN TLSA 3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n\
    all IN TLSA 9 9 9 00\nall IN SMIMEA 3 0 0 00\nall IN CERT 65000 1 200 AQID\nall IN CERT PKIX 0 0 AQID\n\
    all IN OPENPGPKEY AQID\nall IN URI 10 1 \"ftp://ftp.example/\"\nall IN EUI48 00-00-5e-00-53-2a\n\
    all IN EUI64 00-00-5e-ef-10-00-00-2a\nall IN NID 10 14:4fff:ff20:ee64\nall IN L32 10 10.1.2.0\n\
    all IN HTTPS 1 Svc.nsec.test. alpn=h2,h3 port=8443 ipv4hint=192.0.2.1 key65400=ab\nall IN HTTPS 0 Alias.nsec.test.\n\
    all IN SVCB 1 . mandatory=alpn alpn=dot no-default-alpn port=853\nall IN SVCB 16 Foo.nsec.test. key667=\"hello\"\n\
    all IN CSYNC 66 3 A NS AAAA\nall IN DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=\nall IN SPF \"v=spf1 -all\"\n\
    all IN APL 1:192.168.32.0/21 !1:192.168.38.0/28\nall IN TYPE65280 \\# 4 0A000001\nall IN TYPE65281 \\# 0\n\
    all IN WKS 10.0.0.1 6 25\nall IN X25 \"311061700956\"\nall IN ISDN \"150862028003217\" \"004\"\n\
    all IN NSAP 0x47000580005a0000000001e133ffffff00016100\nall IN GPOS -32.6882 116.8652 10.0\nall IN NINFO \"n\"\n\
    all IN TALINK A.nsec.test. B.nsec.test.\nall IN NULL \\# 3 010203\nold IN DNAME New.nsec3.test.\n\
    away IN CNAME any.wild.nsec3.test.\n*.away IN CNAME any.wild.nsec3.test.\n";

/// The types that `all` is asked about.
const KINDS: &str = "A AAAA MX TXT SRV CAA NAPTR HINFO RP AFSDB KX MINFO MB RT PX LOC SSHFP TLSA SMIMEA CERT OPENPGPKEY \
    URI EUI48 EUI64 NID L32 HTTPS SVCB CSYNC DHCID SPF APL TYPE65280 TYPE65281 WKS X25 ISDN NSAP GPOS \
    NINFO TALINK NULL NSEC DNAME CNAME";

/// What is asked in both signed zones.
const IN_BOTH: &str = "www A, www MX, missing A, a.b.missing A, any.wild A, any.wild TXT, any.wild MX, a.b.wild A, \
    known.wild A, x.known.wild A, many.wild A, any.alias A, any.alias MX, any.chain A, any.chain TXT, any.empty MX, \
    any.gone A, wild A, *.wild A";

/// What is asked beside.
const MORE: &str = "www.old.nsec.test A, old.nsec.test DNAME, wild.old.nsec.test MX, away.nsec.test A, \
    any.away.nsec.test A, any.away.nsec.test MX, child.nsec3.test DS, x.wild.plain.test A, missing.plain.test A, \
    plain.test DS";

/// Names and types.
fn cases() -> Vec<(String, &'static str)> {
    let mut cases: Vec<_> = KINDS.split(' ').map(|kind| ("all.nsec.test".to_owned(), kind)).collect();
    for zone in ["nsec.test", "nsec3.test"] {
        let both = IN_BOTH.split(", ").filter_map(|case| case.split_once(' '));
        cases.extend(both.map(|(name, kind)| (format!("{name}.{zone}"), kind)));
        cases.extend(["SOA", "NS", "DNSKEY", "DS", "NSEC3PARAM", "MX"].map(|kind| (zone.to_owned(), kind)));
    }
    let more = MORE.split(", ").filter_map(|case| case.split_once(' '));
    cases.extend(more.map(|(name, kind)| (name.to_owned(), kind)));
    cases
}

/// BIND at 127.0.0.1 port 5301 for `test`, `nsec.test`, `nsec3.test`, all signed, and the unsigned `plain.test`.
struct Signed {
    folder: Folder,
    _named: Running,
}

impl Signed {
    fn start() -> Signed {
        let folder = Folder::new("signed");
        let at = folder.0.to_str().unwrap().to_owned();
        let many: String = (1..=90).map(|n| format!("many.wild IN A 198.51.100.{n}\n")).collect();
        let child = format!("{CHILD}{many}");
        fs::write(
            folder.0.join("plain.test"),
            "$TTL 300\n@ IN SOA ns.nsec.test. root ( 1 3600 900 604800 300 )\n\
            \x20IN NS ns.nsec.test.\n*.wild IN A 192.0.2.10\n",
        )
        .unwrap();
        fs::write(folder.0.join("nsec.test"), format!("{child}ns IN A 127.0.0.1\n{TYPES}")).unwrap();
        let delegated = "child IN NS ns.nsec.test.\nnew IN A 192.0.2.11\n*.new IN A 192.0.2.12\n";
        fs::write(folder.0.join("nsec3.test"), format!("{child}{delegated}")).unwrap();
        fs::write(folder.0.join("test"), PARENT).unwrap();
        let inside = |line: &str| run(Command::new("sh").args(["-ec", &format!("cd {at}; {line}")]));
        for (zone, how) in [("nsec.test", ""), ("nsec3.test", "-3 - -A -H 0"), ("test", "")] {
            inside(&format!("dnssec-keygen -q -a ECDSAP256SHA256 -f KSK {zone} >ksk-{zone}"));
            inside(&format!("dnssec-keygen -q -a ECDSAP256SHA256 {zone}"));
            inside(&format!(
                "dnssec-signzone -S -g -q -d {at} {how} -o {zone} {zone} >/dev/null 2>log-{zone}"
            ));
        }
        let mut zones = String::new();
        for (zone, file) in [
            ("test", "test.signed"),
            ("nsec.test", "nsec.test.signed"),
            ("nsec3.test", "nsec3.test.signed"),
            ("plain.test", "plain.test"),
        ] {
            writeln!(zones, "zone \"{zone}\" {{ type primary; file \"{at}/{file}\"; }};").unwrap();
        }
        let options = format!(
            "options {{ directory \"{at}\"; listen-on port 5301 {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
             pid-file \"{at}/named.pid\"; session-keyfile \"{at}/session.key\"; recursion no;\n\
             dnssec-validation no; empty-zones-enable no; }};\ncontrols {{ }};\n{zones}"
        );
        fs::write(folder.0.join("named.conf"), options).unwrap();
        let anchor = inside(
            "sed -n 's/^test\\. .*IN DNSKEY \\(257 3 13\\) \\(.*\\)/\\1 \"\\2\"/p' $(cat ksk-test).key",
        );
        fs::write(
            folder.0.join("anchors"),
            format!("trust-anchors {{ test. static-key {}; }};\n", anchor.trim()),
        )
        .unwrap();
        let config = folder.0.join("named.conf");
        let mut named = Command::new(peer("named", "usr/sbin/named"));
        let named = Running::start(named.args(["-f", "-c"]).arg(config));
        until_up("5301", "ns.nsec.test");
        Signed { folder, _named: named }
    }
    /// What delv says when it asks at `port`: verdicts and records, without times to live.
    fn judged(&self, port: &str, name: &str, kind: &str) -> Vec<String> {
        let anchors = self.folder.0.join("anchors");
        let asked =
            ["@127.0.0.1", "-p", port, "-a", anchors.to_str().unwrap(), "+root=test", "+dnssec", name, kind];
        // Now and then delv stops for good, with no socket open any more: it is asked again.
        let done = (0..3)
            .map(|_| output(Command::new("timeout").args(["--signal=KILL", "10", "delv"]).args(asked)))
            .find(|done| !matches!(done.status.code(), None | Some(124 | 137)))
            .unwrap_or_else(|| panic!("delv {asked:?} does not end"));
        let said =
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        let without_time = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [owner, ttl, "IN", ..] if ttl.parse::<u32>().is_ok() => {
                    format!("{owner} {}", words[2..].join(" "))
                }
                [";", owner, ttl, "IN", ..] if ttl.parse::<u32>().is_ok() => {
                    format!("; {owner} {}", words[3..].join(" "))
                }
                _ => words.join(" "),
            }
        };
        let mut lines: Vec<String> = said.lines().map(without_time).collect();
        lines.sort();
        lines
    }
}

#[test]
fn a_validator_behind_the_forwarder_accepts_what_it_accepts_without_it() {
    if !own_network() {
        return;
    }
    let signed = Signed::start();
    let _serve = forwarder("signed-forward", &["10.0.2.2:5301"], "");
    let cases = cases();
    let differences = Mutex::new(String::new());
    let validated = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for part in cases.chunks(cases.len().div_ceil(4)) {
            let (signed, differences, validated) = (&signed, &differences, &validated);
            scope.spawn(move || {
                for (name, kind) in part {
                    let direct = signed.judged("5301", name, kind);
                    if direct.iter().any(|line| line.contains("fully validated")) {
                        validated.fetch_add(1, Ordering::Relaxed);
                    }
                    // The second is what was kept.
                    for time in ["first", "second"] {
                        let forwarded = signed.judged("5300", name, kind);
                        if forwarded != direct {
                            let mut all = differences.lock().unwrap();
                            writeln!(all, "{name} {kind}, {time}:\n  {direct:#?}\n  {forwarded:#?}").unwrap();
                        }
                    }
                }
            });
        }
    });
    let (differences, validated) = (differences.into_inner().unwrap(), validated.into_inner());
    assert!(differences.is_empty(), "{differences}");
    assert!(validated > 90, "only {validated} of {} were validated without us", cases.len());
}
