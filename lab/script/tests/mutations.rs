//! Mistakes of `mistakes.toml`, put into the stack one at a time: each must still have its place, and the judge must find
//! it by a difference that the stack has not without it. `make differ-mutations` tries all of them.

use inhost_script::differ::{self, Classes, Plan};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Mistakes at the least.
const LEAST_MISTAKES: usize = 6;
/// Seeds within which each must be found.
const SEEDS: &str = "400";
/// Exchanges at a time.
const JOBS: &str = "32";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
/// A mistake: what stands once in a file, and what stands there in its place.
#[derive(Deserialize)]
struct Mistake {
    name: String,
    file: PathBuf,
    from: String,
    to: String,
}
#[derive(Deserialize)]
struct Table {
    mistake: Vec<Mistake>,
}
fn mistakes() -> Vec<Mistake> {
    let text = fs::read_to_string(root().join("lab/script/mistakes.toml")).unwrap();
    toml::from_str::<Table>(&text).unwrap().mistake
}
impl Mistake {
    /// The file with the mistake in it.
    fn made(&self) -> String {
        let text = fs::read_to_string(root().join(&self.file)).unwrap();
        let places = text.matches(&self.from).count();
        assert_eq!(places, 1, "`{}` has not its one place in {}", self.name, self.file.display());
        text.replacen(&self.from, &self.to, 1)
    }
}

/// A copy of the sources that goes away with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let place = std::env::temp_dir().join(format!("inhost-mistake-{}-{name}", std::process::id()));
        copy(&root(), &place);
        Scratch(place)
    }
    /// What the judge finds in the mistaken stack: signatures and seeds.
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
fn each_mistake_still_has_its_place() {
    let mistakes = mistakes();
    assert!(mistakes.len() >= LEAST_MISTAKES);
    mistakes.iter().for_each(|mistake| assert_ne!(mistake.made(), ""));
}

#[test]
#[ignore = "long run: make differ-mutations"]
fn every_mistake_is_found() {
    let mut missed = Vec::new();
    let mistakes = mistakes();
    for (index, mistake) in mistakes.iter().enumerate() {
        let scratch = Scratch::new(&index.to_string());
        fs::write(scratch.0.join(&mistake.file), mistake.made()).unwrap();
        // It is the mistake that was found, and not a difference that the stack has anyway.
        match scratch.judge().into_iter().find(|(_, seed)| !differs_anyway(*seed)) {
            Some((signature, seed)) => println!("{}: seed {seed}: {signature}", mistake.name),
            None => missed.push(mistake.name.as_str()),
        }
    }
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
}
