//! Twelve mistakes, kept as patches of the stack: each must still apply, and the checker must find it within a thousand
//! seeds. `make mutations` tries all; an ordinary test run applies all and tries one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Mistakes.
const MUTATIONS: usize = 12;
/// Seeds within which each must be found.
const SEEDS: u64 = 1000;
/// The one that an ordinary test run builds.
const SAMPLE: &str = "05-sack-block-too-long";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The patches, in order of their names.
fn patches() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("lab/sim/mutations")).unwrap();
    let mut patches: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    patches.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches.sort();
    patches
}

/// A copy of the sources that goes away with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let place = std::env::temp_dir().join(format!("inhost-mutation-{}-{name}", std::process::id()));
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
    /// Soaks the mistaken stack; what the checker said first.
    fn soak(&self, name: &str) -> String {
        // Built where the next one finds the crates that no patch touches.
        let target = root().join("target/mutations");
        let cargo = Command::new(env!("CARGO"))
            .args(["run", "--quiet", "-p", "inhost-sim", "--", "soak", "--seeds", &SEEDS.to_string()])
            .env("CARGO_TARGET_DIR", target)
            .env_remove("RUSTFLAGS")
            .current_dir(&self.0)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&cargo.stdout);
        let found = said.lines().find(|line| line.starts_with("FAILED "));
        assert!(!cargo.status.success(), "{name} is not found within {SEEDS} seeds");
        let found = found.unwrap_or_else(|| panic!("{name} does not build, or fails in another way: {said}"));
        // It is the mistake that was found, and not one that the stack has anyway.
        let seed =
            found.trim_start_matches("FAILED seed ").split(':').next().and_then(|seed| seed.parse().ok());
        let without = inhost_sim::soak::run(seed.unwrap(), None);
        assert!(without.is_ok(), "the stack itself is at fault: {without:?}");
        found.to_owned()
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

fn try_patch(patch: &Path) -> String {
    let name = patch.file_stem().unwrap().to_string_lossy().into_owned();
    let scratch = Scratch::new(&name);
    scratch.apply(patch, &[]);
    scratch.soak(&name)
}

#[test]
fn each_mistake_still_applies_to_the_stack() {
    let patches = patches();
    assert_eq!(patches.len(), MUTATIONS);
    let scratch = Scratch::new("apply");
    patches.iter().for_each(|patch| scratch.apply(patch, &["--check"]));
}

#[test]
fn one_mistake_is_found() {
    let patch = root().join("lab/sim/mutations").join(SAMPLE).with_extension("patch");
    let said = try_patch(&patch);
    assert!(said.contains("reports by SACK"), "{said}");
}

#[test]
#[ignore = "long run: make mutations"]
fn every_mistake_is_found() {
    for patch in patches() {
        let said = try_patch(&patch);
        println!("{}: {said}", patch.file_stem().unwrap().to_string_lossy());
    }
}
