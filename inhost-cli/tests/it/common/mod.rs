//! Shared fixtures of the interop tests: a running host, programs of others, connections with a deadline.

pub mod mail;
pub mod names;
mod tmux;

use inhost_interop::{DEADLINE, Running, join, output, run, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use tmux::Tmux;

/// The password of the user `ada` of every [`Serve`].
pub const PASSWORD: &str = "difference-engine";

/// Its own folder, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("inhost-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The command under test, with folders of its own instead of the user's, and no input.
pub fn inhost(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_inhost"));
    command.env("XDG_RUNTIME_DIR", folder).env("XDG_CONFIG_HOME", folder).env("HOME", folder);
    command.env("SHELL", "/bin/sh").current_dir(folder).stdin(Stdio::null());
    command
}

/// Makes the user `ada`.
pub fn add_ada(folder: &Path, options: &[&str]) {
    let mut add = inhost(folder);
    add.args(["user", "add", "ada"]).args(options);
    let done = output_given(&mut add, format!("{PASSWORD}\n"));
    assert!(done.status.success(), "{done:?}");
}

/// A running host with a user `ada`.
pub struct Serve {
    pub process: Running,
    pub folder: Folder,
    pub banner: String,
}

impl Serve {
    pub fn start(name: &str, arguments: &[&str]) -> Serve {
        let folder = Folder::new(name);
        add_ada(&folder.0, &[]);
        let mut process = Running::start_showing_errors(inhost(&folder.0).arg("serve").args(arguments));
        let banner = process.wait_for("to end.");
        Serve { process, folder, banner }
    }
    /// The command, beside this host.
    pub fn inhost(&self) -> Command {
        inhost(&self.folder.0)
    }
    /// The address at which the system listens for the guest's `port`, as the banner says.
    pub fn forwarded(&self, port: u16) -> &str {
        let ending = format!(" -> {port}");
        self.banner
            .lines()
            .find_map(|line| line.trim().strip_prefix("forward   tcp ")?.strip_suffix(&ending))
            .unwrap_or_else(|| panic!("nothing leads to port {port}: {}", self.banner))
    }
    /// What `netstat` says of it.
    pub fn netstat(&self) -> serde_json::Value {
        serde_json::from_str(&run(self.inhost().args(["netstat", "--json"]))).unwrap()
    }
    /// Asks the host to end, and waits for it.
    pub fn end(mut self) -> ExitStatus {
        self.process.signal(Signal::TERM);
        self.process.wait_within(Duration::from_secs(10))
    }
}

/// Starts the program that its arguments name with no signal ignored: tests run in the background have SIGINT ignored,
/// and their children inherit this.
pub fn with_own_signals() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal");
    command
}

/// Whether the programs of others that a test needs are there. Without root nobody could install them, and the test is
/// left out; for root a missing one is a failure, which the test meets when it calls the program.
pub fn peers(programs: &[&str]) -> bool {
    let is_there = |program: &&&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    let missing: Vec<&str> = programs.iter().filter(|program| !is_there(program)).copied().collect();
    let is_root = rustix::process::geteuid().is_root();
    if !missing.is_empty() && !is_root {
        inhost_interop::left_out(&format!(
            "{} missing; lab/interop/peers as root installs it",
            missing.join(" and ")
        ));
    }
    missing.is_empty() || is_root
}

/// A file of a peer that `lab/interop/peers` unpacks.
pub fn peer(name: &str, file: &str) -> PathBuf {
    inhost_interop::peer(name, file).unwrap_or_else(|| panic!("{name}'s {file} is needed"))
}

/// Runs a program to its end with this input, and gives what it printed.
pub fn output_given(command: &mut Command, input: impl Into<Vec<u8>>) -> Output {
    let (from, mut to) = std::io::pipe().unwrap();
    let input = input.into();
    // The program may end before it has read everything.
    let writing = std::thread::spawn(move || drop(to.write_all(&input)));
    let done = output(command.stdin(from));
    // The writing ends when nobody can read any more.
    command.stdin(Stdio::null());
    join(writing);
    done
}

/// All that is left to read in a pipe of a program that ends.
pub fn rest(mut pipe: impl Read + Send + 'static) -> String {
    join(std::thread::spawn(move || std::io::read_to_string(&mut pipe).unwrap()))
}

/// A server whose connections are the standard streams of `program`.
pub fn socat(port: u16, program: &str) -> Running {
    let listen = format!("TCP6-LISTEN:{port},ipv6only=0,reuseaddr,fork");
    let mut server = Running::start(Command::new("socat").args(["-d", "-d", &listen, program]));
    server.wait_for("listening on");
    server
}

/// Plays a dialogue with `expect`: `want PATTERN STATUS` waits for a pattern, `ended STATUS` for a clean end, and the
/// status names the step that failed. Gives all that was said.
pub fn expect(talk: &str, folder: &Path) -> String {
    let prelude = "set timeout 40\n\
        proc want {pattern status} {\n\
          expect -re $pattern {} timeout {exit $status} eof {exit [expr {$status+100}]}\n}\n\
        proc ended {status} {\n\
          expect eof {} timeout {exit $status}\n catch wait result\n\
          if {[lindex $result 3] != 0} {exit [expr {$status+100}]}\n}\n";
    let mut expect = Command::new("expect");
    expect.args(["-c", &format!("{prelude}{talk}")]).env("XDG_RUNTIME_DIR", folder).env("TERM", "vt100");
    let done = output(expect.stdin(Stdio::null()));
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "step {:?}: {text}{}", done.status, String::from_utf8_lossy(&done.stderr));
    text.into_owned()
}

/// A connection on which nothing waits longer than [`DEADLINE`].
pub fn with_deadline(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Connects, trying again while the host comes up.
pub fn connect(to: &str) -> TcpStream {
    let address: SocketAddr = to.parse().unwrap();
    let call = || TcpStream::connect_timeout(&address, Duration::from_secs(10)).ok();
    with_deadline(until(&format!("an answer of {to}"), call))
}

/// Connects from one of the addresses of this machine.
pub fn connect_from(address: [u8; 4], to: &str) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    // The deadline of writing holds for the connecting, too.
    let stream = with_deadline(socket(AddressFamily::INET, SocketType::STREAM, None).unwrap().into());
    bind(&stream, &SocketAddr::from((address, 0))).unwrap();
    connect(&stream, &to.parse::<SocketAddr>().unwrap()).unwrap();
    stream
}

/// Takes the next caller.
pub fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    with_deadline(until("a caller", || Some(listener.accept().ok()?.0)))
}

/// Sends `bytes` pseudo-random bytes to an echo service and compares what comes back.
pub fn echo_intact(stream: TcpStream, bytes: u64) {
    let mut stream = with_deadline(stream);
    let mut sender = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let mut pattern = Pattern::default();
        let mut left = bytes;
        let mut block = vec![0; 1 << 16];
        while left > 0 {
            let n = left.min(block.len() as u64) as usize;
            pattern.fill(&mut block[..n]);
            sender.write_all(&block[..n]).unwrap();
            left -= n as u64;
        }
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut expected = Pattern::default();
    let (mut got, mut want) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut received = 0;
    loop {
        let n = stream.read(&mut got).unwrap();
        if n == 0 {
            break;
        }
        expected.fill(&mut want[..n]);
        assert!(got[..n] == want[..n], "changed after byte {received}");
        received += n as u64;
    }
    join(writer);
    assert_eq!(received, bytes);
}

/// A sequence of bytes with no short period.
pub struct Pattern(u64, [u8; 8], usize);

impl Default for Pattern {
    fn default() -> Self {
        Pattern(0x9e37_79b9_7f4a_7c15, [0; 8], 8)
    }
}
impl Pattern {
    pub fn fill(&mut self, into: &mut [u8]) {
        for byte in into {
            if self.2 == 8 {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                self.1 = self.0.to_le_bytes();
                self.2 = 0;
            }
            *byte = self.1[self.2];
            self.2 += 1;
        }
    }
}
