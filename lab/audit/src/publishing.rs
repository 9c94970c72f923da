//! Which crates a registry would get, in which order, and whether each of them packs.
//!
//! A crate is one of them when its manifest follows the workspace's `publish`; the others say `publish = false` themselves.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A crate that a registry would get.
pub(crate) struct Published {
    name: String,
    /// Its folder, from the root of the workspace.
    folder: String,
    /// What Cargo says of it.
    package: Value,
    /// Those of ours that it needs, also for its tests: Cargo looks for these, too.
    needs: Vec<String>,
}

impl Published {
    /// What a registry, or a person who reads the crate's page there, would miss.
    fn lacks(&self, root: &Path) -> Vec<String> {
        let package = &self.package;
        let count = |key: &str| package[key].as_array().map_or(0, Vec::len);
        let length = |key: &str| package[key].as_str().map_or(0, str::len);
        let mut lacks = Vec::new();
        let mut ask = |holds: bool, what: &str| {
            if !holds {
                lacks.push(format!("{}: {what}", self.name));
            }
        };
        ask(length("description") > 20, "no description");
        ask(length("license") > 0, "no licence");
        ask((1..=5).contains(&count("keywords")), "between one and five keywords");
        ask((1..=5).contains(&count("categories")), "between one and five categories");
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            let text = std::fs::read_to_string(root.join(&self.folder).join(file));
            ask(text.is_ok_and(|text| text.len() > 100), &format!("no {file}"));
        }
        let version = format!("^{}", package["version"].as_str().unwrap_or_default());
        for need in package["dependencies"].as_array().into_iter().flatten() {
            if is_packed(need) && need["name"] != package["name"] {
                ask(
                    need["req"] == version.as_str(),
                    &format!("{} is not asked for as {version}", need["name"]),
                );
            }
        }
        lacks
    }
}

/// Whether this is one of ours that a package names. Cargo leaves out what tests need by its path alone.
fn is_packed(need: &Value) -> bool {
    need["path"].is_string() && (need["kind"] != "dev" || need["req"] != "*")
}

/// The crates in an order in which each comes after those that it needs, one to a line.
pub fn order() -> Result<String, String> {
    let lines = in_order(published(Path::new("."))?)?.into_iter().map(|of| of.name);
    Ok(lines.enumerate().map(|(at, name)| format!("{:2}. {name}", at + 1)).collect::<Vec<_>>().join("\n"))
}

/// Packs all of them, and builds each from its package alone. This is done in a copy of the tree in which `publish` is on,
/// because Cargo finds the packages of the others only there. Nothing is uploaded.
pub fn package() -> Result<String, String> {
    let crates = published(Path::new("."))?;
    let lacks: Vec<String> = crates.iter().flat_map(|of| of.lacks(Path::new("."))).collect();
    if !lacks.is_empty() {
        return Err(lacks.join("\n"));
    }
    let folder =
        std::env::current_dir().map_err(|e| format!("no current folder: {e}"))?.join("target/packages");
    let (copy, home, built) = (folder.join("tree"), folder.join("home"), folder.join("built"));
    let prepared =
        forget(&built.join("debug")).and_then(|()| make_home(&home)).and_then(|()| copy_tree(&copy));
    prepared.map_err(|e| format!("{}: {e}", folder.display()))?;
    let manifest = copy.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    let text = text.replacen("\npublish = false\n", "\npublish = true\n", 1);
    std::fs::write(&manifest, text).map_err(|e| format!("{}: {e}", manifest.display()))?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(copy).env("CARGO_HOME", home).env("CARGO_TARGET_DIR", built);
    cargo.args(["package", "--quiet", "--allow-dirty"]);
    for of in &crates {
        cargo.args(["--package", &of.name]);
    }
    let status = cargo.status().map_err(|e| format!("cargo package did not start: {e}"))?;
    if !status.success() {
        return Err(format!("cargo package: {status}"));
    }
    Ok(format!(
        "package: {} crates packed and built from their packages, in target/packages/built/package",
        crates.len()
    ))
}

/// Removes what an earlier run has built of our crates. Cargo takes a package that it has seen for unchanged.
fn forget(built: &Path) -> io::Result<()> {
    for part in ["deps", "build", ".fingerprint"] {
        let Ok(entries) = std::fs::read_dir(built.join(part)) else { continue };
        for entry in entries {
            let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
            let name = name.to_string_lossy();
            if name.trim_start_matches("lib").starts_with("inhost") {
                if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
            }
        }
    }
    Ok(())
}

/// A home for Cargo in which others' crates are those of the user's own, and ours, which it would keep there, are new.
fn make_home(home: &Path) -> io::Result<()> {
    let user = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let user = user.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let user = user.ok_or_else(|| io::Error::other("neither CARGO_HOME nor HOME is set"))?;
    if home.exists() {
        std::fs::remove_dir_all(home)?;
    }
    std::fs::create_dir_all(home.join("registry/src"))?;
    for part in ["registry/index", "registry/cache"] {
        std::fs::create_dir_all(user.join(part))?;
        symlink(user.join(part), home.join(part))?;
    }
    for name in ["config.toml", "registry/src"] {
        let (from, to) = (user.join(name), home.join(name));
        if from.is_file() {
            symlink(from, to)?;
        } else if from.is_dir() {
            // A registry in a folder, which ours is for the time of the run, has no name before the dash.
            for entry in std::fs::read_dir(from)? {
                let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
                if !name.to_string_lossy().starts_with('-') {
                    symlink(path, to.join(name))?;
                }
            }
        }
    }
    Ok(())
}

/// Copies what Git knows of the tree, or would take.
fn copy_tree(to: &Path) -> io::Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    let list = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()?;
    for name in String::from_utf8_lossy(&list.stdout).split('\0').filter(|name| Path::new(name).is_file()) {
        let place = to.join(name);
        std::fs::create_dir_all(place.parent().unwrap_or(to))?;
        std::fs::copy(name, &place)?;
    }
    Ok(())
}

/// The crates whose manifest follows the workspace at `root`.
pub(crate) fn published(root: &Path) -> Result<Vec<Published>, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cargo metadata did not start: {e}"))?;
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let workspace = metadata["workspace_root"].as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let text = std::fs::read_to_string(manifest).map_err(|e| format!("{manifest}: {e}"))?;
        if !text.contains("\npublish.workspace = true\n") {
            continue;
        }
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        let folder = manifest.trim_start_matches(&workspace).trim_start_matches('/');
        let needs = package["dependencies"].as_array().into_iter().flatten();
        let needs = needs.filter(|need| is_packed(need)).filter_map(|need| need["name"].as_str());
        // A crate's tests may ask for its own features.
        let needs = needs.filter(|need| *need != name).map(str::to_owned).collect();
        let folder = folder.trim_end_matches("/Cargo.toml").to_owned();
        found.push(Published { name, folder, package: package.clone(), needs });
    }
    Ok(found)
}

/// Sorts them: those that need nothing further first, by name among equals.
fn in_order(crates: Vec<Published>) -> Result<Vec<Published>, String> {
    let mut left: BTreeMap<String, Published> = crates.into_iter().map(|of| (of.name.clone(), of)).collect();
    let mut sorted: Vec<Published> = Vec::new();
    while !left.is_empty() {
        let ready: Vec<String> = left
            .values()
            .filter(|of| of.needs.iter().all(|need| sorted.iter().any(|before| before.name == *need)))
            .map(|of| of.name.clone())
            .collect();
        if ready.is_empty() {
            let names: Vec<&str> = left.keys().map(String::as_str).collect();
            return Err(format!(
                "no order: they need each other, or a crate that is not published: {}",
                names.join(" ")
            ));
        }
        sorted.extend(ready.iter().filter_map(|name| left.remove(name)));
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    #[test]
    fn the_page_has_the_order_and_nothing_is_published_yet() {
        let crates = in_order(published(root()).unwrap()).unwrap();
        assert!(crates.iter().any(|of| of.name == "inhost"));
        let listed: Vec<String> =
            crates.iter().enumerate().map(|(at, of)| format!("{:2}. {}\n", at + 1, of.name)).collect();
        let page = include_str!("../../../docs/publishing.md");
        let listed = listed.concat();
        assert!(page.contains(&listed), "docs/publishing.md does not have this list:\n{listed}");
        for of in crates {
            assert_eq!(of.package["publish"], Value::Array(Vec::new()), "{}: publishing is on", of.name);
        }
    }

    #[test]
    fn each_crate_has_what_a_registry_asks_for() {
        let crates = published(root()).unwrap();
        let lacks: Vec<String> = crates.iter().flat_map(|of| of.lacks(root())).collect();
        assert!(lacks.is_empty(), "{lacks:#?}");
    }
}
