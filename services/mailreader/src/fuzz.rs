//! A fuzz target: the input is a message of a stranger, or what an editor gave back; the invariants are asserted.

use crate::text::{clean, unflow, wrap};
use crate::{Composition, Document, FileName, Summary};

/// One input, to everything that reads messages and names of files.
pub fn fuzz_mailreader(input: &[u8]) {
    let harmless = |text: &str| assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    let document = Document::parse(input, "mx.example");
    harmless(&document.to_text());
    document.header.iter().for_each(|line| harmless(line));
    for (index, attachment) in document.attachments.iter().enumerate() {
        assert!(!attachment.name.contains('/') && !attachment.name.is_empty() && attachment.name != "..");
        let _ = Document::attachment(input, index);
    }
    let summary = Summary::parse(input, input.len() as u64, 0);
    [&summary.from, &summary.subject, &summary.to].into_iter().for_each(|text| harmless(text));
    let answer = Composition::reply(&document, "bob@example.org", true);
    harmless(&answer.subject);
    let text = String::from_utf8_lossy(input);
    let mut written = Composition::new("bob@example.org");
    written.take_file(&text);
    if let Ok(finished) = written.finish(0, "1") {
        let lone = String::from_utf8_lossy(&finished.text).replace("\r\n", "");
        assert!(!lone.contains(['\r', '\n']), "{lone:?}");
    }
    assert!(wrap(&clean(&text).replace('\n', " "), 20).iter().all(|line| line.len() <= 20 * 80));
    let _ = (unflow(&text, true), FileName::parse(&text, false));
}
