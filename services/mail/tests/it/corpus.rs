//! The fuzz corpus, replayed without a fuzzer: each file whole, and cut off at every octet.

#[test]
fn the_corpus_holds() {
    crate::replay::replay("mail", inhost_mail::fuzz::fuzz_mail);
}
