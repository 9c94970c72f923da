//! FTP URLs: `ftp://user:password@host:port/path`, or the same without a scheme.

use crate::failure::Failure;
use crate::target::{Schemes, Target};
use inhost_ftp::codec::name_text;

/// One URL, or a host alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// The user, if it names one.
    pub user: Option<String>,
    /// The password, if it has one.
    pub password: Option<String>,
    /// Name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether TLS comes first.
    pub implicit: bool,
    /// The path, as the server is to see it: from where it puts the user, or with two slashes from its root.
    pub path: String,
}

impl Url {
    /// Parses a URL, or `[user@]host[:port][/path]`.
    pub fn parse(text: &str) -> Result<Url, Failure> {
        // A path of FTP has no query and no fragment (RFC 1738 §3.2), so that `?` and `#` belong to names.
        let Target { scheme, user, password, host, port, path } =
            Target::parse(text, Schemes::Of(&["ftp", "ftps"]))?;
        let implicit = scheme.as_deref() == Some("ftps");
        let text = |octets: Vec<u8>| name_text(&octets);
        Ok(Url {
            user: user.map(text),
            password: password.map(text),
            host,
            port: port.unwrap_or(if implicit { 990 } else { 21 }),
            implicit,
            path: path.map(text).unwrap_or_default(),
        })
    }
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// A URL without its password, and the password.
pub fn without_password(text: &str) -> Result<(String, Option<String>), Failure> {
    let password = Url::parse(text)?.password;
    let begin = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at(begin);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => authority.to_owned(),
    };
    Ok((format!("{scheme}{authority}{path}"), password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_taken_out() {
        for (url, bare, password) in [
            ("ftp://ada:p%40ss@host:2121/a:b@c", "ftp://ada@host:2121/a:b@c", Some("p@ss")),
            ("ftp://[fd09::2]/x", "ftp://[fd09::2]/x", None),
            ("ftps://ada@host/", "ftps://ada@host/", None),
        ] {
            assert_eq!(without_password(url).unwrap(), (bare.to_owned(), password.map(str::to_owned)));
        }
    }

    #[test]
    fn places_as_people_write_them() {
        let url = Url::parse("ftp://ada:p%40ss@host:2121/a/b%20c").unwrap();
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("ada"), Some("p@ss")));
        assert_eq!((&*url.host, url.port, &*url.path, url.name()), ("host", 2121, "a/b c", "b c"));
        let url = Url::parse("ftps://ada@[fd09::2]//etc/").unwrap();
        assert_eq!((&*url.host, url.port, &*url.path, url.implicit), ("fd09::2", 990, "/etc/", true));
        assert_eq!((url.user.as_deref(), url.password), (Some("ada"), None));
        let url = Url::parse("ftps://b\u{fc}cher.example:21/100%25/#1?/%fc").unwrap();
        assert_eq!((&*url.host, url.port), ("b\u{fc}cher.example", 21));
        assert_eq!(url.path, name_text(b"100%/#1?/\xfc"));
        assert_eq!(Url::parse("fd09::2").unwrap().host, "fd09::2");
        assert_eq!(Url::parse("10.9.0.2").unwrap().port, 21);
        let url = Url::parse("ada@10.9.0.2:2121/in box/100%").unwrap();
        assert_eq!((&*url.host, url.port, &*url.path), ("10.9.0.2", 2121, "in box/100%"));
        for wrong in ["", "http://x/", "ftp:///x", "ftp://h:x/", "ftp://h/%0a", "ftp://h/%zz", "ftp://[::1/x"]
        {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
