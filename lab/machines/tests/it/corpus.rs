//! The fuzz corpus of setups, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn the_corpus_holds() {
    replay::replay("machines", inhost_machines::fuzz::fuzz_setup);
}
