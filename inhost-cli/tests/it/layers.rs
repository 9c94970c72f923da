//! `inhost layers` asks a host that runs.

use crate::common::{Folder, Serve, connect, inhost};
use inhost_interop::{Running, run, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};

const BYTES: usize = 200_000;

fn ask(serve: &Serve, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(serve.inhost().args(["layers", "--json"]).args(arguments))).unwrap()
}

fn ns(report: &Value, layer: &str) -> u64 {
    let layers = report["layers"].as_array().unwrap();
    layers.iter().find(|time| time["layer"] == layer).unwrap()["ns"].as_u64().unwrap()
}

#[test]
fn a_running_host_says_for_which_layer_it_works() {
    let serve = Serve::start("layers", &["--link", "user,forward=127.0.0.1:0->7"]);
    let line = serve.banner.lines().find(|line| line.trim().ends_with(" -> 7")).unwrap();
    let echo = line.trim().strip_prefix("forward   tcp ").unwrap().split_whitespace().next().unwrap();

    let off = ask(&serve, &[]);
    assert_eq!((off["mode"].as_str(), off["rounds"].as_u64()), (Some("off"), Some(0)));

    assert_eq!(ask(&serve, &["--mode", "full"])["rounds"], 0);
    let mut caller = connect(echo);
    let text = vec![7; BYTES];
    let writer = std::thread::spawn({
        let mut caller = caller.try_clone().unwrap();
        move || caller.write_all(&text).unwrap()
    });
    caller.read_exact(&mut vec![0; BYTES]).unwrap();
    writer.join().unwrap();
    let report = ask(&serve, &["--mode", "off"]);
    let all: u64 = report["layers"].as_array().unwrap().iter().map(|time| time["ns"].as_u64().unwrap()).sum();
    assert_eq!(report["total_ns"], all);
    for layer in ["link", "TCP", "copy in", "copy out", "timers", "application", "idle"] {
        assert!(ns(&report, layer) > 0, "{layer}: {report}");
    }

    // The pictures are of what was measured, which stays.
    for (option, has) in
        [("--svg", "ns a segment"), ("--flame", "application"), ("--time-line", "microseconds")]
    {
        let picture = serve.folder.0.join("picture.svg");
        run(serve.inhost().args(["layers", option]).arg(&picture));
        let picture = std::fs::read_to_string(picture).unwrap();
        assert!(picture.starts_with("<svg") && picture.contains(has), "{option}: {picture}");
    }
    let folded = run(serve.inhost().args(["layers", "--folded", "-"]));
    assert!(folded.contains("inhost;run;application;TCP;copy in "), "{folded}");
    let table = run(serve.inhost().arg("layers"));
    assert!(table.contains("ns a segment") && table.contains("idle"), "{table}");

    // For a while, and then off again, without what was before.
    let sampled = ask(&serve, &["--for", "0.05", "--one-in", "1"]);
    assert!(sampled["rounds"].as_u64().unwrap() < report["rounds"].as_u64().unwrap(), "{sampled}");
    assert_eq!(ask(&serve, &["--reset"])["mode"], "off");
    assert_eq!(ask(&serve, &[])["rounds"], 0);

    // The round of the request itself is not one of those that are forgotten or measured in part.
    ask(&serve, &["--mode", "full"]);
    assert_eq!(ask(&serve, &["--mode", "off", "--reset"])["rounds"], 0);
    assert_eq!(ask(&serve, &[])["rounds"], 0);
    let said = run(serve.inhost().args(["layers", "--mode", "sampled"]));
    assert!(said.contains("no round was measured yet"), "{said}");

    // A signal ends the measurement, and leaves the instrument as it was.
    let mut measuring = Running::start(serve.inhost().args(["layers", "--for", "60", "--mode", "full"]));
    until("the measurement", || (ask(&serve, &[])["mode"] == "full").then_some(()));
    measuring.signal(Signal::INT);
    assert!(measuring.wait().success(), "{}", measuring.printed());
    assert!(measuring.printed().contains("every one"), "{}", measuring.printed());
    assert_eq!(ask(&serve, &[])["mode"], "sampled");
}

#[test]
fn the_report_has_a_schema() {
    let folder = Folder::new("layers-schema");
    let schema: Value = serde_json::from_str(&run(inhost(&folder.0).args(["layers", "--schema"]))).unwrap();
    for member in ["mode", "rounds", "total_ns", "layers", "segments", "stacks"] {
        assert!(schema["properties"][member].is_object(), "{member}");
    }
}
