//! Names against BIND, with dig, host and getent as clients, against a server of the test's own that lies, and against
//! avahi. Needs root.

use crate::common::names::{asks, forwarder, until_up};
use crate::common::{Folder, Serve, inhost, peer};
use inhost_interop::{Running, output, own_network, pause, run};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The zone that BIND has.
const ZONE: &str = "$TTL 300\n\
    @ IN SOA ns root ( 1 3600 900 604800 3 )\n  IN NS ns\n  IN MX 10 mail\nns IN A 127.0.0.1\n\
    www IN A 192.0.2.7\n  IN AAAA 2001:db8::7\nweb IN CNAME www\nmail IN A 192.0.2.25\n\
    loop IN CNAME pool\npool IN CNAME loop\nshort 2 IN A 192.0.2.8\ntext IN TXT \"hello, host\"\n\
    evil IN TXT \"\\027]0;owned\\007\\010next\"\n\
    odd IN TYPE65280 \\# 4 0A000001\n_telnet._tcp IN SRV 0 5 23 www\n";

/// BIND at 127.0.0.1 port 5301 for example.test and 2.0.192.in-addr.arpa.
struct Bind {
    folder: Folder,
    _named: Running,
}

impl Bind {
    fn start(name: &str) -> Bind {
        let folder = Folder::new(name);
        let at = folder.0.to_str().unwrap();
        let long: String = (1..=90).map(|n| format!("long IN A 198.51.100.{n}\n")).collect();
        fs::write(folder.0.join("zone"), format!("{ZONE}{long}")).unwrap();
        let reverse = "$TTL 300\n@ IN SOA ns.example.test. root.example.test. ( 1 3600 900 604800 3 )\n\
            @ IN NS ns.example.test.\n7 IN PTR www.example.test.\n";
        fs::write(folder.0.join("reverse"), reverse).unwrap();
        let zone =
            |name: &str, file: &str| format!("zone \"{name}\" {{ type primary; file \"{at}/{file}\"; }};\n");
        let options = format!(
            "options {{ directory \"{at}\"; listen-on port 5301 {{ 127.0.0.1; }}; listen-on-v6 port 5301 {{ ::1; }};\n\
             pid-file \"{at}/named.pid\"; session-keyfile \"{at}/session.key\"; recursion no;\n\
             dnssec-validation no; empty-zones-enable no; }};\ncontrols {{ }};\n\
             logging {{ channel queries {{ file \"{at}/queries\"; }}; category queries {{ queries; }};\n\
             category default {{ null; }}; }};\n{}{}",
            zone("example.test", "zone"),
            zone("2.0.192.in-addr.arpa", "reverse")
        );
        fs::write(folder.0.join("named.conf"), options).unwrap();
        let config = folder.0.join("named.conf");
        let mut named = Command::new(peer("named", "usr/sbin/named"));
        let named = Running::start(named.args(["-f", "-c"]).arg(config));
        until_up("5301", "ns.example.test");
        Bind { folder, _named: named }
    }
    /// How often it was asked about `name`.
    fn asked(&self, name: &str) -> usize {
        let log = fs::read_to_string(self.folder.0.join("queries")).unwrap_or_default().to_lowercase();
        log.lines().filter(|line| line.contains(&format!("({name}): query"))).count()
    }
}

/// The machine's loopback as a host behind the user link sees it.
const BIND: &str = "10.0.2.2:5301";

#[test]
fn dig_and_host_and_getent_against_the_forwarder_and_bind_behind_it() {
    if !own_network() {
        return;
    }
    let bind = Bind::start("names-bind");
    let serve = forwarder("names-forward", &[BIND], "local = [\"10.9.0.7 printer.lan\"]");
    assert!(serve.banner.contains("names     port 53"), "{}", serve.banner);
    let short = |arguments: &[&str]| asks(&[&["+short"], arguments].concat());
    assert_eq!(short(&["www.example.test"]), "192.0.2.7\n");
    assert_eq!(short(&["www.example.test", "AAAA"]), "2001:db8::7\n");
    assert_eq!(short(&["web.example.test"]), "www.example.test.\n192.0.2.7\n");
    assert_eq!(short(&["example.test", "MX"]), "10 mail.example.test.\n");
    assert_eq!(short(&["text.example.test", "TXT"]), "\"hello, host\"\n");
    assert_eq!(short(&["_telnet._tcp.example.test", "SRV"]), "0 5 23 www.example.test.\n");
    assert_eq!(short(&["odd.example.test", "TYPE65280"]), "\\# 4 0A000001\n", "a type that nobody knows");
    assert_eq!(short(&["-x", "192.0.2.7"]), "www.example.test.\n");
    assert_eq!(short(&["printer.lan"]), "10.9.0.7\n");
    assert_eq!(short(&["-x", "10.9.0.7"]), "printer.lan.\n");
    assert_eq!(short(&["+tcp", "www.example.test"]), "192.0.2.7\n");
    assert_eq!(short(&["WwW.eXaMpLe.TeSt"]), "192.0.2.7\n");
    assert_eq!(bind.asked("www.example.test"), 2, "A and AAAA once each");
    // Too long for a datagram: dig asks again over TCP, as told by the TC bit.
    let whole = asks(&["+noedns", "long.example.test"]);
    assert!(whole.contains("ANSWER: 90") && whole.contains("(TCP)"), "{whole}");
    let cut = asks(&["+noedns", "+ignore", "long.example.test"]);
    assert!(cut.contains("flags: qr tc rd ra") && cut.contains("ANSWER: 0"), "{cut}");
    let loops = asks(&["loop.example.test"]);
    assert!(loops.contains("SERVFAIL"), "{loops}");
    for refused in
        [&["example.test", "AXFR"][..], &["version.bind", "TXT", "CH"], &["example.test", "ANY", "+notcp"]]
    {
        let said = asks(refused);
        assert!(said.contains("REFUSED") || said.contains("Transfer failed"), "{refused:?}: {said}");
    }
    let host = run(Command::new("host").args(["-p", "5300", "web.example.test", "127.0.0.1"]));
    assert!(
        host.contains("web.example.test is an alias for www.example.test") && host.contains("192.0.2.7"),
        "{host}"
    );
    getent(&serve);
    assert!(serve.end().success());
}

/// The C library's resolver, which knows only port 53: the forwarder is reached there by a second forward.
fn getent(serve: &Serve) {
    let folder = &serve.folder.0;
    fs::write(folder.join("resolv.conf"), "nameserver 127.0.0.1\noptions timeout:5\n").unwrap();
    fs::write(folder.join("nsswitch.conf"), "hosts: dns\n").unwrap();
    let relay = "import socket,threading\n\
        a=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);a.bind(('127.0.0.1',53))\n\
        def one(q,c):\n s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.sendto(q,('127.0.0.1',5300))\n \
        a.sendto(s.recv(4096),c)\n\
        while True:\n q,c=a.recvfrom(4096);threading.Thread(target=one,args=(q,c)).start()\n";
    let _relay = Running::start_showing_errors(Command::new("python3").args(["-c", relay]));
    let script = format!(
        "mount --bind {0}/resolv.conf /etc/resolv.conf && mount --bind {0}/nsswitch.conf /etc/nsswitch.conf && \
         getent ahosts web.example.test && getent hosts 192.0.2.7 && ! getent hosts missing.example.test",
        folder.display()
    );
    until_up("53", "www.example.test");
    let text = run(Command::new("unshare").args(["--mount", "sh", "-c", &script]));
    assert!(text.contains("192.0.2.7") && text.contains("2001:db8::7"), "{text}");
    assert!(text.contains("www.example.test"), "{text}");
}

#[test]
fn what_bind_says_is_not_there_is_kept_as_long_as_it_says() {
    if !own_network() {
        return;
    }
    let bind = Bind::start("names-negative");
    let _serve = forwarder("names-negative-forward", &[BIND], "");
    for _ in 0..3 {
        let said = asks(&["missing.example.test"]);
        assert!(said.contains("NXDOMAIN") && said.contains("SOA"), "{said}");
    }
    assert_eq!(bind.asked("missing.example.test"), 1);
    let empty = asks(&["www.example.test", "TXT"]);
    assert!(empty.contains("NOERROR") && empty.contains("ANSWER: 0") && empty.contains("SOA"), "{empty}");
    asks(&["short.example.test"]);
    asks(&["short.example.test"]);
    assert_eq!(bind.asked("short.example.test"), 1);
    // The zone's last field is 3 s, and the record's time 2 s.
    pause(Duration::from_millis(3500));
    asks(&["missing.example.test"]);
    asks(&["short.example.test"]);
    assert_eq!((bind.asked("missing.example.test"), bind.asked("short.example.test")), (2, 2));
}

// The other side of the test is a program of others, which lives by the wall clock.
#[allow(clippy::disallowed_methods)]
#[test]
fn dead_servers_are_passed_over_and_remembered() {
    if !own_network() {
        return;
    }
    let _bind = Bind::start("names-dead");
    // One that is silent, and one at whose port nobody is.
    let silent = UdpSocket::bind("127.0.0.1:5302").unwrap();
    let _serve = forwarder("names-dead-forward", &["10.0.2.2:5302", "10.0.2.2:5303", BIND], "");
    let mut times = Vec::new();
    for name in ["www", "mail", "short", "text", "ns"] {
        let began = Instant::now();
        let said = asks(&[&format!("{name}.example.test")]);
        assert!(said.contains("NOERROR"), "{said}");
        times.push(began.elapsed());
    }
    assert!(times[0] > Duration::from_millis(1400), "{times:?}");
    assert!(times[2..].iter().all(|time| *time < Duration::from_millis(1000)), "{times:?}");
    drop(silent);
}

/// A server that sends three lies before the truth, and a bank's address with it.
const LIAR: &str = r#"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 5304))
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def answer(q, address, id=None, name=None):
    end = q.index(b"\0", 12) + 5
    question = q[12:end] if name is None else name + q[end-4:end]
    record = b"\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4" + bytes(address)
    other = b"\5vault" if b"bank" in q.lower() else b"\4bank"
    bank = other + b"\4test\0\0\1\0\1\0\0\1\x2c\0\4" + bytes([203, 0, 113, 66])
    return (id or q[:2]) + b"\x81\x80\0\1\0\2\0\0\0\0" + question + record + bank
while True:
    q, c = s.recvfrom(4096)
    if q[q.index(b"\0", 12)+2:q.index(b"\0", 12)+3] != b"\1": continue
    evil = [203, 0, 113, 66]
    s.sendto(answer(q, evil, id=bytes([q[0] ^ 1, q[1]])), c)
    s.sendto(answer(q, evil, name=b"\5other\4test\0"), c)
    other.sendto(answer(q, evil), c)
    s.sendto(answer(q, [192, 0, 2, 1 + (b"ank" in q.lower())]), c)
"#;

#[test]
fn lies_are_not_believed() {
    if !own_network() {
        return;
    }
    let _liar = Running::start_showing_errors(Command::new("python3").args(["-c", LIAR]));
    until_up("5304", "up.test");
    let serve = forwarder("names-lies", &["10.0.2.2:5304"], "");
    assert_eq!(asks(&["+short", "good.test", "A"]), "192.0.2.1\n");
    let kept = asks(&["good.test", "A"]);
    assert!(kept.contains("ANSWER: 1") && !kept.contains("203.0.113.66"), "{kept}");
    assert_eq!(
        asks(&["+short", "bank.test", "A"]),
        "192.0.2.2\n",
        "asked for, and not taken from what came along"
    );
    // Our own command says what it passed over.
    let direct = ["lookup", "direct.test", "A", "@127.0.0.1:5304", "--trace", "--link", "user"];
    let text = run(serve.inhost().args(direct));
    assert!(text.contains("direct.test has address 192.0.2.1"), "{text}");
    assert!(text.contains("passed over 1 with another identifier"), "{text}");
    assert!(text.contains("passed over 1 to another question"), "{text}");
    assert!(!text.contains("203.0.113.66"), "{text}");
}

fn lookup(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let done = output(inhost(folder).arg("lookup").args(arguments));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&done.stdout), text(&done.stderr), done.status.code().unwrap_or(-1))
}

#[test]
fn lookup_against_bind() {
    if !own_network() {
        return;
    }
    let bind = Bind::start("names-lookup");
    let at = &bind.folder.0;
    let ask = |words: &[&str]| lookup(at, &[words, &["@127.0.0.1:5301", "--link", "user"]].concat());
    let (text, errors, status) = ask(&["web.example.test"]);
    assert_eq!(status, 0, "{text}{errors}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "web.example.test is an alias of www.example.test");
    assert_eq!(lines[1], "www.example.test has address 192.0.2.7");
    assert_eq!(lines[2], "www.example.test has IPv6 address 2001:db8::7");
    assert!(lines[3].starts_with("  A by 10.0.2.2:5301 in ") && lines[3].ends_with("(UDP)"), "{text}");
    let (text, ..) = ask(&["example.test", "MX", "NS", "SOA"]);
    assert!(text.contains("example.test gets its mail at mail.example.test (preference 10)"), "{text}");
    assert!(text.contains("example.test has name server ns.example.test"), "{text}");
    // What a terminal would obey is not shown, to programs neither.
    for more in [&[][..], &["--json"]] {
        let (text, ..) = ask(&[&["evil.example.test", "TXT"], more].concat());
        assert!(text.contains("\u{fffd}]0;owned\u{fffd}\u{fffd}next"), "{text:?}");
        assert!(text.trim_end().chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
    let (text, ..) = ask(&["192.0.2.7"]);
    assert!(text.starts_with("192.0.2.7 is www.example.test\n"), "{text}");
    let (text, ..) = ask(&["long.example.test", "A", "--trace"]);
    assert!(text.contains("too long for a datagram, asked again over TCP"), "{text}");
    assert_eq!(text.matches("has address").count(), 90);
    let (_, errors, status) = ask(&["loop.example.test", "A"]);
    assert_eq!(status, 1);
    assert!(errors.contains("loop.example.test -> pool.example.test -> loop.example.test"), "{errors}");
    let (_, errors, status) = ask(&["missing.example.test"]);
    assert_eq!(status, 1);
    assert_eq!(
        errors,
        "inhost: there is no name missing.example.test, says 10.0.2.2:5301; check the spelling\n"
    );
    let (_, errors, status) = ask(&["www.example.test", "MX"]);
    assert_eq!((errors.contains("exists and has no MX record"), status), (true, 1), "{errors}");
    // What it has is not given to those who want others to be asked: BIND refuses.
    let (_, errors, status) = ask(&["elsewhere.example", "A"]);
    assert_eq!((errors.contains("refuses"), status), (true, 1), "{errors}");
    let (_, errors, status) = lookup(at, &["www.example.test", "A", "@127.0.0.1:5309", "--link", "user"]);
    assert_eq!((errors.lines().count(), status), (1, 1), "{errors}");
    let (text, ..) = ask(&["www.example.test", "AAAA", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["questions"][0]["records"][0]["data"], "2001:db8::7");
    assert_eq!(report["questions"][0]["records"][0]["ttl_s"], 300);
    assert!(report["questions"][0]["attempts"][0]["took_ns"].as_u64().unwrap() > 0);
    // Every command reports an invalid name without asking a server.
    for command in [
        &["lookup", "a..b"][..],
        &["lookup", &"x".repeat(70)],
        &["rsh", "a..b", "true"],
        &["rlogin", "a..b"],
        &["rcp", "a..b:f", "."],
        &["tftp", "get", "a..b:f"],
        &["whois", "--server", "a..b", "x.example"],
        &["finger", "ada@a..b"],
        &["traceroute", "a..b", "--link", "tap:none0"],
    ] {
        let done = output(inhost(at).args(command));
        let errors = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{command:?}: {errors}");
        assert!(errors.contains("a..b") || errors.contains("xxxx"), "{command:?}: {errors}");
    }
    let (_, errors, status) = lookup(at, &["www.example.test", "NONSENSE"]);
    assert_eq!((errors.contains("no type of records"), status), (true, 2), "{errors}");
}

#[test]
fn lookup_by_the_running_host_and_by_its_table() {
    if !own_network() {
        return;
    }
    let bind = Bind::start("names-running");
    let serve = forwarder(
        "names-running-host",
        &[BIND],
        "local = [\"10.9.0.7 printer.lan\", \"127.0.0.1 itself.lan\"]",
    );
    let (text, errors, status) = lookup(&serve.folder.0, &["www.example.test", "@10.0.2.2:5301", "--trace"]);
    assert_eq!(status, 0, "{text}{errors}");
    assert!(text.contains("www.example.test has address 192.0.2.7"), "{text}");
    // The forwarder itself, as the host's own clients see it.
    let (text, ..) = lookup(&serve.folder.0, &["www.example.test", "@127.0.0.1", "--tcp"]);
    assert!(text.contains("192.0.2.7") && text.contains("(TCP)"), "{text}");
    let (text, ..) = lookup(&serve.folder.0, &["localhost"]);
    assert!(
        text.contains("localhost has address 127.0.0.1") && text.contains("by the table of hosts"),
        "{text}"
    );
    // The host looks up by its own forwarder: its servers, its names, and what it has kept.
    let (text, errors, status) = lookup(&serve.folder.0, &["mail.example.test", "A"]);
    assert_eq!(
        (text.contains("192.0.2.25"), text.contains("by 10.0.2.2:5301"), status),
        (true, true, 0),
        "{text}{errors}"
    );
    assert_eq!(asks(&["+short", "mail.example.test"]), "192.0.2.25\n");
    let (text, ..) = lookup(&serve.folder.0, &["mail.example.test", "A"]);
    assert!(
        text.contains("192.0.2.25") && text.contains("A as the forwarder of the running host has kept it"),
        "{text}"
    );
    assert_eq!(bind.asked("mail.example.test"), 1);
    let (text, errors, status) = lookup(&serve.folder.0, &["printer.lan"]);
    assert_eq!((text.contains("printer.lan has address 10.9.0.7"), status), (true, 0), "{text}{errors}");
    // Its connections by name, too.
    let done = output(serve.inhost().args(["telnet", "itself.lan", "9"]));
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("127.0.0.1: "), "{said}");
}

#[test]
fn names_of_the_link_against_avahi() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("names-avahi");
    let config = folder.0.join("avahi.conf");
    fs::write(
        &config,
        "[server]\nhost-name=multics\nuse-ipv4=yes\nuse-ipv6=yes\nallow-interfaces=avahi0\nenable-dbus=no\n\
         [publish]\npublish-addresses=yes\npublish-workstation=no\n",
    )
    .unwrap();
    // The device comes with our host, and avahi begins when it is there: another host of ours keeps it.
    let link = "tap:avahi0,address=10.9.7.2/24,host=10.9.7.1/24";
    let serve = Serve::start("names-avahi-host", &["--link", link]);
    // It wants its own user and a place in /run, which its own mount namespace gives it.
    let files = [("passwd", "avahi:x:65534:65534::/:/bin/false"), ("group", "avahi:x:65534:")];
    for (name, line) in files {
        let own = fs::read_to_string(Path::new("/etc").join(name)).unwrap();
        fs::write(folder.0.join(name), format!("{own}{line}\n")).unwrap();
    }
    let script = format!(
        "mount --bind {0}/passwd /etc/passwd && mount --bind {0}/group /etc/group && mount -t tmpfs none /run && \
         exec {1} --no-drop-root --no-chroot --no-rlimits -f {2}",
        folder.0.display(),
        peer("avahi-daemon", "usr/sbin/avahi-daemon").display(),
        config.display()
    );
    let _avahi = Running::start(Command::new("unshare").args(["--mount", "sh", "-c", &script]));
    let mut last = (String::new(), String::new(), -1);
    for _ in 0..12 {
        pause(Duration::from_secs(1));
        last = lookup(&serve.folder.0, &["multics.local", "A"]);
        if last.2 == 0 {
            break;
        }
    }
    let (text, errors, status) = last;
    assert_eq!(status, 0, "{text}{errors}");
    assert!(text.starts_with("multics.local has address 10.9.7.1\n"), "{text}");
    assert!(text.contains("A by 10.9.7.1:5353 in ") && text.contains("(mDNS)"), "{text}");
    let (text, errors, status) = lookup(&serve.folder.0, &["10.9.7.1", "--mdns"]);
    assert_eq!((text.lines().next(), status), (Some("10.9.7.1 is multics.local"), 0), "{errors}");
    let (_, errors, status) = lookup(&serve.folder.0, &["nobody.local"]);
    assert_eq!(
        (errors.contains("nobody on the link answers to nobody.local"), status),
        (true, 1),
        "{errors}"
    );
}
