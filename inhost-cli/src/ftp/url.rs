//! FTP URLs: `ftp://user:password@host:port/path`.

use crate::failure::Failure;
use inhost_ftp::codec::name_text;
use inhost_names::check_host;
use percent_encoding::percent_decode_str;
use std::net::Ipv6Addr;
use url::Host;

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
    /// Parses a URL, or the name or address of a host alone.
    pub fn parse(text: &str) -> Result<Url, Failure> {
        let wrong = || Failure::usage(format!("{text:?} is no URL of a file; try ftp://user@host/path"));
        let (scheme, rest) = text.split_once("://").unwrap_or(("ftp", text));
        let implicit = match scheme {
            "ftp" => false,
            "ftps" => true,
            _ => return Err(wrong()),
        };
        // A path of FTP has no query and no fragment (RFC 1738 §3.2), so that `?` and `#` belong to names.
        let mut rest = rest.replace('?', "%3F").replace('#', "%23");
        if rest.parse::<Ipv6Addr>().is_ok() {
            rest = format!("[{rest}]");
        }
        // Parsed with a scheme that `url` has no rules of its own for: names of hosts and ports stay as they are.
        let parsed = url::Url::parse(&format!("ftps://{rest}")).map_err(|_| wrong())?;
        let decoded = |part: &str| decode(part).ok_or_else(wrong);
        let host = match parsed.host().ok_or_else(wrong)? {
            Host::Domain(name) => decoded(name)?,
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        check_host(&host).map_err(|why| Failure::usage(why.to_string()))?;
        let user = Some(parsed.username()).filter(|user| !user.is_empty());
        let path = parsed.path();
        Ok(Url {
            user: user.map(decoded).transpose()?,
            password: parsed.password().map(decoded).transpose()?,
            host,
            port: parsed.port().unwrap_or(if implicit { 990 } else { 21 }),
            implicit,
            path: decoded(path.strip_prefix('/').unwrap_or(path))?,
        })
    }
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// `%41` is `A`, and `%fc` an octet of a name that is not UTF-8; line ends and NUL are in no name.
fn decode(text: &str) -> Option<String> {
    let is_escape = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let octets: Vec<u8> = percent_decode_str(text).collect();
    Some(name_text(&octets)).filter(|text| !text.contains(['\r', '\n', '\0']))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for wrong in ["", "http://x/", "ftp:///x", "ftp://h:x/", "ftp://h/%0a", "ftp://h/%zz", "ftp://[::1/x"]
        {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
