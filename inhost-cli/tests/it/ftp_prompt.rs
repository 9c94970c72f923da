//! The prompt of `inhost ftp`, with a third-party server.

use crate::common::{Folder, accept, inhost, output_given};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Output;

/// What a terminal would obey, and what turns the direction of writing, in each reply and each name.
const SPELL: &str = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}txt.exe";

/// Serves one session at a port, with spells in all it says.
fn stranger() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let stream = accept(&listener);
        // A close by the client is not a failure of the server.
        let _ = session(&stream);
    });
    port
}

fn session(mut stream: &TcpStream) -> std::io::Result<()> {
    write!(stream, "220 {SPELL}\r\n")?;
    let mut data = None;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let code = match line.split(' ').next().unwrap_or_default() {
            "USER" => 331,
            "PASS" => 230,
            "PWD" => 257,
            "CWD" | "DELE" => 250,
            "FEAT" => 500,
            "STAT" => {
                write!(stream, "211-{SPELL}\r\n {SPELL}\r\n211 end\r\n")?;
                continue;
            }
            "EPSV" => {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                write!(stream, "229 (|||{}|)\r\n", listener.local_addr()?.port())?;
                data = Some(listener);
                continue;
            }
            "LIST" => {
                write!(stream, "150 {SPELL}\r\n")?;
                if let Some(listener) = data.take() {
                    let mut stream = accept(&listener);
                    write!(stream, "-rw-r--r-- 1 a a 5 Nov 21 07:52 {SPELL}\r\n")?;
                }
                226
            }
            "QUIT" => 221,
            _ => 550,
        };
        write!(stream, "{code} {SPELL}\r\n")?;
    }
    Ok(())
}

/// The client with these lines typed at its prompt.
fn prompt(arguments: &[&str], lines: &str) -> Output {
    let folder = Folder::new("prompt");
    output_given(inhost(&folder.0).args(["ftp", "--link", "user"]).args(arguments), lines)
}

#[test]
fn open_takes_a_port() {
    let port = stranger().to_string();
    let done = prompt(&[], &format!("open 127.0.0.1 {port}\npwd\nquit\n"));
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("logged in as anonymous"), "{done:?}");
    let done = prompt(&[], "open 127.0.0.1 ftp\nopen 127.0.0.1 65536\n");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("ftp: no port") && said.contains("65536: no port"), "{said}");
}

#[test]
fn what_a_server_says_moves_no_cursor() {
    for verbose in [&[][..], &["--verbose"]] {
        let at = format!("127.0.0.1:{}", stranger());
        let lines = "ls\ncd folder\npwd\nstatus\nquote NOOP\nmkdir x\nget none\nrename a b\nquit\n";
        let done = prompt(&[verbose, &[&at]].concat(), lines);
        let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert!(said.matches("txt.exe").count() >= 7, "it is shown: {said:?}");
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.contains(obeyed), "{said:?}");
    }
}
