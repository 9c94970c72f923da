//! The fuzz corpora of rlogin, rcp and the servers, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_of_rlogin_holds() {
    replay("rlogin", inhost_rcommands::fuzz::fuzz_rlogin);
}

#[test]
fn the_corpus_of_rcp_holds() {
    replay("rcp", inhost_rcommands::fuzz::fuzz_rcp);
}

#[test]
fn the_corpus_of_the_servers_holds() {
    replay("rservers", inhost_rcommands::fuzz::fuzz_rservers);
}
