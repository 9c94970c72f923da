//! DNS queries of the checks, and the answers received so far. Nothing here sends anything.

use crate::domain::is_askable;
use inhost_base::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Type of the records that a check asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// TXT.
    Txt,
    /// A.
    A,
    /// AAAA.
    Aaaa,
    /// MX.
    Mx,
    /// PTR.
    Ptr,
}

/// A DNS query.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct Query {
    /// The name: lower case, no final dot.
    pub name: String,
    /// Records of this type.
    pub kind: Kind,
}

impl Query {
    pub(crate) fn new(name: &str, kind: Kind) -> Query {
        let name = name.strip_suffix('.').unwrap_or(name);
        Query { name: name.to_ascii_lowercase(), kind }
    }
}

/// The answer to a [`Query`]. A name without records of the type has an empty list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The texts of TXT records, each with its strings joined (RFC 7208 §3.3).
    Texts(Vec<Vec<u8>>),
    /// Addresses.
    Addresses(Vec<IpAddr>),
    /// Names of PTR records, or exchanges of MX records in their order.
    Names(Vec<String>),
    /// There is no such name (NXDOMAIN).
    NoSuchName,
    /// No answer for now: silence, or a server that failed.
    Failed,
}

impl Answer {
    /// Whether it is a negative answer, a "void look-up" of RFC 7208 §4.6.4.
    pub(crate) fn is_void(&self) -> bool {
        match self {
            Answer::Texts(list) => list.is_empty(),
            Answer::Addresses(list) => list.is_empty(),
            Answer::Names(list) => list.is_empty(),
            Answer::NoSuchName => true,
            Answer::Failed => false,
        }
    }
}

/// Queries whose answers a check needs before it can continue.
pub(crate) type Missing = BTreeSet<Query>;

/// The answers so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    known: BTreeMap<Query, Answer>,
    /// No more look-ups follow: a query without an answer counts as failed.
    is_closed: bool,
}

impl Answers {
    pub(crate) fn insert(&mut self, query: Query, answer: Answer) {
        self.known.insert(query, answer);
    }
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
    pub(crate) fn ask(&self, name: &str, kind: Kind) -> Result<&Answer, Missing> {
        // A name that the DNS cannot carry does not exist.
        if !is_askable(name) {
            return Ok(&Answer::NoSuchName);
        }
        let query = Query::new(name, kind);
        match self.known.get(&query) {
            Some(answer) => Ok(answer),
            None if self.is_closed => Ok(&Answer::Failed),
            None => Err(Missing::from([query])),
        }
    }
}
