//! Runs every test of the workspace, and says which did not run.
//!
//! cargo-nextest runs them, a process each; `.config/nextest.toml` has their limits, and [`crate::confine`] ends what they
//! leave behind. Documentation tests follow.
//!
//! A test that does not run is one of two kinds. A long run has a `make` target of its own, which its
//! `#[ignore = "long run: make TARGET"]` names. Every other one is left out: an ignored test, or one that found no peer
//! or no privilege and said so in the file of `INHOST_LEFT_OUT` (`lab/interop/src/left_out.rs`). In CI that is a failure.

use std::path::Path;
use std::process::{Command, ExitStatus};
use syn::visit::Visit;

/// Where tests say that they are left out.
const LEFT_OUT: &str = "target/left-out";
/// nextest's status where it found no test to run.
const NO_TESTS: i32 = 4;
/// Where `make test` puts a nextest that the system does not have.
const TOOLS: &str = "target/tools";

/// `cargo nextest run`, where each test is run by [`crate::confine`].
pub(crate) fn nextest() -> Result<Command, String> {
    let root = std::env::current_dir().map_err(|e| format!("no current folder: {e}"))?;
    let confine = std::env::current_exe().map_err(|e| format!("no path of this program: {e}"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path).chain([root.join(TOOLS)]);
    let path = std::env::join_paths(path).map_err(|e| format!("PATH: {e}"))?;
    let mut command = cargo();
    command.args(["nextest", "run"]).env("PATH", path).env("INHOST_LEFT_OUT", root.join(LEFT_OUT));
    command.env(runner(), format!("{} confine", confine.display()));
    Ok(command)
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs the tests, those whose names hold one of `filters` if there are any, and gives the list of what did not run. No
/// test with such a name is a failure.
pub fn run(filters: &[String]) -> Result<String, String> {
    let _ = std::fs::remove_file(LEFT_OUT);
    let mut tests = nextest()?;
    tests.arg("--workspace").args(filters);
    let mut failed = Vec::new();
    let ended = status(&mut tests)?;
    if ended.code() == Some(NO_TESTS) && !documentation_has(filters)? {
        return Err(format!("no test has a name with {}", filters.join(" or ")));
    } else if !ended.success() && ended.code() != Some(NO_TESTS) {
        failed.push(format!("tests: {ended}"));
    }
    let ended = status(documentation().arg("--quiet").arg("--").args(filters))?;
    if !ended.success() {
        failed.push(format!("documentation tests: {ended}"));
    }
    let ignored = Ignored::of_the_workspace(Path::new("."))?;
    let said = std::fs::read_to_string(LEFT_OUT).unwrap_or_default();
    let left_out: Vec<String> = ignored.left_out.into_iter().chain(said.lines().map(str::to_owned)).collect();
    let mut summary = String::new();
    for (heading, lines) in
        [("Long runs, each with a target of its own:", &ignored.long_runs), ("Left out here:", &left_out)]
    {
        if !lines.is_empty() {
            summary += &format!("{heading}\n  {}\n", lines.join("\n  "));
        }
    }
    if !failed.is_empty() {
        return Err(format!("{summary}failed: {}", failed.join("; ")));
    }
    if !left_out.is_empty() && std::env::var_os("CI").is_some() {
        return Err(format!("{summary}in CI no test may be left out"));
    }
    Ok(summary + "all tests passed")
}

fn status(command: &mut Command) -> Result<ExitStatus, String> {
    command.status().map_err(|e| format!("cargo did not start: {e}"))
}
fn documentation() -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--doc"]);
    command
}
/// Whether the name of a documentation test holds one of `filters`.
fn documentation_has(filters: &[String]) -> Result<bool, String> {
    let listed = documentation().args(["--quiet", "--", "--list"]).args(filters).output();
    let listed = listed.map_err(|e| format!("cargo did not start: {e}"))?;
    Ok(String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.ends_with(": test")))
}

/// The variable by which Cargo runs tests through another program.
fn runner() -> String {
    format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase())
}

/// The tests with `#[ignore]`, as their sources say.
#[derive(Default)]
struct Ignored {
    /// With a `make` target of their own, and which.
    long_runs: Vec<String>,
    /// Without.
    left_out: Vec<String>,
}

impl Ignored {
    /// Those of each source file that git knows.
    fn of_the_workspace(root: &Path) -> Result<Ignored, String> {
        let listed = Command::new("git").args(["ls-files", "*.rs"]).current_dir(root).output();
        let listed = listed.map_err(|e| format!("git did not start: {e}"))?;
        let mut ignored = Ignored::default();
        for name in String::from_utf8_lossy(&listed.stdout).lines() {
            let text = std::fs::read_to_string(root.join(name)).unwrap_or_default();
            if text.contains("#[ignore") {
                ignored.add(name, &text)?;
            }
        }
        Ok(ignored)
    }
    fn add(&mut self, name: &str, text: &str) -> Result<(), String> {
        let file = syn::parse_file(text).map_err(|e| format!("{name} cannot be read: {e}"))?;
        let mut found = Found::default();
        found.visit_file(&file);
        for (test, why) in found.0 {
            match why.strip_prefix("long run: ") {
                Some(target) => self.long_runs.push(format!("{name} {test}: {target}")),
                None => self.left_out.push(format!("{name} {test}: ignored, {why}")),
            }
        }
        Ok(())
    }
}

/// Functions with `#[ignore]`, and why.
#[derive(Default)]
struct Found(Vec<(String, String)>);

impl<'a> Visit<'a> for Found {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        for attribute in function.attrs.iter().filter(|attribute| attribute.path().is_ident("ignore")) {
            let why = match &attribute.meta {
                syn::Meta::NameValue(syn::MetaNameValue {
                    value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(why), .. }),
                    ..
                }) => why.value(),
                _ => "with no reason".to_owned(),
            };
            self.0.push((function.sig.ident.to_string(), why));
        }
        syn::visit::visit_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_told_from_what_is_left_out() {
        let mut ignored = Ignored::default();
        let source = "mod a { #[test] #[ignore = \"long run: make soak\"] fn b() {} }\n\
                      #[test] #[ignore] fn c() {}\n#[test] #[ignore = \"needs a peer\"] fn d() {} #[test] fn e() {}";
        ignored.add("x.rs", source).unwrap();
        assert_eq!(ignored.long_runs, ["x.rs b: make soak"]);
        assert_eq!(ignored.left_out, ["x.rs c: ignored, with no reason", "x.rs d: ignored, needs a peer"]);
    }
    #[test]
    fn each_long_run_of_this_tree_has_its_target() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
        let ignored = Ignored::of_the_workspace(&root).unwrap();
        assert!(!ignored.long_runs.is_empty());
        for run in ignored.long_runs {
            let target = run.split_once(": make ").unwrap().1;
            assert!(makefile.contains(&format!("\n{target}:")), "{run}: the Makefile has no such target");
        }
    }
}
