//! The commands of an example's README, as they stand there.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command of a README and what it prints there.
pub struct Step {
    /// What is typed.
    pub command: String,
    /// What is printed, with its line ends.
    pub output: String,
}

/// The commands of the console blocks of `readme`, in order.
pub fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in readme.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push(Step { command: command.to_owned(), output: String::new() }),
                None => steps.last_mut().unwrap().output += &format!("{line}\n"),
            }
        }
    }
    steps
}

/// Runs a script of bash, by `program` and its arguments, in the root of the project.
pub fn shell(program: &[&str], script: &str) -> Output {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).args(["bash", "-e", "-c", script]);
    crate::output(
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).stdin(Stdio::null()),
    )
}

/// A command as it runs what is built already: `cargo run` would wait for other builds, and for one package alone it has
/// other features, which takes minutes.
pub fn as_built(command: &str) -> String {
    let Some(run) = command.strip_prefix("cargo run -q -p ") else { return command.to_owned() };
    let (package, rest) = run.split_once(' ').unwrap_or((run, ""));
    let (program, arguments) = match rest.split_once(' ') {
        Some(("--bin", rest)) => rest.split_once(' ').unwrap_or((rest, "")),
        Some(("--example", name)) => return format!("{}/examples/{name}", built().display()),
        _ => (package, rest),
    };
    format!("{}/{program} {}", built().display(), arguments.trim_start_matches("-- "))
}

/// The folder of what is built together with this test.
fn built() -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

/// Runs a command that prints what the README says.
pub fn prints_what_it_says(step: &Step) {
    let ran = shell(&["env"], &as_built(&step.command));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), step.output, "{}: {said}", step.command);
    assert!(ran.status.success(), "{}: {said}", step.command);
}
