//! `inhost inett` as a user has it, against itself and Debian's iperf3.

use crate::common::{Folder, Serve, inhost, peers};
use inhost_interop::{Running, output, run, until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;

/// A server at a free port, and the port.
fn serve(folder: &Folder, more: &[&str]) -> (Running, String) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let server = Running::start(inhost(&folder.0).args(["inett", "--server", "--port", &port]).args(more));
    until("it serves", || server.printed().contains("serving at port").then_some(()));
    (server, port)
}

#[test]
fn a_stream_and_transactions_are_measured_from_each_face() {
    let folder = Folder::new("inett");
    let (server, port) = serve(&folder, &[]);
    let at = format!("127.0.0.1:{port}");
    let measure = |more: &[&str]| run(inhost(&folder.0).args(["inett", &at]).args(more));
    let faces = ["local", "zero-copy", "xti", "send"].map(|face| ["--link", "user", "--face", face]);
    let system = ["--face", "system"];
    for face in faces.iter().map(|face| &face[..]).chain([&system[..]]) {
        let text = measure(&[&["--time", "300ms", "--json"], face].concat());
        let outcome: Value = serde_json::from_str(&text).unwrap();
        assert!(outcome["summary"]["mean"].as_f64().unwrap() > 1e6, "{face:?}: {text}");
        let text = measure(&[&["--kind", "screen", "--count", "50", "--interval", "0"], face].concat());
        assert!(text.contains("50 transactions in"), "{face:?}: {text}");
    }
    let text = measure(&["--bytes", "64M", "--repeat", "2-3", "--half-width", "50", "--csv"]);
    assert!(text.lines().count() >= 3 && text.starts_with("repetition,sent_bits_per_second"), "{text}");
    // As with iperf3, a test ends when the last byte was written: what is under way then was sent and is not received.
    let outcome: Value =
        serde_json::from_str(&measure(&["--bytes", "64M", "--repeat", "2", "--json"])).unwrap();
    let repetitions = outcome["repetitions"].as_array().unwrap();
    assert_eq!(repetitions.len(), 2, "{outcome}");
    for repetition in repetitions {
        let [sent, received] = ["sent_bytes", "bytes"].map(|name| repetition["sent"][name].as_u64().unwrap());
        assert!(sent >= 64_000_000 && (sent / 2..=sent).contains(&received), "{repetition}");
    }
    for (wrong, status, says) in [
        (&["--streams", "999"][..], 2, "between 1 and 128"),
        (&["--write", "99G"], 2, "--write 106300440576: at most 1048576 bytes"),
        (&["--window", "99G"], 2, "at most 536870912 bytes"),
        (
            &["--repeat", "2", "--half-width", "100"],
            2,
            "--half-width 100: give percent above 0 and below 100",
        ),
        (&["--congestion", "nosuch"], 1, "the system has no congestion control \"nosuch\""),
    ] {
        let refused = output(inhost(&folder.0).args(["inett", &at]).args(wrong));
        let why = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(status) && why.contains(says), "{why}");
    }
    drop(server);
    let gone = output(inhost(&folder.0).args(["inett", &at]));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("cannot be reached"), "{gone:?}");
}

#[test]
fn both_ends_go_through_the_running_host() {
    let host = Serve::start("inett-control", &["--link", "user"]);
    let server =
        Running::start(host.inhost().args(["inett", "--server", "--port", "5301", "--face", "control"]));
    until("it serves", || server.printed().contains("serving at port").then_some(()));
    let at = ["inett", "127.0.0.1:5301", "--face", "control"];
    let text = run(host.inhost().args(at).args(["--time", "300ms", "--json"]));
    let outcome: Value = serde_json::from_str(&text).unwrap();
    assert!(outcome["summary"]["mean"].as_f64().unwrap() > 1e6, "{text}");
    let text = run(host.inhost().args(at).args(["--kind", "screen", "--count", "50", "--interval", "0"]));
    assert!(text.contains("50 transactions in"), "{text}");
    for (wrong, says) in [
        (&["--face", "control", "--link", "user"][..], "--link is of a host of its own"),
        (&["--face", "xti", "--via", "/tmp/none"], "--via is of --face control"),
    ] {
        let refused = output(host.inhost().args(["inett", "127.0.0.1:5301"]).args(wrong));
        assert!(refused.status.code() == Some(2), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(says), "{refused:?}");
    }
    let folder = Folder::new("inett-no-host");
    let none = output(inhost(&folder.0).args(at));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no host runs"), "{none:?}");
}

#[test]
fn a_sweep_goes_on_where_it_was() {
    let folder = Folder::new("inett-sweep");
    let (_server, port) = serve(&folder, &[]);
    let grid = folder.0.join("grid.toml");
    let text = "[plan]\ntime_ms = 100\n[values]\nwrite_bytes = [512, 65536]\nload = [0, 1]\n";
    std::fs::write(&grid, text).unwrap();
    let (at, grid) = (format!("127.0.0.1:{port}"), grid.to_str().unwrap());
    let sweep = |more: &[&str]| run(inhost(&folder.0).args(["inett", &at, "--sweep", grid]).args(more));
    assert_eq!(sweep(&[]).matches("bit/s").count(), 4);
    // The last record was cut off.
    let log = folder.0.join("grid.toml.jsonl");
    let whole = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, &whole[..whole.len() - 20]).unwrap();
    let again = sweep(&[]);
    assert_eq!(again.matches("was measured before").count(), 3, "{again}");
    assert_eq!(again.matches("bit/s").count(), 4, "{again}");
    let table = sweep(&["--csv"]);
    assert_eq!(table.lines().count(), 5, "{table}");
    // One that is interrupted has not measured all.
    std::fs::remove_file(&log).unwrap();
    let mut interrupted = Running::start(inhost(&folder.0).args(["inett", &at, "--sweep", grid]));
    until("the second point", || interrupted.printed().contains("2 of 4").then_some(()));
    interrupted.signal(Signal::INT);
    assert_eq!(interrupted.wait().code(), Some(1));
    let said = interrupted.printed();
    assert!(said.contains("left to measure; the same command goes on"), "{said}");
}

#[test]
fn it_speaks_with_iperf3_both_ways() {
    if !peers(&["iperf3"]) {
        return;
    }
    let folder = Folder::new("inett-iperf3");
    let (_server, port) = serve(&folder, &[]);
    let shown = run(Command::new("iperf3").args(["-c", "127.0.0.1", "-p", &port, "-t", "1", "-R", "-J"]));
    let theirs: Value = serde_json::from_str(&shown).unwrap();
    assert!(theirs["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() > 1e6, "{shown}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let iperf3 = Running::start(Command::new("iperf3").args(["-s", "-p", &port, "--forceflush"]));
    until("iperf3 listens", || iperf3.printed().contains("listening").then_some(()));
    let at = format!("127.0.0.1:{port}");
    let text = run(inhost(&folder.0).args(["inett", &at, "--udp", "--rate", "10M", "--time", "500ms"]));
    assert!(text.contains("client to server"), "{text}");
    let refused = output(inhost(&folder.0).args(["inett", &at, "--kind", "echo"]));
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("inett"),
        "{refused:?}"
    );
}
