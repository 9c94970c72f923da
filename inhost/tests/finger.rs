//! `inhost finger` against Debian's fingerd, in a network namespace of their own. Needs root.

mod common;

use common::{Folder, Running, inhost, own_namespace, peer, wait};
use std::process::{Command, Output, Stdio};

const LINK: &str = "address=10.9.0.2/24,address=fd09::2/64,host=10.9.0.1/24,host=fd09::1/64";

/// A server whose connections are a program's standard streams.
fn serve(port: u16, program: &str) -> Running {
    let listen = format!("TCP6-LISTEN:{port},ipv6only=0,reuseaddr,fork");
    let server = Command::new("socat").args([&listen, program]).stdin(Stdio::null()).spawn();
    let server = Running(server.expect("socat is needed; lab/interop/peers installs it"));
    wait(500);
    server
}

fn text(done: &Output) -> String {
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout.clone()).unwrap()
}

#[test]
fn fingerd_tells_who_somebody_is() {
    if !own_namespace() {
        return;
    }
    let fingerd = peer("in.fingerd", "usr/sbin/in.fingerd");
    let _server = serve(79, &format!("SYSTEM:exec {} 2>&1,nofork", fingerd.display()));
    let folder = Folder::new("finger");
    let link = format!("tap:infing0,{LINK}");
    let ask = |arguments: &[&str]| {
        inhost(&folder.0).arg("finger").args(["--link", &link]).args(arguments).output().unwrap()
    };
    for who in ["root@10.9.0.1", "root@[fd09::1]"] {
        let told = text(&ask(&["--long", who]));
        assert!(told.contains("Login: root") && told.contains("Shell:") && !told.contains('\r'), "{told}");
    }
    let told = text(&ask(&["--json", "root@10.9.0.1"]));
    let report: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&report["host"], &report["who"]), (&"10.9.0.1".into(), &"root@10.9.0.1".into()));
    assert!(report["text"].as_str().unwrap().contains("Login: root"), "{told}");
    // It does not pass questions on, and says so.
    let told = text(&ask(&["root@elsewhere.example@10.9.0.1"]));
    assert!(told.contains("forwarding"), "{told}");
    let done = ask(&["root"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("no host is named"), "{done:?}");
    let done = ask(&["root@10.9.0.1", "--port", "4"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("10.9.0.1"), "{done:?}");
}
