//! The fuzz corpus of jobs, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_holds() {
    replay("jobs", inhost_jobs::fuzz::fuzz_jobs);
}
