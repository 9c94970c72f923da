//! The fuzz corpus, replayed without a fuzzer: each file whole, and cut off at every octet.

use crate::replay::replay;

#[test]
fn the_corpus_holds() {
    replay("mailauth", inhost_mailauth::fuzz::fuzz_mailauth);
}
