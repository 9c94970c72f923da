//! The fuzz corpora of rlogin and rcp, replayed without a fuzzer: each file whole, and cut off at every octet.

use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
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

#[test]
fn the_corpus_of_rlogin_holds() {
    replay("rlogin", inhost_remote::fuzz::fuzz_rlogin);
}

#[test]
fn the_corpus_of_rcp_holds() {
    replay("rcp", inhost_remote::fuzz::fuzz_rcp);
}
