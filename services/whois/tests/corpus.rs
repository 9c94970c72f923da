//! The fuzz corpus of whois, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_holds() {
    replay("whois", inhost_whois::fuzz::fuzz_whois);
}
