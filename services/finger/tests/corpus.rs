//! The fuzz corpus of finger, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_holds() {
    replay("finger", inhost_finger::fuzz::fuzz_finger);
}
