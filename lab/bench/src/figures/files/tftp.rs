//! TFTP: our server over TAP, beside tftpd-hpa and atftpd over a veth pair, with the same client on the kernel; and our
//! client over TAP beside tftp-hpa's, with tftpd-hpa as the server of both.

use super::carry::{Asked, carry, now};
use super::case::{Case, Sample};
use super::programs::{FOR_ALL, Folder, Running, content, finish, memory_kib, ours, peer, quiet, tap};
use crate::compare::{KERNEL, Link, PROCESS, Place};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

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

/// Every case.
pub fn cases(bytes: u64) -> Result<Vec<Case>, String> {
    let folder = Folder::new("tftp")?;
    prepare(&folder, bytes)?;
    let folder = Arc::new(folder);
    let mut cases = Vec::new();
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
            let run = Box::new(move || server(who, is_put, window, bytes, &at));
            cases.push(Case { what, who: name, is_peer: who == Who::Hpa, run });
        }
    }
    for (what, is_put) in [("get by", false), ("put by", true)] {
        for (name, who) in [("tftp-hpa, veth", Who::Hpa), ("inhost tftp, tap", Who::Ours)] {
            let at = folder.clone();
            let run = Box::new(move || client(who, is_put, bytes, &at));
            cases.push(Case { what, who: name, is_peer: who == Who::Hpa, run });
        }
    }
    Ok(cases)
}

fn prepare(folder: &Folder, bytes: u64) -> Result<(), String> {
    folder.make("root", FOR_ALL)?;
    folder.write("root/file", content(bytes))?;
    folder.write(&format!("root/{SMALL}"), "small\n")?;
    let config = format!(
        "[telnet]\nenabled = false\n[little]\nenabled = false\n[tftp]\nenabled = true\nroot = {:?}\nrights = \"write\"\n",
        folder.text("root")
    );
    folder.write("host.toml", config)
}

/// Seconds that a transfer with a server takes, and the server's memory.
fn server(who: Who, is_put: bool, window: u16, bytes: u64, folder: &Folder) -> Result<Sample, String> {
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
    let _ = std::fs::remove_file(folder.0.join("root/sent"));
    let asked = Asked { put_bytes: is_put.then_some(bytes), name, window };
    let (began, mut memory) = (now(), 0);
    let moved = carry(from, to, &asked, bytes, || memory = memory_kib(running.0.id()))?;
    let seconds = now().since(began).as_secs_f64();
    if moved != bytes {
        return Err(format!("{moved} octets moved"));
    }
    let memory_kib = memory.max(memory_kib(running.0.id()));
    Ok(Sample { seconds, memory_kib, small_kib: None })
}

/// Seconds that a client takes with tftpd-hpa on the kernel, and its memory.
fn client(who: Who, is_put: bool, bytes: u64, folder: &Folder) -> Result<Sample, String> {
    let place = Place::new(link(who)?)?;
    let mut command = server_command(Who::Hpa, folder)?;
    let started = quiet(&mut command, folder).spawn().map_err(|e| format!("tftpd-hpa: {e}"))?;
    let _running = Running(started);
    let here = SocketAddr::new(KERNEL.into(), 0);
    let small = Asked { put_bytes: None, name: SMALL, window: 1 };
    carry(here, SocketAddr::new(KERNEL.into(), PORT), &small, 6, || ())?;
    let _ = std::fs::remove_file(folder.0.join("root/sent"));
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
    let child = place.spawn(quiet(&mut command, folder).stdout(Stdio::piped()))?;
    let (said, memory_kib) = finish(child, None)?;
    let wall = now().since(began).as_secs_f64();
    let length = folder.length(if is_put { "root/sent" } else { "got" });
    if length != bytes {
        return Err(format!("{length} octets arrived"));
    }
    // What our client says leaves out that a host is made and its address tested, which a kernel has behind it.
    let own: Option<f64> =
        serde_json::from_str::<serde_json::Value>(&said).ok().and_then(|said| said["seconds"].as_f64());
    Ok(Sample { seconds: own.unwrap_or(wall), memory_kib, small_kib: None })
}

fn link(who: Who) -> Result<Link, String> {
    if who == Who::Ours { "tap-offload" } else { "veth-offload" }.parse()
}

fn hpa(arguments: &[&str]) -> Result<Command, String> {
    let mut command = peer("tftp-hpa", "bin/tftp")?;
    command.args(arguments);
    Ok(command)
}

fn server_command(who: Who, folder: &Folder) -> Result<Command, String> {
    let root = folder.text("root");
    if who == Who::Ours {
        return ours(&["serve", "--quiet", "--link", &tap(), "--config", "host.toml"]);
    }
    if who == Who::Hpa {
        let mut command = peer("tftpd-hpa", "sbin/in.tftpd")?;
        command.args(["-L", "-c", "-u", "nobody", "--address", "0.0.0.0", "--secure", &root]);
        return Ok(command);
    }
    let mut command = peer("atftpd", "sbin/atftpd")?;
    command.args(["--daemon", "--no-fork", "--user", "nobody", "--port", "69"]);
    command.args(["--logfile", "/dev/null", &root]);
    Ok(command)
}
