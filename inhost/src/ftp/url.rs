//! Where a file is: `ftp://user:password@host:port/path`.

use crate::failure::Failure;
use inhost_ftp::codec::name_text;
use inhost_names::check_host;

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
    /// Reads it.
    pub fn parse(text: &str) -> Result<Url, Failure> {
        let wrong = || Failure::usage(format!("{text:?} is no place of a file; try ftp://user@host/path"));
        let (scheme, rest) = text.split_once("://").unwrap_or(("ftp", text));
        let implicit = match scheme {
            "ftp" => false,
            "ftps" => true,
            _ => return Err(wrong()),
        };
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = match place.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, place),
        };
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, "\0"))) {
            None => (None, None),
            Some((user, "\0")) => (Some(user), None),
            Some((user, password)) => (Some(user), Some(password)),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
                (host, port.strip_prefix(':'))
            }
            None if place.matches(':').count() > 1 => (place, None),
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None if implicit => 990,
            None => 21,
        };
        if host.is_empty() {
            return Err(wrong());
        }
        check_host(host).map_err(|why| Failure::usage(why.to_string()))?;
        let decoded = |part: &str| decode(part).ok_or_else(wrong);
        Ok(Url {
            user: user.map(decoded).transpose()?,
            password: password.map(decoded).transpose()?,
            host: host.to_owned(),
            port,
            implicit,
            path: decoded(path)?,
        })
    }
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// `%41` is `A`, and `%fc` an octet of a name that is not UTF-8; line ends and NUL are in no name.
fn decode(text: &str) -> Option<String> {
    let mut octets = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            let digits = core::str::from_utf8(rest.get(..2)?).ok()?;
            octets.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            octets.push(*first);
        }
    }
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
        assert_eq!(Url::parse("fd09::2").unwrap().host, "fd09::2");
        assert_eq!(Url::parse("10.9.0.2").unwrap().port, 21);
        for wrong in ["", "http://x/", "ftp:///x", "ftp://h:x/", "ftp://h/%0a", "ftp://h/%zz", "ftp://[::1/x"]
        {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
