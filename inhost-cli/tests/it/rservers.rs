//! The servers of rlogin and rsh against Debian's rlogin, rsh and rcp, which come from reserved ports: it needs root.

use crate::common::{Folder, PASSWORD, Serve, expect, peers};
use inhost_interop::{output, own_network, run, until};
use std::fs;
use std::process::{Command, Stdio};

/// A host with both servers, which let in root of the kernel's side as `ada`; `None` where there is no namespace or peer.
fn serve(name: &str, device: &str, net: u8) -> Option<(Serve, Folder)> {
    if !peers(&["rlogin", "rsh", "rcp", "expect"]) || !own_network() {
        return None;
    }
    let folder = Folder::new(&format!("{name}-config"));
    let path = folder.0.join("host.toml");
    let rules = format!("from = [\"10.{net}.0.1\"]\nusers = [\"root\"]\nas = [\"ada\"]\n");
    let config = format!(
        "link = [\"tap:{device},address=10.{net}.0.2/24,host=10.{net}.0.1/24\"]\n\
         [rlogin]\nenabled = true\n[[rlogin.allow]]\n{rules}[rsh]\nenabled = true\n[[rsh.allow]]\n{rules}"
    );
    fs::write(&path, config).unwrap();
    let serve = Serve::start(name, &["--config", path.to_str().unwrap()]);
    // Its address is its own once nobody else has claimed it.
    let address = format!("10.{net}.0.2");
    until("an answer of the host", || {
        let asked = output(Command::new("ping").args(["-q", "-c", "1", "-W", "1", &address]));
        asked.status.success().then_some(())
    });
    Some((serve, folder))
}

#[test]
fn rsh_runs_commands_with_input_output_errors_and_signals() {
    let Some((_serve, folder)) = serve("rshd", "inrsh0", 71) else { return };
    let rsh = |line: &str| {
        let mut command = Command::new("rsh");
        command.args(["-l", "ada", "10.71.0.2", line]).stdin(Stdio::null());
        command
    };
    let done = output(&mut rsh("echo out; echo to $USER >&2; pwd"));
    assert!(done.status.success(), "{done:?}");
    let (said, error) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(said.starts_with("out\n/") && error.contains("to ada"), "{said}{error}");

    // Both ways, more than any buffer holds.
    let own = folder.0.join("own");
    let data: Vec<u8> = (0..3_000_000u32).map(|at| (at * 31 % 253) as u8).collect();
    fs::write(&own, &data).unwrap();
    let sent = output(rsh("cat").stdin(fs::File::open(&own).unwrap()));
    assert!(sent.stdout == data, "{} of {} bytes came back", sent.stdout.len(), data.len());

    // A command that does not read all that it is given says all that it has to say.
    let head = output(rsh("head -c 5; echo; seq 20000").stdin(fs::File::open(&own).unwrap()));
    assert!(String::from_utf8_lossy(&head.stdout).ends_with("\n19999\n20000\n"), "{}", head.stdout.len());

    // A signal goes to the command and all that it has started.
    let marked = folder.0.join("signalled");
    let line =
        format!("trap 'touch {}; exit' INT; echo ready; while :; do sleep 0.1; done", marked.display());
    let talk = format!(
        "spawn rsh -l ada 10.71.0.2 \"{}\"\nwant ready 2\nsend \"\\003\"\nended 3\n",
        line.replace('"', "\\\"")
    );
    expect(&talk, &folder.0);
    assert!(marked.exists(), "the command had no signal");

    let other = output(Command::new("rsh").args(["-l", "eve", "10.71.0.2", "id"]).stdin(Stdio::null()));
    assert!(!String::from_utf8_lossy(&other.stdout).contains("uid="), "{other:?}");
    assert!(String::from_utf8_lossy(&other.stderr).contains("Permission denied"), "{other:?}");
}

#[test]
fn rcp_copies_both_ways() {
    let Some((_serve, folder)) = serve("rcpd", "inrcp0", 72) else { return };
    let (own, there, back) = (folder.0.join("own"), folder.0.join("there"), folder.0.join("back"));
    fs::create_dir_all(own.join("deep")).unwrap();
    fs::create_dir(&there).unwrap();
    fs::write(own.join("deep/large"), vec![7; 500_000]).unwrap();
    fs::write(own.join("empty"), "").unwrap();
    let remote = |path: &std::path::Path| format!("ada@10.72.0.2:{}", path.display());
    run(Command::new("rcp").arg("-r").arg(&own).arg(remote(&there)));
    assert_eq!(fs::read(there.join("own/deep/large")).unwrap(), vec![7; 500_000]);
    run(Command::new("rcp").arg("-r").arg(remote(&there.join("own"))).arg(&back));
    assert_eq!(fs::read(back.join("deep/large")).unwrap(), vec![7; 500_000]);
    assert!(fs::read(back.join("empty")).unwrap().is_empty());
}

#[test]
fn rlogin_logs_in_with_the_table_or_a_password() {
    let Some((serve, _folder)) = serve("rlogind", "inrlo0", 73) else { return };
    let by_table = "spawn rlogin -l ada 10.73.0.2\nwant {[$#] $} 2\nsend \"stty cols 91 rows 33 < /dev/null; echo me-\\$USER-\\$TERM\\r\"\n\
                    want {me-ada-} 3\nsend \"exit\\r\"\nended 4\n";
    expect(by_table, &serve.folder.0);
    // The window's size comes with the session, and again when it changes.
    let window = "spawn rlogin -l ada 10.73.0.2\nwant {[$#] $} 2\nstty rows 31 columns 97 < $spawn_out(slave,name)\n\
                  send \"while test \\\"\\$(stty size)\\\" != '31 97'; do sleep 0.1; done; echo size-\\$((2*3))\\r\"\n\
                  want {size-6} 3\nsend \"exit\\r\"\nended 4\n";
    expect(window, &serve.folder.0);
    // Our own client comes from the host itself, which is not in the table.
    let by_password = format!(
        "spawn {} rlogin -l ada 127.0.0.1\nwant {{Password: $}} 2\nsend \"{PASSWORD}\\r\"\nwant {{[$#] $}} 3\nsend \"echo in-\\$((6*7))\\r\"\n\
         want {{in-42}} 4\nsend \"exit\\r\"\nended 5\n",
        env!("CARGO_BIN_EXE_inhost")
    );
    expect(&by_password, &serve.folder.0);
    let wrong = format!(
        "spawn {} rlogin -l ada 127.0.0.1\nwant {{Password: $}} 2\nsend \"wrong\\r\"\nwant {{Login incorrect}} 3\nended 4\n",
        env!("CARGO_BIN_EXE_inhost")
    );
    expect(&wrong, &serve.folder.0);
    let sessions = run(serve.inhost().args(["netstat", "sessions"]));
    assert!(!sessions.contains("rlogin"), "{sessions}");
}
