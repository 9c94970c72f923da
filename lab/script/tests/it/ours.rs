//! Every script against our own stack.

use inhost_script::Offloads;
use inhost_script::suite::{self, Verdict};
use std::path::Path;

#[test]
fn every_script_holds_on_our_stack_with_every_offload_on_and_off() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let files = suite::find(&[folder]).unwrap();
    let mut failures = String::new();
    for file in &files {
        for offloads in Offloads::ALL {
            let verdict = match suite::read(file) {
                Ok(script) => suite::on_ours_with(&script, offloads),
                Err(verdict) => verdict,
            };
            if let Verdict::Failed(failed) = verdict {
                failures.push_str(&format!("offload {}: {}", offloads.text(), suite::report(&failed)));
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn every_pending_script_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("pending");
    // There may be none left.
    let files = if folder.is_dir() { suite::find(&[folder]).unwrap_or_default() } else { Vec::new() };
    for file in files {
        let script = suite::read(&file).unwrap_or_else(|verdict| panic!("{verdict:?}"));
        if suite::on_ours(&script).passed() {
            println!("{} passes now and can move", script.file);
        }
    }
}
