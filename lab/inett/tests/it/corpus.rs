//! The fuzz corpus of inett, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn the_corpus_holds() {
    replay::replay("inett", inhost_inett::fuzz::fuzz_inett);
}
