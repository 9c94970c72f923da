//! libnfs, its programs and its library, as clients of our server.

use std::process::Command;

use inhost_interop::{output, own_network, run};

use super::place::{HERE, Place, pattern};

/// `nfs-ls`, `nfs-cat` and `nfs-cp`, by way of our portmapper.
#[test]
fn its_programs_list_read_and_copy() {
    if !own_network() {
        return;
    }
    let place = Place::new("libnfs");
    let (_server, _) = place.server(2049, &["111"]);
    std::fs::create_dir(place.0.join("server/folder")).unwrap();
    place.write("server/text", b"hello\n");
    let url = |path: &str| format!("nfs://{HERE}/files{path}");
    assert_eq!(run(Command::new("nfs-cat").arg(url("/text"))), "hello\n");
    let listed = run(Command::new("nfs-ls").arg(url("")));
    assert!(listed.contains("text") && listed.contains("folder"), "{listed}");
    assert!(run(Command::new("nfs-ls").args(["-D", "nfs://127.0.0.1"])).contains("/files"));
    for bytes in [0, 1, 4096, 1_000_000, 20_000_001] {
        // It does not overwrite.
        let stored = format!("/copied-{bytes}");
        let (own, copy) = (place.0.join("client/own"), place.0.join("client/copy"));
        std::fs::write(&own, pattern(bytes)).unwrap();
        run(Command::new("nfs-cp").arg(&own).arg(url(&stored)));
        assert!(place.read(&format!("server{stored}")) == pattern(bytes), "{bytes} octets stored");
        run(Command::new("nfs-cp").arg(url(&stored)).arg(&copy));
        assert!(place.read("client/copy") == pattern(bytes), "{bytes} octets fetched");
        std::fs::remove_file(&copy).unwrap();
    }
    let missing = output(Command::new("nfs-cat").arg(url("/missing")));
    assert!(!missing.status.success());
}

/// The portmapper's other clients.
#[test]
fn rpcinfo_and_showmount_ask_our_portmapper() {
    if !own_network() {
        return;
    }
    let place = Place::new("rpcinfo");
    let (_server, _) = place.server(2049, &["111"]);
    let listed = run(Command::new("rpcinfo").args(["-p", "127.0.0.1"]));
    for program in ["100000", "100003", "100005"] {
        assert!(listed.contains(program), "{listed}");
    }
    for (program, version) in [("100003", "3"), ("100005", "3"), ("100000", "2"), ("100000", "4")] {
        for transport in ["tcp", "udp"] {
            let asked = run(Command::new("rpcinfo").args(["-T", transport, "127.0.0.1", program, version]));
            assert!(asked.contains("ready and waiting"), "{asked}");
        }
    }
    let exports = run(Command::new("showmount").args(["-e", "127.0.0.1"]));
    assert!(exports.contains("/files"), "{exports}");
}

/// A program that calls all 22 procedures with libnfs.
#[test]
fn its_library_calls_every_procedure() {
    let place = Place::new("every");
    let (_server, port) = place.server(0, &[]);
    let program = place.0.join("every");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/every.c");
    run(Command::new("cc").args(["-Wall", "-o"]).arg(&program).arg(source).arg("-lnfs"));
    let printed = run(Command::new(&program).args([HERE.to_string(), port.to_string()]));
    let expected = "\
connect 0
mnt-missing 2
mnt 0
connect 0
null 0
getattr 0 type=2 mode=755 size=4096
fsinfo 0 rtmax=1048576 wtmax=1048576
fsstat 0
pathconf 0 name_max=255
mkdir 0
create 0
create-again 17
create-exclusive 0
create-exclusive-again 0
write 0 count=12 committed=0 before=0 after=12
write-sync 0 count=12 committed=2 before=12 after=24
commit 0
read 0 eof=1 bytestwelve bytes
setattr 0
setattr-guard 10002
getattr-file 0 type=1 mode=640 size=6
access 0 access=d
lookup 0
same 1
lookup-missing 2
symlink 0
readlink 0 file
mknod 0
link 0
rename 0
readdir 0 entries=7
readdirplus 0 entries=7 handles=7
rmdir-full 66
remove 0
remove 0
remove 0
remove 0
remove 0
rmdir 0
getattr-stale 70
getattr-forged 10001
";
    // The size of a directory is the file system's matter.
    let printed = printed.lines().map(|line| match line.split_once(" size=") {
        Some((front, _)) if front.contains("type=2") => format!("{front} size=4096\n"),
        _ => format!("{line}\n"),
    });
    assert_eq!(printed.collect::<String>(), expected);
}
