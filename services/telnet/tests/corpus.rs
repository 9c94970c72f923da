//! The fuzz corpus of the Telnet machines, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_holds() {
    replay("telnet", |bytes| {
        inhost_telnet::fuzz::fuzz_protocol(bytes);
        inhost_telnet::fuzz::fuzz_unread(bytes);
    });
    replay("telnet_unread", inhost_telnet::fuzz::fuzz_unread);
}
