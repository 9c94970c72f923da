//! The client's driver, against our own server in memory and against others on the system's sockets.

use std::cell::RefCell;
use std::process::{Command as Process, Stdio};
use std::rc::Rc;

use futures_lite::future::{or, zip};
use inhost_base::Duration;
use inhost_interop::{Running, join, output};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::testing::{Ada, OsStream, RealClock, Wire, block_on, reactor, wire};
use super::*;
use crate::client::{Settings, Start};
use crate::machine::Config;
use crate::server::ServerConfig;
use inhost_common::{Admission, AdmissionLimits};

/// A terminal in memory: the test holds the other end.
struct Screen {
    wire: Wire,
}

impl TerminalUi for Screen {
    fn window(&self) -> (u16, u16) {
        (90, 30)
    }
    fn poll_change(&mut self, _: &mut Context<'_>) -> Poll<TerminalChange> {
        Poll::Pending
    }
    fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl tokio::io::AsyncRead for Screen {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(cx, buf)
    }
}

impl tokio::io::AsyncWrite for Screen {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(cx, bytes)
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Who sits at it.
pub(super) struct Person {
    wire: Wire,
    seen: String,
}

impl Person {
    pub(super) async fn types(&mut self, keys: &str) {
        self.wire.write_all(keys.as_bytes()).await.unwrap();
    }
    pub(super) async fn expect(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let mut bytes = [0; 1000];
            let count = self.wire.read(&mut bytes).await.unwrap();
            assert!(count > 0, "{text:?} never came, but {:?}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
            // Shown only when the test fails.
            println!("{:?}", String::from_utf8_lossy(&bytes[..count.min(900)]));
        }
    }
}

fn sit<K: Connect>(connect: &K, port: u16, talk: impl AsyncFnOnce(&mut Person)) -> ClientEnd {
    sit_with(Settings::default(), connect, port, talk)
}

pub(super) fn sit_with<K: Connect>(
    settings: Settings,
    connect: &K,
    port: u16,
    talk: impl AsyncFnOnce(&mut Person),
) -> ClientEnd {
    let (near, far) = wire(4096);
    let start = Start {
        open: Some(("localhost".into(), port)),
        config: Config::client("vt100"),
        settings,
        window: (80, 24),
    };
    let clock = RealClock::new();
    let client = async {
        let mut screen = Screen { wire: near };
        run_client(&mut screen, connect, &clock, start).await.unwrap()
    };
    let person = async {
        let mut person = Person { wire: far, seen: String::new() };
        talk(&mut person).await;
    };
    let too_long = async {
        clock.sleep_until(inhost_base::Instant::from_millis(20_000)).await;
        panic!("the session takes too long")
    };
    block_on(or(zip(client, person), too_long)).0
}

pub(super) fn host() -> HostServices<RealClock, Ada> {
    let arguments = vec!["-c".into(), "PS1='$ ' exec /bin/sh".into()];
    let shell = ShellSettings { arguments, home: "/".into(), ..ShellSettings::default() };
    HostServices::new(RealClock::new(), Ada, Admission::new(AdmissionLimits::default()), shell, reactor())
}

pub(super) fn config() -> ServerConfig {
    ServerConfig { denial: Duration::from_millis(10), idle_time: None, ..ServerConfig::default() }
}

/// Connector in memory, to the owner of the other ends.
#[derive(Default)]
pub(super) struct InMemory {
    far: RefCell<Vec<Wire>>,
}

impl InMemory {
    /// The other end of the last connection.
    pub(super) fn take(&self) -> Wire {
        self.far.borrow_mut().pop().unwrap()
    }
}

impl Connect for InMemory {
    type Stream = Wire;
    fn connect(&self, host: &str, _: u16) -> Pin<Box<dyn Future<Output = Result<Connected<Wire>, String>>>> {
        let (stream, far) = wire(8192);
        let outcome = match self.far.borrow_mut() {
            mut far_ends if host == "localhost" => {
                far_ends.push(far);
                Ok(Connected { stream, address: "127.0.0.1".into() })
            }
            _ => Err("no such host".into()),
        };
        Box::pin(std::future::ready(outcome))
    }
    fn statistics(&self, _: &Wire) -> Vec<String> {
        vec!["round trip   in memory".into()]
    }
}

#[test]
fn our_client_at_our_server() {
    let (connect, host, config) = (InMemory::default(), host(), config());
    let served = RefCell::new(Vec::new());
    let end = sit(&connect, 23, async |person| {
        person.expect("Connected to localhost (127.0.0.1)").await;
        let far = connect.far.borrow_mut().pop().unwrap();
        let server = async {
            let end = serve_session(far, [127, 0, 0, 1].into(), &config, &host).await;
            served.borrow_mut().push(end);
        };
        let talk = async {
            person.expect("inhost> ").await;
            person.types("logon ada\r").await;
            person.expect("Password: ").await;
            person.types("engine\r").await;
            person.expect("$ ").await;
            person.types("stty size; echo $TERM\r").await;
            person.expect("\r\n30 90\r\nvt100\r\n").await;
            person.types("\x1dstatus\r").await;
            let status = person.expect("round trip   in memory").await;
            assert!(status.contains("echoed by the server") && status.contains("NAWS"), "{status}");
            person.types("\x1dsend ayt\r").await;
            person.expect("[Yes]").await;
            person.types("\x1dopen nowhere\r").await;
            person.expect("Session with nowhere: no such host").await;
            person.types("\ryes\r").await;
            person.expect("y\r\ny\r\ny\r\n").await;
            person.types("\x03").await;
            person.types("echo sto''pped\r").await;
            let flood = person.expect("stopped").await;
            assert!(flood.len() < 128 * 1024, "{} octets shown", flood.len());
            person.types("exit\r").await;
            person.expect("closed by the server").await;
        };
        zip(server, talk).await;
    });
    assert_eq!(end, ClientEnd::Done);
    assert!(matches!(served.borrow()[..], [SessionEnd::Closed(_)]), "{served:?}");
}

#[test]
fn nobody_there() {
    struct Nobody;
    impl Connect for Nobody {
        type Stream = Wire;
        fn connect(&self, _: &str, _: u16) -> Pin<Box<dyn Future<Output = Result<Connected<Wire>, String>>>> {
            Box::pin(std::future::ready(Err("refused".into())))
        }
    }
    let end = sit(&Nobody, 23, async |person| {
        person.expect("Trying").await;
    });
    assert_eq!(end, ClientEnd::Failed("refused".into()));
}

/// Connects by the system's TCP.
struct ByOs;

impl Connect for ByOs {
    type Stream = OsStream;
    fn connect(
        &self,
        _: &str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected<OsStream>, String>>>> {
        let stream = std::net::TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string());
        let connected =
            stream.map(|stream| Connected { stream: OsStream::new(stream), address: "127.0.0.1".to_owned() });
        Box::pin(std::future::ready(connected))
    }
}

/// The server gets its connection as standard input, as inetd would give it.
#[test]
fn our_client_at_inetutils_telnetd() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let stdio = || Stdio::from(std::os::fd::OwnedFd::from(stream.try_clone().unwrap()));
        let mut server = Process::new("/usr/sbin/telnetd");
        server.args(["-E", "/bin/sh"]).stdin(stdio()).stdout(stdio()).stderr(Stdio::null());
        let mut running = Running::spawn(&mut server);
        // Only the server's process has the connection now; it ends when the client closes.
        drop((stream, server));
        running.wait();
    });
    let end = sit(&ByOs, port, async |person| {
        person.types("PS1='$ '; stty size; echo he''llo\r").await;
        person.expect("30 90\r\nhello\r\n$ ").await;
        // This server asks for lines as long as its terminal is a plain one, which it may find out after the first
        // prompt; so the key below goes as IP with a Synch, and the output until its timing mark is dropped.
        let mut status = String::new();
        while !status.contains("line by line, not echoed here") {
            person.types("\x1dstatus\r").await;
            status = person.expect("NEW-ENVIRON").await;
        }
        person.types("yes\r").await;
        person.expect("y\r\ny\r\n").await;
        person.types("\x03").await;
        person.types("echo sto''pped\r").await;
        person.expect("stopped").await;
        person.types("exit\r").await;
        person.expect("closed by the server").await;
    });
    assert_eq!(end, ClientEnd::Done);
    join(server);
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
stty rows 31 columns 91 < $spawn_out(slave,name)
want "inhost> "
send "logon\r"
want "User: "
send "ada\r"
want "Password: "
send "engine\r"
want "\$ "
send "stty size\r"
want "31 91"
stty rows 41 columns 101 < $spawn_out(slave,name)
after 300
send "stty size\r"
want "41 101"
want "\$ "
send "yes\r"
want "y\r\ny\r\n"
after 500
send "\003"
send "echo sto''pped\r"
want "stopped"
send "yes\r"
want "y\r\ny\r\n"
after 500
send "\035"
want "telnet> "
send "send ip\r"
send "echo al''so\r"
want "also"
send "\035"
want "telnet> "
send "send ayt\r"
want "Yes"
send "\035"
want "telnet> "
send "send synch\r"
send "\r"
want "\$ "
send "echo af''ter\r"
want "after"
send "exit\r"
expect eof
puts "ALL DONE"
"#;

#[test]
fn inetutils_telnet_at_our_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        block_on(serve_session(OsStream::new(stream), [127, 0, 0, 1].into(), &config(), &host()))
    });
    let script = std::env::temp_dir().join(format!("inhost-expect-{}", std::process::id()));
    std::fs::write(&script, SCRIPT).unwrap();
    let mut expect = Process::new("expect");
    let expect = expect.arg(&script).arg(port.to_string()).env("TERM", "vt100").stdin(Stdio::null());
    let text = String::from_utf8_lossy(&output(expect).stdout).into_owned();
    assert!(text.contains("ALL DONE"), "{}", &text[text.len().saturating_sub(2000)..]);
    std::fs::remove_file(&script).unwrap();
    let end = join(server);
    assert!(matches!(end, SessionEnd::Closed(crate::server::Closing::ShellEnded)), "{end:?}");
}

/// A pipe's end of the client: what it reads, and what it shows.
struct Pipe {
    input: Vec<u8>,
    /// Whether its writer has closed it.
    has_ended: bool,
    shown: Rc<RefCell<Vec<u8>>>,
}

impl tokio::io::AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = buf.remaining().min(self.input.len());
        if count == 0 && !self.has_ended {
            return Poll::Pending;
        }
        buf.put_slice(&self.input.drain(..count).collect::<Vec<_>>());
        Poll::Ready(Ok(()))
    }
}

impl tokio::io::AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.shown.borrow_mut().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl TerminalUi for Pipe {
    fn window(&self) -> (u16, u16) {
        (80, 24)
    }
    fn poll_change(&mut self, _: &mut Context<'_>) -> Poll<TerminalChange> {
        Poll::Pending
    }
    fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a client with `input` in its pipe against the peer `serve`; returns the screen and the result.
fn piped<F: Future<Output = ()>>(input: &[u8], serve: impl FnOnce(Wire) -> F) -> (String, ClientEnd) {
    piped_by(Pipe { input: input.to_vec(), has_ended: true, shown: Rc::default() }, serve)
}

fn piped_by<F: Future<Output = ()>>(mut pipe: Pipe, serve: impl FnOnce(Wire) -> F) -> (String, ClientEnd) {
    let connect = InMemory::default();
    let shown = pipe.shown.clone();
    let start = Start {
        open: Some(("localhost".into(), 2323)),
        config: Config::client("vt100"),
        settings: Settings { is_terminal: false, ..Settings::default() },
        window: (80, 24),
    };
    let clock = RealClock::new();
    let client = async { run_client(&mut pipe, &connect, &clock, start).await.unwrap() };
    let server = async {
        let far = loop {
            if let Some(far) = connect.far.borrow_mut().pop() {
                break far;
            }
            futures_lite::future::yield_now().await;
        };
        serve(far).await;
    };
    let too_long = async {
        clock.sleep_until(inhost_base::Instant::from_millis(20_000)).await;
        panic!("the client takes too long: {}", String::from_utf8_lossy(&shown.borrow()))
    };
    let end = block_on(or(zip(client, server), too_long)).0;
    let shown = String::from_utf8_lossy(&shown.borrow()).into_owned();
    (shown, end)
}

#[test]
fn a_pipe_is_sent_to_its_end_and_what_the_other_end_still_says_is_shown() {
    // Longer than any line that is edited, and with octets that would be keys.
    let input = ["x".repeat(5000), "\n".into(), "a\x15b\x7fc\x03d\x04\n".repeat(9000)].concat();
    let expected = input.replace('\n', "\r\n");
    let (shown, end) = piped(input.as_bytes(), async |mut far: Wire| {
        let mut received = Vec::new();
        let mut bytes = [0; 300];
        while let count @ 1.. = far.read(&mut bytes).await.unwrap() {
            received.extend_from_slice(&bytes[..count]);
            // Slower than the pipe.
            futures_lite::future::yield_now().await;
        }
        assert!(received == expected.as_bytes(), "{} of {} octets arrived", received.len(), expected.len());
        far.write_all(b"all of it").await.unwrap();
        far.shutdown().await.unwrap();
    });
    assert!(shown.contains("all of it"), "{shown}");
    assert!(!shown.contains("xxx"), "a pipe is not echoed: {shown}");
    assert_eq!(end, ClientEnd::Done);
}

#[test]
fn a_pipe_that_is_not_taken_to_its_end_is_a_failure() {
    let (_, end) = piped(&[b'x'; 100_000], async |mut far: Wire| {
        let mut bytes = [0; 300];
        far.read_exact(&mut bytes).await.unwrap();
    });
    assert!(matches!(end, ClientEnd::Failed(_)), "{end:?}");
}

#[test]
fn a_server_that_leaves_after_all_that_has_come_is_not_a_failure() {
    let pipe = Pipe { input: b"quit\n".to_vec(), has_ended: false, shown: Rc::default() };
    let (_, end) = piped_by(pipe, async |mut far: Wire| {
        far.read_exact(&mut [0; 6]).await.unwrap();
    });
    assert_eq!(end, ClientEnd::Done);
}

#[test]
fn a_server_obeys_what_was_typed_before_the_end_of_input() {
    let host = host();
    let config = config();
    let (shown, end) = piped(b"news\nlogon ada\nengine\necho la''st; exit 3\n", async |far: Wire| {
        let end = serve_session(far, [192, 0, 2, 1].into(), &config, &host).await;
        assert!(matches!(end, SessionEnd::Closed(crate::server::Closing::ShellEnded)), "{end:?}");
    });
    assert!(shown.contains("No news.") && shown.contains("last"), "{shown}");
    assert_eq!(end, ClientEnd::Done);
    // No exit, and half a line: the end of the input ends the shell.
    let (shown, _) = piped(b"logon ada\nengine\necho ha''lf", async |far: Wire| {
        serve_session(far, [192, 0, 2, 1].into(), &config, &host).await;
    });
    assert!(shown.contains("half"), "{shown}");
    let (shown, _) = piped(b"help\n", async |far: Wire| {
        serve_session(far, [192, 0, 2, 1].into(), &config, &host).await;
    });
    assert!(shown.contains("LOGON"), "{shown}");
}

/// A connector whose network has a router that knows no way, until the other host answers.
#[derive(Default)]
struct Troubled(InMemory);

impl Connect for Troubled {
    type Stream = Wire;
    fn connect(
        &self,
        host: &str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected<Wire>, String>>>> {
        self.0.connect(host, port)
    }
    fn trouble(&self, _: &Wire) -> Option<String> {
        Some("a router has no route to the host".into())
    }
}

#[test]
fn soft_errors_are_shown_once_and_so_is_their_end() {
    let connect = Troubled::default();
    let end = sit(&connect, 7, async |person| {
        person.expect("Connected to localhost").await;
        let mut far = connect.0.far.borrow_mut().pop().unwrap();
        person.types("are you there\r").await;
        person.expect("[a router has no route to the host; the session goes on, and waits]\r\n").await;
        let mut bytes = [0; 100];
        assert!(far.read(&mut bytes).await.unwrap() > 0, "the keys went nevertheless");
        // It is asked again, and there is nothing new.
        let mut clock = RealClock::new().sleep_until(inhost_base::Instant::from_millis(2500));
        std::future::poll_fn(|cx| clock.as_mut().poll(cx)).await;
        far.write_all(b"yes\r\n").await.unwrap();
        let seen = person.expect("yes").await;
        let again = "[the other host answers again]\r\n";
        assert!(seen.contains(again) || person.expect(again).await.ends_with(again), "{seen:?}");
        assert!(!seen.contains("no route"), "{seen:?}");
        drop(far);
        person.expect("closed by the server").await;
    });
    assert_eq!(end, ClientEnd::Done);
}
