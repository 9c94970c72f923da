//! What commands say when something is not as they need it: the reason, and what to try.

use crate::common::{Folder, accept, inhost, with_own_signals};
use inhost_interop::{Running, join, output, own_network, pause, until};
use rustix::process::Signal;
use std::io::Write;
use std::net::{Shutdown, TcpListener, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

fn said(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    of(&output(inhost(&folder.0).args(arguments)))
}

fn of(done: &Output) -> (Option<i32>, String) {
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

/// A server that says a word to one caller.
fn greeter() -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let serving = std::thread::spawn(move || {
        let mut stream = accept(&listener);
        // One that has gone already is not a failure of the server.
        let _ = stream.write_all(b"Good day.\r\n");
        let _ = stream.shutdown(Shutdown::Write);
        // To close with something unread is to reset, and a reset may overtake the greeting.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    (at, serving)
}

#[test]
fn a_control_socket_at_which_nobody_is_comes_with_advice() {
    let folder = Folder::new("nobody");
    for arguments in [
        &["netstat", "--via", "/nobody"][..],
        &["top", "--once", "--via", "/nobody"],
        &["ping", "--via", "/nobody", "127.0.0.1"],
        &["traceroute", "--via", "/nobody", "127.0.0.1"],
        &["lookup", "--via", "/nobody", "host.example"],
        &["finger", "--via", "/nobody", "@host.example"],
        &["tftp", "get", "--via", "/nobody", "host.example/file"],
        &["ftp", "get", "--via", "/nobody", "ftp://host.example/file"],
    ] {
        let (status, why) = said(&folder, arguments);
        assert!(
            status == Some(1) && why.contains("start one with inhost serve"),
            "{arguments:?}: {status:?}: {why}"
        );
    }
    let long = "x".repeat(120);
    let (_, why) = said(&folder, &["netstat", "--via", &format!("/tmp/{long}")]);
    assert!(why.contains("too long for a socket, which takes 107 bytes"), "{why}");
}

#[test]
fn wrong_values_and_files_are_told_by_their_names() {
    let folder = Folder::new("wrong");
    std::fs::write(folder.0.join("notes.pcap"), "notes").unwrap();
    std::fs::write(folder.0.join("own.toml"), "x = 1\n").unwrap();
    for (arguments, expected) in [
        (&["peep", "--seconds", "0"][..], "--seconds 0: give more than 0"),
        (&["peep", "-r", "notes.pcap"], "notes.pcap: at byte 0"),
        (&["lab", "run", "own.toml"], "own.toml: line 1: "),
        (&["ftp", "get", "ftp://127.0.0.1/file", "-"], "a transfer goes into a file"),
        (&["mail", "key", "a b", "selector", "k.pem"], "\"a b\" is not a domain"),
        (&["mail", "queue", "--queue", "typo"], "there is no queue in typo"),
        (&["explain", "--mcp"], "standard input has ended before a client began"),
    ] {
        let (status, why) = said(&folder, arguments);
        assert!(status != Some(0) && why.contains(expected), "{arguments:?}: {status:?}: {why}");
    }
    assert!(!folder.0.join("typo").exists() && !folder.0.join("k.pem").exists());
    // A disk on which nothing has room.
    let full = format!(
        "{{ (trap '' XFSZ; ulimit -f 0; {} mail key a.example s k.pem --ed25519); echo status $?; }} 2>&1 | cat >&2",
        env!("CARGO_BIN_EXE_inhost")
    );
    let (_, why) = of(&output(Command::new("sh").args(["-c", &full]).current_dir(&folder.0)));
    assert!(why.contains("cannot write k.pem") && why.contains("status 1"), "{why}");
    assert!(!folder.0.join("k.pem").exists());
    // A message whose file has another name than text.
    std::fs::create_dir_all(folder.0.join("box/new")).unwrap();
    std::fs::write(
        folder.0.join("box/new").join(std::ffi::OsStr::from_bytes(b"1.\xff.host")),
        "Subject: x\n\nx\n",
    )
    .unwrap();
    let (_, why) = said(&folder, &["mail", "read", "box", "--json"]);
    assert!(why.contains("not UTF-8: 1 message"), "{why}");
}

#[test]
fn ports_of_others_and_peers_without_tls_are_told() {
    let folder = Folder::new("ports");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let (_, why) = said(&folder, &["mail", "catch", "--smtp", &at, "--page", "127.0.0.1:0"]);
    assert!(why.contains(&at) && why.contains("see --smtp and --page"), "{why}");
    let (at, serving) = greeter();
    let (_, why) = said(&folder, &["tn3270", "--once", "--tls", "--link", "user", &at]);
    assert!(why.contains("the server speaks without TLS at this port"), "{why}");
    join(serving);
}

#[test]
fn a_full_disk_behind_telnet_is_told() {
    let folder = Folder::new("telnet-full");
    let (at, serving) = greeter();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut telnet = inhost(&folder.0);
    telnet.args(["telnet", "--link", "user", &at]).stdout(full).stderr(Stdio::piped());
    let (status, why) = of(&telnet.spawn().unwrap().wait_with_output().unwrap());
    assert!(status == Some(1) && why.contains("No space left"), "{status:?}: {why}");
    join(serving);
}

#[test]
fn a_tftp_client_that_is_ended_leaves_no_empty_file() {
    let folder = Folder::new("tftp-ended");
    // A server that never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let from = format!("127.0.0.1:{}/file", silent.local_addr().unwrap().port());
    let files = || std::fs::read_dir(&folder.0).unwrap().count();
    for signal in [Signal::TERM, Signal::INT] {
        let mut tftp = with_own_signals();
        tftp.arg(env!("CARGO_BIN_EXE_inhost")).args(["tftp", "get", "--link", "user", &from, "file"]);
        let mut tftp = Running::start(tftp.current_dir(&folder.0).env("XDG_RUNTIME_DIR", &folder.0));
        until("its unfinished file", || (files() == 1).then_some(()));
        pause(Duration::from_millis(200));
        tftp.signal(signal);
        assert!(!tftp.wait().success());
        assert_eq!(files(), 0, "{}", tftp.printed());
    }
}

#[test]
fn a_host_without_an_address_is_told_how_to_get_one() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("no-address");
    let mut serve = Running::start_showing_errors(inhost(&folder.0).args(["serve", "--link", "tap:innone0"]));
    let banner = serve.wait_for("to end.");
    assert!(banner.contains("give the link one: tap:innone0,address=10.9.0.2/24"), "{banner}");
}
