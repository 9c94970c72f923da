//! The fuzz corpus of finger and whois, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_holds() {
    replay("directory", inhost_directory::fuzz::fuzz_directory);
}
