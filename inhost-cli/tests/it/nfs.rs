//! NFS: a folder of a running host, from `inhost nfs` and from Debian's libnfs.

use crate::common::{Folder, Serve, inhost, peers, with_own_signals};
use inhost_interop::{Running, output, run, until};
use rustix::process::Signal;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

/// A host that exports `files` in its folder, and the port at which the system reaches its NFS.
fn serve(name: &str) -> (Serve, Folder, String) {
    serve_with(name, "")
}

/// The same with more lines for the export.
fn serve_with(name: &str, export: &str) -> (Serve, Folder, String) {
    let folder = Folder::new(&format!("{name}-config"));
    let (root, path) = (folder.0.join("files"), folder.0.join("host.toml"));
    fs::create_dir(&root).unwrap();
    let config = format!(
        "link = [\"user,forward=127.0.0.1:0->2049\"]\n[nfs]\nenabled = true\nstate = {:?}\n\
         [[nfs.export]]\npath = \"/files\"\nroot = {root:?}\nclients = [\"*\"]\nrights = \"write\"\n\
         user = {}\ngroup = {}\n{export}",
        folder.0.join("state"),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    fs::write(&path, config).unwrap();
    let serve = Serve::start(name, &["--config", path.to_str().unwrap()]);
    let port = |line: &str| {
        Some(line.trim().strip_prefix("forward   tcp 127.0.0.1:")?.strip_suffix(" -> 2049")?.to_owned())
    };
    let port = serve.banner.lines().find_map(port).unwrap_or_else(|| panic!("{}", serve.banner));
    (serve, folder, port)
}

/// Names with contents, below a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                true => {
                    contents(&path).into_iter().map(|(rest, data)| (format!("{name}/{rest}"), data)).collect()
                }
                false => vec![(name, fs::read(&path).unwrap())],
            }
        })
        .collect();
    found.sort();
    found
}

#[test]
fn files_and_folders_go_there_and_come_back() {
    let (serve, folder, _) = serve("nfs");
    let own = folder.0.join("own");
    fs::create_dir_all(own.join("deep/er")).unwrap();
    for (name, bytes) in [("empty", 0), ("deep/text", 100), ("deep/er/large", 3_000_001)] {
        let data: Vec<u8> = (0..bytes).map(|at: u32| (at * 7 % 251) as u8).collect();
        fs::write(own.join(name), data).unwrap();
    }
    let nfs = |words: &[&str]| {
        let mut command = serve.inhost();
        run(command.arg("nfs").args(words).current_dir(&folder.0))
    };
    assert_eq!(nfs(&["exports", "127.0.0.1"]), "/files  *\n");
    let sent: Value =
        serde_json::from_str(&nfs(&["put", "-r", "own", "127.0.0.1:/files/", "--json"])).unwrap();
    assert_eq!((&sent["files"], &sent["bytes"]), (&3.into(), &3_000_101.into()), "{sent}");
    assert_eq!(contents(&own), contents(&folder.0.join("files/own")));

    let listed = nfs(&["ls", "127.0.0.1:/files/own"]);
    assert_eq!(listed, "deep/\nempty\n");
    let long = nfs(&["ls", "-l", "nfs://127.0.0.1/files/own/deep/text"]);
    assert!(long.starts_with("-rw") && long.ends_with(" text\n") && long.contains(" 100 20"), "{long}");

    // A link on the command line is followed.
    std::os::unix::fs::symlink("own/deep/text", folder.0.join("shortcut")).unwrap();
    nfs(&["put", "shortcut", "127.0.0.1:/files/own/"]);
    let sent = folder.0.join("files/own/shortcut");
    assert_eq!(fs::symlink_metadata(&sent).unwrap().len(), 100);
    fs::remove_file(sent).unwrap();
    nfs(&["mkdir", "127.0.0.1:/files/new"]);
    nfs(&["mv", "127.0.0.1:/files/own/empty", "/files/new/hollow"]);
    nfs(&["mv", "127.0.0.1:/files/new/hollow", "127.0.0.1:/files/new/other"]);
    nfs(&["mv", "127.0.0.1:/files/new/other", "void"]);
    assert_eq!(nfs(&["ls", "127.0.0.1:/files/new"]), "void\n");
    nfs(&["rm", "127.0.0.1:/files/new/void"]);
    nfs(&["rm", "127.0.0.1:/files/new"]);

    fs::create_dir(folder.0.join("back")).unwrap();
    let said = nfs(&["get", "-r", "127.0.0.1:/files/own", "back"]);
    assert!(said.starts_with("2 files, 3000101 bytes ("), "{said}");
    assert_eq!(contents(&folder.0.join("back/own")), contents(&folder.0.join("files/own")));
    let one = nfs(&["get", "127.0.0.1:/files/own/deep/text", "renamed", "-q"]);
    assert_eq!((one.as_str(), fs::metadata(folder.0.join("renamed")).unwrap().len()), ("", 100));
}

/// Seconds and permission bits of a file.
fn facts(path: &Path) -> (i64, u32) {
    let of = fs::metadata(path).unwrap();
    (of.mtime(), of.mode() & 0o7777)
}

#[test]
fn times_and_permissions_of_files_and_directories_are_kept() {
    let (serve, folder, _) = serve("nfs-facts");
    let (own, there) = (folder.0.join("own"), folder.0.join("files/own"));
    fs::create_dir_all(own.join("deep")).unwrap();
    let times = [("text", 1_000_000_007_i64, 0o640), ("program", 7, 0o555), ("deep/old", -5, 0o600)];
    let directories = [("deep", 900_000_000, 0o750), ("", 1_200_000_000, 0o701)];
    for (name, ..) in times {
        fs::write(own.join(name), name).unwrap();
    }
    for (name, seconds, mode) in times.into_iter().chain(directories) {
        let time = match u64::try_from(seconds) {
            Ok(after) => UNIX_EPOCH + Duration::from_secs(after),
            Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()),
        };
        fs::File::open(own.join(name)).unwrap().set_modified(time).unwrap();
        fs::set_permissions(own.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let nfs = |words: &[&str]| {
        let mut command = serve.inhost();
        run(command.arg("nfs").args(words).current_dir(&folder.0))
    };
    let check = |root: &Path| {
        for (name, seconds, mode) in times.into_iter().chain(directories) {
            // NFS has no times before 1970.
            assert_eq!(facts(&root.join(name)), (seconds.max(0), mode), "{name:?} in {root:?}");
        }
    };
    nfs(&["put", "-r", "own", "127.0.0.1:/files/"]);
    check(&there);
    fs::create_dir(folder.0.join("back")).unwrap();
    nfs(&["get", "-r", "127.0.0.1:/files/own", "back"]);
    check(&folder.0.join("back/own"));
    // Again, over what is there.
    fs::set_permissions(there.join("deep"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(there.join("text"), fs::Permissions::from_mode(0o600)).unwrap();
    nfs(&["put", "-r", "own", "127.0.0.1:/files/"]);
    check(&there);
}

#[test]
fn names_that_are_not_utf_8_come_and_go_and_depth_has_a_limit() {
    let (serve, folder, _) = serve("nfs-octets");
    let name = |octets: &[u8]| PathBuf::from(OsStr::from_bytes(octets));
    let own = folder.0.join("own");
    fs::create_dir_all(own.join(name(b"M\xe4dchen"))).unwrap();
    fs::write(own.join(name(b"M\xe4dchen/\xff")), b"octets").unwrap();
    std::os::unix::fs::symlink("nowhere", own.join("link")).unwrap();
    let nfs = |words: &[&OsStr]| {
        let mut command = serve.inhost();
        output(command.arg("nfs").args(words).current_dir(&folder.0))
    };
    let words = |text: &'static str| text.split(' ').map(OsStr::new).collect::<Vec<_>>();
    let sent = nfs(&words("put -r own 127.0.0.1:/files/"));
    let said = String::from_utf8_lossy(&sent.stdout).into_owned();
    assert!(said.starts_with("1 file, 6 bytes"), "{said}{}", String::from_utf8_lossy(&sent.stderr));
    let left_out = String::from_utf8_lossy(&sent.stderr).into_owned();
    assert!(left_out.contains("not copied, since it is a symbolic link: /own/link\n"), "{left_out}");
    let there = folder.0.join("files/own").join(name(b"M\xe4dchen/\xff"));
    assert_eq!(fs::read(&there).unwrap(), b"octets");
    assert!(nfs(&words("get -r nfs://127.0.0.1/files/own/M%e4dchen back")).status.success());
    assert_eq!(fs::read(folder.0.join("back").join(name(b"\xff"))).unwrap(), b"octets");

    fs::create_dir_all(own.join("deep/".repeat(70))).unwrap();
    fs::create_dir_all(folder.0.join("files/other").join("deep/".repeat(70))).unwrap();
    for command in ["put -r own 127.0.0.1:/files/", "get -r 127.0.0.1:/files/other"] {
        let done = nfs(&words(command));
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && error.contains("nested more than 64 deep"), "{command}: {error}");
    }
}

#[test]
fn calls_come_from_a_reserved_port_if_that_is_asked_for() {
    let (serve, folder, _) = serve_with("nfs-reserved", "reserved_port = true\n");
    fs::write(folder.0.join("files/text"), "x").unwrap();
    let ls = |words: &[&str]| {
        let mut command = serve.inhost();
        output(command.args(["nfs", "ls", "127.0.0.1:/files"]).args(words).current_dir(&folder.0))
    };
    assert!(!ls(&[]).status.success(), "the export wants a reserved port");
    assert_eq!(String::from_utf8_lossy(&ls(&["--reserved-port"]).stdout), "text\n");
}

#[test]
fn what_cannot_be_done_is_said() {
    let (serve, folder, port) = serve("nfs-errors");
    fs::write(folder.0.join("files/text"), "x").unwrap();
    fs::create_dir(folder.0.join("files/full")).unwrap();
    fs::write(folder.0.join("files/full/text"), "x").unwrap();
    let fails = |words: &[&str], why: &str| {
        let mut command = serve.inhost();
        let done = output(command.arg("nfs").args(words).current_dir(&folder.0));
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && error.contains(why), "{words:?}: {error}");
    };
    fails(&["ls", "127.0.0.1:/elsewhere"], "no export has /elsewhere; there is /files");
    fails(&["get", "127.0.0.1:/files/none"], "/files/none: ");
    fails(&["get", "127.0.0.1:/files/full"], "It is a directory");
    fails(&["rm", "127.0.0.1:/files/full"], "/files/full: ");
    fails(&["put", "-r", "/", "127.0.0.1:/files/"], "/ cannot be sent as a whole");
    fails(&["mv", "127.0.0.1:/files/text", "/filesb"], "/filesb is not in the export /files");
    fails(&["mv", "127.0.0.1:/files/text", "10.9.0.9:/files/b"], "renamed within its server");
    fails(&["put", "files/text", "127.0.0.1:/files/full"], "directory");
    fails(&["ls", "127.0.0.1"], "give HOST:/PATH");
    fails(&["ls", "--port", "9", "--timeout", "2", "127.0.0.1:/files"], "the server ");
    assert!(!folder.0.join("none").exists(), "half a file is left behind");
    // From outside the host, by the forward.
    let forward = format!("127.0.0.1:{port}/files");
    let mut command = inhost(&folder.0);
    assert_eq!(run(command.args(["nfs", "ls", "--link", "user", &forward])), "full/\ntext\n");
}

/// Begins to send a large file in the place of one that is there, and waits until some of it is there.
fn sending(serve: &Serve, folder: &Folder, more: &[&str]) -> Running {
    fs::File::create(folder.0.join("huge")).unwrap().set_len(2_000_000_000).unwrap();
    fs::write(folder.0.join("files/huge"), "precious").unwrap();
    let mut command = with_own_signals();
    command.arg(env!("CARGO_BIN_EXE_inhost")).env("XDG_RUNTIME_DIR", &serve.folder.0);
    command.args(["nfs", "put", "huge", "127.0.0.1:/files/huge"]).args(more);
    let process = Running::start(command.current_dir(&folder.0));
    until("some of it is there", || (unfinished(folder).first()?.1 > 0).then_some(()));
    process
}

/// Hidden files of the export, and their sizes.
fn unfinished(folder: &Folder) -> Vec<(String, u64)> {
    let all = fs::read_dir(folder.0.join("files")).unwrap().map(Result::unwrap);
    let all = all.map(|of| (of.file_name().into_string().unwrap(), of.metadata().map_or(0, |of| of.len())));
    all.filter(|(name, _)| name.starts_with('.')).collect()
}

#[test]
fn a_file_is_replaced_when_the_new_one_is_whole() {
    let (serve, folder, _) = serve("nfs-interrupted");
    let mut process = sending(&serve, &folder, &[]);
    process.signal(Signal::INT);
    assert_eq!(process.wait_within(Duration::from_secs(10)).code(), Some(1));
    let said = process.printed();
    assert!(said.contains("/files/huge: interrupted\n"), "{said}");
    assert_eq!(fs::read(folder.0.join("files/huge")).unwrap(), b"precious");
    assert_eq!(unfinished(&folder), []);

    // A server that is gone keeps what it has, and that is said.
    let mut process = sending(&serve, &folder, &["--timeout", "1"]);
    drop(serve);
    assert_eq!(process.wait_within(Duration::from_secs(20)).code(), Some(1));
    let (said, left) = (process.printed(), unfinished(&folder));
    assert!(said.contains(&format!("/{} is left there, unfinished", left[0].0)), "{said}");
    assert_eq!(fs::read(folder.0.join("files/huge")).unwrap(), b"precious");
}

#[test]
fn a_small_file_is_fetched_by_one_connection_and_a_silent_server_is_named() {
    let (serve, folder, _) = serve_with("nfs-connections", "[nfs.limits]\nconnections_per_minute = 3\n");
    fs::write(folder.0.join("files/text"), "x").unwrap();
    let get = |more: &[&str]| {
        let mut command = serve.inhost();
        let words = ["nfs", "get", "-q", "127.0.0.1:/files/text", "copy"];
        output(command.args(words).args(more).current_dir(&folder.0))
    };
    for _ in 0..3 {
        assert!(get(&["--timeout", "10"]).status.success());
    }
    let refused = get(&["--timeout", "6"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("closes connections unanswered"), "{said}");
    assert!(said.contains("trying for up to 6 s (--timeout)\n"), "{said}");
}

#[test]
fn what_is_left_out_is_a_failure() {
    let (serve, folder, _) = serve("nfs-links");
    std::os::unix::fs::symlink("text", folder.0.join("files/link")).unwrap();
    let mut command = serve.inhost();
    let done = output(command.args(["nfs", "get", "-q", "127.0.0.1:/files/link"]).current_dir(&folder.0));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    let lines = "inhost: not copied, since it is a symbolic link: /link\ninhost: nfs: 1 thing left out\n";
    assert_eq!(said, lines);
}

#[test]
fn libnfs_reads_and_writes() {
    if !peers(&["nfs-cat", "nfs-cp", "nfs-ls"]) {
        return;
    }
    let (_serve, folder, port) = serve("nfs-libnfs");
    let url = |path: &str| format!("nfs://127.0.0.1/files{path}?nfsport={port}&mountport={port}");
    let data: Vec<u8> = (0..2_000_000u32).map(|at| (at % 249) as u8).collect();
    fs::write(folder.0.join("own"), &data).unwrap();
    run(Command::new("nfs-cp").arg(folder.0.join("own")).arg(url("/copy")));
    assert!(fs::read(folder.0.join("files/copy")).unwrap() == data, "what was stored");
    run(Command::new("nfs-cp").arg(url("/copy")).arg(folder.0.join("back")));
    assert!(fs::read(folder.0.join("back")).unwrap() == data, "what was fetched");
    assert!(run(Command::new("nfs-ls").arg(url(""))).contains("copy"));
}
