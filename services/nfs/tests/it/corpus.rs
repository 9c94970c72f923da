//! The fuzz corpora of NFS, replayed without a fuzzer: each file whole, and cut off at every octet.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_of_the_formats_holds() {
    replay("nfs_formats", inhost_nfs::fuzz::fuzz_nfs_formats);
}

#[test]
fn the_corpus_of_the_server_holds() {
    replay("nfs_server", inhost_nfs::fuzz::fuzz_nfs_server);
}
