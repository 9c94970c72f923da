//! What a fuzzer calls. The input is what a person types; what must hold whatever that is, is asserted.

use crate::client::Query;

/// One input, to everything that reads from the network or from a person.
pub fn fuzz_finger(input: &[u8]) {
    if let Ok(query) = Query::parse(&String::from_utf8_lossy(input), input.len().is_multiple_of(2)) {
        assert_eq!(query.line().find('\r'), Some(query.line().len() - 2), "one line and no more");
        assert_eq!(query.line().matches('\n').count(), 1);
    }
}
