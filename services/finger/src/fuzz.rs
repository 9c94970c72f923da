//! Fuzz targets. The input is what a person types, or what a client sends; the invariants are asserted.

use std::collections::BTreeMap;

use inhost_base::{Endpoint, Instant};

use crate::client::Query;
use crate::codec::Request;
use crate::server::{Decision, Facts, Notes, Policy};

/// One input, to everything that reads from the network or from a person.
pub fn fuzz_finger(input: &[u8]) {
    if let Ok(query) = Query::parse(&String::from_utf8_lossy(input), input.len().is_multiple_of(2)) {
        assert_eq!(query.line().find('\r'), Some(query.line().len() - 2), "one line and no more");
        assert_eq!(query.line().matches('\n').count(), 1);
    }
    let request = Request::parse(input);
    let line = request.line();
    assert!(line.ends_with("\r\n") && line.matches('\n').count() == 1 && !line.contains('\u{1b}'));
    let policy = Policy {
        users: true,
        forward: BTreeMap::from([("two".to_owned(), Endpoint::new([10, 9, 0, 7], 79))]),
        ..Policy::default()
    };
    let facts = Facts { sessions: Vec::new(), users: vec!["ada".to_owned()], now: Instant::ZERO };
    let text = match policy.decide(&request, &facts) {
        Decision::Answer(text) => text,
        Decision::Describe(people) => {
            assert_eq!(request.user, "ada");
            let people: Vec<_> = people.into_iter().map(|person| (person, Notes::default())).collect();
            policy.describe(&people, request.is_verbose, facts.now)
        }
        Decision::Forward(_, passed) => {
            assert!(passed.hosts.len() < request.hosts.len(), "each host has one less to ask");
            String::new()
        }
    };
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
}
