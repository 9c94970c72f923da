//! The log of `inhost serve`: nothing that happens to it happens to the host.

use crate::common::{Folder, inhost, rest};
use inhost_interop::{Running, lines, receive};
use std::io::Read;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A host whose Telnet is at a port of loopback, started by `command`.
fn start(command: &mut Command) -> (Running, String) {
    let mut host = Running::start_showing_errors(command);
    let banner = host.wait_for("to end.");
    let line = banner.lines().find(|line| line.contains("forward")).unwrap();
    let at = line.split_whitespace().nth(2).unwrap().to_owned();
    (host, at)
}

/// Telnet at `at` says something to a new caller: a greeting, or why he is not let in.
fn is_alive(at: &str) -> bool {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.read(&mut [0; 1]).is_ok_and(|octets| octets == 1)
}

#[test]
fn standard_error_that_nobody_reads_does_not_hold_the_host_up() {
    let folder = Folder::new("log-blocked");
    let link = "user,forward=127.0.0.1:0->23";
    let (mut host, at) = start(inhost(&folder.0).args(["serve", "--link", link]).stderr(Stdio::piped()));
    // A pipe holds 64 KiB, which is some 900 lines.
    for caller in 0..1500 {
        assert!(is_alive(&at), "caller {caller} got no answer");
    }
    let log = host.child.stderr.take().unwrap();
    drop(host);
    let text = rest(log);
    assert!(text.len() > 60_000, "the pipe was never full: {} octets", text.len());
}

#[test]
fn a_closed_standard_error_is_no_reason_to_end() {
    let folder = Folder::new("log-closed");
    let program =
        format!("exec '{}' serve --link 'user,forward=127.0.0.1:0->23' 2>&-", env!("CARGO_BIN_EXE_inhost"));
    let mut shell = inhost(&folder.0);
    let environment: Vec<_> =
        shell.get_envs().map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned))).collect();
    shell = Command::new("sh");
    shell.args(["-c", &program]).envs(environment.into_iter().filter_map(|(key, value)| Some((key, value?))));
    let (_host, at) = start(&mut shell);
    assert!(is_alive(&at) && is_alive(&at));
}

#[test]
fn lines_are_json_when_asked_for() {
    let folder = Folder::new("log-json");
    let arguments = ["serve", "--log-json", "--link", "user,forward=127.0.0.1:0->23"];
    let (mut host, at) = start(inhost(&folder.0).args(arguments).stderr(Stdio::piped()));
    assert!(is_alive(&at));
    let line = receive(&lines(host.child.stderr.take().unwrap()));
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((event["target"].as_str(), event["level"].as_str()), (Some("telnet"), Some("INFO")), "{line}");
    assert!(event["timestamp"].is_string() && event["peer"].is_string(), "{line}");
}
