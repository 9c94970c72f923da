//! `inhost ping` from the running host.

use crate::common::{Serve, rest, with_own_signals};
use inhost_interop::{Running, output, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

/// The system's own sockets, with a port of its choice for whatever.
const LINK: &str = "user,forward=127.0.0.1:0->7";

fn said(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

#[test]
fn the_running_host_asks_and_says_what_came_back() {
    let serve = Serve::start("ping", &["--link", LINK]);
    let ping = |arguments: &[&str]| {
        output(serve.inhost().arg("ping").args(["--interval", "0.05", "--verbose"]).args(arguments))
    };
    let done = ping(&["127.0.0.1", "--count", "3"]);
    let text = said(&done);
    assert!(done.status.success() && text.contains("through the running host at "), "{text}");
    assert!(text.contains("56 bytes to 127.0.0.1 (the running host itself 127.0.0.1)\n"), "{text}");
    for number in 0..3 {
        assert!(text.contains(&format!("56 bytes from 127.0.0.1: request {number}, ")), "{text}");
    }
    assert!(text.contains("127.0.0.1: 3 sent, 3 answered, 0.0 % lost\nround trip "), "{text}");

    let done = ping(&["10.0.2.15", "--count", "2", "--size", "1000", "--json"]);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&report["sent"], &report["received"]), (&2.into(), &2.into()), "{report}");

    // Nobody is there, and somebody on the way says so or nobody does.
    let done = ping(&["240.0.0.1", "--count", "1", "--timeout", "0.2"]);
    let text = said(&done);
    assert!(
        done.status.code() == Some(1) && text.contains("240.0.0.1 answered none of 1 requests"),
        "{text}"
    );
    let done = ping(&["-6", "127.0.0.1"]);
    assert!(said(&done).contains("127.0.0.1 has no IPv6 address"), "{}", said(&done));
}

#[test]
fn a_socket_that_is_named_goes_before_all_and_a_private_host_is_asked_for_by_its_link() {
    let serve = Serve::start("ping-via", &["--link", LINK]);
    let path = serve.folder.0.join("inhost.sock").display().to_string();
    let done = output(serve.inhost().args(["ping", "127.0.0.1", "-c1", "-v", "--via", &path]));
    assert!(done.status.success(), "{}", said(&done));
    let done = output(serve.inhost().args(["ping", "127.0.0.1", "-c1", "-v", "--via", "/nowhere/control"]));
    assert!(done.status.code() == Some(1) && said(&done).contains("/nowhere/control"), "{}", said(&done));
    let done = output(serve.inhost().args(["ping", "127.0.0.1", "-c1", "-v", "--link", "user"]));
    assert!(said(&done).contains("a private host on the link user"), "{}", said(&done));
}

/// Its first line has come.
fn goes_on(serve: &Serve) -> (Running, BufReader<std::process::ChildStdout>) {
    let mut command = with_own_signals();
    command.arg(env!("CARGO_BIN_EXE_inhost")).env("XDG_RUNTIME_DIR", &serve.folder.0);
    command.args(["ping", "127.0.0.1", "--count", "0", "--interval", "0.05"]);
    let mut running =
        Running::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut lines = BufReader::new(running.child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("request 2, ") {
        assert!(lines.read_line(&mut line).unwrap() > 0, "{line}");
    }
    (running, lines)
}

/// Echo sockets of the host.
fn echo_sockets(serve: &Serve) -> usize {
    let sockets = serve.netstat()["sockets"].as_array().unwrap().clone();
    sockets.iter().filter(|socket| socket["kind"] == "echo").count()
}

#[test]
fn an_interrupt_ends_it_with_a_report_and_the_host_stops_asking() {
    let serve = Serve::start("ping-interrupt", &["--link", LINK]);
    let (mut running, lines) = goes_on(&serve);
    assert_eq!(echo_sockets(&serve), 1);
    running.signal(Signal::INT);
    let text = rest(lines);
    assert!(text.contains(" answered, 0.0 % lost\n"), "{text}");
    assert!(running.wait().success());
    until("the host to stop", || (echo_sockets(&serve) == 0).then_some(()));
}

#[test]
fn a_host_that_ends_is_told() {
    let serve = Serve::start("ping-end", &["--link", LINK]);
    let (mut running, lines) = goes_on(&serve);
    let errors = running.child.stderr.take().unwrap();
    assert!(serve.end().success());
    drop(lines);
    assert_eq!(running.wait().code(), Some(1));
    assert_eq!(rest(errors).trim(), "inhost: the running host has gone");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let serve = Serve::start("ping-refused", &["--link", LINK]);
    let mut client = inhost_runtime::control::Client::open(&serve.folder.0.join("inhost.sock")).unwrap();
    for (request, why) in [
        (serde_json::json!({"op": "ping"}), "give an address \"to\""),
        (
            serde_json::json!({"op": "ping", "to": "::1", "interval_ns": 1, "count": 1, "bytes": 1, "wait_ns": 1}),
            "\"interval_ns\" is from",
        ),
        (serde_json::json!({"op": "traceroute", "to": "::1"}), "missing field"),
    ] {
        let error = client.request(&request).unwrap_err().to_string();
        assert!(error.contains(why), "{request}: {error}");
    }
}
