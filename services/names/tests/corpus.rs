//! The fuzz corpora of names, replayed without a fuzzer: each file whole, and cut off at every octet.

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
fn the_corpus_of_answers_holds() {
    replay("names_answer", inhost_names::fuzz::fuzz_answer);
}

#[test]
fn the_corpus_of_the_forwarder_holds() {
    replay("names_forward", inhost_names::fuzz::fuzz_forward);
}

#[test]
fn the_corpus_of_the_link_holds() {
    replay("names_mdns", inhost_names::fuzz::fuzz_mdns);
}

#[test]
fn the_corpus_of_files_holds() {
    replay("names_files", inhost_names::fuzz::fuzz_files);
}
