//! TFTP: our server over TAP, beside tftpd-hpa and atftpd over a veth pair, with the same client on the kernel; and our
//! client over TAP beside tftp-hpa's, with tftpd-hpa as the server of both.

use super::Row;
use super::carry::{Asked, carry, now};
use crate::compare::{KERNEL, Link, PROCESS, Place};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where `lab/interop/peers` unpacks others.
const PEERS: &str = "/opt/inhost-peers";
const PORT: u16 = 69;
/// A small file, by which a server shows that it is up; and how often it is asked for.
const SMALL: &str = "small";
const ATTEMPTS: usize = 5;

/// A program under test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Ours,
    Hpa,
    Atftpd,
}

/// Every row, each measured so often, one after the other in turns.
pub fn rows(bytes: u64, repeats: usize) -> Result<Vec<Row>, String> {
    let folder = std::env::temp_dir().join(format!("inhost-bench-files-{}", std::process::id()));
    prepare(&folder, bytes)?;
    let mut rows = Vec::new();
    let servers = [
        ("tftpd-hpa, veth, lock-step", Who::Hpa, 1),
        ("atftpd, veth, lock-step", Who::Atftpd, 1),
        ("atftpd, veth, window 64", Who::Atftpd, 64),
        ("inhost serve, tap, lock-step", Who::Ours, 1),
        ("inhost serve, tap, window 64", Who::Ours, 64),
    ];
    for (what, is_put) in [("get from", false), ("put to", true)] {
        for (name, who, window) in servers {
            let at = folder.clone();
            let run = move || server(who, is_put, window, bytes, &at);
            rows.push(row(what, name, repeats, who == Who::Hpa, run)?);
        }
    }
    for (what, is_put) in [("get by", false), ("put by", true)] {
        for (name, who) in [("tftp-hpa, veth", Who::Hpa), ("inhost tftp, tap", Who::Ours)] {
            let at = folder.clone();
            let run = move || client(who, is_put, bytes, &at);
            rows.push(row(what, name, repeats, who == Who::Hpa, run)?);
        }
    }
    std::fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
    Ok(rows)
}

fn prepare(folder: &Path, bytes: u64) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let root = folder.join("root");
    std::fs::create_dir_all(&root).map_err(failed)?;
    for path in [folder, &root] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).map_err(failed)?;
    }
    let data: Vec<u8> = (0..bytes).map(|n| (n / 251) as u8).collect();
    std::fs::write(root.join("file"), data).map_err(failed)?;
    std::fs::write(root.join(SMALL), "small\n").map_err(failed)?;
    let config = format!(
        "[telnet]\nenabled = false\n[little]\nenabled = false\n[tftp]\nenabled = true\nroot = {:?}\nrights = \"write\"\n",
        root.display().to_string()
    );
    std::fs::write(folder.join("host.toml"), config).map_err(failed)
}

/// Each run has a thread of its own, which ends in the namespaces that it makes.
fn row(
    what: &'static str,
    who: &'static str,
    repeats: usize,
    is_peer: bool,
    run: impl Fn() -> Result<(f64, u64), String> + Send + Sync,
) -> Result<Row, String> {
    let mut row = Row { what, who, seconds: Vec::new(), memory_kib: 0, is_peer };
    for _ in 0..repeats {
        let done = std::thread::scope(|scope| scope.spawn(&run).join());
        let (seconds, memory_kib) = done.map_err(|_| "a run panicked")?.map_err(|e| format!("{who}: {e}"))?;
        row.seconds.push(seconds);
        row.memory_kib = row.memory_kib.max(memory_kib);
    }
    eprintln!("{what} {who}: {:.2?} s, {} KiB", row.seconds, row.memory_kib);
    Ok(row)
}

/// A server ends with its run.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever keeps children takes them along when asked.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Seconds that a transfer with a server takes, and the server's memory.
fn server(who: Who, is_put: bool, window: u16, bytes: u64, folder: &Path) -> Result<(f64, u64), String> {
    let place = Place::new(link(who)?)?;
    let mut command = server_command(who, folder)?;
    let running = Running(place.spawn(quiet(&mut command, folder))?);
    let (from, to) = (SocketAddr::new(KERNEL.into(), 0), SocketAddr::new(PROCESS.into(), PORT));
    let small = Asked { put_bytes: None, name: SMALL, window: 1 };
    let is_up = (0..ATTEMPTS).any(|_| carry(from, to, &small, 6, || ()).is_ok());
    if !is_up {
        return Err("it does not answer".into());
    }
    let name = if is_put { "sent" } else { "file" };
    let _ = std::fs::remove_file(folder.join("root/sent"));
    let asked = Asked { put_bytes: is_put.then_some(bytes), name, window };
    let (began, mut memory) = (now(), 0);
    let moved = carry(from, to, &asked, bytes, || memory = memory_kib(running.0.id()))?;
    let seconds = now().since(began).as_secs_f64();
    if moved != bytes {
        return Err(format!("{moved} octets moved"));
    }
    Ok((seconds, memory.max(memory_kib(running.0.id()))))
}

/// Seconds that a client takes with tftpd-hpa on the kernel, and its memory.
fn client(who: Who, is_put: bool, bytes: u64, folder: &Path) -> Result<(f64, u64), String> {
    let place = Place::new(link(who)?)?;
    let mut command = server_command(Who::Hpa, folder)?;
    let started = quiet(&mut command, folder).spawn().map_err(|e| format!("tftpd-hpa: {e}"))?;
    let _running = Running(started);
    let here = SocketAddr::new(KERNEL.into(), 0);
    let small = Asked { put_bytes: None, name: SMALL, window: 1 };
    carry(here, SocketAddr::new(KERNEL.into(), PORT), &small, 6, || ())?;
    let _ = std::fs::remove_file(folder.join("root/sent"));
    let host = KERNEL.to_string();
    let mut command = match (who, is_put) {
        (Who::Ours, false) => ours(&["tftp", "get", &format!("{host}:file"), "got"])?,
        (Who::Ours, true) => ours(&["tftp", "put", "root/file", &format!("{host}:sent")])?,
        // It asks for blocks of 512 octets only; the smaller size is part of what it is.
        (_, false) => hpa(&["-m", "binary", &host, "-c", "get", "file", "got"])?,
        (_, true) => hpa(&["-m", "binary", &host, "-c", "put", "root/file", "sent"])?,
    };
    if who == Who::Ours {
        command.args(["--link", &tap(), "--json"]);
    }
    let began = now();
    let mut child = place.spawn(quiet(&mut command, folder).stdout(Stdio::piped()))?;
    let mut memory = 0;
    let status = loop {
        memory = memory.max(memory_kib(child.id()));
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None => std::thread::park_timeout(Duration::from_millis(10)),
        }
    };
    let wall = now().since(began).as_secs_f64();
    let mut said = String::new();
    if let Some(mut out) = child.stdout.take() {
        std::io::Read::read_to_string(&mut out, &mut said).map_err(|e| e.to_string())?;
    }
    let arrived = folder.join(if is_put { "root/sent" } else { "got" });
    let length = std::fs::metadata(&arrived).map_or(0, |metadata| metadata.len());
    if !status.success() || length != bytes {
        return Err(format!("{status}, {length} octets arrived"));
    }
    // What our client says leaves out that a host is made and its address tested, which a kernel has behind it.
    let own: Option<f64> =
        serde_json::from_str::<serde_json::Value>(&said).ok().and_then(|said| said["seconds"].as_f64());
    Ok((own.unwrap_or(wall), memory))
}

fn link(who: Who) -> Result<Link, String> {
    if who == Who::Ours { "tap-offload" } else { "veth-offload" }.parse()
}

fn tap() -> String {
    format!("tap:bench,address={PROCESS}/24")
}

fn ours(arguments: &[&str]) -> Result<Command, String> {
    let own = std::env::current_exe().map_err(|e| format!("where this program lies: {e}"))?;
    let path = own.with_file_name("inhost");
    if !path.exists() {
        return Err(format!("{} is missing; cargo build --release -p inhost", path.display()));
    }
    let mut command = Command::new(path);
    command.args(arguments);
    Ok(command)
}

fn peer(package: &str, file: &str) -> Result<PathBuf, String> {
    let root = std::env::var_os("INHOST_PEERS").map_or_else(|| PEERS.into(), PathBuf::from);
    let path = root.join(package).join("usr").join(file);
    if path.exists() { Ok(path) } else { Err(format!("{} is missing; lab/interop/peers", path.display())) }
}

fn hpa(arguments: &[&str]) -> Result<Command, String> {
    let mut command = Command::new(peer("tftp-hpa", "bin/tftp")?);
    command.args(arguments);
    Ok(command)
}

fn server_command(who: Who, folder: &Path) -> Result<Command, String> {
    let root = folder.join("root");
    let root = root.to_str().ok_or("the folder's name is no text")?;
    let mut command = match who {
        Who::Ours => return ours(&["serve", "--quiet", "--link", &tap(), "--config", "host.toml"]),
        Who::Hpa => Command::new(peer("tftpd-hpa", "sbin/in.tftpd")?),
        Who::Atftpd => Command::new(peer("atftpd", "sbin/atftpd")?),
    };
    match who {
        Who::Hpa => command.args(["-L", "-c", "-u", "nobody", "--address", "0.0.0.0", "--secure", root]),
        _ => command.args([
            "--daemon",
            "--no-fork",
            "--user",
            "nobody",
            "--port",
            "69",
            "--logfile",
            "/dev/null",
            root,
        ]),
    };
    Ok(command)
}

fn quiet<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command.current_dir(folder).env("XDG_RUNTIME_DIR", folder).env("XDG_CONFIG_HOME", folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// The most memory that a process and those that it has started have had.
fn memory_kib(process: u32) -> u64 {
    let read = |file: String| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let status = read("status".into());
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let own = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
    let children = read(format!("task/{process}/children"));
    own + children.split_whitespace().filter_map(|child| child.parse().ok()).map(memory_kib).sum::<u64>()
}
