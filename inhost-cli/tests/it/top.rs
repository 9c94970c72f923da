//! `inhost top` on a terminal, its screen as text, and the parts of `inhost netstat`.

use crate::common::{Serve, Tmux, connect, peers};
use inhost_interop::{output, run, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

/// A host with echo and endless characters, and a caller of each: one who has read his echo, and one who never reads.
fn serve(name: &str) -> (Serve, [TcpStream; 2]) {
    let serve = Serve::start(name, &["--link", "user,forward=127.0.0.1:0->7,forward=127.0.0.1:0->19"]);
    let call = |port: &str| {
        let line = serve.banner.lines().find(|line| line.trim().ends_with(&format!(" -> {port}"))).unwrap();
        connect(line.trim().strip_prefix("forward   tcp ").unwrap().split_whitespace().next().unwrap())
    };
    let (mut echo, endless) = (call("7"), call("19"));
    echo.write_all(b"hello").unwrap();
    echo.read_exact(&mut [0; 5]).unwrap();
    until("the window is closed", || {
        let text = run(serve.inhost().args(["netstat", "cause = closed-window"]));
        text.contains(":19").then_some(())
    });
    (serve, [echo, endless])
}

#[test]
fn top_shows_connections_and_opens_one() {
    if !peers(&["tmux"]) {
        return;
    }
    let (serve, _callers) = serve("top");
    let terminal = Tmux::start(&serve, "top --every 0.2");
    let list = terminal.wait("% closed window");
    assert!(
        list.contains("10.0.2.15:7 ") && list.contains("2 connections") && list.contains("iiiiii"),
        "{list}"
    );
    terminal.keys(&["/", "dport = x:x", "Enter"]);
    terminal.wait("filter: dport = x:x");
    terminal.keys(&["C-u", "cause = closed-window", "Enter"]);
    let list = terminal.wait("1 of 2");
    assert!(!list.contains("10.0.2.15:7 "), "{list}");
    terminal.keys(&["Enter"]);
    terminal.wait("Why: the client's application does not read");
    let open = terminal.wait("ZZZZZZ");
    assert!(
        open.contains("10.0.2.15:19 <-> ") && open.contains("What sending waited for, while you watch"),
        "{open}"
    );
    terminal.keys(&["?"]);
    terminal.wait("any key closes this");
    terminal.keys(&["x", "q"]);
    terminal.wait("Enter open");
    terminal.tmux(&["resize-window", "-x", "80", "-y", "20"]);
    terminal.wait(" Remote");
    // A host that goes is said, and the screen stays.
    serve.process.signal(Signal::KILL);
    terminal.wait("the host does not answer");
    terminal.keys(&["q"]);
    terminal.wait("ended with 0");
}

#[test]
fn top_prints_once_and_says_what_is_wrong() {
    let (serve, _callers) = serve("top-once");
    let text =
        run(serve.inhost().args(["top", "--once", "--every", "0.1", "--sort", "remote", "port", "19"]));
    let line = text.lines().last().unwrap();
    assert!(line.contains("10.0.2.15:19") && line.contains("% closed window"), "{text}");
    assert!(text.contains("1 of 2: port 19") && !text.contains('\u{1b}'), "{text}");
    let says = |arguments: &[&str], words: &str| {
        let done = output(serve.inhost().args(arguments));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && said.contains(words), "{said}");
    };
    says(&["top"], "needs a terminal");
    says(&["top", "--once", "state", "lost"], "the filter: state");
    says(&["top", "--every", "0"], "0.1 to 3600");
    says(&["top", "--once", "--via", "/nowhere"], "inhost serve");
    says(&["netstat", "lodgers"], "is not a part");
    says(&["netstat", "listeners", "port", "7"], "a filter chooses connections");
    assert!(serve.end().success());
}

#[test]
fn each_part_of_a_host_is_told() {
    let (serve, _callers) = serve("netstat-parts");
    let netstat = |arguments: &[&str]| run(serve.inhost().arg("netstat").args(arguments));
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&netstat(&[arguments, &["--json"]].concat())).unwrap()
    };
    let all = netstat(&[]);
    assert!(all.contains("% closed window") && all.contains("[::]:19") && all.contains("Memory: "), "{all}");
    let first = netstat(&["-n", "1", "--sort", "remote", "state", "connected"]);
    assert!(first.lines().count() == 3 && first.ends_with("1 of 2 connections\n"), "{first}");
    let one = json(&["sport", "=", ":19"]);
    assert_eq!(
        (one.as_array().unwrap().len(), &one[0]["tcp"]["send"]["cause"]),
        (1, &"closed window".into())
    );
    assert!(netstat(&["ledgers", "port", "19"]).contains("%"));
    assert_eq!(netstat(&["connections", "port", "1"]), "no connections\n");
    let listeners = json(&["listeners"]);
    let echo = listeners.as_array().unwrap().iter().find(|of| of["local"] == "[::]:7").unwrap();
    assert_eq!((&echo["accept_queue"], &echo["accept_limit"]), (&0.into(), &128.into()));
    assert_eq!(json(&["sessions"]).as_array().unwrap().len(), 2);
    let histograms = json(&["histograms"]);
    let sizes = histograms.as_array().unwrap().iter().find(|of| of["name"] == "segment size").unwrap();
    assert!(sizes["count"].as_u64() > Some(2), "what the recorder held is measured: {histograms}");
    assert!(netstat(&["histograms"]).contains("segment size: data in a segment"));
    assert!(netstat(&["histograms", "--svg", "-"]).starts_with("<svg"));
    assert!(json(&["log"]).is_array() && !netstat(&["log"]).is_empty());
    assert!(netstat(&["counters"]).contains("connections accepted"));
    assert!(serve.end().success());
}
