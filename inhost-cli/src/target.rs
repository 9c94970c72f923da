//! What a client is pointed at: `[user@]host[:port][/path]`, or a URL.
//!
//! One grammar for all clients. An IPv6 address stands in brackets when a port or a path follows; alone it needs none. A URL
//! has the same parts behind its scheme, and `%41` in it is `A`; without a scheme `%` is a character like others.

use crate::failure::Failure;
use inhost_names::check_host;
use percent_encoding::percent_decode_str;
use std::net::Ipv6Addr;

/// Schemes that a client takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schemes {
    /// Those of its service.
    Of(&'static [&'static str]),
    /// Whichever: only the host counts, such as that of a URL from a browser.
    Any,
}

/// The parts. Names of users and files need not be UTF-8, so that they are octets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// The scheme of a URL, in lower case.
    pub scheme: Option<String>,
    /// The user.
    pub user: Option<Vec<u8>>,
    /// The password behind the user.
    pub password: Option<Vec<u8>>,
    /// Name or address, without brackets.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
    /// Behind the slash that ends the host; none without that slash.
    pub path: Option<Vec<u8>>,
}

impl Target {
    /// Parses either form.
    pub fn parse(text: &str, schemes: Schemes) -> Result<Target, Failure> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme.to_ascii_lowercase()), rest),
            _ => (None, text),
        };
        if let (Some(scheme), Schemes::Of(known)) = (&scheme, schemes)
            && !known.contains(&scheme.as_str())
        {
            let known = known.join(":// or ");
            return Err(Failure::usage(format!(
                "{text:?}: the scheme {scheme} is not for this command; try {known}://"
            )));
        }
        let target = Target::parts(scheme, rest).ok_or_else(|| {
            let scheme = match schemes {
                Schemes::Of([scheme, ..]) => scheme,
                _ => "https",
            };
            Failure::usage(format!(
                "{text:?}: give [user@]host[:port][/path], an IPv6 address in brackets, or a URL such as {scheme}://host/"
            ))
        })?;
        check_host(&target.host).map_err(|why| Failure::usage(why.to_string()))?;
        Ok(target)
    }

    fn parts(scheme: Option<String>, rest: &str) -> Option<Target> {
        let decode = |part: &str| match scheme {
            Some(_) => decode(part),
            None => Some(part.as_bytes().to_vec()),
        };
        if rest.parse::<Ipv6Addr>().is_ok() {
            return Some(Target { scheme, host: rest.to_owned(), ..Target::default() });
        }
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, Some(decode(path)?)),
            None => (rest, None),
        };
        let (user, end) = match authority.rsplit_once('@') {
            Some((user, end)) => (Some(user), end),
            None => (None, authority),
        };
        let (user, password) = match user.map(|user| user.split_once(':').ok_or(user)) {
            None => (None, None),
            Some(Ok((user, password))) => (Some(decode(user)?), Some(decode(password)?)),
            Some(Err(user)) => (Some(decode(user)?), None),
        };
        let (host, port) = host_and_port(end)?;
        let host = String::from_utf8(decode(host)?).ok()?;
        let is_whole = !host.is_empty() && user.as_deref() != Some(b"");
        is_whole.then_some(Target { scheme, user, password, host, port, path })
    }

    /// The user as text.
    pub fn user_name(&self) -> Result<Option<String>, Failure> {
        let text = |octets: &Vec<u8>| {
            let text = String::from_utf8(octets.clone()).ok().filter(|text| !text.contains(char::is_control));
            text.ok_or_else(|| {
                Failure::usage(format!("the user at {} has characters that no name has", self.host))
            })
        };
        self.user.as_ref().map(text).transpose()
    }

    /// Refuses a path that names something, for a `service` that has no files.
    pub fn without_path(&self, service: &str) -> Result<(), Failure> {
        match self.path.as_deref() {
            None | Some(b"") => Ok(()),
            Some(path) => {
                let path = String::from_utf8_lossy(path);
                Err(Failure::usage(format!("{service} has no files: leave out /{path} behind {}", self.host)))
            }
        }
    }

    /// The one port that is named: here, or by a flag or an argument of its own.
    pub fn port_or(&self, named: Option<u16>) -> Result<Option<u16>, Failure> {
        match (self.port, named) {
            (Some(one), Some(other)) if one != other => {
                Err(Failure::usage(format!("two ports are named, {one} and {other}; give one")))
            }
            (one, other) => Ok(one.or(other)),
        }
    }
}

/// RFC 3986 §3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.'))
}

/// `host`, `host:port`, `[address]:port`.
fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, behind) = rest.split_once(']')?;
        host.split('%').next()?.parse::<Ipv6Addr>().ok()?;
        let port = match behind.strip_prefix(':') {
            Some(port) => Some(number(port)?),
            None if behind.is_empty() => None,
            None => return None,
        };
        return Some((host, port));
    }
    match text.rsplit_once(':') {
        None => Some((text, None)),
        Some(_) if text.parse::<Ipv6Addr>().is_ok() => Some((text, None)),
        Some((host, _)) if host.contains(':') => None,
        Some((host, port)) => Some((host, Some(number(port)?))),
    }
}

/// A port by its digits alone.
fn number(text: &str) -> Option<u16> {
    let is_digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    text.parse().ok().filter(|&port| is_digits && port != 0)
}

/// `%41` is `A`; an escape that is none is an error, and line ends and NUL are in no name.
fn decode(text: &str) -> Option<Vec<u8>> {
    let is_escape = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let octets: Vec<u8> = percent_decode_str(text).collect();
    (!octets.iter().any(|octet| matches!(octet, b'\r' | b'\n' | 0))).then_some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TELNET: Schemes = Schemes::Of(&["telnet"]);

    /// User, password, host, port, path; a missing part is `-`.
    fn parts(text: &str, schemes: Schemes) -> Option<String> {
        let target = Target::parse(text, schemes).ok()?;
        let octets = |part: Option<Vec<u8>>| {
            part.map_or("-".into(), |part| String::from_utf8_lossy(&part).into_owned())
        };
        let port = target.port.map_or("-".into(), |port| port.to_string());
        let (user, password) = (octets(target.user), octets(target.password));
        Some(format!("{user} {password} {} {port} {}", target.host, octets(target.path)))
    }

    #[test]
    fn the_forms_that_every_client_takes() {
        for (text, expected) in [
            ("vax.example", "- - vax.example - -"),
            ("vax:2323", "- - vax 2323 -"),
            ("ada@vax", "ada - vax - -"),
            ("ada@vax:23/a/b", "ada - vax 23 a/b"),
            ("ada:pass:word@vax", "ada pass:word vax - -"),
            ("ada@corp@vax", "ada@corp - vax - -"),
            ("10.9.0.1//etc", "- - 10.9.0.1 - /etc"),
            ("vax/", "- - vax - "),
            ("vax/100%", "- - vax - 100%"),
            ("fd09::2", "- - fd09::2 - -"),
            ("[fd09::2]", "- - fd09::2 - -"),
            ("[fd09::2]:23/x", "- - fd09::2 23 x"),
            ("ada@fd09::2/x", "ada - fd09::2 - x"),
            ("telnet://vax", "- - vax - -"),
            ("TELNET://ada:p%40ss@[fd09::2]:23/", "ada p@ss fd09::2 23 "),
            ("telnet://v%61x/a%20b?c#d", "- - vax - a b?c#d"),
        ] {
            assert_eq!(parts(text, TELNET).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused_with_the_grammar() {
        for wrong in [
            "",
            "@vax",
            ":23",
            "vax:",
            "vax:x",
            "vax:0",
            "vax:65536",
            "vax:+1",
            "a:b:c",
            "[fd09::2",
            "[vax]:23",
            "[fd09::2]x",
            "fd09::2:99999",
            "telnet://",
            "telnet:///x",
            "telnet://vax/%zz",
            "telnet://vax/%0a",
            "http://vax/",
        ] {
            let why = Target::parse(wrong, TELNET).map(|target| panic!("{wrong}: {target:?}"));
            let why = why.unwrap_err().to_string();
            assert!(!why.is_empty(), "{wrong}");
        }
        let why = Target::parse("vax:x", TELNET).unwrap_err().to_string();
        assert!(why.contains("[user@]host[:port][/path]") && why.contains("telnet://"), "{why}");
        let why = Target::parse("http://vax/", TELNET).unwrap_err().to_string();
        assert!(why.contains("http") && why.contains("telnet://"), "{why}");
        assert_eq!(parts("https://example.com/a", Schemes::Any).as_deref(), Some("- - example.com - a"));
    }

    #[test]
    fn parts_that_a_client_has_no_use_for() {
        let target = Target::parse("ada@vax:23/x", TELNET).unwrap();
        assert!(target.without_path("telnet").unwrap_err().to_string().contains("/x"));
        assert!(Target::parse("vax/", TELNET).unwrap().without_path("telnet").is_ok());
        assert_eq!(target.port_or(None).unwrap(), Some(23));
        assert_eq!(target.port_or(Some(23)).unwrap(), Some(23));
        assert!(target.port_or(Some(24)).is_err());
        assert_eq!(target.user_name().unwrap().as_deref(), Some("ada"));
        let odd = Target { user: Some(b"\xff".to_vec()), ..target };
        assert!(odd.user_name().is_err());
    }
}
