//! Many small files: our client over TAP beside lftp over a veth pair, with vsftpd on the kernel as the server of both.

use super::carry::now;
use super::case::{Case, Sample};
use super::programs::{FOR_ALL, Folder, Running, content, finish, ours, quiet, tap};
use super::vsftpd;
use crate::compare::{KERNEL, Link, Place};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// How long each file is.
pub const FILE_BYTES: u64 = 4096;
/// Files of one folder.
const A_FOLDER: usize = 100;
/// Connections of the rows that have several.
const SEVERAL: usize = 8;
const TRIES: usize = 100;

/// Every case.
pub fn cases(files: usize) -> Result<Vec<Case>, String> {
    let folder = Folder::new("mirror")?;
    vsftpd::prepare(&folder)?;
    let data = content(FILE_BYTES);
    for number in 0..files {
        let (at, name) = (number / A_FOLDER, number % A_FOLDER);
        if name == 0 {
            folder.make(&format!("{}/{at}", vsftpd::PUBLIC), FOR_ALL)?;
        }
        folder.write(&format!("{}/{at}/{name}", vsftpd::PUBLIC), &data)?;
    }
    let folder = Arc::new(folder);
    let mut cases = Vec::new();
    for (what, connections) in [("one connection", 1), ("eight", SEVERAL)] {
        for (who, is_ours) in [("lftp, veth", false), ("inhost ftp, tap", true)] {
            let at = folder.clone();
            let run = Box::new(move || mirror(is_ours, connections, files, &at));
            cases.push(Case { what, who, is_peer: !is_ours, run });
        }
    }
    Ok(cases)
}

fn mirror(is_ours: bool, connections: usize, files: usize, folder: &Folder) -> Result<Sample, String> {
    let link = if is_ours { "tap-offload" } else { "veth-offload" };
    let place = Place::new(link.parse::<Link>()?)?;
    let mut server = vsftpd::command(folder)?;
    let _running = Running(quiet(&mut server, folder).spawn().map_err(|e| format!("vsftpd: {e}"))?);
    let at = SocketAddr::new(KERNEL.into(), 21);
    let is_up = (0..TRIES).any(|_| {
        std::thread::park_timeout(Duration::from_millis(50));
        TcpStream::connect(at).is_ok()
    });
    if !is_up {
        return Err("vsftpd does not come up".into());
    }
    let _ = std::fs::remove_dir_all(folder.0.join("got"));
    let mut command = match is_ours {
        true => {
            let url = format!("ftp://{KERNEL}/pub");
            ours(&["ftp", "mirror", "-n", &connections.to_string(), &url, "got", "--link", &tap()])?
        }
        false => {
            let mut lftp = Command::new("lftp");
            let script =
                format!("set ftp:ssl-allow no; open ftp://{KERNEL}; mirror --parallel={connections} pub got");
            lftp.args(["-c", &script]);
            lftp
        }
    };
    let began = now();
    let child = place.spawn(quiet(&mut command, folder).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (said, memory_kib) = finish(child, None)?;
    // Ours says how long it took from when it was logged in: before that a host was made and its address tested, which
    // a kernel has behind it.
    let own = said.split_once(" in ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let seconds = own.unwrap_or(now().since(began).as_secs_f64());
    let arrived = count(&folder.0.join("got"))?;
    match arrived == files {
        true => Ok(Sample { seconds, memory_kib, small_kib: None }),
        false => Err(format!("{arrived} files arrived, not {files}")),
    }
}

/// Whole files in the folders of a folder.
fn count(folder: &std::path::Path) -> Result<usize, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut files = 0;
    for inner in std::fs::read_dir(folder).map_err(failed)? {
        for file in std::fs::read_dir(inner.map_err(failed)?.path()).map_err(failed)? {
            let length = file.and_then(|file| file.metadata()).map_err(failed)?.len();
            files += usize::from(length == FILE_BYTES);
        }
    }
    Ok(files)
}
