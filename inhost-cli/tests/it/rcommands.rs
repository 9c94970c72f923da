//! `inhost rlogin`, `rsh` and `rcp` against Debian's servers (rsh-redone-server), in their own network namespace. Needs
//! root.

use crate::common::{Folder, Pattern, expect, inhost, output_given, peer, rest, with_own_signals};
use inhost_interop::{Running, lines, output, own_network, receive, run};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A namespace with Debian's servers, which know one user, `ada`, with a home in a folder of the test's.
struct Servers {
    folder: Folder,
    link: String,
    _servers: Vec<Running>,
}

/// A user whom nothing on the machine has.
const ADA: u32 = 6_121;

impl Servers {
    /// `None` where there is no namespace to be had.
    fn start(device: &str, net: u8) -> Option<Servers> {
        if !own_network() {
            return None;
        }
        let folder = Folder::new("remote");
        let home = folder.0.join("home");
        fs::create_dir(&home).unwrap();
        fs::write(home.join(".rhosts"), format!("10.{net}.0.2 ada\n")).unwrap();
        fs::write(home.join(".hushlogin"), "").unwrap();
        // A user of that name on the machine is not seen.
        let with = |file: &str, line: String| {
            let own = fs::read_to_string(Path::new("/etc").join(file)).unwrap_or_default();
            let others = own.lines().filter(|line| !line.starts_with("ada:"));
            let all: String = others.map(|line| format!("{line}\n")).collect();
            fs::write(folder.0.join(file), format!("{line}\n{all}")).unwrap();
        };
        with("passwd", format!("ada:x:{ADA}:{ADA}:Ada:{}:/bin/sh", home.display()));
        with("shadow", "ada:*:20000:0:99999:7:::".to_owned());
        with("group", format!("ada:x:{ADA}:"));
        let hosts = format!("127.0.0.1 localhost\n10.{net}.0.1 kernel\n10.{net}.0.2 guest\n");
        fs::write(folder.0.join("hosts"), hosts).unwrap();
        let pam = folder.0.join("pam.d");
        run(Command::new("cp").args(["-r", "/etc/pam.d"]).arg(&pam));
        for service in ["rlogin", "rsh"] {
            fs::copy(peer("in.rshd", &format!("etc/pam.d/{service}")), pam.join(service)).unwrap();
        }
        run(Command::new("chown").args(["-R", &format!("{ADA}:{ADA}")]).arg(&home));
        run(Command::new("chmod").arg("600").arg(home.join(".rhosts")));
        run(Command::new("chmod").arg("755").arg(&folder.0));
        let servers = [(513, "in.rlogind"), (514, "in.rshd")].map(|(port, name)| {
            let program = peer("in.rshd", &format!("usr/sbin/{name}"));
            let program = program.display();
            // They see users of their own, and have the connection as their standard streams, as inetd gives it.
            let script = format!(
                "for file in passwd shadow group hosts pam.d; do mount --bind \"$1/$file\" /etc/$file || exit 1; done\n\
                 exec socat -d -d TCP4-LISTEN:{port},reuseaddr,fork 'SYSTEM:exec {program} 2>&1,nofork'"
            );
            let mut server = with_own_signals();
            server.args(["unshare", "--mount", "sh", "-c", &script, "sh"]).arg(&folder.0);
            let mut server = Running::start(&mut server);
            server.wait_for("listening on");
            server
        });
        let link = format!("tap:{device},address=10.{net}.0.2/24,host=10.{net}.0.1/24");
        Some(Servers { folder, link, _servers: servers.into() })
    }
    fn command(&self, name: &str) -> Command {
        let mut command = inhost(&self.folder.0);
        command.args([name, "--link", &self.link, "--local-user", "ada"]);
        command
    }
    fn home(&self, name: &str) -> std::path::PathBuf {
        self.folder.0.join("home").join(name)
    }
}

fn text(done: &Output) -> String {
    assert!(done.status.success(), "{done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn rsh_runs_a_command_with_input_output_errors_and_signals() {
    let Some(servers) = Servers::start("inrsh0", 21) else { return };
    let rsh = |arguments: &[&str]| output(servers.command("rsh").args(arguments));
    assert_eq!(text(&rsh(&["10.21.0.1", "id", "-un"])), "ada\n");
    let done = rsh(&["10.21.0.1", "echo out; echo err >&2"]);
    assert_eq!(
        (text(&done), String::from_utf8_lossy(&done.stderr).into_owned()),
        ("out\n".into(), "err\n".into())
    );
    let done = rsh(&["--one-channel", "10.21.0.1", "echo out; echo err >&2"]);
    assert_eq!((text(&done), done.stderr.len()), ("out\nerr\n".into(), 0));
    // Input ends, and with it the command.
    let sum = output_given(servers.command("rsh").args(["10.21.0.1", "wc -c"]), vec![b'x'; 1_000_000]);
    assert_eq!(text(&sum).trim(), "1000000");
    // A command whose output nobody takes any more does not go on for ever, and neither do we.
    let mut endless = servers.command("rsh");
    endless.args(["10.21.0.1", "yes"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut endless = Running::spawn(&mut endless);
    assert_eq!(receive(&lines(endless.child.stdout.take().unwrap())), "y");
    let said = rest(endless.child.stderr.take().unwrap());
    let status = endless.wait();
    assert!(status.code() == Some(1) && said.contains("Broken pipe"), "{status:?}: {said}");
    // For an interrupt see below: this server leaves unread what comes on the connection for errors. A refused user
    // gets an error: this server says that all is well, and then that nothing is.
    let done = rsh(&["-l", "daemon", "10.21.0.1", "id"]);
    let said = [done.stdout, done.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&said), "Authentication failure\n");
}

/// A server of rsh that calls back for the command's errors, first from a port that proves nothing and then from a
/// reserved one; its command waits for a signal, says which one came, and ends.
const WAITS_FOR_A_SIGNAL: &str = r#"
import socket
def heard(stream, end):
    octets = b""
    while not octets.endswith(end):
        octets += stream.recv(1)
    return octets[:-1]
def back(port, to):
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    stream.bind(("", port))
    stream.connect(to)
    return stream
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("", 514))
listener.listen()
print("listens", flush=True)
for own in (1001, 1002):
    stream, (client, _) = listener.accept()
    to = (client, int(heard(stream, b"\0")))
    stranger = back(own + 4000, to)
    errors = back(own, to)
    words = [heard(stream, b"\0") for _ in range(3)]
    assert words == [b"ada", b"ada", b"wait"], words
    stream.sendall(b"\0begun\n")
    signal = errors.recv(1)
    stream.sendall(b"signal %d\n" % signal[0])
    errors.sendall(b"ended by it\n")
    errors.close()
    stream.close()
"#;

#[test]
fn signals_to_rsh_go_to_its_command() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("rsh-signal");
    let mut server = Command::new("python3");
    let mut server = Running::start_showing_errors(server.args(["-c", WAITS_FOR_A_SIGNAL]));
    server.wait_for("listens");
    let errors = folder.0.join("errors");
    for signal in [Signal::INT, Signal::TERM] {
        let mut rsh = with_own_signals();
        rsh.args([env!("CARGO_BIN_EXE_inhost"), "rsh", "--local-user", "ada"])
            .args(["--link", "tap:insig0,address=10.24.0.2/24,host=10.24.0.1/24", "10.24.0.1", "wait"])
            .env("XDG_RUNTIME_DIR", &folder.0)
            .stderr(fs::File::create(&errors).unwrap());
        let mut rsh = Running::start_showing_errors(&mut rsh);
        rsh.wait_for("begun\n");
        rsh.signal(signal);
        assert!(rsh.wait().success(), "{}", rsh.printed());
        assert_eq!(rsh.printed(), format!("begun\nsignal {}\n", signal.as_raw()));
        assert_eq!(fs::read_to_string(&errors).unwrap(), "ended by it\n");
    }
}

#[test]
fn rlogin_logs_in_and_tells_of_the_window() {
    let Some(servers) = Servers::start("inrlog0", 22) else { return };
    let talk = format!(
        "spawn {} rlogin --link {} --local-user ada 10.22.0.1\nwant {{[$#] $}} 2\n\
         send \"echo from-\\$((40+2))\\r\"\nwant from-42 3\n\
         stty rows 33 columns 111 < $spawn_out(slave,name)\nsleep 1\nsend \"stty size\\r\"\nwant {{33 111}} 4\n\
         send \"yes\\r\"\nsleep 0.3\nsend \"\\003\"\nsleep 1\nsend \"echo to-\\$((40+3))\\r\"\nwant to-43 5\n\
         send \"exit\\r\"\nended 6\n",
        env!("CARGO_BIN_EXE_inhost"),
        servers.link
    );
    expect(&talk, &servers.folder.0);
    // ~. ends it from here.
    let talk = format!(
        "spawn {} rlogin --link {} --local-user ada 10.22.0.1\nwant {{[$#] $}} 2\nsend \"\\r~.\"\nended 3\n",
        env!("CARGO_BIN_EXE_inhost"),
        servers.link
    );
    expect(&talk, &servers.folder.0);
}

#[test]
fn rcp_copies_both_ways() {
    let Some(servers) = Servers::start("inrcp0", 23) else { return };
    let here = servers.folder.0.join("here");
    fs::create_dir_all(here.join("tree/inner")).unwrap();
    let mut content = vec![0; 3_000_001];
    Pattern::default().fill(&mut content);
    fs::write(here.join("tree/inner/data"), &content).unwrap();
    fs::write(here.join("tree/empty"), b"").unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(499_137_300);
    fs::File::options().write(true).open(here.join("tree/empty")).unwrap().set_modified(old).unwrap();
    let rcp = |arguments: &[&str]| output(servers.command("rcp").args(arguments).current_dir(&here));
    text(&rcp(&["-r", "-p", "tree", "10.23.0.1:"]));
    assert!(fs::read(servers.home("tree/inner/data")).unwrap() == content);
    let about = fs::metadata(servers.home("tree/empty")).unwrap();
    assert_eq!((about.mtime(), about.uid()), (499_137_300, ADA));
    text(&rcp(&["-r", "-p", "ada@10.23.0.1:tree", "back"]));
    assert!(fs::read(here.join("back/inner/data")).unwrap() == content);
    assert_eq!(fs::metadata(here.join("back/empty")).unwrap().mtime(), 499_137_300);
    // Several, by a pattern that the shell there expands; into a folder only.
    fs::write(servers.home("a.c"), b"a").unwrap();
    fs::write(servers.home("b.c"), b"b").unwrap();
    fs::create_dir(here.join("all")).unwrap();
    text(&rcp(&["10.23.0.1:*.c", "all"]));
    assert_eq!(fs::read_to_string(here.join("all/b.c")).unwrap(), "b");
    let done = rcp(&["10.23.0.1:*.c", "one"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    // A missing file is reported.
    let done = rcp(&["10.23.0.1:absent", "."]);
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("No such file"), "{done:?}");
    let left: Vec<_> = fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".rcp-")), "{left:?}");
}
