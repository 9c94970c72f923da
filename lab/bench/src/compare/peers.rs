//! The programs that are measured: how each is built, where it lies, and what to install where it cannot be built.

use super::plan::Program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the peers are built.
const TARGET: &str = "target/peers";
/// The harnesses' sources.
const SOURCES: &str = "lab/bench/peers";

/// Builds a program and says where it lies.
pub fn build(program: Program) -> Result<PathBuf, String> {
    if !Path::new(SOURCES).is_dir() {
        return Err(format!("{SOURCES} is not here: run from the root of the project"));
    }
    match program {
        Program::Ours => {
            let own = std::env::current_exe().map_err(|e| format!("where this program lies: {e}"))?;
            let path = own.with_file_name("inhost-subject");
            let hint = "cargo build --release -p inhost-bench";
            path.is_file().then_some(path).ok_or(format!("inhost-subject is not built; {hint}"))
        }
        Program::Counting => std::env::current_exe().map_err(|e| format!("where this program lies: {e}")),
        Program::OursWithoutLto => {
            let words = [
                "build",
                "--quiet",
                "--profile",
                "without-lto",
                "-p",
                "inhost-bench",
                "--bin",
                "inhost-subject",
            ];
            run(cargo().args(words), "")?;
            Ok("target/without-lto/inhost-subject".into())
        }
        Program::Smoltcp => own_workspace("smoltcp", "smoltcp", None, SMOLTCP_HINT),
        Program::SmoltcpAvx2 => {
            own_workspace("smoltcp", "smoltcp-avx2", Some("-C target-feature=+avx2"), SMOLTCP_HINT)
        }
        Program::Net | Program::Netstack => {
            own_workspace("net", "net", None, "netstack-smoltcp and tokio come from crates.io, by cargo")
        }
        Program::Gvisor => {
            let binary = absolute(TARGET)?.join("gvisor/inhost-bench-gvisor");
            let mut go = Command::new("go");
            go.args(["build", "-o"]).arg(&binary).arg(".").current_dir(Path::new(SOURCES).join("gvisor"));
            run(&mut go, "gVisor needs Go 1.26 or later (https://go.dev/dl) and access to its modules")?;
            Ok(binary)
        }
        Program::Lwip => compile("lwip", Some("-I/usr/include/lwip"), Some("-llwip"), LWIP_HINT),
        Program::Bare => {
            compile("bare", None, None, "the bare writer needs a C compiler: apt-get install gcc libc6-dev")
        }
    }
}

/// What `--without` calls a program, where it can be left out.
pub fn name(program: Program) -> Option<&'static str> {
    match program {
        Program::Smoltcp | Program::SmoltcpAvx2 => Some("smoltcp"),
        Program::Netstack => Some("netstack"),
        Program::Gvisor => Some("gvisor"),
        Program::Lwip => Some("lwip"),
        Program::Bare => Some("bare"),
        Program::Ours | Program::Net | Program::Counting | Program::OursWithoutLto => None,
    }
}

const LWIP_HINT: &str = "lwIP needs a C compiler and its library: apt-get install gcc libc6-dev liblwip-dev";

/// The one file of a harness in C.
fn compile(name: &str, headers: Option<&str>, library: Option<&str>, hint: &str) -> Result<PathBuf, String> {
    let folder = Path::new(TARGET).join(name);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let binary = folder.join(format!("inhost-bench-{name}"));
    let mut cc = Command::new("cc");
    cc.args(["-O3", "-std=gnu11", "-Wall"]).args(headers).arg("-o").arg(&binary);
    cc.arg(Path::new(SOURCES).join(name).join("main.c")).args(library);
    run(&mut cc, hint)?;
    Ok(binary)
}

const SMOLTCP_HINT: &str = "smoltcp comes from crates.io, by cargo";

/// A harness in Rust, built into a folder.
fn own_workspace(name: &str, folder: &str, flags: Option<&str>, hint: &str) -> Result<PathBuf, String> {
    let target = Path::new(TARGET).join(folder);
    let mut command = cargo();
    command.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]);
    command.arg(Path::new(SOURCES).join(name).join("Cargo.toml")).arg("--target-dir").arg(&target);
    if let Some(flags) = flags {
        command.env("RUSTFLAGS", flags);
    }
    run(&mut command, hint)?;
    Ok(target.join(format!("release/inhost-bench-{name}")))
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|e| format!("{path}: {e}"))
}

fn run(command: &mut Command, hint: &str) -> Result<(), String> {
    let what = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{what} does not start: {e}. {hint}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{what} failed. {hint}\n{}", said.trim_end()))
}
