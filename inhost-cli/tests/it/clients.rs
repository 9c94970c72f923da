//! Clients over the running host's control socket.

use crate::common::{Folder, inhost};
use inhost_interop::output;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Answers in a running host's place: it knows every name, and reaches nobody. What it is asked goes to the test.
fn stand_in(folder: &Folder) -> (String, Receiver<Value>) {
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = folder.0.join("control.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let tell: Sender<Value> = tell.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                    let request: Value = serde_json::from_str(&line).unwrap();
                    let reply = match request["op"].as_str() {
                        Some("look_up") => json!({"ok": true, "addresses": ["192.0.2.1"]}),
                        _ => json!({"ok": false, "error": "nobody is there"}),
                    };
                    let _ = tell.send(request);
                    let _ = (&stream).write_all(format!("{reply}\n").as_bytes());
                }
            });
        }
    });
    (path.to_str().unwrap().to_owned(), asked)
}

/// Dialogues go without Nagle's algorithm, by which a word would wait for the acknowledgment of the one before.
#[test]
fn dialogues_through_the_running_host_are_not_held_back() {
    let folder = Folder::new("stand-in");
    let (path, asked) = stand_in(&folder);
    let clients: [&[&str]; 7] = [
        &["telnet", "far"],
        &["finger", "ada@far"],
        &["whois", "--server", "far", "ada"],
        &["ftp", "far"],
        &["rsh", "--local-user", "ada", "far", "uptime"],
        &["rcp", "--local-user", "ada", "far:file", "here"],
        &["rlogin", "--local-user", "ada", "far"],
    ];
    for client in clients {
        let done = output(inhost(&folder.0).arg(client[0]).args(["--via", &path]).args(&client[1..]));
        assert!(String::from_utf8_lossy(&done.stderr).contains("nobody is there"), "{client:?}: {done:?}");
        let called: Vec<Value> = asked.try_iter().filter(|request| request["op"] == "connect").collect();
        assert!(!called.is_empty(), "{client:?} calls nobody");
        assert!(called.iter().all(|request| request["nagle"] == false), "{client:?}: {called:?}");
    }
}

/// An invalid host name is a usage error; no server is asked.
#[test]
fn a_name_that_is_none_is_told_at_once() {
    let folder = Folder::new("no-name");
    let clients: [&[&str]; 16] = [
        &["telnet", "a..b"],
        &["ftp", "a..b"],
        &["ftp", "get", "ftp://a..b/file"],
        &["ftp", "put", "file", "ftp://a..b/file"],
        &["ftp", "mirror", "ftp://a..b/folder", "folder"],
        &["ftp", "copy", "ftp://a..b/file", "ftp://c/file"],
        &["ftp", "copy", "ftp://c/file", "ftp://a..b/file"],
        &["tftp", "get", "a..b:file"],
        &["ping", "a..b"],
        &["lookup", "a..b"],
        &["traceroute", "a..b"],
        &["whois", "--server", "a..b", "ada"],
        &["finger", "ada@a..b"],
        &["rsh", "--local-user", "ada", "a..b", "uptime"],
        &["rcp", "--local-user", "ada", "a..b:file", "here"],
        &["rlogin", "--local-user", "ada", "a..b"],
    ];
    for client in clients {
        let done = output(inhost(&folder.0).args(client));
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{client:?}: {said}");
        assert!(said.starts_with("inhost: ") && said.contains("a..b"), "{client:?}: {said}");
    }
}
