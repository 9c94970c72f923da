//! A target's corpus, replayed without a fuzzer by the tests of the crate that it fuzzes.

use std::path::Path;

/// Runs each file of `fuzz/corpus/TARGET`: whole, and cut off at every octet. Fails where there is none.
pub fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for length in 0..=bytes.len() {
            run(&bytes[..length]);
        }
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}
