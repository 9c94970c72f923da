//! `inhost finger` against Debian's fingerd, and our server against Debian's finger, in network namespaces of their own.
//! Needs root.

use crate::common::{Folder, add_ada, connect, inhost, peer, socat};
use inhost_interop::{Running, output, own_network, pause, run, until};
use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Output};
use std::time::Duration;

const LINK: &str = "address=10.9.0.2/24,address=fd09::2/64,host=10.9.0.1/24,host=fd09::1/64";

fn text(done: &Output) -> String {
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout.clone()).unwrap()
}

#[test]
fn fingerd_tells_who_somebody_is() {
    if !own_network() {
        return;
    }
    let fingerd = peer("in.fingerd", "usr/sbin/in.fingerd");
    let _server = socat(79, &format!("SYSTEM:exec {} 2>&1,nofork", fingerd.display()));
    let folder = Folder::new("finger");
    let link = format!("tap:infing0,{LINK}");
    let ask =
        |arguments: &[&str]| output(inhost(&folder.0).arg("finger").args(["--link", &link]).args(arguments));
    for who in ["root@10.9.0.1", "root@[fd09::1]"] {
        let answer = text(&ask(&["--long", who]));
        assert!(
            answer.contains("Login: root") && answer.contains("Shell:") && !answer.contains('\r'),
            "{answer}"
        );
    }
    let answer = text(&ask(&["--json", "root@10.9.0.1"]));
    let report: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&report["host"], &report["who"]), (&"10.9.0.1".into(), &"root@10.9.0.1".into()));
    assert!(report["text"].as_str().unwrap().contains("Login: root"), "{answer}");
    // It does not pass questions on, and says so.
    let answer = text(&ask(&["root@elsewhere.example@10.9.0.1"]));
    assert!(answer.contains("forwarding"), "{answer}");
    let done = ask(&["root"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("no host is named"), "{done:?}");
    let done = ask(&["root@10.9.0.1", "--port", "4"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("10.9.0.1"), "{done:?}");
}

/// A Telnet session of `ada`, which lasts until it is dropped.
fn logged_in() -> TcpStream {
    let mut stream = connect("10.9.0.2:23");
    for line in ["logon", "ada", crate::common::PASSWORD] {
        write!(stream, "{line}\r\n").unwrap();
        pause(Duration::from_millis(500));
    }
    stream
}

#[test]
fn our_server_answers_the_system_s_finger() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("finger-server");
    let plans = folder.0.join("plans/ada");
    std::fs::create_dir_all(&plans).unwrap();
    std::fs::write(plans.join(".plan"), "weave \x1b[2Jalgebra\n").unwrap();
    let users = folder.0.join("users");
    add_ada(&folder.0, &["--users", users.to_str().unwrap()]);
    let config = format!(
        "link = [\"tap:infing1,{LINK}\"]\n[telnet]\nusers = {users:?}\n[finger]\nenabled = true\nplans = {:?}\n\
         [finger.limits]\nconnections_per_minute = 12\n[finger.full_names]\nada = \"Ada Lovelace\"\n",
        folder.0.join("plans")
    );
    std::fs::write(folder.0.join("host.toml"), config).unwrap();
    let mut host = Running::start_showing_errors(inhost(&folder.0).arg("serve"));
    let banner = host.wait_for("to end.");
    assert!(banner.contains("finger    port 79") && banner.contains("finger @10.9.0.2"), "{banner}");
    // An address is tested before it is used.
    let ask = |who: &str| {
        let done = output(Command::new("finger").arg(who));
        String::from_utf8_lossy(&done.stdout).replace('\r', "")
    };
    let mut answer = String::new();
    for _ in 0..6 {
        answer = ask("@10.9.0.2");
        if answer.contains("Nobody is logged in.") {
            break;
        }
        pause(Duration::from_secs(2));
    }
    assert!(answer.contains("Nobody is logged in."), "{answer}");
    assert!(ask("ada@10.9.0.2").contains("ada: no such user."), "not logged in, and users are not told of");
    let session = logged_in();
    let sessions = || run(inhost(&folder.0).args(["netstat", "sessions"]));
    until("a session of ada", || sessions().contains("ada").then_some(()));
    let list = ask("@10.9.0.2");
    assert!(list.contains("ada") && list.contains("Ada Lovelace") && list.contains("telnet"), "{list}");
    let plan = ask("lovelace@10.9.0.2");
    assert!(plan.contains("Login: ada") && plan.contains("Logged in by telnet"), "{plan}");
    assert!(plan.contains("Plan:\nweave") && !plan.contains('\x1b'), "{plan}");
    assert!(ask("ada@elsewhere.example@10.9.0.2").contains("not forwarded"));
    // Who asks too often is not answered.
    drop(session);
    let answers: Vec<String> = (0..14).map(|_| ask("@10.9.0.2")).collect();
    assert!(
        answers.iter().any(|answer| !answer.contains("ogged in") && !answer.contains("Login")),
        "the limit of a minute holds: {answers:?}"
    );
}
