//! What a server offers (RFC 5321 §4.1.1.1).

/// The extensions of a server that a client makes use of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Extensions {
    /// PIPELINING (RFC 2920).
    pub pipelining: bool,
    /// SIZE, and the largest message it takes; 0 is no limit (RFC 1870).
    pub size_bytes: Option<u64>,
    /// 8BITMIME (RFC 6152).
    pub eight_bit: bool,
    /// SMTPUTF8 (RFC 6531).
    pub utf8: bool,
    /// DSN (RFC 3461).
    pub dsn: bool,
    /// STARTTLS (RFC 3207).
    pub starttls: bool,
    /// Mechanisms of AUTH, in upper case (RFC 4954).
    pub auth: Vec<String>,
}

/// Mechanisms that are kept.
const MECHANISMS: usize = 16;

impl Extensions {
    /// From the text of the reply to EHLO, whose first line is a greeting.
    pub fn parse(text: &str) -> Extensions {
        let mut found = Extensions::default();
        for line in text.split('\n').skip(1) {
            // Some servers write AUTH=LOGIN.
            let line = line.to_ascii_uppercase().replace('=', " ");
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("PIPELINING") => found.pipelining = true,
                Some("SIZE") => {
                    found.size_bytes = Some(words.next().and_then(|size| size.parse().ok()).unwrap_or(0));
                }
                Some("8BITMIME") => found.eight_bit = true,
                Some("SMTPUTF8") => found.utf8 = true,
                Some("DSN") => found.dsn = true,
                Some("STARTTLS") => found.starttls = true,
                Some("AUTH") => found.auth.extend(words.take(MECHANISMS).map(str::to_owned)),
                _ => {}
            }
        }
        found.auth.truncate(MECHANISMS);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_offers() {
        let found =
            Extensions::parse("mx greets you\nsize 1000\nAUTH=LOGIN\nAUTH PLAIN XOAUTH2\nDSN\nX-THING");
        assert_eq!((found.size_bytes, found.dsn, found.pipelining), (Some(1000), true, false));
        assert_eq!(found.auth, ["LOGIN", "PLAIN", "XOAUTH2"]);
        assert_eq!(Extensions::parse("SIZE"), Extensions::default(), "the first line is the greeting");
    }
}
