//! The client: parses `user@host` into the host to connect to and the query line (RFC 1288).

use core::fmt;
use inhost_common::text::is_host;

use crate::codec::LINE_BYTES;

/// The port of finger.
pub const PORT: u16 = 79;

/// A query: the host to connect to, and the line to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    host: String,
    line: String,
}

/// Why a text is not a finger query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QueryError {
    /// No host is named.
    NoHost,
    /// A host's name between two @ is empty, or begins with a dash or is otherwise none.
    BadHost,
    /// The user's name holds a control character or a line end, or all is too long.
    BadUser,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueryError::NoHost => {
                "no host is named; write it behind an @, as ada@example.net or @example.net"
            }
            QueryError::BadHost => "what stands behind an @ is to be the name or address of a host",
            QueryError::BadUser => "the name holds a control character, or is too long",
        })
    }
}
impl core::error::Error for QueryError {}

impl Query {
    /// From `user@host`, `@host`, or with further hosts the form that is forwarded: `user@host1@host2` asks host2 to
    /// ask host1 (RFC 1288 §2.3, {Q2}). `long` asks for more of each user (§2.5.4, /W).
    pub fn parse(text: &str, long: bool) -> Result<Query, QueryError> {
        let (front, host) = text.rsplit_once('@').ok_or(QueryError::NoHost)?;
        if host.is_empty() {
            return Err(QueryError::NoHost);
        }
        let mut parts = front.split('@');
        let user = parts.next().unwrap_or_default();
        if !is_host(host) || !parts.all(is_host) {
            return Err(QueryError::BadHost);
        }
        if user.chars().any(char::is_control) || front.len() > LINE_BYTES {
            return Err(QueryError::BadUser);
        }
        let line = match (long, front) {
            (true, "") => "/W\r\n".to_owned(),
            (true, front) => format!("/W {front}\r\n"),
            (false, front) => format!("{front}\r\n"),
        };
        // An address in brackets, as it stands in a URL.
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        Ok(Query { host: host.to_owned(), line })
    }
    /// The host to connect to.
    pub fn host(&self) -> &str {
        &self.host
    }
    /// What it is sent.
    pub fn line(&self) -> &str {
        &self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(text: &str, long: bool) -> (String, String) {
        let query = Query::parse(text, long).unwrap();
        (query.host, query.line)
    }

    #[test]
    fn the_forms_of_rfc_1288() {
        let pair = |host: &str, line: &str| (host.to_owned(), line.to_owned());
        assert_eq!(asks("@host", false), pair("host", "\r\n"));
        assert_eq!(asks("@host", true), pair("host", "/W\r\n"));
        assert_eq!(asks("ada@host", false), pair("host", "ada\r\n"));
        assert_eq!(asks("ada lovelace@host", true), pair("host", "/W ada lovelace\r\n"));
        assert_eq!(asks("ada@one@two", false), pair("two", "ada@one\r\n"));
        assert_eq!(asks("@one@two@[2001:db8::1]", true), pair("2001:db8::1", "/W @one@two\r\n"));
    }

    #[test]
    fn what_is_no_question_is_not_sent() {
        assert_eq!(Query::parse("ada", false), Err(QueryError::NoHost));
        assert_eq!(Query::parse("ada@", false), Err(QueryError::NoHost));
        assert_eq!(Query::parse("ada@@host", false), Err(QueryError::BadHost));
        assert_eq!(Query::parse("ada@a\r\nb@host", false), Err(QueryError::BadHost));
        assert_eq!(Query::parse("ada\r\nroot@host", false), Err(QueryError::BadUser));
        assert_eq!(Query::parse(&format!("{}@host", "a".repeat(600)), false), Err(QueryError::BadUser));
    }
}
