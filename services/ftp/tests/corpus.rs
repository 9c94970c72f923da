//! The fuzz corpora of the FTP machines, replayed without a fuzzer: each file whole, and cut off at every octet.

use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for length in 0..=bytes.len() {
            run(&bytes[..length]);
        }
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}

#[test]
fn the_corpus_of_the_server_holds() {
    replay("ftp_server", inhost_ftp::fuzz::fuzz_server);
}

#[test]
fn the_corpus_of_the_client_holds() {
    replay("ftp_client", inhost_ftp::fuzz::fuzz_client);
}

#[test]
fn the_corpus_of_data_holds() {
    replay("ftp_data", inhost_ftp::fuzz::fuzz_data);
}
