//! Shared fixtures of the interop tests: a running host, a network namespace, programs of others.
#![allow(dead_code)] // Each test file uses its part.

pub mod names;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[path = "../../../lab/interop/left_out.rs"]
mod left_out;

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

/// A program that ends with the test, however that ends.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command under test, with folders of its own instead of the user's.
pub fn inhost(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_inhost"));
    command.env("XDG_RUNTIME_DIR", folder).env("XDG_CONFIG_HOME", folder).env("HOME", folder);
    command.env("SHELL", "/bin/sh").current_dir(folder);
    command
}

/// A running host with a user `ada`.
pub struct Serve {
    child: Running,
    pub folder: Folder,
    pub banner: String,
}

impl Serve {
    pub fn start(name: &str, arguments: &[&str]) -> Serve {
        let folder = Folder::new(name);
        let mut add = inhost(&folder.0)
            .args(["user", "add", "ada"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        writeln!(add.stdin.take().unwrap(), "{PASSWORD}").unwrap();
        assert!(add.wait().unwrap().success());
        let mut child = inhost(&folder.0)
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut banner = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !banner.contains("to end.") {
            if lines.read_line(&mut banner).unwrap() == 0 {
                panic!("the host ended before it was up: {banner}");
            }
        }
        Serve { child: Running(child), folder, banner }
    }
    /// The command, beside this host.
    pub fn inhost(&self) -> Command {
        inhost(&self.folder.0)
    }
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.0.id()
    }
    /// Asks the host to end, and waits for it.
    pub fn end(mut self) -> std::process::ExitStatus {
        let pid = self.child.0.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        for _ in 0..200 {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                return status;
            }
            wait(50);
        }
        panic!("the host did not end within ten seconds of being asked to");
    }
}
/// Starts the program that its arguments name with no signal ignored: tests run in the background have SIGINT ignored,
/// and their children inherit this.
pub fn with_own_signals() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal");
    command
}

/// Real time passes.
pub fn wait(millis: u64) {
    std::thread::park_timeout(Duration::from_millis(millis));
}

/// Puts this thread, and what it starts, into its own network namespace with loopback up. Where that is not allowed the
/// test is left out: false.
pub fn own_namespace() -> bool {
    // SAFETY: nothing but the network namespace is unshared, and no descriptor depends on it.
    if let Err(error) = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) } {
        left_out::left_out(&format!("no network namespace of its own ({error}); run as root"));
        return false;
    }
    run("ip", &["link", "set", "lo", "up"]);
    // A fresh address is usable at once.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
    true
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
        left_out::left_out(&format!(
            "{} missing; lab/interop/peers as root installs it",
            missing.join(" and ")
        ));
    }
    missing.is_empty() || is_root
}

/// A file of a peer that `lab/interop/peers` unpacks.
pub fn peer(name: &str, file: &str) -> PathBuf {
    let peers = std::env::var_os("INHOST_PEERS").map_or_else(|| "/opt/inhost-peers".into(), PathBuf::from);
    let path = peers.join(name).join(file);
    assert!(path.exists(), "{} is needed; lab/interop/peers unpacks it", path.display());
    path
}

/// Runs a program of others to its end; one that is missing fails the test.
pub fn output(program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("{program} is needed ({e}); lab/interop/peers installs it"))
}

/// Runs a program of others, which must succeed; gives what it printed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let done = output(program, arguments);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success(),
        "{program} {arguments:?}: {text}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    text
}

/// Plays a dialogue with `expect`: `want PATTERN STATUS` waits for a pattern, `ended STATUS` for a clean end, and the
/// status names the step that failed. Gives all that was said.
pub fn expect(talk: &str, folder: &Path) -> String {
    let prelude = "set timeout 60\n\
        proc want {pattern status} {\n\
          expect -re $pattern {} timeout {exit $status} eof {exit [expr {$status+100}]}\n}\n\
        proc ended {status} {\n\
          expect eof {} timeout {exit $status}\n catch wait result\n\
          if {[lindex $result 3] != 0} {exit [expr {$status+100}]}\n}\n";
    let done = Command::new("expect")
        .args(["-c", &format!("{prelude}{talk}")])
        .env("XDG_RUNTIME_DIR", folder)
        .env("TERM", "vt100")
        .stdin(Stdio::null())
        .output()
        .expect("expect is needed; lab/interop/peers installs it");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "step {:?}: {text}{}", done.status, String::from_utf8_lossy(&done.stderr));
    text.into_owned()
}

/// Connects, trying for ten seconds while the host comes up.
pub fn connect(to: &str) -> TcpStream {
    for _ in 0..100 {
        if let Ok(stream) = TcpStream::connect(to) {
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            return stream;
        }
        wait(100);
    }
    panic!("{to} does not answer");
}

/// Connects from one of the addresses of this machine.
pub fn connect_from(address: [u8; 4], to: &str) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &std::net::SocketAddr::from((address, 0))).unwrap();
    connect(&socket, &to.parse::<std::net::SocketAddr>().unwrap()).unwrap();
    TcpStream::from(socket)
}

/// Sends `bytes` pseudo-random bytes to an echo service and compares what comes back.
pub fn echo_intact(stream: TcpStream, bytes: u64) {
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
    let mut stream = stream;
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
    writer.join().unwrap();
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
