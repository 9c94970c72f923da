//! The 3270: the host's menu at `inhost tn3270`, at s3270, by TLS, on a terminal; files and prints.

use crate::common::{Folder, PASSWORD, Serve, Tmux, output_given, peers};
use inhost_interop::{Running, output, run, until};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A host with the menu, whose user ada is an operator, and the port at which the system reaches it.
fn serve(name: &str, more: &str) -> (Serve, Folder, String) {
    let folder = Folder::new(&format!("{name}-config"));
    let (files, news, path) = (folder.0.join("files"), folder.0.join("news"), folder.0.join("host.toml"));
    fs::create_dir(&files).unwrap();
    fs::write(&news, "It rains.\nMore tomorrow.\n").unwrap();
    let config = format!(
        "link = [\"user,forward=127.0.0.1:0->3270\"]\n[tn3270]\nenabled = true\nnews = {news:?}\nroot = {files:?}\n\
         rights = \"write\"\n{more}"
    );
    fs::write(&path, config).unwrap();
    let serve = Serve::start(name, &["--config", path.to_str().unwrap()]);
    let add =
        output_given(serve.inhost().args(["user", "add", "grace", "--operator"]), format!("{PASSWORD}\n"));
    assert!(add.status.success(), "{add:?}");
    let port = |line: &str| {
        Some(line.trim().strip_prefix("forward   tcp 127.0.0.1:")?.strip_suffix(" -> 3270")?.to_owned())
    };
    let port = serve.banner.lines().find_map(port).unwrap_or_else(|| panic!("{}", serve.banner));
    (serve, folder, port)
}

/// Logs on as `user`.
fn log_on(user: &str) -> String {
    format!(
        "wait text \"Command ===>\"\ntype \"4\"\npress enter\nwait text \"Log On\"\ntype \"{user}\"\npress tab\n\
         type \"{PASSWORD}\"\npress enter\nwait text \"Welcome, {user}\"\n"
    )
}

#[test]
fn a_script_walks_the_menu_moves_files_and_operates() {
    let (serve, folder, _) = serve("tn3270", "");
    let own = folder.0.join("own");
    fs::write(&own, "first line\nsecond line\n".repeat(500)).unwrap();
    // Somebody's own file, which is not in the way.
    fs::write(folder.0.join("back.part"), "mine").unwrap();
    let script = folder.0.join("tour.3270");
    let text = log_on("grace")
        + &format!(
            "type \"1\"\npress enter\nwait text \"It rains.\"\ndump\npress pf3\n\
                    send {} report text\nreceive report {} text\n",
            own.display(),
            folder.0.join("back").display()
        )
        + "wait text \"Command ===>\"\ntype \"5\"\npress enter\nwait text \"report\"\npress pf3\nwait text \"MENU\"\n\
           type \"oper sysstat\"\npress enter\nwait text \"Operator\"\nwait text \"tn3270\"\ndump json\n";
    fs::write(&script, text).unwrap();
    let shown = run(serve.inhost().args(["tn3270", "127.0.0.1:3270", "--script"]).arg(&script));
    assert!(shown.contains(" NEWS ") && shown.contains("More tomorrow."), "{shown}");
    let screen: Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    assert_eq!((&screen["rows"], &screen["keyboard"]), (&24.into(), &"unlocked".into()));
    assert!(!shown.contains(PASSWORD));
    assert_eq!(fs::read(&own).unwrap(), fs::read(folder.0.join("back")).unwrap());
    assert_eq!(fs::read(folder.0.join("back.part")).unwrap(), b"mine");

    let once: Value = serde_json::from_str(&run(serve.inhost().args([
        "tn3270",
        "--once",
        "--json",
        "--model",
        "4",
        "127.0.0.1:3270",
    ])))
    .unwrap();
    assert!(once["text"][0].as_str().unwrap().starts_with(" MENU"), "{once}");
    assert!(once["fields"].as_array().unwrap().iter().any(|field| field["protected"] == false));

    let wrong = folder.0.join("wrong.3270");
    fs::write(&wrong, "within 1\nwait text \"no such text\"\n").unwrap();
    let done = output(serve.inhost().args(["tn3270", "127.0.0.1:3270", "--script"]).arg(&wrong));
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && error.contains("wrong.3270: line 2: "), "{error}");
    // Text that would be other text at the host, and a file that cannot be written.
    fs::write(&own, "price 5 €\n").unwrap();
    let there = folder.0.join("nowhere/back");
    for (line, why) in [
        (
            format!("send {} euro text", own.display()),
            "the code page does not have 1 of the file's characters",
        ),
        (format!("receive report {} text", there.display()), "No such file or directory"),
    ] {
        let before = log_on("grace");
        fs::write(&wrong, format!("{before}{line}\n")).unwrap();
        let done = output(serve.inhost().args(["tn3270", "127.0.0.1:3270", "--script"]).arg(&wrong));
        let error = String::from_utf8_lossy(&done.stderr);
        let place = format!("wrong.3270: line {}: ", before.lines().count() + 1);
        assert!(!done.status.success() && error.contains(&place) && error.contains(why), "{error}");
    }
    let nobody = output(serve.inhost().args(["tn3270", "--once", "--timeout", "2", "127.0.0.1:7"]));
    let error = String::from_utf8_lossy(&nobody.stderr);
    assert!(!nobody.status.success() && error.contains("no screen came in time"), "{error}");
}

/// The script that docs/tn3270.md shows, as it stands there.
#[test]
fn the_tour_of_the_page_is_walked() {
    let (serve, folder, _) = serve("tn3270-tour", "");
    let page = include_str!("../../../docs/tn3270.md");
    let tour = page.split("`tour.3270`:\n\n```\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(tour.contains(PASSWORD), "the page has another password");
    fs::write(folder.0.join("tour.3270"), tour).unwrap();
    fs::write(folder.0.join("notes.txt"), "first line\nsecond line\n").unwrap();
    let tour = |options: &[&str]| {
        let mut command = serve.inhost();
        command.current_dir(&folder.0).args(["tn3270", "--script", "tour.3270", "127.0.0.1:3270"]);
        output(command.args(options))
    };
    let shown = tour(&[]);
    assert!(shown.status.success(), "{shown:?}");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.starts_with(" MENU") && shown.contains("Welcome, ada"), "{shown}");
    assert!(serde_json::from_str::<Value>(shown.lines().last().unwrap()).is_ok());
    assert_eq!(fs::read(folder.0.join("copy.txt")).unwrap(), b"first line\nsecond line\n");
    // A device that the host does not have; the connection would go on without TN3270E.
    let refused = tour(&["--lu", "TERM0001"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && error.contains("line 2: the host refuses the device"), "{error}");
}

#[test]
fn somebody_sits_at_the_terminal() {
    if !peers(&["tmux"]) {
        return;
    }
    let (serve, _folder, _) = serve("tn3270-tmux", "");
    let terminal = Tmux::start(&serve, "tn3270 127.0.0.1:3270");
    let menu = terminal.wait("Command ===>");
    assert!(menu.contains(" MENU ") && menu.contains("023/015  Ctrl-Q ends"), "{menu}");
    terminal.keys(&["2", "Enter"]);
    terminal.wait("State of this Host");
    terminal.keys(&["F3"]);
    terminal.wait("read the news");
    terminal.keys(&["9", "9", "Enter"]);
    terminal.wait("99 is not an option");
    // Between the fields nothing is typed; Reset unlocks.
    terminal.keys(&["Up", "Up", "x"]);
    terminal.wait("X ");
    terminal.keys(&["C-r"]);
    terminal.keys(&["Tab", "1", "Enter"]);
    terminal.wait("It rains.");
    terminal.keys(&["C-q"]);
    terminal.wait("ended with 0");
}

#[test]
fn a_printer_prints_what_its_terminal_asks_for() {
    if !peers(&["tmux"]) {
        return;
    }
    let (serve, _folder, _) = serve("tn3270-print", "");
    let terminal = Tmux::start(&serve, "tn3270 127.0.0.1:3270");
    let menu = terminal.wait("LU0");
    let device: String = menu[menu.find("LU0").unwrap()..].chars().take(5).collect();
    let mut printer = serve.inhost();
    let printer = Running::start(printer.args(["tn3270", "--printer", "--lu", &device, "127.0.0.1:3270"]));
    terminal.wait("Command ===>");
    terminal.keys(&["1", "Enter"]);
    terminal.wait("It rains.");
    until("the printer is there", || {
        terminal.keys(&["F5"]);
        terminal.wait("rint");
        printer.printed().contains("More tomorrow.").then_some(())
    });
    printer.signal(rustix::process::Signal::TERM);
    terminal.keys(&["C-q"]);
    terminal.wait("ended with 0");
    let other = output(serve.inhost().args(["tn3270", "--printer", "--lu", "NOBODY", "127.0.0.1:3270"]));
    assert!(String::from_utf8_lossy(&other.stderr).contains("the host refuses the printer"), "{other:?}");
    // Daytime: it says the time, and closes.
    let closed = output(serve.inhost().args(["tn3270", "--printer", "127.0.0.1:13"]));
    let error = String::from_utf8_lossy(&closed.stderr);
    assert!(!closed.status.success() && error.contains("before it gave the printer a device"), "{error}");
}

#[test]
fn s3270_and_tls() {
    if !peers(&["s3270", "openssl"]) {
        return;
    }
    let made = Folder::new("tn3270-certificate");
    let (key, certificate) = (made.0.join("key.pem"), made.0.join("certificate.pem"));
    run(Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate));
    let more = format!("tls_port = 992\ncertificate = {certificate:?}\nkey = {key:?}\n");
    let (serve, _folder, port) = serve("tn3270-tls", &more);
    let talk =
        "Wait(10,InputField)\nString(1)\nEnter()\nWait(10,Unlock)\nAscii()\nPF(3)\nWait(10,Unlock)\nQuit()\n";
    let said = output_given(Command::new("s3270").arg(format!("127.0.0.1:{port}")), talk);
    assert!(String::from_utf8_lossy(&said.stdout).contains("More tomorrow."), "{said:?}");
    let once = ["tn3270", "--once", "--tls"];
    let encrypted = run(serve.inhost().args(once).arg("--ca").arg(&certificate).arg("127.0.0.1:992"));
    assert!(encrypted.starts_with(" MENU"), "{encrypted}");
    let stranger = output(serve.inhost().args(once).arg("127.0.0.1:992"));
    assert!(String::from_utf8_lossy(&stranger.stderr).contains("certificate"), "{stranger:?}");
    until("sessions are over", || {
        let sessions = run(serve.inhost().args(["netstat", "sessions"]));
        (!sessions.contains("tn3270")).then_some(())
    });
}
