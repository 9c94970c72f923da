//! The tutorials, done literally: in a fresh folder beside a checkout, each file written and each command run as the page
//! says, and what it prints compared.
//!
//! A page speaks of files and commands by its code blocks:
//!
//! | block | what is done |
//! |---|---|
//! | any language, after a line that ends with `` `path`: `` | the file is written, in the current folder |
//! | the same, where that line begins with "Add to" | its text is added to the file |
//! | `console` | each line after `$ ` is run; if lines follow it, it prints just these; `...` is any lines, or any rest of a line |
//! | `console,numbers-vary` | the same, where any number stands for any |
//! | `console`, a line that ends with ` &` | the command is left running until the next `##` |
//! | `console,fails` | the command fails, as the page shows |
//! | `console,server` | the command is left running, and prints the lines sooner or later, until the next `##` |
//! | `LANGUAGE,not-run: REASON` | nothing; `NOT_RUN` lists it |
//!
//! A block of another kind fails the test. Needs root, for a network namespace of its own.

use inhost_interop::{Running, own_network, within};
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest time of a command: some compile.
const LIMIT: Duration = Duration::from_secs(280);
/// Longest time until a command that is left running prints its lines.
const SERVER_LIMIT: Duration = Duration::from_secs(60);

/// A code block of a page.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The number of its first line.
    line: usize,
    /// How many headings are before it.
    section: usize,
    language: String,
    attributes: Vec<String>,
    /// The file that it is, named by the line before.
    file: Option<String>,
    /// Whether the file has it at its end, and more before.
    is_added: bool,
    text: String,
}

/// The code blocks of a page, in order.
fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut before, mut section) = (Vec::<Block>::new(), "", 0);
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else {
            before = if line.is_empty() { before } else { line };
            section += usize::from(line.starts_with("## "));
            continue;
        };
        let (info, reason) =
            info.split_once(",not-run:").map_or((info, None), |(info, why)| (info, Some(why)));
        let mut words = info.split(',').map(str::to_owned);
        let language = words.next().unwrap_or_default();
        let not_run = reason.map(|why| format!("not-run:{why}"));
        let file = before.strip_suffix("`:").and_then(|text| text.rsplit('`').next()).map(str::to_owned);
        let is_added = before.starts_with("Add to ");
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```"));
        let text = inside.map(|line| format!("{line}\n")).collect();
        let attributes = words.chain(not_run).collect();
        blocks.push(Block { line: number + 1, section, language, attributes, file, is_added, text });
        before = "";
    }
    blocks
}

/// A command of a block and the lines that it prints.
fn steps(text: &str) -> Vec<(String, Vec<String>)> {
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => steps.push((command.to_owned(), Vec::new())),
            None => steps.last_mut().expect("a console block begins with a command").1.push(line.to_owned()),
        }
    }
    steps
}

/// A line with each number as `#`, and with single spaces.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for word in line.split_whitespace() {
        let mut last = ' ';
        for letter in word.chars() {
            match letter {
                '0'..='9' if last == '#' => {}
                '.' if last == '#' => {}
                '0'..='9' => text.push('#'),
                letter => text.push(letter),
            }
            last = text.chars().next_back().unwrap_or(' ');
        }
        text.push(' ');
    }
    text
}

/// Whether these lines are printed: `...` stands for any number of lines.
fn is_printed(said: &[String], printed: &[String]) -> bool {
    match said.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line.trim() == "..." => {
            (0..=printed.len()).any(|skipped| is_printed(rest, &printed[skipped..]))
        }
        Some((line, rest)) => {
            let is_so = |first: &String| match line.trim_end().strip_suffix("...") {
                Some(beginning) => first.starts_with(beginning),
                None => first == line,
            };
            printed.first().is_some_and(is_so) && is_printed(rest, &printed[1..])
        }
    }
}

/// Lines as they are compared.
fn compared(lines: &[String], numbers_vary: bool) -> Vec<String> {
    lines
        .iter()
        .map(|line| if numbers_vary { without_numbers(line) } else { line.trim_end().to_owned() })
        .collect()
}

/// The lines of a text.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Waits until a program has printed these lines, others left out.
fn wait_for(program: &Running, said: &[String], numbers_vary: bool) {
    let mut with_others = vec!["...".to_owned()];
    for line in compared(said, numbers_vary) {
        with_others.extend([line, "...".to_owned()]);
    }
    let printed = || compared(&lines(&program.printed()), numbers_vary);
    let found = within(SERVER_LIMIT, || is_printed(&with_others, &printed()).then_some(()));
    assert!(found.is_some(), "{said:?} expected; printed\n{}", program.printed());
}

/// Waits until a socat that serves a port has its socket: a command that is left running says nothing when it is up.
fn wait_for_socket(command: &str) {
    let (table, rest) = match command.strip_prefix("socat ").and_then(|rest| rest.split_once(':')) {
        Some(("TCP-LISTEN", rest)) => ("tcp", rest),
        Some(("UDP-RECVFROM", rest)) => ("udp", rest),
        _ => return,
    };
    let options = rest.split_whitespace().next().unwrap();
    let (port, bound) = options.split_once(",bind=").expect("a socat of these pages says where it listens");
    let port: u16 = port.parse().unwrap();
    let address: Ipv4Addr = bound.split(',').next().unwrap().parse().unwrap();
    // As Linux writes it: the address as a number of this machine.
    let local = format!(": {:08X}:{port:04X} ", u32::from_ne_bytes(address.octets()));
    let sockets = format!("/proc/thread-self/net/{table}");
    let is_there = || std::fs::read_to_string(&sockets).unwrap().contains(&local).then_some(());
    assert!(within(SERVER_LIMIT, is_there).is_some(), "{command}: it has no socket");
}

/// A page as it is worked through.
struct Reader {
    folder: PathBuf,
    current: PathBuf,
    /// Held while the folder is in use.
    _lock: File,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Reader {
    /// All tutorials have one folder, one after the other: what they compile is then the same, and compiled once.
    fn new() -> Reader {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut place = DefaultHasher::new();
        root.hash(&mut place);
        let folder = std::env::temp_dir().join(format!("inhost-tutorials-{:x}", place.finish()));
        let lock = File::create(folder.with_extension("lock")).unwrap();
        assert!(within(LIMIT, || lock.try_lock().ok()).is_some(), "another test has {}", folder.display());
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        // A tutorial begins in the folder that holds a checkout.
        symlink(root, folder.join("inhost")).unwrap();
        let commands = folder.join(".commands");
        std::fs::create_dir(&commands).unwrap();
        symlink(env!("CARGO_BIN_EXE_inhost"), commands.join("inhost")).unwrap();
        // Root needs none, and has none on a small system.
        std::fs::write(commands.join("sudo"), "#!/bin/sh\nexec \"$@\"\n").unwrap();
        std::fs::set_permissions(commands.join("sudo"), PermissionsExt::from_mode(0o755)).unwrap();
        Reader { current: folder.clone(), folder, _lock: lock }
    }
    /// A shell in the current folder.
    fn shell(&self, script: &str) -> Command {
        let mut paths = vec![self.folder.join(".commands")];
        paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        let own = |variable: &str, folder: &str| {
            std::env::var_os(variable).map_or_else(|| home.join(folder), PathBuf::from)
        };
        let mut shell = crate::common::with_own_signals();
        shell.args(["bash", "-c", script]).current_dir(&self.current);
        shell.env("PATH", std::env::join_paths(paths).unwrap());
        shell
            .env("CARGO_HOME", own("CARGO_HOME", ".cargo"))
            .env("RUSTUP_HOME", own("RUSTUP_HOME", ".rustup"));
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("target/tutorials");
        shell.env("CARGO_BUILD_BUILD_DIR", built).env("CARGO_PROFILE_DEV_DEBUG", "0");
        shell.env("HOME", &self.folder).env("XDG_RUNTIME_DIR", &self.folder);
        // Tests of the workspace have variables for their own package.
        for variable in
            ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "RUSTFLAGS", "CARGO_TARGET_DIR", "RUST_BACKTRACE"]
        {
            shell.env_remove(variable);
        }
        // The namespace has no way out: the crates are those that the workspace was built with.
        shell.env("CARGO_NET_OFFLINE", "true");
        shell
    }
    fn run(&mut self, command: &str, said: &[String], attributes: &[String]) {
        let fails = attributes.iter().any(|word| word == "fails");
        let numbers_vary = attributes.iter().any(|word| word == "numbers-vary");
        let place = self.folder.join(".folder");
        let script = format!("{command}\nstatus=$?\npwd > {}\nexit $status", place.display());
        let mut running = Running::start(&mut self.shell(&script));
        let status = running.wait_within(LIMIT);
        let printed = running.printed();
        assert!(status.success() != fails, "{command}: {status}\n{printed}");
        if !said.is_empty() {
            let is_as_said =
                is_printed(&compared(said, numbers_vary), &compared(&lines(&printed), numbers_vary));
            assert!(is_as_said, "{command} printed\n{printed}");
        }
        self.current = std::fs::read_to_string(place).unwrap().trim_end().into();
    }
    fn serve(&self, command: &str) -> Running {
        Running::start(&mut self.shell(command))
    }
}

/// Ends servers, once they have printed all that the page says.
fn end(servers: &mut Vec<(Running, Vec<String>, bool)>) {
    for (mut server, said, numbers_vary) in servers.drain(..) {
        wait_for(&server, &said, numbers_vary);
        // The whole group: the command may be a pipe of several.
        let _ = rustix::process::kill_process_group(Pid::from_child(&server.child), Signal::TERM);
        server.wait();
    }
}

/// Works through a page.
fn follow(name: &str) {
    if !own_network() {
        return;
    }
    let page = format!("docs/tutorials/{name}.md");
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(&page);
    let blocks = blocks(&std::fs::read_to_string(text).unwrap());
    let mut reader = Reader::new();
    let mut ran = 0;
    // Servers print some of their lines only when later steps were done.
    let mut to_come: Vec<(Running, Vec<String>, bool)> = Vec::new();
    let mut section = 0;
    for block in &blocks {
        if block.section != section {
            section = block.section;
            end(&mut to_come);
        }
        let place = format!("{page}:{}", block.line);
        let has = |word: &str| block.attributes.iter().any(|attribute| attribute == word);
        if let Some(reason) = block.attributes.iter().find_map(|word| word.strip_prefix("not-run:")) {
            assert!(!reason.trim().is_empty(), "{place}: say why it is not run");
            println!("{place}: not run:{reason}");
            continue;
        }
        println!("{place}");
        ran += 1;
        match (block.language.as_str(), &block.file) {
            ("console", None) if has("server") => {
                let [(command, said)] = &steps(&block.text)[..] else {
                    panic!("{place}: one server a block")
                };
                let (server, numbers_vary) = (reader.serve(command), has("numbers-vary"));
                // Its first line says that it is up.
                wait_for(&server, &said[..1], numbers_vary);
                to_come.push((server, said.clone(), numbers_vary));
            }
            ("console", None) => {
                for (command, said) in steps(&block.text) {
                    match command.strip_suffix(" &") {
                        Some(command) => {
                            to_come.push((reader.serve(command), said, false));
                            wait_for_socket(command);
                        }
                        None => reader.run(&command, &said, &block.attributes),
                    }
                }
            }
            (_, Some(file)) if block.language != "console" => {
                let file = reader.current.join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                let before = match block.is_added {
                    true => std::fs::read_to_string(&file).unwrap() + "\n",
                    false => String::new(),
                };
                std::fs::write(file, before + &block.text).unwrap();
            }
            _ => panic!("{place}: neither a command nor a file, and no reason why it is not run"),
        }
    }
    end(&mut to_come);
    assert!(ran > 2, "{page}: the test sees nothing of the page");
}

#[test]
fn embed() {
    follow("embed");
}

#[test]
fn house() {
    follow("house");
}

#[test]
fn loss() {
    follow("loss");
}

#[test]
fn serial() {
    follow("serial");
}

#[test]
fn slow() {
    follow("slow");
}

#[test]
fn smoltcp() {
    follow("smoltcp");
}

#[test]
fn tunnel() {
    follow("tunnel");
}

/// The tutorials, in the order of their names.
fn tutorials() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/tutorials");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut pages: Vec<_> = paths.map(|path| (name(&path), std::fs::read_to_string(path).unwrap())).collect();
    pages.sort();
    pages
}

#[test]
fn each_tutorial_has_its_test() {
    let names: Vec<String> = tutorials().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["embed", "house", "loss", "serial", "slow", "smoltcp", "tunnel"]);
}

/// What of the tutorials no test tries.
const NOT_RUN: &[&str] = &[
    "serial: it asks for a password",
    "serial: needs two machines with serial ports",
    "serial: needs a kernel with SLIP",
    "smoltcp: smoltcp is not among the dependencies of this tree",
];

#[test]
fn no_other_block_is_left_out() {
    let left_out: Vec<String> = tutorials()
        .iter()
        .flat_map(|(name, page)| {
            let words = blocks(page).into_iter().flat_map(|block| block.attributes);
            words.filter_map(move |word| Some(format!("{name}:{}", word.strip_prefix("not-run:")?)))
        })
        .collect();
    assert_eq!(left_out, NOT_RUN);
}

#[test]
fn blocks_and_lines_are_read_as_they_are_meant() {
    let page = "`a/b.rs`:\n\n```rust\nfn main() {}\n```\n\ntext\n\n```console,numbers-vary\n$ x\n1 a\n```\n\n\
                ```console,not-run: no, never\n$ y\n```\n";
    let found = blocks(page);
    assert_eq!(found[0].file.as_deref(), Some("a/b.rs"));
    assert_eq!(found[1].attributes, ["numbers-vary"]);
    assert_eq!(steps(&found[1].text), [("x".to_owned(), vec!["1 a".to_owned()])]);
    assert_eq!(found[2].attributes, ["not-run: no, never"]);
    assert!(is_printed(&lines("a\n...\nc"), &lines("a\nb\nb\nc")));
    assert!(!is_printed(&lines("a\n...\nc"), &lines("a\nb")));
    assert!(!is_printed(&lines("a"), &lines("a\nb")));
    assert!(is_printed(&lines("in ..."), &lines("in 5 s")) && !is_printed(&lines("in ..."), &lines("at 5")));
    assert_eq!(without_numbers("10.5 ms,  at 10.0.0.1:80"), without_numbers("3 ms, at 192.168.1.1:5"));
    assert_ne!(without_numbers("10 ms"), without_numbers("10 us"));
}
