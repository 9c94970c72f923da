//! Fuzz targets. The input is what a server says, or what a person types; the invariants are asserted.

use crate::{PORT, ROOT, SERVERS_LIMIT, Search, Server};
use inhost_common::Cleaner;

/// One input, to everything that reads from the network or from a person.
pub fn fuzz_whois(input: &[u8]) {
    let text = cleaned(input);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    // A control character becomes one of three octets, and so does Latin-1's upper half at most; a line end stays one.
    assert!(text.len() <= 3 * input.len() + 1);
    let root = Server { host: ROOT.to_owned(), port: PORT };
    if let Ok(mut search) = Search::new("example.com", root, true) {
        let mut asked = Vec::new();
        let mut answers = input.split(|&octet| octet == 0);
        while let Some((server, line)) = search.question() {
            assert!(line.ends_with("example.com\r\n") && line.matches('\n').count() == 1);
            assert!(server.port == PORT && !asked.contains(&server.host.to_ascii_lowercase()));
            asked.push(server.host.to_ascii_lowercase());
            search.answered(&cleaned(answers.next().unwrap_or_default()));
        }
        assert!(asked.len() <= SERVERS_LIMIT);
    }
}

fn cleaned(input: &[u8]) -> String {
    let (mut text, mut cleaner) = (String::new(), Cleaner::default());
    for piece in input.chunks(7) {
        cleaner.take(piece, &mut text);
    }
    cleaner.end(&mut text);
    text
}
