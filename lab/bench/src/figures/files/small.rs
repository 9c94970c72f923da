//! Small files, both ways: our server over TAP beside vsftpd over a veth pair. The clients are lftp and ours, on the
//! kernel's sockets both times. Each file takes a few replies, so whatever holds one back shows here.

use super::case::{Case, Sample};
use super::ftp::{PASSWORD, USER, prepare_server, start_server};
use super::programs::{Folder, content, finish, memory_kib, ours, quiet};
use super::vsftpd;
use crate::compare::PROCESS;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// How long each file is.
pub const FILE_BYTES: u64 = 4000;
/// What the clients send.
const HERE: &str = "here";

/// One way of moving them.
#[derive(Clone, Copy)]
struct Asked {
    server_is_ours: bool,
    client_is_ours: bool,
    is_put: bool,
    files: usize,
}

/// Every case.
pub fn cases(files: usize) -> Result<Vec<Case>, String> {
    let folder = Folder::new("small")?;
    prepare_server(&folder)?;
    let data = content(FILE_BYTES);
    for at in [format!("{}/many", vsftpd::PUBLIC), HERE.to_owned()] {
        folder.make(&at, super::programs::FOR_ALL)?;
        (0..files).try_for_each(|number| folder.write(&format!("{at}/{number}"), &data))?;
    }
    let folder = Arc::new(folder);
    let mut cases = Vec::new();
    let kinds = [
        ("get, lftp", false, false),
        ("put, lftp", true, false),
        ("get, ours", false, true),
        ("put, ours", true, true),
    ];
    for (what, is_put, client_is_ours) in kinds {
        for (who, server_is_ours) in [("vsftpd, veth", false), ("inhost serve, tap", true)] {
            let (at, asked) = (folder.clone(), Asked { server_is_ours, client_is_ours, is_put, files });
            cases.push(Case {
                what,
                who,
                is_peer: !server_is_ours,
                run: Box::new(move || mirror(asked, &at)),
            });
        }
    }
    Ok(cases)
}

fn mirror(asked: Asked, folder: &Folder) -> Result<Sample, String> {
    let arrived = if asked.is_put { format!("{}/sent", vsftpd::PUBLIC) } else { "got".to_owned() };
    let _ = std::fs::remove_dir_all(folder.0.join(&arrived));
    let (_place, running) = start_server(asked.server_is_ours, folder)?;
    let mut client = if asked.client_is_ours { own(asked)? } else { lftp(asked) };
    let child = quiet(&mut client, folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let (said, _) =
        finish(child.map_err(|e| format!("the client does not start: {e}"))?, Some(running.0.id()))?;
    let seconds = seconds(&said, asked.client_is_ours).ok_or_else(|| format!("the client says {said:?}"))?;
    let count = count(&folder.0.join(&arrived))?;
    match count == asked.files {
        true => Ok(Sample { seconds, memory_kib: memory_kib(running.0.id()), small_kib: None }),
        false => Err(format!("{count} files arrived, not {}", asked.files)),
    }
}

/// Login is left out, since a password hash is costly by design: lftp tells the time before and after.
fn lftp(asked: Asked) -> Command {
    let user = if asked.server_is_ours { format!("-u {USER},{PASSWORD} ") } else { String::new() };
    let work = if asked.is_put { format!("mirror -R {HERE} pub/sent") } else { "mirror pub/many got".into() };
    let mut lftp = Command::new("lftp");
    // What stands behind an exclamation mark goes to the shell up to the line's end.
    let lines = [
        "set ftp:ssl-allow no".to_owned(),
        format!("open {user}{PROCESS}"),
        "cls pub/many > /dev/null".to_owned(),
        "!date +%s.%N".to_owned(),
        work,
        "!date +%s.%N".to_owned(),
    ];
    lftp.args(["-c", &lines.join("\n")]);
    lftp
}

/// Ours says how long it took since it was logged in.
fn own(asked: Asked) -> Result<Command, String> {
    let user = if asked.server_is_ours { format!("{USER}:{PASSWORD}@") } else { String::new() };
    let url = |name: &str| format!("ftp://{user}{PROCESS}/pub/{name}");
    match asked.is_put {
        true => ours(&["ftp", "mirror", "--link", "user", "--reverse", &url("sent"), HERE]),
        false => ours(&["ftp", "mirror", "--link", "user", &url("many"), "got"]),
    }
}

fn seconds(said: &str, client_is_ours: bool) -> Option<f64> {
    if client_is_ours {
        return said.split_once(" in ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    }
    let mut times = said.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let (first, last) = (times.next()?, times.next_back()?);
    Some(last - first)
}

/// Whole files in a folder.
fn count(folder: &Path) -> Result<usize, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut files = 0;
    for file in std::fs::read_dir(folder).map_err(failed)? {
        let length = file.and_then(|file| file.metadata()).map_err(failed)?.len();
        files += usize::from(length == FILE_BYTES);
    }
    Ok(files)
}
