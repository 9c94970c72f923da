//! LINEMODE with real shells: our client and Debian's at our server.

use std::process::{Command as Process, Stdio};

use inhost_interop::{join, output};

use super::client_tests::{InMemory, config, host, sit_with};
use super::testing::{OsStream, block_on};
use super::*;
use crate::client::Settings;

#[test]
fn our_client_edits_the_lines_of_our_server() {
    let (connect, host, config) = (InMemory::default(), host(), config());
    let settings = Settings { line_mode: true, erase: Some(b'#'), ..Settings::default() };
    sit_with(settings, &connect, 23, async |person| {
        person.expect("Connected to localhost (127.0.0.1)").await;
        let far = connect.take();
        let server = serve_session(far, [127, 0, 0, 1].into(), &config, &host);
        let talk = async {
            person.expect("inhost> ").await;
            person.types("logon ada\r").await;
            person.expect("Password: ").await;
            person.types("engine\r").await;
            person.expect("$ ").await;
            let mut status = String::new();
            while !status.contains("line by line, echoed here") {
                person.types("\x1dstatus\r").await;
                status = person.expect("NEW-ENVIRON").await;
            }
            // The line is edited here, with a key that the server's terminal has been told of.
            person.types("stty -aX#\r").await;
            let terminal = person.expect("\r\n$ ").await;
            assert!(terminal.contains(" extproc") && terminal.contains("erase = #"), "{terminal}");
            // A pipe's end, a signal, and the end of input.
            person.types("cat\rabc\r").await;
            person.expect("abc\r\nabc\r\n").await;
            person.types("\x04").await;
            person.expect("$ ").await;
            person.types("sleep 100\r\x03").await;
            person.expect("$ ").await;
            // A password is not echoed; a raw terminal gets single keys.
            person.types("stty -echo; echo re''ady; read x; stty echo; echo got-$x\r").await;
            person.expect("\nready\r\n").await;
            let mut status = String::new();
            while !status.contains("line by line, not echoed here") {
                person.types("\x1dstatus\r").await;
                status = person.expect("NEW-ENVIRON").await;
            }
            person.types("secret\r").await;
            let shown = person.expect("got-secret\r\n$ ").await;
            assert!(!shown.contains("secret\r\ngot"), "{shown}");
            person.types("stty raw -echo; echo re''ady; dd bs=1 count=3 2>/dev/null; stty sane\r").await;
            person.expect("\nready").await;
            let mut status = String::new();
            while !status.contains("a character at a time") {
                person.types("\x1dstatus\r").await;
                status = person.expect("NEW-ENVIRON").await;
            }
            person.types("xyz").await;
            person.expect("xyz").await;
            person.expect("$ ").await;
            person.types("exit\r").await;
            person.expect("closed by the server").await;
        };
        futures_lite::future::zip(server, talk).await;
    });
}

const SCRIPT: &str = r#"
set timeout 10
proc want {what} {
    expect {
        -ex $what {}
        timeout { puts "NEVER: $what"; exit 1 }
        eof { puts "ENDED BEFORE: $what"; exit 1 }
    }
}
spawn telnet 127.0.0.1 [lindex $argv 0]
want "inhost> "
send "logon ada\r"
want "Password: "
send "engine\r"
want "\$ "
send "\035"
want "telnet> "
send "mode line\r"
after 500
send "stty -a\r"
want " extproc"
want "\$ "
send "echo he''llX\177o\r"
want "\nhello"
want "\$ "
send "cat\r"
send "line\r"
want "line\r\nline\r\n"
send "\004"
want "\$ "
send "sleep 100\r"
after 300
send "\003"
want "\$ "
send "stty raw -echo; echo re''ady; dd bs=1 count=3 2>/dev/null; stty sane; echo ba''ck\r"
want "\nready"
after 500
send "xyz"
want "xyzback"
want "\$ "
after 300
send "stty -a\r"
want " extproc"
send "exit\r"
expect eof
puts "ALL DONE"
"#;

#[test]
fn inetutils_telnet_edits_the_lines_of_our_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        block_on(serve_session(OsStream::new(stream), [127, 0, 0, 1].into(), &config(), &host()))
    });
    let script = std::env::temp_dir().join(format!("inhost-expect-line-{}", std::process::id()));
    std::fs::write(&script, SCRIPT).unwrap();
    let mut expect = Process::new("expect");
    let expect = expect.arg(&script).arg(port.to_string()).env("TERM", "vt100").stdin(Stdio::null());
    let text = String::from_utf8_lossy(&output(expect).stdout).into_owned();
    assert!(text.contains("ALL DONE"), "{}", &text[text.len().saturating_sub(2000)..]);
    std::fs::remove_file(&script).unwrap();
    let end = join(server);
    assert!(matches!(end, SessionEnd::Closed(crate::server::Closing::ShellEnded)), "{end:?}");
}
