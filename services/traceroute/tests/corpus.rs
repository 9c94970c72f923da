//! The fuzz corpus of the route tracer, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_holds() {
    replay("traceroute", inhost_traceroute::fuzz::fuzz_traceroute);
}
