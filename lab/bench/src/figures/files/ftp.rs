//! FTP: our server over TAP beside vsftpd over a veth pair, and our server behind a forward of the `user` link beside
//! vsftpd by the loopback. curl on the kernel is the client of all, and says how long the transfer took: logging in, is
//! left out, since a password hash is costly by design.

use super::case::{Case, Sample};
use super::programs::{Folder, Running, content, finish, ours, quiet, tap};
use super::vsftpd;
use crate::compare::{KERNEL, Link, PROCESS, Place};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// User of our server.
pub const USER: &str = "ada";
/// With this.
pub const PASSWORD: &str = "difference-engine";
/// A first transfer has one of so many parts.
const SMALL: u64 = 100;
/// A server has so long to come up: ours tests first whether its address is another's.
const UP: Duration = Duration::from_secs(20);
/// Both have this; vsftpd knows no later version.
const CIPHER: &str = "ECDHE-RSA-AES256-GCM-SHA384";
const SERVER: &str = "[telnet]\nenabled = false\n[little]\nenabled = false\n[ftp]\nenabled = true\n\
    root = \"@/root\"\nrights = \"write\"\ncertificate = \"@/cert.pem\"\nkey = \"@/key.pem\"\n";
const FORWARDED: &str = "passive_ports = \"50000-50003\"\n";

/// One way of asking for a file.
#[derive(Clone, Copy)]
struct Asked {
    is_ours: bool,
    /// By a forward and the loopback, not by its own link.
    is_local: bool,
    is_put: bool,
    is_secure: bool,
    bytes: u64,
}

/// Every case.
pub fn cases(bytes: u64) -> Result<Vec<Case>, String> {
    let folder = Folder::new("ftp")?;
    prepare(&folder, bytes)?;
    let folder = Arc::new(folder);
    let mut cases = Vec::new();
    let kinds = [
        (["get", "get, local"], false, false),
        (["put", "put, local"], true, false),
        (["get TLS", "get TLS, local"], false, true),
        (["put TLS", "put TLS, local"], true, true),
    ];
    for is_local in [false, true] {
        let names = match is_local {
            false => ["vsftpd, veth", "inhost serve, tap"],
            true => ["vsftpd, loopback", "inhost serve, user forward"],
        };
        for (what, is_put, is_secure) in kinds {
            for (who, is_ours) in names.into_iter().zip([false, true]) {
                let asked = Asked { is_ours, is_local, is_put, is_secure, bytes };
                let at = folder.clone();
                let run = Box::new(move || transfers(asked, &at));
                cases.push(Case { what: what[usize::from(is_local)], who, is_peer: !is_ours, run });
            }
        }
    }
    Ok(cases)
}

fn prepare(folder: &Folder, bytes: u64) -> Result<(), String> {
    prepare_server(folder)?;
    for (name, bytes) in [("small", bytes / SMALL), ("file", bytes)] {
        folder.write(&format!("{}/{name}", vsftpd::PUBLIC), content(bytes))?;
    }
    Ok(())
}

/// Makes what both servers need: folders, settings, a certificate, and a user of ours.
pub fn prepare_server(folder: &Folder) -> Result<(), String> {
    vsftpd::prepare(folder)?;
    for (name, more) in [("tap.toml", ""), ("forward.toml", FORWARDED)] {
        folder.write(name, format!("{}{more}", SERVER.replace('@', &folder.text(""))))?;
    }
    let mut add = ours(&["user", "add", USER])?;
    let mut child = quiet(&mut add, folder).stdin(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        writeln!(input, "{PASSWORD}").map_err(|e| e.to_string())?;
    }
    finish(child, None).map(|_| ())
}

/// Starts a server on its own link; it ends with what comes of this.
pub fn start_server(is_ours: bool, folder: &Folder) -> Result<(Place, Running), String> {
    let link = if is_ours { "tap-offload" } else { "veth-offload" };
    let place = Place::new(link.parse::<Link>()?)?;
    let mut command = match is_ours {
        false => vsftpd::command(folder)?,
        true => ours(&["serve", "--quiet", "--link", &tap(), "--config", "tap.toml"])?,
    };
    let running = Running(place.spawn(quiet(&mut command, folder))?);
    wait_until_up(PROCESS)?;
    Ok((place, running))
}

/// A transfer of a hundredth, and then of the whole, in two sessions with one server.
fn transfers(asked: Asked, folder: &Folder) -> Result<Sample, String> {
    let link = match (asked.is_local, asked.is_ours) {
        (true, _) => "lo-offload",
        (false, true) => "tap-offload",
        (false, false) => "veth-offload",
    };
    let place = Place::new(link.parse::<Link>()?)?;
    let at = if asked.is_local { KERNEL } else { PROCESS };
    let mut command = match (asked.is_ours, asked.is_local) {
        (false, _) => vsftpd::command(folder)?,
        (true, false) => ours(&["serve", "--quiet", "--link", &tap(), "--config", "tap.toml"])?,
        (true, true) => ours(&["serve", "--quiet", "--link", &forwards(), "--config", "forward.toml"])?,
    };
    let running = Running(place.spawn(quiet(&mut command, folder))?);
    wait_until_up(at)?;
    let server = running.0.id();
    let (_, small_kib) = transfer(asked, at, "small", asked.bytes / SMALL, server, folder)?;
    let (seconds, memory_kib) = transfer(asked, at, "file", asked.bytes, server, folder)?;
    Ok(Sample { seconds, memory_kib, small_kib: Some(small_kib) })
}

fn forwards() -> String {
    let ports = [(21, 21), (50_000, 50_000), (50_001, 50_001), (50_002, 50_002), (50_003, 50_003)];
    let words = ports.map(|(from, to)| format!(",forward={KERNEL}:{from}->{to}"));
    format!("user{}", words.concat())
}

fn wait_until_up(at: Ipv4Addr) -> Result<(), String> {
    let began = super::carry::now();
    while super::carry::now().since(began).as_secs_f64() < UP.as_secs_f64() {
        if TcpStream::connect_timeout(&SocketAddr::new(at.into(), 21), Duration::from_secs(1)).is_ok() {
            return Ok(());
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    Err("it does not come up".into())
}

/// Seconds and the server's memory.
fn transfer(
    asked: Asked,
    at: Ipv4Addr,
    name: &str,
    bytes: u64,
    server: u32,
    folder: &Folder,
) -> Result<(f64, u64), String> {
    let stored = format!("{}/sent", vsftpd::PUBLIC);
    let _ = std::fs::remove_file(folder.0.join(&stored));
    let mut curl = Command::new("curl");
    quiet(&mut curl, folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    curl.args(["-sS", "-w", "%{time_pretransfer} %{time_total} %{size_download}"]);
    if asked.is_ours {
        curl.args(["-u", &format!("{USER}:{PASSWORD}")]);
    }
    if asked.is_secure {
        curl.args(["--ssl-reqd", "--insecure", "--tls-max", "1.2", "--ciphers", CIPHER]);
    }
    match asked.is_put {
        true => {
            curl.args(["-T", &format!("{}/{name}", vsftpd::PUBLIC), &format!("ftp://{at}/pub/sent")]);
        }
        false => {
            curl.args(["-o", "/dev/null", &format!("ftp://{at}/pub/{name}")]);
        }
    }
    let child = curl.spawn().map_err(|e| format!("curl does not start: {e}; apt-get install curl"))?;
    let (said, memory_kib) = finish(child, Some(server))?;
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [before, all, came] = numbers[..] else { return Err(format!("curl says {said:?}")) };
    let moved = if asked.is_put { folder.length(&stored) } else { came as u64 };
    match moved == bytes {
        true => Ok((all - before, memory_kib)),
        false => Err(format!("{moved} octets moved, not {bytes}")),
    }
}
