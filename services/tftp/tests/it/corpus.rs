//! The fuzz corpora of the TFTP machines, replayed without a fuzzer: each file whole, and cut off at every octet.

use crate::replay::replay;

#[test]
fn the_corpus_of_the_server_holds() {
    replay("tftp_server", inhost_tftp::fuzz::fuzz_tftp_server);
}

#[test]
fn the_corpus_of_the_client_holds() {
    replay("tftp_client", inhost_tftp::fuzz::fuzz_tftp_client);
}

/// Octets that are nearly packets, from a seed: what a fuzzer finds first.
#[test]
fn rubbish_holds() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    for _ in 0..20_000 {
        let mut input = vec![next()];
        for _ in 0..next() % 12 {
            let body = [
                vec![0, 1 + next() % 6, 0, next() % 8],
                vec![0, 3, 0, next() % 8, b'\r', next(), b'\n'],
                b"\0\x01a/../b\0octet\0windowsize\x004\0".to_vec(),
                b"\0\x02f\0netascii\0blksize\x009\0tsize\x009\0".to_vec(),
                b"\0\x06blksize\x008\0windowsize\x008\0".to_vec(),
            ];
            let chosen = &body[usize::from(next()) % body.len()];
            input.push(chosen.len() as u8);
            input.push(next());
            input.extend_from_slice(chosen);
        }
        inhost_tftp::fuzz::fuzz_tftp_server(&input);
        inhost_tftp::fuzz::fuzz_tftp_client(&input);
    }
}
