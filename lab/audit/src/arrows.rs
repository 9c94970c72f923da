//! Which crate may know which, read from Cargo's own metadata.

use crate::measures::{Exempt, Tree, of_files};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The floors of the house, from the ground up. A crate may depend on crates of lower floors only.
const FLOORS: &[&[&str]] = &[
    // It knows nothing of inhost; the tests of each crate may use it.
    &["lab/interop"],
    &["core/base"],
    &["core/buf", "core/congestion"],
    &["core/wire"],
    &["core/event"],
    &["core/ip", "core/tcp"],
    &["core/datagram"],
    &["core/stack"],
    &["host/link", "host/record", "host/socket"],
    &["host/runtime", "host/xti"],
    &["host/packetdrill"],
    &["services/common"],
    &["services/*"],
    &["lab/*"],
    &["inhost/macros"],
    &["inhost"],
    &["inhost-cli", "examples/*"],
];

/// What the core may use that others wrote: nothing that knows an operating system, a clock or a thread.
const CORE_MAY_USE: &[&str] = &["bitflags", "bytes", "hashbrown", "rand_chacha", "siphasher", "thiserror"];

/// What it may use besides for the feature `freeze` alone, as optional dependencies: the state of a stack as bytes. The
/// format is the stack's own business.
const CORE_MAY_FREEZE_BY: &[(&str, &str)] = &[
    ("core/", "serde"),
    ("core/stack", "postcard"),
    ("core/stack", "serde_json"),
    ("core/tcp", "serde_json"),
];

/// The simulator meets a host only by its core, its async face and its services.
const SIM_MAY_NOT_USE: &[&str] = &["host/link", "host/runtime", "host/packetdrill"];

/// The crates whose files must not know each other in a circle. `inhost-audit measures` counts all circles, these with
/// parents and re-exports as well.
const WITHOUT_CIRCLES: [&str; 5] = ["core/ip", "core/congestion", "core/datagram", "core/tcp", "core/stack"];

/// What of one crate's files is in circles.
struct Circles {
    /// The crate's folder.
    folder: &'static str,
    /// Files of the crate, tests left out.
    files: usize,
    /// The files of each circle.
    circles: Vec<Vec<String>>,
}

/// Fails when an arrow runs upward, when the core uses what it must not, or when files of the core form a circle.
pub fn check() -> Result<String, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .map_err(|e| format!("cargo metadata did not start: {e}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("cargo metadata printed no JSON ({e}); run from the root of the workspace"))?;
    let root = text(&metadata["workspace_root"]).to_owned();
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let folder_of: BTreeMap<&str, String> = packages
        .iter()
        .map(|p| {
            let manifest = text(&p["manifest_path"]);
            let folder = manifest.trim_start_matches(&root).trim_start_matches('/');
            (text(&p["name"]), folder.trim_end_matches("/Cargo.toml").to_owned())
        })
        .collect();
    let mut wrong = Vec::new();
    let mut arrows = 0;
    for package in packages {
        let name = text(&package["name"]);
        let from = &folder_of[name];
        let Some(floor) = floor(from) else {
            wrong.push(format!("{from}: no floor is set for this folder in lab/audit/src/arrows.rs"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to_name = text(&dependency["name"]);
            // A crate's tests may ask for its own features.
            if to_name == name && dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            match folder_of.get(to_name) {
                Some(to) => {
                    arrows += 1;
                    // Services may share what another service offers, as long as it is not a circle, which Cargo refuses.
                    let beside = from.starts_with("services/") && to.starts_with("services/")
                        || from.starts_with("lab/") && to.starts_with("lab/");
                    if self::floor(to).is_none_or(|below| below >= floor) && !beside {
                        wrong.push(format!("{from} must not know {to}: arrows run downward only"));
                    }
                    if from == "lab/sim" && SIM_MAY_NOT_USE.contains(&to.as_str()) {
                        wrong.push(format!("{from} must not know {to}: no driver or clock in the simulator"));
                    }
                }
                None => {
                    let in_tests_only = dependency["kind"].as_str() == Some("dev");
                    let is_optional = dependency["optional"].as_bool() == Some(true);
                    let freezes =
                        CORE_MAY_FREEZE_BY.iter().any(|(of, name)| from.starts_with(of) && to_name == *name);
                    let may_use = CORE_MAY_USE.contains(&to_name) || is_optional && freezes;
                    if from.starts_with("core/") && !in_tests_only && !may_use {
                        wrong.push(format!("{from} must not use the crate {to_name}: the core is pure"));
                    }
                }
            }
        }
    }
    if wrong.is_empty() {
        Ok(format!("arrows: {} crates, {arrows} arrows, all downward{}", packages.len(), files()?))
    } else {
        Err(wrong.join("\n"))
    }
}

/// The table of circles among files, or an error when there is one in a crate whose files must have none.
fn files() -> Result<String, String> {
    let found = circles(Path::new("."))?;
    let text = found.iter().fold(String::new(), |text, of| text + "\n" + &describe(of));
    match found.iter().any(is_refused) {
        false => Ok(text),
        true => Err(format!("no circle among files is allowed:{text}")),
    }
}

fn circles(root: &Path) -> Result<Vec<Circles>, String> {
    let tree = Tree::read(root, &WITHOUT_CIRCLES.map(str::to_owned))?;
    let of = |&folder| {
        let (files, circles) = of_files(&tree, folder, Exempt::Family);
        Circles { folder, files, circles }
    };
    Ok(WITHOUT_CIRCLES.iter().map(of).collect())
}

fn is_refused(found: &Circles) -> bool {
    !found.circles.is_empty()
}

fn describe(found: &Circles) -> String {
    let most = found.circles.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = format!("{}: {} files, ", found.folder, found.files);
    let _ = match most {
        0 => write!(text, "no circle"),
        _ => write!(text, "{} circles, the largest of {most} files", found.circles.len()),
    };
    for circle in &found.circles {
        let _ = write!(text, "\n    {}", circle.join(" "));
    }
    text
}

fn floor(folder: &str) -> Option<usize> {
    FLOORS.iter().position(|names| {
        names.iter().any(|name| match name.strip_suffix('*') {
            Some(prefix) => folder.starts_with(prefix),
            None => folder == *name,
        })
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_refused() {
        let found = |folder, circles| Circles { folder, files: 20, circles };
        let circle = || vec![vec!["a".to_owned(), "b".to_owned()]];
        assert!(is_refused(&found("core/stack", circle())));
        assert!(is_refused(&found("core/tcp", circle())));
        assert!(!is_refused(&found("core/stack", Vec::new())));
    }
    #[test]
    fn the_core_is_read_whole() {
        let found = circles(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))).unwrap();
        assert_eq!(found.len(), WITHOUT_CIRCLES.len());
        assert!(found.iter().all(|of| of.files > 8));
        assert!(found.iter().all(|of| of.circles.is_empty()));
    }
    #[test]
    fn every_folder_of_the_house_has_its_floor() {
        assert!(floor("core/base") < floor("core/tcp") && floor("core/tcp") == floor("core/ip"));
        assert!(
            floor("services/telnet") < floor("lab/sim")
                && floor("lab/sim") < floor("inhost")
                && floor("inhost") < floor("inhost-cli")
        );
        assert_eq!(floor("elsewhere"), None);
    }
}
