//! One run in a process of its own.

use inhost_structures::{Load, Structure, resident_bytes as resident};
use std::process::{Command, Output};

/// `run STRUCTURE echo|bulk COUNT`: prints the bytes of resident memory that the run added.
pub fn run(structure: &str, load: &str, count: &str) -> Result<(), String> {
    let structure = Structure::ALL.into_iter().find(|s| s.name() == structure);
    let structure = structure.ok_or("STRUCTURE is processes, procedures, tasks or round")?;
    let count = count.parse().map_err(|_| format!("{count:?} is not a number"))?;
    let load = match load {
        "echo" => Load::Echo(count),
        "bulk" => Load::Bulk(count),
        other => return Err(format!("{other:?} is neither echo nor bulk")),
    };
    let before = resident();
    let outcome = structure.run(load)?;
    outcome.check()?;
    println!("{}", outcome.span.resident_bytes.saturating_sub(before));
    Ok(())
}

/// The words of [`run`] for `load`, `times` as long.
fn words(structure: Structure, load: Load, times: u64) -> [String; 4] {
    let (load, count) = match load {
        Load::Echo(count) => ("echo", count),
        Load::Bulk(count) => ("bulk", count),
    };
    ["run".into(), structure.name().into(), load.into(), (count * times).to_string()]
}

/// Resident memory that two hosts under `load` add to a process.
pub fn resident_bytes(structure: Structure, load: Load) -> Result<f64, String> {
    let output = finish(Command::new(own()?).args(words(structure, load, 1)))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("a run printed {text:?} in place of bytes"))
}

/// Instructions for one unit of `load`, counted by callgrind as `make instructions` does: what a run of twice the length
/// costs more, so that starting up does not count.
pub fn instructions(structure: Structure, load: Load) -> Result<f64, String> {
    let short = count(structure, load, 1)?;
    let long = count(structure, load, 2)?;
    Ok((long - short) / load.units() as f64)
}

fn count(structure: Structure, load: Load, times: u64) -> Result<f64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(own()?);
    let output = finish(command.args(words(structure, load, times)))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected =
        text.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, count)| count.trim());
    collected
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| format!("valgrind did not say what it collected: {text}"))
}

fn own() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|e| format!("this program's path is unknown: {e}"))
}

fn finish(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|e| format!("{:?} does not start: {e}", command.get_program()))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
