//! The page on the four papers: each test that it names is there, and each command runs.

use crate::common::{Folder, PASSWORD, Serve, connect, inhost, output_given};
use inhost_interop::{Running, run, until};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A row of a table.
struct Row {
    facility: String,
    here: String,
    typed: String,
    test: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The rows of the tables of facilities.
fn rows() -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/papers.md")).unwrap();
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<Row> = page
        .lines()
        .filter(|line| {
            line.starts_with("| ") && !line.starts_with("| facility ") && !line.starts_with("| wish ")
        })
        .map(cells)
        .filter(|cells| cells.len() == 5)
        .map(|cells| {
            let [facility, _, here, typed, test] = <[String; 5]>::try_from(cells).unwrap();
            Row { facility, here, typed, test }
        })
        .collect();
    assert!(rows.len() > 150, "{} rows were read", rows.len());
    rows
}

/// What stands between backticks.
fn spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn each_test_that_the_page_names_is_there() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for row in &rows() {
        let mut file = None;
        let mut named = 0;
        for span in spans(&row.test) {
            if span.contains('/') {
                let text = fs::read_to_string(root().join(&span));
                file = Some((text.unwrap_or_else(|e| panic!("{}: {span}: {e}", row.facility)), span));
            } else {
                let (text, path) = file.as_ref().unwrap_or_else(|| panic!("{}: no file", row.facility));
                assert!(text.contains(&format!("fn {span}(")), "{}: {path} has no {span}", row.facility);
                named += 1;
            }
        }
        assert!(named > 0, "{} names no test", row.facility);
        for target in spans(&row.here).iter().filter_map(|span| span.strip_prefix("make ")) {
            assert!(makefile.contains(&format!("\n{target}:")), "{}: make has no {target}", row.facility);
        }
    }
}

const CONFIG: &str = r#"
link = ["user,forward=127.0.0.1:0->7,forward=127.0.0.1:0->23"]
[telnet.applications.again]
host = "127.0.0.1"
port = 1023
[tn3270]
enabled = true
[finger]
enabled = true
[names]
enabled = true
[history]
enabled = true
[ftp]
enabled = true
anonymous = "FOLDER/files"
third_party = true
[[ftp.user]]
name = "ada"
root = "FOLDER/files"
rights = "write"
[tftp]
enabled = true
root = "FOLDER/files"
rights = "write"
[nfs]
enabled = true
state = "FOLDER/state"
[[nfs.export]]
path = "/files"
root = "FOLDER/files"
clients = ["*"]
rights = "write"
user = UID
group = UID
[rlogin]
enabled = true
[[rlogin.allow]]
from = ["127.0.0.1"]
as = ["ada"]
[rsh]
enabled = true
[[rsh.allow]]
from = ["127.0.0.1"]
as = ["ada"]
[jobs]
enabled = true
port = 0
folder = "FOLDER/jobs"
[mail]
enabled = true
domains = ["example.net"]
mailboxes = ["ada"]
folder = "FOLDER/boxes"
queue = "FOLDER/queue"
"#;

/// The page's host and its files in a folder.
fn prepare() -> (Serve, Folder) {
    let folder = Folder::new("papers");
    fs::create_dir(folder.0.join("files")).unwrap();
    let uid = rustix::process::getuid().as_raw().to_string();
    let config = CONFIG.replace("FOLDER", folder.0.to_str().unwrap()).replace("UID", &uid);
    fs::write(folder.0.join("host.toml"), config).unwrap();
    let serve = Serve::start("papers-host", &["--config", folder.0.join("host.toml").to_str().unwrap()]);
    let operator = output_given(serve.inhost().args(["user", "operator", "ada"]), "");
    assert!(operator.status.success(), "{operator:?}");
    fs::write(folder.0.join("notes.txt"), "a few words\n").unwrap();
    fs::write(folder.0.join("job.sh"), "echo $INHOST_JOB_ID\n").unwrap();
    fs::write(folder.0.join("handshake.debug"), "connect\nstep 3\nread all\nsend 7240\ndrop 2\nrun\n")
        .unwrap();
    let forwarded = |port: &str| {
        let line = serve.banner.lines().find(|line| line.trim().ends_with(&format!(" -> {port}"))).unwrap();
        line.trim().strip_prefix("forward   tcp ").unwrap().split_whitespace().next().unwrap().to_owned()
    };
    let mut echo = connect(&forwarded("7"));
    echo.write_all(b"hello").unwrap();
    echo.read_exact(&mut [0; 5]).unwrap();
    let mut telnet = connect(&forwarded("23"));
    telnet.read_exact(&mut [0; 3]).unwrap();
    run(serve.inhost().args(["record", "write"]).arg(folder.0.join("trace.pcapng")));
    (serve, folder)
}

#[test]
fn every_command_of_the_page_runs() {
    let (serve, folder) = prepare();
    let mailbox = folder.0.join("boxes/ada");
    let inett = Running::start(inhost(&folder.0).args(["inett", "--server"]));
    until("inett serves", || inett.printed().contains("serving").then_some(()));
    let mut ran = 0;
    for row in &rows() {
        let Some(words) = row.here.strip_prefix("`inhost").and_then(|rest| rest.strip_suffix('`')) else {
            continue;
        };
        let typed: String = spans(&row.typed)
            .iter()
            .map(|line| line.replace("PASSWORD", PASSWORD).replace("^]", "\x1d") + "\n")
            .collect();
        let mut command = inhost(&serve.folder.0);
        command.args(words.split_whitespace()).current_dir(&folder.0);
        command.env("INHOST_FTP_PASSWORD", PASSWORD).env("MAILDIR", &mailbox);
        let done = output_given(&mut command, typed);
        assert!(
            done.status.success(),
            "{}: inhost{words}: {:?}\n{}{}",
            row.facility,
            done.status,
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
        ran += 1;
        if words.starts_with(" mail send") {
            until("the mail is in its box", || mailbox.join("cur").exists().then_some(()));
        }
    }
    assert!(ran > 90, "{ran} commands ran");
}
