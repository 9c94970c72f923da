//! `inhost explain` and `inhost record`: the running host, its flight recorder's files in tshark, and a language model's
//! program that asks.

use crate::common::{Folder, Serve, connect, expect, inhost, peers};
use inhost_interop::{DEADLINE, output, own_network, pause, run, until};
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt, service::RunningService};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where the kernel reaches the host.
const HOST: &str = "10.9.0.2";

/// A host on a TAP device with these traps, which writes into the folder `caught`.
fn serve(name: &str, device: &str, faults: &str, traps: &[&str]) -> Serve {
    let folder = Folder::new("explain-config");
    let file = folder.0.join("host.toml");
    std::fs::write(&file, format!("[record]\nfolder = \"caught\"\ntraps = {traps:?}\n")).unwrap();
    let link = format!("tap:{device},address={HOST}/24,host=10.9.0.1/24{faults}");
    Serve::start(name, &["--config", file.to_str().unwrap(), "--link", &link])
}
/// The first file that a trap has written.
fn caught(serve: &Serve) -> PathBuf {
    until("a file of the recorder", || {
        let files = std::fs::read_dir(serve.folder.0.join("caught")).ok()?;
        let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
        paths.find(|path| path.extension().is_some_and(|extension| extension == "pcapng"))
    })
}
/// What tshark prints of the frames that `filter` chooses, comments with them.
fn tshark(file: &Path, filter: &str) -> String {
    let fields = ["-T", "fields", "-e", "frame.number", "-e", "tcp.flags.str", "-e", "frame.comment"];
    run(Command::new("tshark").arg("-r").arg(file).args(["-Y", filter]).args(fields))
}

#[test]
fn what_led_to_a_filled_window_is_written() {
    if !own_network() || !peers(&["tshark"]) {
        return;
    }
    let serve = serve("filled", "inexp0", "", &["zero-window port 19"]);
    // It never reads.
    let caller = connect(&format!("{HOST}:19"));
    let file = caught(&serve);
    assert!(!tshark(&file, "tcp.flags.syn == 1 && tcp.dstport == 19").is_empty(), "the handshake");
    let zero = "tcp.window_size_value == 0 && tcp.srcport != 19 && tcp.flags.syn == 0";
    assert!(!tshark(&file, zero).is_empty(), "the zero window");
    let comments = tshark(&file, "frame.comment");
    assert!(comments.contains("state SYN-RECEIVED to ESTABLISHED"), "{comments}");
    assert!(comments.contains("trap: zero-window port 19, between 10.9.0.1"), "{comments}");

    // The same from the running host, which knows who does not read.
    let text = until("a verdict", || {
        let text = run(serve.inhost().args(["explain", "--live", ":19"]));
        text.contains("does not read: unread data").then_some(text)
    });
    assert!(text.contains("captured at the server"), "{text}");
    let report = run(serve.inhost().args(["explain", "--live", ":19", "--json"]));
    let report: Value = serde_json::from_str(&report).unwrap();
    let verdict = &report["conversations"][0];
    assert_eq!((&verdict["cause"], &verdict["vantage"]), (&json!("zero_window"), &json!("server")));
    drop(caller);
    assert!(serve.end().success());
}

#[test]
fn what_led_to_the_silence_of_a_peer_is_written() {
    if !own_network() || !peers(&["tshark"]) {
        return;
    }
    let serve = serve("silent", "inexp1", "", &["retransmission port 7"]);
    let mut caller = connect(&format!("{HOST}:7"));
    caller.write_all(b"hello").unwrap();
    caller.read_exact(&mut [0; 5]).unwrap();
    // From now on nothing of the peer's comes any more, while the host has something to say.
    caller.write_all(b"last words").unwrap();
    run(Command::new("ip").args(["route", "replace", "blackhole", HOST]));
    run(Command::new("ip").args(["link", "set", "inexp1", "arp", "off"]));
    let file = caught(&serve);
    let comments = tshark(&file, "frame.comment");
    assert!(comments.contains("trap: retransmission port 7"), "{comments}");
    assert!(!tshark(&file, "tcp.analysis.retransmission").is_empty(), "the retransmission");
    assert!(!tshark(&file, "tcp.flags.syn == 1").is_empty(), "the handshake");
    serve.end();
}

#[test]
fn a_corrupted_packet_is_logged_and_written() {
    if !own_network() || !peers(&["tshark"]) {
        return;
    }
    let serve = serve("corrupted", "inexp2", ",corrupt=3%,seed=5,offload=off", &["bad-checksum"]);
    let mut caller = connect(&format!("{HOST}:7"));
    let words = [7; 1000];
    let file = until("a file of the recorder", || {
        let _ = caller.write_all(&words);
        let mut place = [0; 1000];
        caller.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        while matches!(caller.read(&mut place), Ok(1..)) {}
        serve.folder.0.join("caught").is_dir().then(|| caught(&serve))
    });
    let comments = tshark(&file, "frame.comment");
    assert!(comments.contains("bad checksum"), "{comments}");
    assert!(!tshark(&file, "tcp.srcport == 7").is_empty(), "what went before");
    assert!(serve.end().success());
}

#[test]
fn the_recorder_is_asked_and_watched() {
    let serve = Serve::start("asked", &["--link", "user,forward=127.0.0.1:0->7"]);
    let at = serve.banner.lines().find_map(|line| line.trim().strip_prefix("forward   tcp ")).unwrap();
    let mut caller = connect(at.split_whitespace().next().unwrap());
    caller.write_all(b"hello").unwrap();
    caller.read_exact(&mut [0; 5]).unwrap();

    let file = serve.folder.0.join("now.pcapng");
    let said = run(serve.inhost().args(["record", "write"]).arg(&file).args(["--port", "7"]));
    assert!(said.contains(" frames written to"), "{said}");
    let report: Value =
        serde_json::from_str(&run(serve.inhost().arg("explain").arg(&file).arg("--json"))).unwrap();
    assert_eq!(report["conversations"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(report["conversations"][0]["directions"][0]["bytes"], 5, "{report}");

    let trap = |words: &[&str]| run(serve.inhost().arg("record").args(words));
    assert_eq!(trap(&["traps"]), "no trap is armed\n");
    assert_eq!(trap(&["arm", "reset", "port", "7"]), "reset port 7: sprang 0 times\n");
    assert_eq!(trap(&["disarm", "reset", "port", "7"]), "no trap is armed\n");
    let wrong = output(serve.inhost().args(["record", "arm", "sometimes"]));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("is not a condition"), "{wrong:?}");
    assert!(serve.end().success());
}

/// A capture with one connection that waits for its reader, made by the running host.
fn capture(folder: &Folder) -> PathBuf {
    let serve = Serve::start("captured", &["--link", "user,forward=127.0.0.1:0->19"]);
    let at = serve.banner.lines().find_map(|line| line.trim().strip_prefix("forward   tcp ")).unwrap();
    let caller = connect(at.split_whitespace().next().unwrap());
    pause(Duration::from_millis(700));
    let file = folder.0.join("slow.pcapng");
    std::fs::write(&file, "").unwrap();
    run(serve.inhost().args(["record", "write"]).arg(&file));
    // What users typed is in it.
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    drop(caller);
    serve.end();
    file
}

#[test]
fn a_picture_is_drawn_and_the_json_is_as_its_schema_says() {
    let folder = Folder::new("drawn");
    let (file, svg) = (capture(&folder), folder.0.join("slow.svg"));
    run(inhost(&folder.0).arg("explain").arg(&file).arg("--svg").arg(&svg));
    let picture = std::fs::read_to_string(svg).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("What the sender waited for:"), "{picture}");
    if !peers(&["python3"]) {
        return;
    }
    let schema = folder.0.join("schema.json");
    std::fs::write(&schema, run(inhost(&folder.0).args(["explain", "--schema"]))).unwrap();
    let report = folder.0.join("report.json");
    std::fs::write(&report, run(inhost(&folder.0).arg("explain").arg(&file).arg("--json"))).unwrap();
    let check =
        "import json,sys,jsonschema; jsonschema.validate(*[json.load(open(f)) for f in sys.argv[1:]])";
    run(Command::new("/usr/bin/python3").args(["-c", check]).args([report, schema]));
}

#[test]
fn sentences_are_whole_on_a_narrow_terminal() {
    if !peers(&["expect"]) {
        return;
    }
    const COLUMNS: usize = 44;
    let folder = Folder::new("narrow");
    let file = capture(&folder);
    let command = format!("{} explain {}", env!("CARGO_BIN_EXE_inhost"), file.display());
    let talk = format!(
        "set stty_init \"rows 40 columns {COLUMNS}\"\nlog_user 0\nspawn {command}\nlog_user 1\nended 2\n"
    );
    let narrow = expect(&talk, &folder.0);
    let wide = run(inhost(&folder.0).arg("explain").arg(&file));
    let done = output(inhost(&folder.0).args(["explain", "--only", ":4711"]).arg(&file));
    assert_eq!(done.status.code(), Some(1), "a connection that is not there: {done:?}");
    let done = output(inhost(&folder.0).args(["explain", "--filter", "port 4711"]).arg(&file));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && done.stdout.is_empty() && said.contains("--filter chooses no"),
        "{done:?}"
    );
    assert_eq!(output(inhost(&folder.0).args(["explain", "--top", "0"]).arg(&file)).status.code(), Some(2));
    assert!(narrow.lines().all(|line| line.chars().count() <= COLUMNS), "{narrow}");
    assert!(wide.lines().count() < narrow.lines().count(), "{narrow}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&narrow), words(&wide));
    assert!(!wide.contains("..."), "{wide}");
}

#[test]
fn what_is_no_capture_is_said() {
    let folder = Folder::new("no-capture");
    let file = folder.0.join("text");
    std::fs::write(&file, "this is a text and not a capture at all").unwrap();
    let done = output(inhost(&folder.0).arg("explain").arg(&file));
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && text.contains("neither a pcap nor a pcapng file"), "{text}");
    let done = output(inhost(&folder.0).args(["explain", "--live", "--via", "nobody.sock"]));
    assert!(String::from_utf8_lossy(&done.stderr).contains("start one with inhost serve"), "{done:?}");
}

/// Calls a tool, and gives what it says as a value.
async fn call(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: Value,
) -> Result<Value, String> {
    let mut request = CallToolRequestParams::new(tool);
    request.arguments = arguments.as_object().cloned();
    let answer = tokio::time::timeout(DEADLINE, client.call_tool(request)).await;
    let answer = answer.map_err(|_| "no answer".to_owned())?.map_err(|why| why.to_string())?;
    match (answer.is_error, answer.structured_content) {
        (Some(true), _) | (_, None) => Err(format!("{:?}", answer.content)),
        (_, Some(value)) => Ok(value),
    }
}

#[test]
fn a_program_asks_by_the_model_context_protocol_and_every_cited_frame_exists() {
    let folder = Folder::new("mcp");
    let file = capture(&folder);
    let source = file.to_str().unwrap().to_owned();
    let mut command = Command::new(env!("CARGO_BIN_EXE_inhost"));
    command.args(["explain", "--mcp"]).current_dir(&folder.0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let process = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
        let client = ().serve(process).await.unwrap();
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 3, "{tools:?}");
        let listed = call(&client, "list_connections", json!({"source": source})).await.unwrap();
        let row = &listed["listed"][0];
        let ends = json!({"source": source, "client": row["client"], "server": row["server"]});
        let verdict = call(&client, "explain_connection", ends).await.unwrap();
        let of = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let claims = of(&verdict["evidence"]).into_iter().chain(of(&verdict["findings"]));
        let mut cited: Vec<Value> = claims.flat_map(|claim| of(&claim["frames"])).collect();
        assert!(!cited.is_empty(), "{verdict}");
        cited.sort_by_key(Value::as_u64);
        cited.dedup();
        let frames = call(&client, "fetch_frames", json!({"source": source, "frames": cited})).await.unwrap();
        assert_eq!(
            (frames["frames"].as_array().map(Vec::len), &frames["missing"]),
            (Some(cited.len()), &json!([]))
        );
        let ends = [&row["client"], &row["server"]].map(|end| end.as_str().unwrap().to_owned());
        for frame in of(&frames["frames"]) {
            let segment = frame["segment"].as_str().unwrap();
            assert!(ends.iter().all(|end| segment.contains(end)), "{segment}");
        }
        let frames =
            call(&client, "fetch_frames", json!({"source": source, "frames": [999_999]})).await.unwrap();
        assert_eq!(frames["missing"], json!([999_999]));
        let why = call(&client, "list_connections", json!({"source": "nowhere.pcap"})).await.unwrap_err();
        assert!(why.contains("nowhere.pcap"), "{why}");
        let why = call(&client, "list_connections", json!({"source": "live"})).await.unwrap_err();
        assert!(why.contains("inhost serve"), "{why}");
        client.cancel().await.unwrap();
    });
}
