use super::{CopySummary, Event, Expected, Folder, NameError, Options, Sink, check, fetch, send};
use futures_lite::future::{block_on, zip};
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

const ALL: Options = Options { recursive: true, preserve: true };

struct Place(PathBuf);
impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("inhost-rcp-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What our two ends make of each other.
fn copied(
    from: &[PathBuf],
    to: &Path,
    options: Options,
    expected: &str,
) -> (CopySummary, CopySummary, Vec<String>) {
    let (mut near, mut far) = tokio::io::duplex(1000);
    let folder = Folder::open(to, false, options.preserve).unwrap();
    let mut warnings = Vec::new();
    let sending = async {
        let done = send(&mut far, options, from, |_| ()).await;
        drop(far);
        done.unwrap()
    };
    let expected = Expected::of(expected);
    let getting = fetch(&mut near, options, expected, folder, |why| warnings.push(why.to_owned()));
    let (sent, got) = block_on(zip(sending, getting));
    (sent, got.unwrap(), warnings)
}
/// What our end makes of what a server says all at once.
fn said(
    octets: &[u8],
    to: &Path,
    options: Options,
    expected: &str,
) -> (Result<CopySummary, String>, Vec<String>) {
    let (mut near, mut far) = tokio::io::duplex(1 << 20);
    let folder = Folder::open(to, false, options.preserve).unwrap();
    let mut warnings = Vec::new();
    let done = block_on(async {
        far.write_all(octets).await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(far);
        writer.shutdown().await.unwrap();
        let rest = async {
            let mut answers = Vec::new();
            let _ = reader.read_to_end(&mut answers).await;
        };
        let getting = async {
            let expected = Expected::of(expected);
            let done = fetch(&mut near, options, expected, folder, |why| warnings.push(why.to_owned())).await;
            drop(near);
            done
        };
        zip(getting, rest).await.0
    });
    (done.map_err(|why| why.to_string()), warnings)
}

#[test]
fn a_tree_comes_over_with_its_times_and_permissions() {
    let (from, to) = (Place::new("tree-from"), Place::new("tree-to"));
    let tree = from.path("tree");
    std::fs::create_dir_all(tree.join("inner/empty")).unwrap();
    let content: Vec<u8> = (0..200_000u32).map(|n| (n * 7) as u8).collect();
    std::fs::write(tree.join("inner/data"), &content).unwrap();
    std::fs::write(tree.join("nothing"), b"").unwrap();
    std::fs::set_permissions(tree.join("nothing"), std::fs::Permissions::from_mode(0o440)).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(499_137_300);
    let data = std::fs::File::options().write(true).open(tree.join("inner/data")).unwrap();
    data.set_modified(long_ago).unwrap();
    let (sent, got, warnings) = copied(std::slice::from_ref(&tree), &to.0, ALL, "tree");
    assert_eq!(warnings, [""; 0]);
    assert_eq!(sent, got);
    assert_eq!(got, CopySummary { files: 2, bytes: 200_000, left_out: 0 });
    assert!(std::fs::read(to.path("tree/inner/data")).unwrap() == content);
    assert_eq!(std::fs::metadata(to.path("tree/inner/data")).unwrap().mtime(), 499_137_300);
    assert_eq!(std::fs::metadata(to.path("tree/nothing")).unwrap().mode() & 0o777, 0o440);
    assert!(to.path("tree/inner/empty").is_dir());
}

#[test]
fn one_file_takes_the_name_of_the_target_and_replaces_what_bore_it() {
    let (from, to) = (Place::new("one-from"), Place::new("one-to"));
    std::fs::write(from.path("a"), b"new").unwrap();
    std::fs::write(to.path("b"), b"something older").unwrap();
    let (_, got, _) = copied(&[from.path("a")], &to.path("b"), Options::default(), "a");
    assert_eq!((got.files, std::fs::read(to.path("b")).unwrap()), (1, b"new".to_vec()));
    // A second file would take the first one's place.
    let (done, warnings) = said(b"C0644 1 a\nx\0C0644 1 a\n", &to.path("c"), Options::default(), "a");
    assert_eq!((done.unwrap().files, warnings.len()), (1, 1), "{warnings:?}");
    assert_eq!(std::fs::read(to.path("c")).unwrap(), b"x");
}

#[test]
fn folders_are_left_out_unless_asked_for() {
    let (from, to) = (Place::new("flat-from"), Place::new("flat-to"));
    std::fs::create_dir(from.path("folder")).unwrap();
    std::fs::write(from.path("file"), b"x").unwrap();
    let paths = [from.path("folder"), from.path("file"), from.path("absent")];
    let (sent, got, _) = copied(&paths, &to.0, Options::default(), "*");
    assert_eq!((sent, got.files), (CopySummary { files: 1, bytes: 1, left_out: 2 }, 1));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let to = Place::new("names");
    std::fs::write(to.path("kept"), b"kept").unwrap();
    for name in ["../evil", "a/b", "/etc/passwd", "..", ".", "", "bell\x07", "other"] {
        let line = format!("C0644 4 {name}\n");
        let (done, warnings) = said(line.as_bytes(), &to.0, ALL, "dir/asked");
        assert_eq!(done.unwrap(), CopySummary { files: 0, bytes: 0, left_out: 1 }, "{name}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let (done, _) = said(format!("D0755 0 {name}\n").as_bytes(), &to.0, ALL, "dir/asked");
        assert_eq!(done.unwrap().left_out, 1, "{name}");
    }
    let (done, warnings) = said(b"E\n", &to.0, ALL, "x");
    assert!(done.is_err(), "out of the folder that was to be filled: {warnings:?}");
    assert_eq!(to.names(), ["kept"]);
    assert!(!to.0.with_file_name("evil").exists());
}

#[test]
fn a_link_in_the_target_does_not_lead_out_of_it() {
    let (to, outside) = (Place::new("links"), Place::new("links-outside"));
    std::fs::write(outside.path("file"), b"theirs").unwrap();
    std::os::unix::fs::symlink(&outside.0, to.path("way")).unwrap();
    std::os::unix::fs::symlink(outside.path("file"), to.path("alias")).unwrap();
    let (done, warnings) = said(b"D0755 0 way\nC0644 3 file\nbad\0E\n", &to.0, ALL, "way");
    assert!(done.is_err() || done.unwrap().files == 0, "{warnings:?}");
    // A name that is a link becomes its own file.
    let (done, _) = said(b"C0644 3 alias\nown\0", &to.0, ALL, "alias");
    assert_eq!(done.unwrap().files, 1);
    assert_eq!(std::fs::read(to.path("alias")).unwrap(), b"own");
    assert_eq!(std::fs::read(outside.path("file")).unwrap(), b"theirs");
}

#[test]
fn half_a_file_never_bears_the_name_and_leaves_nothing_behind() {
    let to = Place::new("half");
    let (done, _) = said(b"C0644 10 file\nhalf", &to.0, ALL, "file");
    assert_eq!(done.unwrap_err(), "the connection ended before all had come");
    let (done, warnings) = said(b"C0644 4 file\nhalf\x01read error\n", &to.0, ALL, "file");
    assert_eq!((done.unwrap().files, warnings), (0, vec!["read error".to_owned()]));
    assert_eq!(to.names(), [""; 0]);
}

#[test]
fn neither_privileges_nor_words_for_the_terminal_come_over() {
    let to = Place::new("mode");
    let (done, warnings) = said(b"\x01\x1b]0;title\x07gone\nC6755 1 file\nx\0", &to.0, ALL, "file");
    assert_eq!(done.unwrap().files, 1);
    assert_eq!(std::fs::metadata(to.path("file")).unwrap().mode() & 0o7777, 0o755);
    assert_eq!(warnings, ["\u{fffd}]0;title\u{fffd}gone"]);
    let (done, _) = said(b"bash: rcp: command not found\n", &to.0, ALL, "file");
    assert_eq!(done.unwrap_err(), "the other end does not speak as rcp: bash: rcp: command not found");
}

#[test]
fn what_was_asked_for_is_known_as_a_shell_knows_it() {
    let allows = |path: &str, name: &str| Expected::of(path).allows(name.as_bytes());
    assert!(allows("dir/file", "file") && !allows("dir/file", "file2") && !allows("file", "other"));
    assert!(allows("*.c", "main.c") && !allows("*.c", "main.h") && allows("a*b*c", "aXbYbc"));
    assert!(
        allows("f?o", "foo") && !allows("f?o", "fo") && allows("x[a-c]", "xb") && !allows("x[!a-c]", "xb")
    );
    assert!(allows("x[]]", "x]") && allows("x[", "x[") && !allows("[", "x"));
    assert!(allows("~", "ada") && allows("dir/", "dir") && allows("{a,b}", "b") && allows("", "anything"));
    assert_eq!(check(b"..."), Ok(()));
    assert_eq!(check(&[b'x'; 256]), Err(NameError::BadOctet));
    // As long as it may be, it takes no time to speak of.
    assert!(!allows(&"*a".repeat(100), &"b".repeat(255)));
}

/// Another end that is never waited for: it takes everything at once, says what it has to say, and then that all is well.
#[derive(Default)]
struct Ready {
    says: Vec<u8>,
    ends: bool,
    /// The messages that it received, in order.
    warnings: Vec<Vec<u8>>,
}
impl AsyncRead for Ready {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = self.says.len().min(buf.remaining());
        buf.put_slice(&self.says[..count]);
        self.says.drain(..count);
        if count == 0 && !self.ends {
            buf.put_slice(&[0]);
        }
        Poll::Ready(Ok(()))
    }
}
impl AsyncWrite for Ready {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        self.warnings.push(octets.to_vec());
        Poll::Ready(Ok(octets.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Octets that this thread has read and written of files, as the kernel counts them.
fn touched() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let count =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap();
    [count("rchar:"), count("wchar:")]
}

/// The other end acknowledges late, and nothing that it says is waited for before a file is whole.
#[test]
fn the_end_of_a_file_leaves_with_the_last_of_it() {
    let from = Place::new("verdict");
    for (size, last) in [(0, 1), (3, 4), (65_536, 65_537), (65_537, 2), (200_000, 200_000 - 3 * 65_536 + 1)] {
        std::fs::write(from.path("file"), vec![b'x'; size]).unwrap();
        let mut other = Ready::default();
        let report = block_on(send(&mut other, Options::default(), &[from.path("file")], |_| ())).unwrap();
        assert_eq!(report, CopySummary { files: 1, bytes: size as u64, left_out: 0 });
        let warnings = other.warnings.last().unwrap();
        assert_eq!((warnings.len(), warnings.last()), (last, Some(&0)), "{size}");
        assert_eq!(other.warnings.iter().skip(1).map(Vec::len).sum::<usize>(), size + 1);
    }
}

/// This thread reads and writes no file, so a slow disk holds nobody else up.
#[test]
fn files_are_touched_on_other_threads() {
    let (from, to) = (Place::new("threads-from"), Place::new("threads-to"));
    std::fs::write(from.path("file"), vec![b'x'; 5_000_000]).unwrap();
    let folder = Folder::open(&to.0, false, false).unwrap();
    let before = touched();
    let mut other = Ready::default();
    let report = block_on(send(&mut other, ALL, &[from.path("file")], |_| ()));
    assert_eq!(report.unwrap().files, 1);
    let mut other = Ready { says: b"C0644 5000000 file\n".to_vec(), ends: true, ..Ready::default() };
    other.says.extend(vec![b'x'; 5_000_000]);
    other.says.push(0);
    let report = block_on(fetch(&mut other, ALL, Expected::of("file"), folder, |_| ()));
    assert_eq!(report.unwrap().files, 1);
    for (count, before) in touched().into_iter().zip(before) {
        assert!(count - before < 1_000_000, "{} of 5,000,000 octets each way", count - before);
    }
}

#[test]
fn commands_for_the_other_end() {
    assert_eq!(Options::default().fetch_command("dir/*.c"), "rcp -f dir/*.c");
    assert_eq!(ALL.send_command("-x", true), "rcp -r -p -d -t ./-x");
    assert_eq!(ALL.send_command("", false), "rcp -r -p -t .");
}

/// What every kind of line does in every state, and what is answered.
#[test]
fn transition_table() {
    let inputs: [(&str, &[u8]); 11] = [
        ("file", b"C0644 3 name\n"),
        ("empty file", b"C0600 0 name\n"),
        ("folder", b"D0755 0 name\n"),
        ("end", b"E\n"),
        ("times", b"T1 0 2 0\n"),
        ("bad times", b"T1 0\n"),
        ("slash", b"C0644 3 a/b\n"),
        ("warning", b"\x01gone\n"),
        ("fatal", b"\x02gone\n"),
        ("zero", b"\0"),
        ("noise", b"hello\n"),
    ];
    let states: [(&str, &[u8], usize); 7] = [
        ("top", b"", 0),
        ("inside", b"D0755 0 in\n", 1),
        ("times known", b"T1 0 2 0\n", 0),
        ("file announced", b"C0644 3 name\n", 0),
        ("in a file", b"C0644 3 name\nx", 1),
        ("after a file", b"C0644 3 name\nxyz", 1),
        ("over", b"\x02gone\n", 0),
    ];
    let mut table = String::new();
    for (state, replies, accepted) in states {
        for (name, octets) in inputs {
            let mut sink = Sink::new(ALL, Expected::Any);
            let mut input = replies;
            let mut accepts = accepted;
            while sink.receive(&mut input).is_some() {
                if accepts > 0 {
                    accepts -= 1;
                    sink.accept();
                }
            }
            sink.output();
            let mut input = octets;
            let event = match sink.receive(&mut input) {
                Some(Event::Data(data)) => format!("Data({:?})", String::from_utf8_lossy(data)),
                Some(Event::Enter { name, mode, times }) => {
                    format!("Enter {} {mode:o} {}", String::from_utf8_lossy(&name), times.is_some())
                }
                Some(Event::Begin { name, mode, size_bytes, times }) => {
                    let times = times.is_some();
                    format!("Begin {} {mode:o} {size_bytes} {times}", String::from_utf8_lossy(&name))
                }
                Some(event) => format!("{event:?}"),
                None => "-".to_owned(),
            };
            let before = sink.output();
            sink.accept();
            let after = sink.output();
            let end = match sink.end() {
                Ok(()) => "may end",
                Err(_) => "may not end",
            };
            writeln!(
                table,
                "{state:<15} {name:<11} {event}; answers {:?}, accepted {:?}, then {end}",
                String::from_utf8_lossy(&before),
                String::from_utf8_lossy(&after)
            )
            .unwrap();
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rcp/table.txt");
    if std::env::var_os("INHOST_BLESS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    assert_eq!(table, include_str!("table.txt"), "INHOST_BLESS=1 writes the new one");
}
