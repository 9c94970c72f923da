//! The fuzz corpus, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_holds() {
    replay("filter", inhost_peep::fuzz::fuzz_filter);
}
