//! An operator looks after a host from a terminal: Debian's telnet, the command OPERATOR, and what it changes.

use crate::common::{Folder, PASSWORD, Serve, add_ada, connect, inhost, output_given};
use inhost_interop::{output, run};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;

const LINK: &str = "user,forward=127.0.0.1:0->23,forward=127.0.0.1:0->7";

/// A host with the user `ada` and the operator `grace`, who have the same password.
fn serve(name: &str, more: &[&str]) -> Serve {
    let serve = Serve::start(name, &[&["--link", LINK], more].concat());
    let add =
        output_given(serve.inhost().args(["user", "add", "grace", "--operator"]), format!("{PASSWORD}\n"));
    assert!(add.status.success(), "{add:?}");
    serve
}

/// Whether a caller's octet comes back.
fn is_echoed(at: &str) -> bool {
    let mut stream = connect(at);
    let _ = stream.write_all(b"x");
    stream.read(&mut [0]).is_ok_and(|count| count == 1)
}

fn is_reset(mut stream: TcpStream) -> bool {
    match stream.read(&mut [0; 100]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Plays `steps`, a line and what must come after it, at the prompt of the operator grace; gives all that was shown.
fn operate(serve: &Serve, steps: &[(&str, &str)]) -> String {
    let at = serve.forwarded(23);
    let port = at.rsplit(':').next().unwrap();
    let mut talk = format!(
        "spawn telnet 127.0.0.1 {port}\nwant {{inhost> $}} 2\nsend \"operator grace\\r\"\nwant Password: 3\n\
         send \"{PASSWORD}\\r\"\nwant {{grace# $}} 4\n"
    );
    for (step, (line, answer)) in steps.iter().enumerate() {
        let status = step + 10;
        talk += &format!(
            "send {{{line}}}\nsend \"\\r\"\nwant {{{answer}}} {status}\nwant {{grace# $}} {status}\n"
        );
    }
    talk += "send \"quit\\r\"\nwant Good-bye 98\nended 99\n";
    crate::common::expect(&talk, &serve.folder.0)
}

#[test]
fn an_operator_sees_ends_stops_and_starts() {
    if !crate::common::peers(&["expect", "telnet"]) {
        return;
    }
    let serve = serve("operator", &[]);
    let echo = serve.forwarded(7);
    assert!(is_echoed(echo));
    // The second session of the service.
    let (mut held, mut kept) = (connect(echo), connect(echo));
    for stream in [&mut held, &mut kept] {
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    let shown = operate(
        &serve,
        &[
            ("help", "Any unambiguous beginning"),
            ("sys", r"telnet\.1 +grace +127\.0\.0\.1"),
            ("netstat port 7", r"10\.0\.2\.15:7-10\.0\.2\.2:\d+ +ESTABLISHED"),
            ("drop little.2", r"The session little\.2 ends"),
            ("drop little.2", "no session little.2 that can be ended"),
            ("services", "little +runs"),
            ("stop little", "Stopped little: .*: 1"),
            ("stop little", "stopped already"),
            ("services", "little +stopped"),
            ("stop telnet", "STOP telnet FORCE"),
            ("stop ftp", "is not a service that host.toml has switched on"),
            ("log 20", "stopped little"),
            ("arm reset port 7", "reset port 7: sprang 0 times"),
            ("arm sometimes", "is not a condition"),
            ("why port 7", r"10\.0\.2\.15:7-.*Why.*Do.*Sure"),
        ],
    );
    assert!(shown.contains("little.3"), "{shown}");
    assert!(is_reset(held));
    // The session goes on though the service is stopped, and nobody else is served.
    kept.write_all(b"y").unwrap();
    kept.read_exact(&mut [0]).unwrap();
    assert!(!is_echoed(echo));
    operate(
        &serve,
        &[
            ("traps", r"reset port 7: sprang \d+"),
            ("start little", "Started little"),
            ("start little", "little runs"),
            ("drop port 7", r"Reset 10\.0\.2\.15:7-10\.0\.2\.2:\d+"),
            ("traps", "reset port 7: sprang [1-9]"),
            ("disarm reset port 7", "No trap is armed"),
        ],
    );
    assert!(is_reset(kept));
    assert!(is_echoed(echo));
    // The operator's own door: who is in stays in, and opens it again.
    operate(&serve, &[("stop telnet force", "Stopped telnet"), ("start telnet", "Started telnet")]);
    operate(&serve, &[("services", "telnet +runs")]);
    assert!(serve.end().success());
}

#[test]
fn an_operator_looks_after_the_queue_of_jobs() {
    if !crate::common::peers(&["expect", "telnet"]) {
        return;
    }
    let folder = Folder::new("operators-jobs");
    let (config, script) = (folder.0.join("host.toml"), folder.0.join("tides.sh"));
    let text = format!("[jobs]\nenabled = true\nport = 0\nfolder = {:?}\n", folder.0.join("queue"));
    std::fs::write(&config, text).unwrap();
    std::fs::write(&script, "exec sleep 600\n").unwrap();
    let config = config.to_str().unwrap();
    let serve = serve("operators-jobs", &["--config", config]);
    let submit = |more: &[&str]| {
        let mut command = serve.inhost();
        command.env("USER", "eve").args(["job", "submit", "--config", config]).args(more).arg(&script);
        run(&mut command);
    };
    submit(&["--array", "1-2"]);
    submit(&["--name", "late"]);
    inhost_interop::until("all three run", || {
        let list = ["job", "list", "--config", config, "--state", "running"];
        (run(serve.inhost().args(list)).lines().count() == 4).then_some(())
    });
    operate(
        &serve,
        &[
            ("jobs running", r"4 +late +eve +running.*2 +tides\[1\] +eve +running"),
            ("jobs eve", "late"),
            ("jobs ada", "No jobs"),
            ("hold 1", "is running, and cannot be held"),
            ("cancel 1", "Job 1: 2 elements are cancelled"),
            ("cancel 99", "there is no job 99"),
            ("cancel 4", "Job 4 is cancelled"),
        ],
    );
    submit(&["--hold"]);
    operate(
        &serve,
        &[
            ("jobs held", r"5 +tides +eve +held"),
            ("release 5", "Job 5 is released"),
            ("jobs 5", "5 +tides +eve +(queued|running)"),
            ("cancel 5", "Job 5 is cancelled"),
        ],
    );
    assert!(serve.end().success());
}

#[test]
fn strangers_reach_neither_the_prompt_nor_the_operators_terminal() {
    if !crate::common::peers(&["expect", "telnet"]) {
        return;
    }
    let serve = serve("strangers", &[]);
    let mut stranger = connect(serve.forwarded(23));
    let hostile = "logon eve\u{202e}\u{9b}2J\u{7}\r\nwrong\r\n";
    stranger.write_all(format!("sysstat\r\noperator ada\r\n{PASSWORD}\r\n{hostile}").as_bytes()).unwrap();
    stranger.shutdown(Shutdown::Write).unwrap();
    let mut seen = Vec::new();
    stranger.read_to_end(&mut seen).unwrap();
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("Sessions     telnet 1\r\nConnections  "), "{seen}");
    assert!(seen.contains("You are not an operator of this host"), "{seen}");
    let sysstat = seen.split("Sessions ").nth(1).unwrap().split("inhost> ").next().unwrap();
    assert!(!sysstat.contains("127.0.0.1") && !sysstat.contains("ada"), "{sysstat}");
    let shown = operate(&serve, &[("log 50", "not an operator")]);
    assert!(shown.contains("eve") && shown.contains("refused: not an operator"), "{shown}");
    assert!(!shown.contains(['\u{202e}', '\u{9b}', '\u{7}']) && !shown.contains("\u{1b}"), "{shown:?}");
    assert!(serve.end().success());
}

#[test]
fn the_mark_is_given_kept_and_taken_away() {
    let folder = Folder::new("marks");
    let listed = || run(inhost(&folder.0).args(["user", "list"]));
    let mark =
        |arguments: &[&str]| output(inhost(&folder.0).args(["user", "operator"]).args(arguments)).status;
    add_ada(&folder.0, &[]);
    assert_eq!(listed(), "ada\n");
    assert!(mark(&["ada"]).success() && !mark(&["bob"]).success());
    assert!(listed().contains("operator"));
    // Another password leaves the mark as it is.
    add_ada(&folder.0, &[]);
    let json: serde_json::Value =
        serde_json::from_str(&run(inhost(&folder.0).args(["user", "list", "--json"]))).unwrap();
    assert_eq!(json[0]["operator"], true);
    assert!(mark(&["ada", "--no"]).success());
    assert_eq!(listed(), "ada\n");
    let text = std::fs::read_to_string(folder.0.join(Path::new("inhost/users"))).unwrap();
    assert_eq!(text.trim_end().matches(':').count(), 1, "as before marks: {text}");
}
