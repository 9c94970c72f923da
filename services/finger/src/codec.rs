//! The query line of RFC 1288 §2.3, and text as it is sent.

use inhost_common::Cleaner;

/// The longest query line, without its line end.
pub const LINE_BYTES: usize = 512;

/// A parsed query line. Control characters are replaced.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// `/W`: more of each user.
    pub is_verbose: bool,
    /// The user; empty asks who is logged in.
    pub user: String,
    /// {Q2}: hosts that are to be asked, the last one by this server.
    pub hosts: Vec<String>,
}

impl Request {
    /// Reads a line, with or without its end.
    pub fn parse(line: &[u8]) -> Request {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = Cleaner::line(line.strip_suffix(b"\r").unwrap_or(line));
        let line = line.trim();
        let verbose =
            line.get(..2).filter(|token| token.eq_ignore_ascii_case("/W")).and_then(|_| line.get(2..));
        let (is_verbose, rest) = match verbose {
            Some(rest) if rest.is_empty() || rest.starts_with([' ', '@']) => (true, rest),
            _ => (false, line),
        };
        let mut parts = rest.split('@').map(|part| part.trim().to_owned());
        let user = parts.next().unwrap_or_default();
        Request { is_verbose, user, hosts: parts.collect() }
    }
    /// The next host, and the query that it is sent. `None` if there is none.
    pub fn forwarded(&self) -> Option<(&str, Request)> {
        let (next, hosts) = self.hosts.split_last()?;
        let request = Request { is_verbose: self.is_verbose, user: self.user.clone(), hosts: hosts.to_vec() };
        Some((next, request))
    }
    /// The line as it is sent, with its end.
    pub fn line(&self) -> String {
        let verbose = if self.is_verbose { "/W" } else { "" };
        let hosts: String = self.hosts.iter().map(|host| format!("@{host}")).collect();
        let space = if self.is_verbose && !(self.user.is_empty() && hosts.is_empty()) { " " } else { "" };
        format!("{verbose}{space}{}{hosts}\r\n", self.user)
    }
}

/// Text with CR LF line ends.
pub fn encode(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(is_verbose: bool, user: &str, hosts: &[&str]) -> Request {
        Request { is_verbose, user: user.into(), hosts: hosts.iter().map(|h| (*h).to_owned()).collect() }
    }

    /// spec: RFC1288 §2.3
    #[test]
    fn the_queries_of_rfc_1288() {
        for (line, expected) in [
            ("\r\n", request(false, "", &[])),
            ("/W\r\n", request(true, "", &[])),
            ("ada\r\n", request(false, "ada", &[])),
            ("/W ada\r\n", request(true, "ada", &[])),
            ("/w   ada\n", request(true, "ada", &[])),
            ("/Wada\r\n", request(false, "/Wada", &[])),
            ("@one\r\n", request(false, "", &["one"])),
            ("/W ada@one@two\r\n", request(true, "ada", &["one", "two"])),
        ] {
            assert_eq!(Request::parse(line.as_bytes()), expected, "{line:?}");
            assert_eq!(Request::parse(expected.line().as_bytes()), expected, "{line:?}");
        }
        assert_eq!(Request::parse(b"a\x1b[2J\r\n").user, "a\u{fffd}[2J");
    }

    #[test]
    fn each_host_asks_the_one_before_it() {
        let (next, request) =
            Request::parse(b"/W ada@one@two\r\n").forwarded().map(|(n, r)| (n.to_owned(), r)).unwrap();
        assert_eq!((&*next, &*request.line()), ("two", "/W ada@one\r\n"));
        assert_eq!(request.forwarded().unwrap().1.line(), "/W ada\r\n");
        assert_eq!(Request::parse(b"ada\r\n").forwarded(), None);
        assert_eq!(encode("a\nb\n"), b"a\r\nb\r\n");
    }
}
