//! Mistakes, kept as patches of the stack: each must still apply, and the judge must find it by a difference that the
//! stack has not without it. `make differ-mutations` tries all of them; an ordinary test run applies them.

use inhost_script::differ::{self, Classes, Plan};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Mistakes.
const MUTATIONS: usize = 6;
/// Seeds within which each must be found.
const SEEDS: &str = "4000";
/// Exchanges at a time.
const JOBS: &str = "32";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
/// The patches, in order of their names.
fn patches() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("lab/script/mutations")).unwrap();
    let mut patches: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    patches.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches.sort();
    patches
}

/// A copy of the sources that goes away with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let place = std::env::temp_dir().join(format!("inhost-mistake-{}-{name}", std::process::id()));
        copy(&root(), &place);
        Scratch(place)
    }
    fn apply(&self, patch: &Path, how: &[&str]) {
        // Not the repository above, should there be one: patches apply to what is here.
        let git = Command::new("git")
            .args(["apply", "--whitespace=nowarn"])
            .args(how)
            .arg(patch)
            .env("GIT_CEILING_DIRECTORIES", std::env::temp_dir())
            .current_dir(&self.0)
            .output()
            .unwrap();
        let why = String::from_utf8_lossy(&git.stderr);
        assert!(git.status.success(), "{} no longer applies: {why}", patch.display());
    }
    /// What the judge finds in the mistaken stack, in no open class: signatures and seeds.
    fn judge(&self) -> Vec<(String, u64)> {
        // Built where the next one finds the crates that no patch touches.
        let target = root().join("target/mutations");
        let cargo = Command::new(env!("CARGO"))
            .args(["run", "--quiet", "-p", "inhost-script", "--", "differ", "--open", "--json"])
            .args(["--seeds", SEEDS, "--jobs", JOBS, "--as-drawn"])
            .env("CARGO_TARGET_DIR", target)
            .env_remove("RUSTFLAGS")
            .current_dir(&self.0)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        let report: serde_json::Value = serde_json::from_slice(&cargo.stdout).expect("it does not build");
        let found = report["found"].as_array().unwrap().iter();
        let mut found: Vec<(String, u64)> = found
            .map(|found| (found["signature"].as_str().unwrap().to_owned(), found["seed"].as_u64().unwrap()))
            .collect();
        found.sort_by_key(|(_, seed)| *seed);
        found
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies the sources; what is built and what git keeps stays.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            if !["target", ".git"].iter().any(|skipped| entry.file_name() == *skipped) {
                copy(&path, &place);
            }
        } else {
            fs::copy(&path, &place).unwrap();
        }
    }
}

/// What the stack itself does differently in this seed.
fn differs_anyway(seed: u64) -> bool {
    let plan = Plan { first: seed, count: 1, every: 1, jobs: 1, time: None, without: None, as_drawn: true };
    let report = differ::judge(&Classes::committed().unwrap().without_open(), plan).unwrap();
    !report.found.is_empty() || report.played == 0
}

#[test]
fn each_mistake_still_applies_to_the_stack() {
    let patches = patches();
    assert_eq!(patches.len(), MUTATIONS);
    let scratch = Scratch::new("apply");
    patches.iter().for_each(|patch| scratch.apply(patch, &["--check"]));
}

#[test]
#[ignore = "long run: make differ-mutations"]
fn every_mistake_is_found() {
    let mut missed = Vec::new();
    for patch in patches() {
        let name = patch.file_stem().unwrap().to_string_lossy().into_owned();
        let scratch = Scratch::new(&name);
        scratch.apply(&patch, &[]);
        // It is the mistake that was found, and not a difference that the stack has anyway.
        match scratch.judge().into_iter().find(|(_, seed)| !differs_anyway(*seed)) {
            Some((signature, seed)) => println!("{name}: seed {seed}: {signature}"),
            None => missed.push(name),
        }
    }
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
}
