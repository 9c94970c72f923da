//! Fuzz target. The input is a filter, a zero, and a frame.

use inhost_explain::capture::{Frame, LinkType};

use crate::filter::Filter;

/// A filter of anybody over a frame of anybody.
pub fn fuzz_filter(input: &[u8]) {
    let (text, bytes) = match input.iter().position(|&byte| byte == 0) {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[][..]),
    };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let filter: Filter = match text.parse() {
        Ok(filter) => filter,
        Err(why) => {
            assert!(why.at <= text.len(), "the place of an error is in the filter");
            return;
        }
    };
    for link in [LinkType::Ethernet, LinkType::Ip, LinkType::Cooked, LinkType::Cooked2, LinkType::Loopback] {
        let original_bytes = bytes.len() as u32;
        let frame = Frame {
            number: 1,
            at_ns: 0,
            interface: 0,
            link,
            bytes,
            original_bytes,
            is_inbound: None,
            comment: None,
        };
        filter.has(&frame);
    }
}
