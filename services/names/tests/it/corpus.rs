//! The fuzz corpora of names, replayed without a fuzzer: each file whole, and cut off at every octet.

use crate::replay::replay;

#[test]
fn the_corpus_of_answers_holds() {
    replay("names_answer", inhost_names::fuzz::fuzz_answer);
}

#[test]
fn the_corpus_of_the_forwarder_holds() {
    replay("names_forward", inhost_names::fuzz::fuzz_forward);
}

#[test]
fn the_corpus_of_the_link_holds() {
    replay("names_mdns", inhost_names::fuzz::fuzz_mdns);
}

#[test]
fn the_corpus_of_files_holds() {
    replay("names_files", inhost_names::fuzz::fuzz_files);
}
