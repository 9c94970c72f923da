//! `inhost peep`: captures and the running host in words, by filters, as JSON, as one connection's text.

use crate::common::{Folder, Serve, connect, inhost, peers};
use inhost_interop::{Running, output, own_network, run, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A host with echo and Telnet, and the addresses at which they are reached.
fn serve(name: &str) -> (Serve, String, String) {
    let serve = Serve::start(name, &["--link", "user,forward=127.0.0.1:0->7,forward=127.0.0.1:0->23"]);
    let forwarded = |port: &str| {
        let line = serve.banner.lines().find(|line| line.trim().ends_with(&format!(" -> {port}"))).unwrap();
        line.trim().strip_prefix("forward   tcp ").unwrap().split_whitespace().next().unwrap().to_owned()
    };
    let (echo, telnet) = (forwarded("7"), forwarded("23"));
    (serve, echo, telnet)
}

/// A capture of an echo and of the beginning of a Telnet session.
fn capture(folder: &Folder) -> PathBuf {
    let (serve, echo, telnet) = serve("peep-captured");
    let mut caller = connect(&echo);
    caller.write_all(b"hello, world").unwrap();
    caller.read_exact(&mut [0; 12]).unwrap();
    let mut terminal = connect(&telnet);
    terminal.read_exact(&mut [0; 3]).unwrap();
    let file = folder.0.join("one.pcapng");
    run(serve.inhost().args(["record", "write"]).arg(&file));
    drop((caller, terminal));
    assert!(serve.end().success());
    file
}

/// The records of a JSON text sequence, each against the schema by a validator of somebody else.
fn qlog_is_as_its_schema_says(folder: &Folder, text: &str) {
    let records: Vec<Value> = text
        .split('\u{1e}')
        .skip(1)
        .map(|record| serde_json::from_str(record.strip_suffix('\n').unwrap()).unwrap())
        .collect();
    assert_eq!(records[0]["file_schema"], "urn:ietf:params:qlog:file:sequential");
    let names: Vec<_> = records[1..].iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    for name in ["tcp:segment_received", "tcp:segment_sent", "tcp:state_updated", "tcp:connection_started"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let group = &records[1]["group_id"];
    assert!(records[1..].iter().all(|entry| entry["group_id"] == *group), "{text}");
    if !peers(&["python3"]) {
        return;
    }
    let (schema, file) = (folder.0.join("qlog.schema.json"), folder.0.join("one.sqlog"));
    std::fs::write(&schema, run(inhost(&folder.0).args(["peep", "--qlog-schema"]))).unwrap();
    std::fs::write(&file, text).unwrap();
    let check = "import json,sys,jsonschema\n\
                 schema = json.load(open(sys.argv[2]))\n\
                 for text in open(sys.argv[1]).read().split('\\x1e')[1:]: jsonschema.validate(json.loads(text), schema)\n\
                 try: jsonschema.validate({'time': 1, 'name': 'tcp:segment_sent', 'data': {}}, schema)\n\
                 except jsonschema.ValidationError: sys.exit(0)\n\
                 sys.exit('a segment without fields is taken')";
    run(Command::new("/usr/bin/python3").args(["-c", check]).args([file, schema]));
}

#[test]
fn a_capture_is_read_in_words_by_filters_and_as_json() {
    let folder = Folder::new("peep");
    let file = capture(&folder);
    let peep = |words: &[&str]| run(inhost(&folder.0).arg("peep").arg("-r").arg(&file).args(words));

    let all = peep(&[]);
    assert!(all.contains(":7  SYN seq 0 win "), "{all}");
    assert!(all.contains("ACK+PSH seq 1-13 ack 1") || all.contains("ACK seq 1-13 ack 1"), "{all}");
    assert!(all.contains("state SYN-RECEIVED to ESTABLISHED"), "{all}");
    let echo = peep(&["tcp", "port", "7"]);
    assert!(echo.lines().count() > 5 && !echo.contains(":23 "), "{echo}");
    assert_eq!(
        peep(&["-c", "2", "tcp port 7 and not tcp[tcpflags] & tcp-syn != 0"])
            .lines()
            .filter(|line| !line.contains('*'))
            .count(),
        2
    );
    let verbose = peep(&["-v", "-x", "-c", "1", "tcp port 7"]);
    assert!(
        verbose.contains("\n    tcp: source_port ")
            && verbose.contains("mss ")
            && verbose.contains("\n    0000  45 "),
        "{verbose}"
    );

    for line in peep(&["--json"]).lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(
            value["at_ns"].is_u64() && (value["layers"].is_array() || value["event"].is_string()),
            "{line}"
        );
    }
    qlog_is_as_its_schema_says(&folder, &peep(&["--qlog", "tcp port 7"]));
    let part = folder.0.join("part.pcapng");
    peep(&["-w", part.to_str().unwrap(), "tcp port 7"]);
    let again = run(inhost(&folder.0).arg("peep").arg("-r").arg(&part));
    assert_eq!(again.lines().filter(|line| line.contains(":7")).count(), again.lines().count(), "{again}");
    if peers(&["tshark"]) {
        let count =
            run(Command::new("tshark").arg("-r").arg(&part).args(["-Y", "tcp.port == 7"])).lines().count();
        assert_eq!(count, echo.lines().filter(|line| !line.contains('*')).count());
    }
    // Two captures in one order of time, the later one first.
    let both = run(inhost(&folder.0).args(["peep", "--time", "delta", "-r"]).arg(&part).arg("-r").arg(&file));
    assert!(both.contains(" part ") && both.contains(" one "), "{both}");
    assert!(both.lines().all(|line| !line.starts_with('-')), "{both}");
}

#[test]
fn what_is_wrong_with_a_filter_is_shown() {
    let folder = Folder::new("peep-wrong");
    let done = output(inhost(&folder.0).args(["peep", "-r", "nowhere.pcap", "tcp", "prot", "80"]));
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && text.contains("    ^ "), "{text}");
    let done = output(inhost(&folder.0).args(["peep", "-r", "nowhere.pcap"]));
    assert!(String::from_utf8_lossy(&done.stderr).contains("nowhere.pcap"), "{done:?}");
}

#[test]
fn a_running_host_is_watched() {
    let (serve, echo, _) = serve("peep-watched");
    let mut watch =
        Running::start(serve.inhost().args(["peep", "--states", "100ms", "--past", "tcp port 7"]));
    let mut caller = connect(&echo);
    let seen = until("a state of the connection", || {
        caller.write_all(b"x").ok()?;
        caller.read_exact(&mut [0; 1]).ok()?;
        let seen = watch.printed();
        seen.contains("is ESTABLISHED ").then_some(seen)
    });
    assert!(seen.contains("SYN seq 0") && seen.contains("connected; the peer called"), "{seen}");
    drop(caller);
    assert!(serve.end().success());
    assert!(watch.wait().success(), "the trace ends with the host");
}

#[test]
fn an_interface_is_watched_until_a_signal() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("peep-interface");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let words = ["peep", "-i", "lo", "tcp port", &address.port().to_string()];
    let mut watch = Running::start(inhost(&folder.0).args(words));
    let shown = until("a handshake", || {
        drop(TcpStream::connect(other.local_addr().unwrap()).unwrap());
        drop(TcpStream::connect(address).unwrap());
        let shown = watch.printed();
        (shown.contains("SYN seq 0") && shown.contains("SYN+ACK")).then_some(shown)
    });
    assert!(shown.lines().all(|line| line.contains(&address.to_string())), "{shown}");
    watch.signal(Signal::INT);
    assert!(watch.wait().success());
    assert!(watch.printed().contains(" frames chosen of "), "{}", watch.printed());
}

#[test]
fn a_capture_that_is_read_is_not_written_over() {
    let folder = Folder::new("peep-same");
    let (file, link) = (folder.0.join("one.pcap"), folder.0.join("two.pcap"));
    let capture =
        [&b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00"[..], &[0; 8], &[0xff, 0xff, 0, 0, 1, 0, 0, 0]].concat();
    std::fs::write(&file, &capture).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let done = output(inhost(&folder.0).args(["peep", "-r", "one.pcap", "-w", "two.pcap"]));
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("write into another file"), "{done:?}");
    assert_eq!(std::fs::read(&file).unwrap(), capture);
    // A new file is its owner's alone, and a disk that is full is named as such.
    let done = output(inhost(&folder.0).args(["peep", "-r", "one.pcap", "-w", "new.pcapng"]));
    assert!(done.status.success(), "{done:?}");
    assert_eq!(std::fs::metadata(folder.0.join("new.pcapng")).unwrap().permissions().mode() & 0o777, 0o600);
    let done = output(inhost(&folder.0).args(["peep", "-r", "one.pcap", "-w", "/dev/full"]));
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let why = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(why.contains("No space left") && why.contains("ends within a frame"), "{why}");
}
