//! Records of closed connections: kept by a host, asked by `inhost history`, and there after a kill.

use crate::common::{Folder, Serve, connect, inhost};
use inhost_interop::{run, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;

const CONFIG: &str =
    "link = [\"user,forward=127.0.0.1:0->7,forward=127.0.0.1:0->9\"]\n[history]\nenabled = true\n";

fn serve(config: &Path) -> (Serve, String) {
    let serve = Serve::start("history", &["--config", config.to_str().unwrap()]);
    let line = serve.banner.lines().find(|line| line.trim().ends_with(" -> 7")).unwrap();
    let echo =
        line.trim().strip_prefix("forward   tcp ").unwrap().split_whitespace().next().unwrap().to_owned();
    (serve, echo)
}

/// A caller who has so many bytes echoed, and goes.
fn call(echo: &str, bytes: usize) {
    let mut caller = connect(echo);
    caller.write_all(&vec![7; bytes]).unwrap();
    caller.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = Vec::new();
    caller.read_to_end(&mut back).unwrap();
    assert_eq!(back.len(), bytes);
}

fn history(folder: &Path, arguments: &[&str]) -> Value {
    let text = run(inhost(folder).arg("history").arg("--folder").arg(folder).args(arguments).arg("--json"));
    serde_json::from_str(&text).unwrap()
}

fn sent(answer: &Value) -> Vec<u64> {
    answer["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["sent_bytes"].as_u64().unwrap())
        .collect()
}

#[test]
fn what_ended_a_second_ago_survives_a_kill() {
    let folder = Folder::new("records");
    let (config, records) = (folder.0.join("host.toml"), folder.0.join("records"));
    std::fs::write(&config, format!("{CONFIG}folder = {records:?}\nlines = \"1M\"\n")).unwrap();
    let (mut host, echo) = serve(&config);
    (1..=10).for_each(|number| call(&echo, 1000 * number));
    // A second is what may be lost; there is no need to wait for it where the disk was faster.
    until("ten connections are recorded", || (sent(&history(&records, &[])).len() == 10).then_some(()));
    host.process.signal(Signal::KILL);
    host.process.wait_within(std::time::Duration::from_secs(10));
    assert_eq!(sent(&history(&records, &["-n", "3"])), [10_000, 9_000, 8_000]);
    drop(host);

    // The next host goes on with them, and what ends with it is there, too.
    let (host, echo) = serve(&config);
    call(&echo, 77);
    let mut open = connect(&echo);
    open.write_all(b"x").unwrap();
    open.read_exact(&mut [0]).unwrap();
    assert!(host.end().success());
    drop(open);
    let answer = history(&records, &["--since", "1h", "--by", "largest"]);
    assert_eq!((sent(&answer).len(), sent(&answer)[0]), (12, 10_000));
    let sums = &answer["sums"];
    assert_eq!((sums["connections"].as_u64(), sums["sent_bytes"].as_u64()), (Some(12), Some(55_078)));
    let failed = history(&records, &["--failed"]);
    assert_eq!(failed["records"].as_array().unwrap().len() as u64, sums["failed"].as_u64().unwrap());
    for record in answer["records"].as_array().unwrap() {
        let total = |side: &str| {
            record[side].as_object().unwrap().values().map(|ns| ns.as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!(record["age_ns"].as_u64(), Some(total("send_ns")), "{record}");
        assert_eq!(total("send_ns"), total("receive_ns"), "{record}");
    }

    let text =
        run(inhost(&folder.0).args(["history", "--folder"]).arg(&records).args(["--peer", "10.0.2.0/24"]));
    assert!(text.starts_with("12 connections, ") && text.contains("10.0.2.2:"), "{text}");
    let picture = run(inhost(&folder.0).args(["history", "--svg", "-", "--folder"]).arg(&records));
    assert!(picture.starts_with("<svg") && picture.contains("connections that ended"), "{picture}");
    let lines = std::fs::read_to_string(records.join("connections.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 12);
    let none =
        run(inhost(&folder.0).args(["history", "--cause", "receivers-window", "--folder"]).arg(&records));
    assert_eq!(none, "no connection that ended is like that\n");
}

#[test]
fn who_keeps_no_records_is_told_how() {
    let folder = Folder::new("no-records");
    let done = inhost(&folder.0).arg("history").output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && told.contains("[history] of host.toml"), "{told}");
}
