//! Debian's s3270 and c3270, driven by their sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;

use inhost_interop::{DEADLINE, Running, until};

/// A socket for commands.
trait Socket: Read + Write + Send {}
impl<T: Read + Write + Send> Socket for T {}

/// A running s3270 or c3270. A test in which it cannot be started fails.
pub struct S3270 {
    running: Running,
    reader: BufReader<Box<dyn Socket>>,
    /// The file of its socket.
    socket: Option<String>,
}

impl S3270 {
    /// Starts it with these options; the last is the host.
    pub fn start(options: &[&str]) -> S3270 {
        S3270::start_with(options, || ()).0
    }
    /// Starts it, and has the host take the connection: it opens its socket once it is connected.
    pub fn start_with<T>(options: &[&str], host: impl FnOnce() -> T) -> (S3270, T) {
        let running = Running::start(
            Command::new("s3270")
                .args(["-socket", "-utf8", "-codepage", "cp037", "-connecttimeout", "20"])
                .args(options)
                .env("LC_ALL", "C.UTF-8"),
        );
        let host = host();
        let socket = format!("/tmp/x3sck.{}", running.id());
        let stream = until(&format!("s3270's socket {socket}: {}", running.printed()), || {
            UnixStream::connect(&socket).ok()
        });
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let reader = BufReader::new(Box::new(stream) as Box<dyn Socket>);
        (S3270 { running, reader, socket: Some(socket) }, host)
    }
    /// Starts c3270 on a pty, which needs a port that was free a moment ago.
    pub fn start_c3270(host: &str) -> S3270 {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let command = format!("c3270 -scriptport 127.0.0.1:{port} -utf8 -codepage cp037 {host}");
        let running = Running::start(
            Command::new("script")
                .args(["-qec", &command, "/dev/null"])
                .env("LC_ALL", "C.UTF-8")
                .env("TERM", "xterm"),
        );
        let stream = until("c3270's socket", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        S3270 { running, reader: BufReader::new(Box::new(stream)), socket: None }
    }
    /// Gives a command; the data that it answers, or why not.
    pub fn attempt(&mut self, command: &str) -> Result<Vec<String>, String> {
        writeln!(self.reader.get_mut(), "{command}").unwrap();
        let (mut data, mut line) = (Vec::new(), String::new());
        loop {
            line.clear();
            let count = self.reader.read_line(&mut line);
            let count =
                count.unwrap_or_else(|error| panic!("{command}: {error}: {}", self.running.printed()));
            assert!(count > 0, "{command}: s3270 has ended: {}", self.running.printed());
            let text = line.trim_end_matches('\n');
            match text {
                "ok" => return Ok(data),
                "error" => return Err(data.join("\n")),
                _ => {
                    data.extend(text.strip_prefix("data: ").or(text.strip_prefix("data:")).map(str::to_owned))
                }
            }
        }
    }
    /// Gives a command that has to succeed.
    #[track_caller]
    pub fn command(&mut self, command: &str) -> Vec<String> {
        self.attempt(command).unwrap_or_else(|why| panic!("{command}: {why}"))
    }
    /// Waits until the screen has a text.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let mut last = String::new();
        for _ in 0..400 {
            last = self.screen();
            if last.contains(text) {
                return last;
            }
            inhost_interop::pause(std::time::Duration::from_millis(20));
        }
        panic!("{text:?} did not come:\n{last}");
    }
    /// The screen's rows.
    pub fn screen(&mut self) -> String {
        self.command("Ascii()").join("\n")
    }
}

impl Drop for S3270 {
    fn drop(&mut self) {
        self.socket.iter().for_each(|socket| drop(std::fs::remove_file(socket)));
    }
}
