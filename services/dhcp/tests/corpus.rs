//! The fuzz corpus of the DHCP machines, replayed without a fuzzer: each file whole, and cut off at every octet.

use std::path::Path;

#[test]
fn the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/dhcp");
    let mut replayed = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for length in 0..=bytes.len() {
            inhost_dhcp::fuzz::fuzz_client(&bytes[..length]);
        }
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}
