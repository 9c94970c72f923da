//! The fuzz corpus of the mail catcher, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_holds() {
    replay("mailcatch", inhost_mailcatch::fuzz::fuzz_mailcatch);
}
