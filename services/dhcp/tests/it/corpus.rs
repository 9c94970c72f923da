//! The fuzz corpus of the DHCP machines, replayed without a fuzzer: each file whole, and cut off at every octet.

use crate::replay::replay;

#[test]
fn the_corpus_holds() {
    replay("dhcp", inhost_dhcp::fuzz::fuzz_client);
}
