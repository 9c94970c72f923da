//! Mistakes put into a copy of the stack, from a table of pieces and what stands in their place.

use inhost_interop::output_within;
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Longest build and run of one mistake. Below the limit of `one_mistake_is_found` in `.config/nextest.toml`.
const LIMIT: Duration = Duration::from_secs(280);

/// A mistake: what stands once in a file, and what stands there in its place.
#[derive(Deserialize)]
pub struct Mistake {
    pub name: String,
    pub file: PathBuf,
    from: String,
    to: String,
}

#[derive(Deserialize)]
struct Table {
    mistake: Vec<Mistake>,
}

/// The mistakes of `table`, a path below the workspace.
pub fn of(table: &str) -> Vec<Mistake> {
    let text = fs::read_to_string(root().join(table)).unwrap();
    toml::from_str::<Table>(&text).unwrap().mistake
}

impl Mistake {
    /// The file with the mistake in it.
    pub fn made(&self) -> String {
        let text = fs::read_to_string(root().join(&self.file)).unwrap();
        let places = text.matches(&self.from).count();
        assert_eq!(places, 1, "`{}` has not its one place in {}", self.name, self.file.display());
        text.replacen(&self.from, &self.to, 1)
    }
    /// What `cargo` with `arguments` prints in a copy of the sources that has the mistake.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        let scratch = Scratch::new();
        fs::write(scratch.0.join(&self.file), self.made()).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(arguments)
            // Built where the next one finds the crates that no mistake touches.
            .env("CARGO_TARGET_DIR", root().join("target/mutations"))
            .env_remove("RUSTFLAGS")
            .current_dir(&scratch.0);
        let ran = output_within(LIMIT, &mut cargo);
        eprint!("{}", String::from_utf8_lossy(&ran.stderr));
        ran
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A copy of the sources that goes away with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let place = std::env::temp_dir().join(format!("inhost-mistake-{}", std::process::id()));
        copy(&root(), &place);
        Scratch(place)
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
