//! `inhost debug`: a script, the prompt on a terminal, objects against their schema, a running host's connection.

use crate::common::{Folder, Serve, connect, expect, inhost, output_given, peers};
use inhost_interop::{output, run, until};
use serde_json::Value;
use std::io::Write;
use std::process::Command;

const SCRIPT: &str = "connect\nstep 3\nread all\nsend 7240\ndrop 2\nnext retransmission\nrun\n";

#[test]
fn a_script_prints_the_same_each_time_and_stops_where_it_is_wrong() {
    let folder = Folder::new("debug-script");
    let file = folder.0.join("loss.debug");
    std::fs::write(&file, SCRIPT).unwrap();
    let played = run(inhost(&folder.0).arg("debug").arg(&file));
    assert!(played.starts_with("> connect\n#1  0.000 ms  client"), "{played}");
    assert!(played.contains("acknowledgments tell of a loss") && !played.contains('\x1b'), "{played}");
    assert_eq!(played, run(inhost(&folder.0).arg("debug").arg(&file)));
    // From a pipe it is the same.
    let piped = output_given(inhost(&folder.0).arg("debug"), SCRIPT);
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), played);

    let done = output_given(inhost(&folder.0).args(["debug", "-"]), "connect\nsave again.debug\nfly\nstep\n");
    let (said, error) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(!done.status.success() && error.contains("standard input, line 3"), "{error}");
    assert!(said.contains("\"fly\" is not a command; help lists them") && !said.contains("> step"), "{said}");
    let missing = output(inhost(&folder.0).args(["debug", "nothing.debug"]));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nothing.debug: No such file"), "{missing:?}");
}

#[test]
fn a_session_is_saved_and_no_file_is_lost() {
    let folder = Folder::new("debug-save");
    let file = folder.0.join("saved.debug");
    let lines = format!("{SCRIPT}undo 2\nsave {}\n", file.display());
    assert!(output_given(inhost(&folder.0).arg("debug"), &*lines).status.success());
    let saved = std::fs::read_to_string(&file).unwrap();
    assert!(saved.starts_with("connect\nstep 3\n") && !saved.contains("undo"), "{saved}");
    assert!(output(inhost(&folder.0).arg("debug").arg(&file)).status.success());
    let again = output_given(inhost(&folder.0).arg("debug"), &*lines);
    assert!(String::from_utf8_lossy(&again.stderr).contains("there already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), saved);
}

#[test]
fn objects_are_as_their_schema_says() {
    if !peers(&["python3"]) {
        return;
    }
    let folder = Folder::new("debug-schema");
    let (schema, objects) = (folder.0.join("schema.json"), folder.0.join("objects.json"));
    std::fs::write(&schema, run(inhost(&folder.0).args(["debug", "--schema"]))).unwrap();
    let lines = format!("{SCRIPT}show\nqueues\nset\nclose\nserver reset\nrun\nfly\n");
    let done = output_given(inhost(&folder.0).args(["debug", "--json"]), lines);
    let kinds: std::collections::BTreeSet<String> = String::from_utf8(done.stdout.clone())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["answer", "error", "step"]);
    std::fs::write(&objects, done.stdout).unwrap();
    let check = "import json,sys,jsonschema\n\
                 schema = json.load(open(sys.argv[2]))\n\
                 for line in open(sys.argv[1]): jsonschema.validate(json.loads(line), schema)\n\
                 try: jsonschema.validate({'kind': 'step', 'step': 'one'}, schema)\n\
                 except jsonschema.ValidationError: sys.exit(0)\n\
                 sys.exit('anything is taken')";
    run(Command::new("/usr/bin/python3").args(["-c", check]).args([objects, schema]));
}

#[test]
fn the_prompt_completes_repeats_and_goes_on_after_a_mistake() {
    if !peers(&["expect"]) {
        return;
    }
    let folder = Folder::new("debug-prompt");
    let talk = format!(
        "set env(XDG_STATE_HOME) {}\nset stty_init \"rows 40 columns 120\"\n\
         spawn {} debug\nwant {{debug> }} 2\n\
         send \"conn\\t\\r\"\nwant {{state CLOSED → SYN-SENT}} 3\nwant {{debug> }} 3\n\
         send \"step\\r\"\nwant {{LISTEN → SYN-RECEIVED}} 4\nwant {{debug> }} 4\n\
         send \"\\r\"\nwant {{SYN-SENT → ESTABLISHED}} 5\nwant {{debug> }} 5\n\
         send \"fly\\r\"\nwant {{help lists them}} 6\nwant {{debug> }} 6\n\
         send \"undo\\r\"\nwant {{back at step 2}} 7\nwant {{debug> }} 7\n\
         send \"server set con\\tnewr\\t\\r\"\nwant {{congestion is newreno of server}} 8\nwant {{debug> }} 8\n\
         send \"help drop\\r\"\nwant {{drop 3 .*queues}} 9\nwant {{debug> }} 9\n\
         send \"\\003\"\nwant {{debug> }} 10\nsend \"quit\\r\"\nended 11\n",
        folder.0.display(),
        env!("CARGO_BIN_EXE_inhost")
    );
    let said = expect(&talk, &folder.0);
    assert!(said.contains("\x1b[36m#1"), "steps are coloured: {said:?}");
    let history = std::fs::read_to_string(folder.0.join("inhost/debug_history")).unwrap();
    assert!(history.contains("server set congestion newreno"), "{history}");
}

#[test]
fn a_running_hosts_connection_is_shown_whole() {
    let serve = Serve::start("debug-live", &["--link", "user,forward=127.0.0.1:0->7"]);
    let line = serve.banner.lines().find(|line| line.trim().ends_with(" -> 7")).unwrap();
    let echo = line.trim().strip_prefix("forward   tcp ").unwrap().split_whitespace().next().unwrap();
    let none = output(serve.inhost().args(["debug", "--live"]));
    assert!(String::from_utf8_lossy(&none.stderr).contains("inhost netstat lists"), "{none:?}");

    let mut caller = connect(echo);
    caller.write_all(&[7; 3000]).unwrap();
    // The echo may not have been read by the system yet.
    let state = until("the host has sent it back", || {
        let done = output(serve.inhost().args(["debug", "--live", "--json"]));
        let state: Value = serde_json::from_slice(&done.stdout).ok()?;
        (state["connection"]["send"]["unacknowledged"] == 3001).then_some(state)
    });
    let connection = &state["connection"];
    assert_eq!((&connection["state"], &connection["receive"]["next"]), (&"ESTABLISHED".into(), &3001.into()));
    assert_eq!(connection["send"]["acknowledged_bytes"], 3000);
    assert!(connection["policy"].is_object() && connection["timers"].is_array(), "{connection}");
    assert!(state["host"]["memory_limit_bytes"].as_u64() > Some(0), "{state}");
    assert!(state["host"]["tasks"]["sockets"].as_array().is_some_and(|all| !all.is_empty()), "{state}");
    let text = run(serve.inhost().args(["debug", "--live", ":7"]));
    for part in ["ESTABLISHED", "SND.UNA 3001", "RCV.NXT 3001", "cwnd", "host\n", "wait to read"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let _other = connect(echo);
    let several = until("there are two", || {
        let done = output(serve.inhost().args(["debug", "--live"]));
        (!done.status.success()).then(|| String::from_utf8_lossy(&done.stderr).into_owned())
    });
    assert!(several.contains("2 connections are open") && several.contains("say which"), "{several}");
    assert!(serve.end().success());
}
