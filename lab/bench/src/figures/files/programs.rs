//! The programs that are measured, and what they need around them.

use crate::compare::PROCESS;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where `lab/interop/peers` unpacks others.
const PEERS: &str = "/opt/inhost-peers";
/// Where files are in memory, so that no disk is measured.
const IN_MEMORY: &str = "/dev/shm";
/// Permissions by which everybody may write.
pub const FOR_ALL: u32 = 0o777;
/// Permissions by which the owner may, and nobody else.
pub const FOR_OWNER: u32 = 0o755;
/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// The folder within for control sockets.
const RUNTIME: &str = "run";

/// A folder of this run, which goes with it.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Makes it.
    pub fn new(name: &str) -> Result<Folder, String> {
        let base = Path::new(IN_MEMORY);
        let base = if base.is_dir() { base.to_owned() } else { std::env::temp_dir() };
        let folder = Folder(base.join(format!("inhost-bench-{name}-{}", std::process::id())));
        folder.make("", FOR_ALL)?;
        // A control socket lies where nobody else can write.
        folder.make(RUNTIME, 0o700)?;
        Ok(folder)
    }
    /// Makes a folder within, with these permissions.
    pub fn make(&self, name: &str, mode: u32) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::create_dir_all(&path).map_err(failed)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
        Ok(path)
    }
    /// Writes a file within.
    pub fn write(&self, name: &str, data: impl AsRef<[u8]>) -> Result<(), String> {
        let path = self.0.join(name);
        std::fs::write(&path, data).map_err(|e| format!("{}: {e}", path.display()))
    }
    /// How long a file within is; 0 where there is none.
    pub fn length(&self, name: &str) -> u64 {
        std::fs::metadata(self.0.join(name)).map_or(0, |metadata| metadata.len())
    }
    /// A place within, as text.
    pub fn text(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in memory and has this process's number.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file's octets, which no compression and no hole makes less of.
pub fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|n| (n / 251) as u8 ^ n as u8).collect()
}

/// A server ends with its run.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A program with children ends them on SIGTERM.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// The words of our TAP link.
pub fn tap() -> String {
    format!("tap:bench,address={PROCESS}/24")
}

/// Our own command.
pub fn ours(arguments: &[&str]) -> Result<Command, String> {
    let own = std::env::current_exe().map_err(|e| format!("where this program lies: {e}"))?;
    let path = own.with_file_name("inhost");
    if !path.exists() {
        return Err(format!("{} is missing; cargo build --release -p inhost-cli", path.display()));
    }
    let mut command = Command::new(path);
    command.args(arguments);
    Ok(command)
}

/// A program that `lab/interop/peers` unpacked.
pub fn peer(package: &str, file: &str) -> Result<Command, String> {
    let root = std::env::var_os("INHOST_PEERS").map_or_else(|| PEERS.into(), PathBuf::from);
    let path = root.join(package).join("usr").join(file);
    if path.exists() {
        Ok(Command::new(path))
    } else {
        Err(format!("{} is missing; lab/interop/peers", path.display()))
    }
}

/// Has a program say nothing, and know no settings but those in the folder.
pub fn quiet<'a>(command: &'a mut Command, folder: &Folder) -> &'a mut Command {
    let at = &folder.0;
    command
        .current_dir(at)
        .env("XDG_RUNTIME_DIR", at.join(RUNTIME))
        .env("XDG_CONFIG_HOME", at)
        .env("HOME", at);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// What a program said, and the most memory that `watched`, or else it, had until it was done.
pub fn finish(mut child: Child, watched: Option<u32>) -> Result<(String, u64), String> {
    let watched = watched.unwrap_or(child.id());
    let mut memory = 0;
    let status = loop {
        memory = memory.max(memory_kib(watched));
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None => std::thread::park_timeout(LOOK),
        }
    };
    let (mut said, mut failure) = (String::new(), String::new());
    if let Some(mut out) = child.stdout.take() {
        out.read_to_string(&mut said).map_err(|e| e.to_string())?;
    }
    if let Some(mut out) = child.stderr.take() {
        out.read_to_string(&mut failure).map_err(|e| e.to_string())?;
    }
    match status.success() {
        true => Ok((said, memory)),
        false => Err(format!("{status}: {}", failure.trim())),
    }
}

/// The most memory that a process and those that it has started have had.
pub fn memory_kib(process: u32) -> u64 {
    let read = |file: String| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let status = read("status".into());
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let own = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
    let children = read(format!("task/{process}/children"));
    own + children.split_whitespace().filter_map(|child| child.parse().ok()).map(memory_kib).sum::<u64>()
}
