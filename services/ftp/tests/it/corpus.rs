//! The fuzz corpora of the FTP machines, replayed without a fuzzer: each file whole, and cut off at every octet.

use crate::replay::replay;

#[test]
fn the_corpus_of_the_server_holds() {
    replay("ftp_server", inhost_ftp::fuzz::fuzz_server);
}

#[test]
fn a_client_that_reads_nothing_has_little_held_for_it() {
    replay("ftp_unread", inhost_ftp::fuzz::fuzz_unread);
}

#[test]
fn the_corpus_of_the_client_holds() {
    replay("ftp_client", inhost_ftp::fuzz::fuzz_client);
}

#[test]
fn the_corpus_of_data_holds() {
    replay("ftp_data", inhost_ftp::fuzz::fuzz_data);
}
