//! One grammar for all clients: `[user@]host[:port][/path]` or a URL, and the same flags for the same things.

use crate::common::{Folder, Serve, accept, inhost};
use inhost_interop::{join, output};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

/// Runs a client on a private host of its own, from any folder.
fn client(folder: &Folder, arguments: &[&str]) -> Output {
    output(inhost(&folder.0).args(arguments).args(["--link", "user"]))
}

fn said(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

/// A server at `at` that takes `callers`, one after another, and what it heard.
fn server<T: Send + 'static>(
    at: &str,
    callers: usize,
    serve: impl Fn(TcpStream) -> T + Send + 'static,
) -> (u16, JoinHandle<Vec<T>>) {
    let listener = TcpListener::bind(at).unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || (0..callers).map(|_| serve(accept(&listener))).collect());
    (port, heard)
}

/// Answers one line with the line itself.
fn one_line(stream: TcpStream) -> String {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    write!(&stream, "you asked {line}").unwrap();
    line
}

#[test]
fn finger_and_whois_take_hosts_ports_and_urls() {
    let folder = Folder::new("grammar");
    let asked = |at: &str, targets: &[&[&str]]| {
        let (port, heard) = server(at, targets.len(), one_line);
        for target in targets {
            let words: Vec<String> =
                target.iter().map(|word| word.replace("PORT", &port.to_string())).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let done = client(&folder, &words);
            assert!(done.status.success() && said(&done).contains("you asked"), "{words:?}: {}", said(&done));
        }
        join(heard)
    };
    let lines = asked(
        "127.0.0.1:0",
        &[
            &["finger", "ada@127.0.0.1:PORT"],
            &["finger", "finger://127.0.0.1:PORT/ada", "--timeout", "20"],
            &["finger", "@127.0.0.1", "--port", "PORT", "--wait", "20"],
            &["finger", "ada@inside.example@127.0.0.1:PORT", "-4", "-v"],
            &["whois", "whois://127.0.0.1:PORT/example.com"],
            &["whois", "AS64496", "--server", "127.0.0.1:PORT", "-W", "20"],
        ],
    );
    let expected =
        ["ada", "ada", "", "ada@inside.example", "example.com", "AS64496"].map(|line| format!("{line}\r\n"));
    assert_eq!(lines, expected);
    assert_eq!(asked("[::1]:0", &[&["finger", "ada@[::1]:PORT", "-6"]]), ["ada\r\n"]);
}

#[test]
fn a_wrong_target_is_told_with_the_grammar_and_status_2() {
    let folder = Folder::new("grammar-wrong");
    let cases: [(&[&str], &str); 12] = [
        (&["telnet", "vax:x"], "[user@]host[:port][/path]"),
        (&["telnet", "http://vax/"], "telnet://"),
        (&["telnet", "vax:23", "24"], "two ports"),
        (&["telnet", "vax/file"], "leave out /file"),
        (&["ping", "vax:80"], "an echo request has no"),
        (&["traceroute", "a:b:c", "--link", "tap:x"], "in brackets"),
        (&["tftp", "get", "ada@vax/x"], "no users"),
        (&["tftp", "get", "vax:6969"], "name a file"),
        (&["ftp", "get", "http://vax/x"], "ftp:// or ftps://"),
        (&["rlogin", "vax/x"], "leave out /x"),
        (&["finger", "ada@vax/x"], "finger://"),
        (&["lookup", "vax", "MX", "-4"], "A and AAAA"),
    ];
    for (words, expected) in cases {
        let done = output(inhost(&folder.0).args(words));
        assert_eq!(done.status.code(), Some(2), "{words:?}: {}", said(&done));
        assert!(said(&done).contains(expected), "{words:?}: {}", said(&done));
    }
}

#[test]
fn telnet_tells_the_user_of_its_target_to_a_server_that_asks() {
    const ASK: &[u8] = b"\xff\xfd\x27\xff\xfa\x27\x01\xff\xf0";
    let folder = Folder::new("grammar-telnet");
    let (port, heard) = server("127.0.0.1:0", 3, |mut stream| {
        stream.write_all(ASK).unwrap();
        let (mut heard, mut place) = (Vec::new(), [0; 512]);
        // The answer ends with IAC SE.
        while !heard.ends_with(b"\xff\xf0") {
            let count = stream.read(&mut place).unwrap();
            assert_ne!(count, 0, "{heard:?}");
            heard.extend(&place[..count]);
        }
        heard
    });
    let at = format!("127.0.0.1:{port}");
    for words in [
        &["telnet", &format!("ada@{at}")][..],
        &["telnet", &format!("telnet://ada@{at}/"), "--verbose"],
        &["telnet", "127.0.0.1", &port.to_string(), "--login", "ada"],
    ] {
        // Input without an end: the server ends it.
        let (input, _open) = std::io::pipe().unwrap();
        let done = output(inhost(&folder.0).args(words).args(["--link", "user"]).stdin(input));
        let is_said =
            said(&done).contains("a private host on the link user") && said(&done).contains("connected to");
        assert_eq!(is_said, words.contains(&"--verbose"), "{}", said(&done));
    }
    for heard in join(heard) {
        let told = b"\x00USER\x01ada";
        assert!(heard.windows(told.len()).any(|part| part == told), "{heard:?}");
    }
}

#[test]
fn an_answer_that_does_not_come_is_given_up() {
    let folder = Folder::new("grammar-timeout");
    // Held open and silent until the client is gone.
    let (port, heard) = server("127.0.0.1:0", 1, |mut stream| drop(stream.read_to_end(&mut Vec::new())));
    let done = client(&folder, &["finger", &format!("@127.0.0.1:{port}"), "--timeout", "0.2"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(said(&done).contains("within 0.2 s (--timeout)"), "{}", said(&done));
    join(heard);
    let done = client(&folder, &["finger", "@127.0.0.1:79", "--timeout", "0"]);
    assert!(done.status.code() == Some(2) && said(&done).contains("0.01 to 3600"), "{}", said(&done));
}

/// A host with files by FTP and TFTP, the folder of these, and where the servers are.
fn files() -> (Serve, Folder, String, String) {
    let place = Folder::new("grammar-files");
    let root = place.0.join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("100% of it"), vec![b'x'; 10_240]).unwrap();
    let config = place.0.join("host.toml");
    // A port for data that is the same on both sides of the forward.
    let data = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = format!(
        "link = [\"user,forward=127.0.0.1:0->21,forward=127.0.0.1:{data}->{data},forward=udp:127.0.0.1:0->69\"]\n\
         [ftp]\nenabled = true\npassive_ports = \"{data}\"\nroot = {root:?}\nrights = \"write\"\n[tftp]\nenabled = true\nroot = {root:?}\nrights = \"write\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let serve = Serve::start("grammar-host", &["--config", config.to_str().unwrap()]);
    let at = |guest: &str| {
        let line =
            serve.banner.lines().find(|line| line.contains("forward") && line.ends_with(guest)).unwrap();
        line.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap().to_owned()
    };
    let (ftp, tftp) = (at("-> 21"), at("-> 69"));
    (serve, place, ftp, tftp)
}

#[test]
fn files_are_named_in_every_form_and_transfers_are_told_as_json_and_on_a_terminal() {
    if !crate::common::peers(&["script"]) {
        return;
    }
    let (serve, _served, ftp, tftp) = files();
    let folder = &serve.folder;
    let done = client(folder, &["tftp", "get", &format!("{tftp}/100% of it"), "--json"]);
    let report: serde_json::Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", said(&done)));
    assert_eq!(report["bytes"], 10_240, "{report}");
    let done =
        client(folder, &["tftp", "get", &format!("tftp://{tftp}/100%25%20of%20it"), "two", "--timeout", "9"]);
    assert!(done.status.success(), "{}", said(&done));
    let url = format!("{tftp}/sent");
    let command = format!(
        "{} tftp put two {url} --link user,delay=40ms --window 1 --block-size 512",
        env!("CARGO_BIN_EXE_inhost")
    );
    let shown = inhost_in_terminal(folder, &command);
    assert!(shown.contains("% of 10.2 KB, ") && shown.contains(" left"), "{shown:?}");
    assert!(shown.contains("two: 10240 bytes"), "{shown:?}");
    let login = format!("ada:{}@{ftp}", crate::common::PASSWORD);
    let done = client(folder, &["ftp", "put", "two", &format!("{login}/three"), "--json"]);
    let report: serde_json::Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", said(&done)));
    assert_eq!((&report["file"], &report["bytes"]), (&"two".into(), &10_240.into()), "{report}");
    let done = client(folder, &["ftp", "get", &format!("ftp://{login}/100%25%20of%20it"), "four"]);
    assert!(said(&done).contains("10240 bytes"), "{}", said(&done));
    let wrong = client(folder, &["ftp", "get", &format!("ada:wrong@{ftp}/x")]);
    assert!(wrong.status.code() == Some(1) && said(&wrong).contains("530"), "{}", said(&wrong));
}

/// What a command shows on a terminal.
fn inhost_in_terminal(folder: &Folder, command: &str) -> String {
    let mut script = Command::new("script");
    script.args(["-qec", command, "/dev/null"]).current_dir(&folder.0).env("TERM", "xterm");
    let shown = output(script.stdin(Stdio::null()));
    assert!(shown.status.success(), "{}", said(&shown));
    said(&shown)
}

#[test]
fn colours_are_for_terminals_without_no_color() {
    if !crate::common::peers(&["script"]) {
        return;
    }
    let folder = Folder::new("grammar-colour");
    let doctor = format!("{} doctor -W 1 || true", env!("CARGO_BIN_EXE_inhost"));
    assert!(inhost_in_terminal(&folder, &doctor).contains("\x1b[32mok"));
    assert!(!inhost_in_terminal(&folder, &format!("NO_COLOR=1 {doctor}")).contains('\x1b'));
}
