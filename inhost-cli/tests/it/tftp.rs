//! Both ends of TFTP against tftpd-hpa's and atftp's, server and client, over a TUN device in its own network
//! namespace. Needs root.

use crate::common::{Folder, Pattern, Serve, inhost, peer};
use inhost_interop::{Running, output, own_network, pause, run};
use rustix::process::Signal;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const NOBODY: u32 = 65_534;
/// Lengths with something at each edge: of blocks of 512 and 1428 octets, and of 65,536 blocks of 512.
const SIZES: [usize; 7] = [0, 1, 512, 1_428, 1_429, 300_000, LONG];
const LONG: usize = 34_000_000;

fn pattern(bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    Pattern::default().fill(&mut data);
    data
}

/// A folder with a file of each length, in which anybody may write.
fn files(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for bytes in SIZES {
        fs::write(folder.join(format!("f{bytes}")), pattern(bytes)).unwrap();
    }
    fs::write(folder.join("text"), "one\ntwo\nthree\n").unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}

fn same(one: &Path, other: &Path) {
    let read = |path: &Path| fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(read(one) == read(other), "{} and {} differ", one.display(), other.display());
}

/// Runs a program in a folder.
fn runs(folder: &Path, program: &Path, arguments: &[&str]) -> Output {
    output(Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Our server on a TUN device, with the rights to write.
fn serve_in(folder: &Path, name: &str, more: &str) -> Serve {
    files(&folder.join("root"));
    fs::create_dir_all(folder.join("here")).unwrap();
    let at = folder.display();
    let host = format!(
        "link = [\"tun:{name},address=10.9.0.2/24,address=fd09::2/64,host=10.9.0.1/24,host=fd09::1/64\"]\n\
         [little]\nenabled = false\n[tftp]\nenabled = true\nroot = \"{at}/root\"\nrights = \"write\"\n{more}"
    );
    let config = folder.join("host.toml");
    fs::write(&config, host).unwrap();
    let serve = Serve::start(name, &["--config", config.to_str().unwrap()]);
    assert!(serve.banner.contains("tftp      port 69"), "{}", serve.banner);
    pause(Duration::from_secs(1));
    serve
}

#[test]
fn clients_of_others() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("tftp-clients");
    let (root, here) = (folder.0.join("root"), folder.0.join("here"));
    let serve = serve_in(&folder.0, "intftp0", "");
    let hpa = |arguments: &[&str]| {
        let done = runs(&here, &peer("tftp-hpa", "usr/bin/tftp"), arguments);
        assert!(done.status.success() && !text(&done).contains("rror"), "{arguments:?}: {}", text(&done));
    };
    let atftp = |arguments: &[&str]| {
        let done = runs(&here, &peer("atftp", "usr/bin/atftp"), arguments);
        assert!(done.status.success(), "{arguments:?}: {}", text(&done));
    };
    for server in ["10.9.0.2", "fd09::2"] {
        for bytes in SIZES {
            let (name, back) = (format!("f{bytes}"), format!("hpa{}-{bytes}", server.len()));
            hpa(&["-m", "binary", server, "-c", "get", &name, &back]);
            same(&root.join(&name), &here.join(&back));
            hpa(&["-m", "binary", server, "-c", "put", &back]);
            same(&root.join(&name), &root.join(&back));
        }
    }
    hpa(&["-m", "ascii", "10.9.0.2", "-c", "get", "text"]);
    same(&root.join("text"), &here.join("text"));
    hpa(&["-m", "ascii", "10.9.0.2", "-c", "put", "text", "text2"]);
    same(&root.join("text"), &root.join("text2"));
    let windowed = ["--option", "windowsize 16", "--option", "blksize 1428"];
    for (number, options) in [&[][..], &windowed[..]].into_iter().enumerate() {
        for server in ["10.9.0.2", "fd09::2"] {
            for bytes in SIZES {
                let (name, back) = (format!("f{bytes}"), format!("atftp{number}{}-{bytes}", server.len()));
                atftp(&[options, &["--get", "-r", &name, "-l", &back, server]].concat());
                same(&root.join(&name), &here.join(&back));
                atftp(&[options, &["--put", "-l", &back, "-r", &back, server]].concat());
                same(&root.join(&name), &root.join(&back));
            }
        }
    }
    let missing = runs(&here, &peer("tftp-hpa", "usr/bin/tftp"), &["10.9.0.2", "-c", "get", "missing"]);
    assert!(text(&missing).contains("No such file or directory"), "{}", text(&missing));
    let outside =
        runs(&here, &peer("tftp-hpa", "usr/bin/tftp"), &["10.9.0.2", "-c", "get", "../host.toml", "x"]);
    assert!(text(&outside).contains("The name leads out of the folder"), "{}", text(&outside));
    assert!(serve.end().success());
}

/// A server of others on the kernel's side of a TUN device, and ours as its client.
struct Client<'a> {
    folder: &'a Path,
    link: &'a str,
    port: &'a str,
}

impl Client<'_> {
    fn tftp(&self, arguments: &[&str]) -> Output {
        let mut ours = inhost(self.folder);
        ours.arg("tftp").args(arguments).args(["--link", self.link, "--port", self.port]);
        output(ours.current_dir(self.folder.join("here")))
    }
    fn moves(&self, arguments: &[&str]) -> String {
        let done = self.tftp(arguments);
        assert!(done.status.success(), "{arguments:?}: {}", text(&done));
        text(&done)
    }
    /// Files both ways, on other terms each time; `root` is what is served.
    fn files(&self, root: &Path, name: &str, servers: &[&str], terms: &[&[&str]]) {
        let here = self.folder.join("here");
        for server in servers {
            for (number, terms) in terms.iter().enumerate() {
                // One family shows that numbers come again.
                for bytes in SIZES.into_iter().filter(|&bytes| bytes < LONG || server == &servers[0]) {
                    let (file, back) =
                        (format!("f{bytes}"), format!("{name}{number}{}-{bytes}", server.len()));
                    let (from, to) = (format!("{server}:{file}"), format!("{server}:{back}"));
                    self.moves(&[&["get", &from, &back, "--quiet"], *terms].concat());
                    same(&root.join(&file), &here.join(&back));
                    self.moves(&[&["put", &back, &to, "--quiet"], *terms].concat());
                    // The last block is acknowledged before the file is closed.
                    pause(Duration::from_millis(50));
                    same(&root.join(&file), &root.join(&back));
                }
            }
        }
        let host = servers[0];
        self.moves(&["get", "--mode", "netascii", &format!("{host}:text")]);
        same(&root.join("text"), &here.join("text"));
        self.moves(&["put", "--mode", "netascii", "text", &format!("{host}:text2")]);
        pause(Duration::from_millis(50));
        assert_eq!(fs::read(root.join("text2")).unwrap(), b"one\ntwo\nthree\n");
        let missing = self.tftp(&["get", &format!("{host}:missing")]);
        assert_eq!(missing.status.code(), Some(1));
        assert!(text(&missing).contains("refused with error 1"), "{}", text(&missing));
        assert!(!here.join("missing").exists() && !here.join(".missing.inhost-part").exists());
    }
}

fn spawn(program: &Path, arguments: &[&str]) -> Running {
    let running = Running::start(Command::new(program).args(arguments));
    pause(Duration::from_millis(500));
    running
}

/// A folder that a server's account owns, with what it needs of files.
fn served(name: &str) -> Folder {
    let folder = Folder::new(name);
    files(&folder.0.join("root"));
    fs::create_dir_all(folder.0.join("here")).unwrap();
    for entry in fs::read_dir(folder.0.join("root")).unwrap() {
        chown(entry.unwrap().path(), Some(NOBODY), None).unwrap();
    }
    folder
}

/// tftpd-hpa, which wants another address than loopback's to be there before it listens.
fn tftpd_hpa(root: &Path, arguments: &[&str]) -> Running {
    for address in ["10.99.0.1/32", "fd99::1/128"] {
        run(Command::new("ip").args(["address", "add", address, "dev", "lo"]));
    }
    let secure = ["--secure", root.to_str().unwrap()];
    spawn(
        &peer("tftpd-hpa", "usr/sbin/in.tftpd"),
        &[&["-L", "-c", "-u", "nobody"], arguments, &secure].concat(),
    )
}

const PLAIN: &[&str] = &["--no-options"];
const BLOCKS: &[&str] = &["--block-size", "1428", "--window", "1"];

#[test]
fn tftpd_hpa_both_ways() {
    if !own_network() {
        return;
    }
    let folder = served("tftpd-hpa");
    let root = folder.0.join("root");
    let _server = tftpd_hpa(&root, &["--address", "[::]:6900", "--blocksize", "1428"]);
    let link = "tun:intftp1,address=10.9.0.2/24,address=fd09::2/64,host=10.9.0.1/24,host=fd09::1/64";
    let client = Client { folder: &folder.0, link, port: "6900" };
    let rollover: &[&str] = &["--rollover", "1", "--resend-after", "2"];
    client.files(&root, "hpa", &["10.9.0.1", "[fd09::1]"], &[PLAIN, BLOCKS, &[], rollover]);
    let report = client.moves(&["get", "10.9.0.1:f300000", "again", "--json"]);
    for wanted in ["\"block_size\":1428", "\"window\":1", "\"bytes\":300000", "\"server\":\"10.9.0.1:6900\""]
    {
        assert!(report.contains(wanted), "{report}");
    }
}

#[test]
fn atftpd_both_ways() {
    if !own_network() {
        return;
    }
    let folder = served("atftpd");
    let root = folder.0.join("root");
    let server = peer("atftpd", "usr/sbin/atftpd");
    let log = folder.0.join("log");
    let arguments = [
        "--daemon",
        "--no-fork",
        "--user",
        "nobody",
        "--port",
        "6901",
        "--logfile",
        log.to_str().unwrap(),
        root.to_str().unwrap(),
    ];
    let _server = spawn(&server, &arguments);
    let link = "tun:intftp2,address=10.9.0.2/24,host=10.9.0.1/24";
    let client = Client { folder: &folder.0, link, port: "6901" };
    client.files(&root, "at", &["10.9.0.1"], &[PLAIN, BLOCKS, &[], &["--window", "64"]]);
    let report = client.moves(&["get", "10.9.0.1:f300000", "again", "--json"]);
    assert!(report.contains("\"window\":16"), "{report}");
}

/// Packets are lost and come twice and in another order; both files are whole.
#[test]
fn over_a_bad_line() {
    if !own_network() {
        return;
    }
    let folder = served("tftp-bad");
    let root = folder.0.join("root");
    let _server = tftpd_hpa(&root, &["--address", "0.0.0.0:6902", "-T", "200000"]);
    let link = "tun:intftp3,address=10.9.0.2/24,host=10.9.0.1/24,loss=2%,duplicate=5%,reorder=2%,seed=3";
    let client = Client { folder: &folder.0, link, port: "6902" };
    client.moves(&["get", "10.9.0.1:f300000", "got"]);
    same(&root.join("f300000"), &folder.0.join("here/got"));
    client.moves(&["put", "got", "10.9.0.1:back"]);
    pause(Duration::from_millis(50));
    same(&root.join("f300000"), &root.join("back"));
}

/// As anybody may run it: the forward of a `user` link to our server, and our client through the gateway. Each transfer's
/// port is another than the one that was asked.
#[test]
fn through_the_user_link() {
    let folder = Folder::new("tftp-user");
    let (root, here) = (folder.0.join("root"), folder.0.join("here"));
    files(&root);
    fs::create_dir_all(&here).unwrap();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let config = folder.0.join("host.toml");
    let host = format!(
        "link = [\"user,forward=udp:127.0.0.1:{port}->69\"]\n[little]\nenabled = false\n[telnet]\n\
         enabled = false\n[tftp]\nenabled = true\nroot = \"{}\"\nrights = \"create\"\n",
        root.display()
    );
    fs::write(&config, host).unwrap();
    let serve = Serve::start("tftp-user", &["--config", config.to_str().unwrap()]);
    let client = Client { folder: &folder.0, link: "user", port: &port };
    client.moves(&["get", "127.0.0.1:f300000", "."]);
    same(&root.join("f300000"), &here.join("f300000"));
    client.moves(&["put", "f300000", "127.0.0.1:sent"]);
    same(&root.join("f300000"), &root.join("sent"));
    let taken = client.tftp(&["put", "f300000", "127.0.0.1:sent"]);
    assert!(text(&taken).contains("error 6: There is such a name already"), "{}", text(&taken));
    // Through the running host, which is itself 10.0.2.15.
    run(serve.inhost().args(["tftp", "get", "10.0.2.15:f1429"]));
    same(&root.join("f1429"), &serve.folder.0.join("f1429"));
    assert!(serve.end().success());
}

/// A host that is killed in the middle of an upload leaves no half file under its name.
#[test]
fn whoever_is_killed_leaves_no_half_file() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("tftp-killed");
    let serve = serve_in(&folder.0, "intftp4", "");
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.send_to(b"\0\x02half\0octet\0", "10.9.0.2:69").unwrap();
    let mut answer = [0; 600];
    let (_, to) = socket.recv_from(&mut answer).unwrap();
    socket.send_to(&[&[0, 3, 0, 1][..], &[7; 512]].concat(), to).unwrap();
    socket.recv_from(&mut answer).unwrap();
    serve.process.signal(Signal::KILL);
    pause(Duration::from_millis(200));
    let root = folder.0.join("root");
    assert!(root.join(".half.inhost-part").exists() && !root.join("half").exists());
}
