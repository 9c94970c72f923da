//! A file at a server: `host[:port]/file`, `HOST:FILE`, and `tftp://` (RFC 3617).

use crate::failure::Failure;
use crate::target::{Schemes, Target};
use std::fmt;
use std::net::Ipv6Addr;

const SCHEMES: Schemes = Schemes::Of(&["tftp"]);
/// The port by default.
const PORT: u16 = 69;

/// A file at a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remote {
    /// The server's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The file name sent to the server.
    pub file: String,
}

impl Remote {
    /// Reads any form: `host[:port]/file`, `tftp://host[:port]/file`, and `HOST:FILE`, where FILE is not a port.
    pub fn parse(text: &str, port: Option<u16>) -> Result<Remote, Failure> {
        let (host, file, named) = match host_and_file(text) {
            Some((host, file)) => (Target::parse(host, SCHEMES)?.host, file.to_owned(), None),
            None => {
                let target = Target::parse(text, SCHEMES)?;
                if target.user.is_some() {
                    return Err(Failure::usage(format!(
                        "{text:?}: TFTP knows no users; leave out what stands before @"
                    )));
                }
                let file = String::from_utf8(target.path.unwrap_or_default());
                let file = file.map_err(|_| Failure::usage(format!("{text:?}: the name is not UTF-8")))?;
                // RFC 3617 puts a mode there, which --mode says here.
                let file = match target.scheme {
                    Some(_) => file.split(";mode=").next().unwrap_or_default().to_owned(),
                    None => file,
                };
                (target.host, file, target.port)
            }
        };
        let both = Target { port: named, ..Target::default() };
        Ok(Remote { host, port: both.port_or(port)?.unwrap_or(PORT), file })
    }
    /// The last part of the file's name.
    pub fn own_name(&self) -> Result<&str, Failure> {
        match self.file.rsplit('/').next() {
            Some(name) if !matches!(name, "" | "." | "..") => Ok(name),
            _ => Err(Failure::usage(format!("{self}: name a file"))),
        }
    }
}

/// `HOST:FILE`: the colon stands before any slash, and no port behind it.
fn host_and_file(text: &str) -> Option<(&str, &str)> {
    if text.contains("://") || text.parse::<Ipv6Addr>().is_ok() {
        return None;
    }
    let behind_address = text.find(']').filter(|_| text.starts_with('[')).unwrap_or(0);
    let colon = behind_address + text.get(behind_address..)?.find(':')?;
    let (host, file) = (text.get(..colon)?, text.get(colon + 1..)?);
    let first = file.split('/').next().unwrap_or_default();
    let is_port = !first.is_empty() && first.bytes().all(|c| c.is_ascii_digit());
    (!is_port && !host.contains('/')).then_some((host, file))
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.file),
            false => write!(f, "{}:{}", self.host, self.file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form() {
        for (text, host, port, file) in [
            ("10.9.0.2:boot.img", "10.9.0.2", 69, "boot.img"),
            ("host:/a/b:c", "host", 69, "/a/b:c"),
            ("[fd09::2]:x", "fd09::2", 69, "x"),
            ("host:", "host", 69, ""),
            ("tftp://host/a/b", "host", 69, "a/b"),
            ("tftp://host:6969/a;mode=octet", "host", 6969, "a"),
            ("tftp://[fd09::2]:70//abs", "fd09::2", 70, "/abs"),
            ("tftp://[fd09::2]/x", "fd09::2", 69, "x"),
            ("host/a/b:c", "host", 69, "a/b:c"),
            ("host:6969/a", "host", 6969, "a"),
            ("[fd09::2]:6969/a", "fd09::2", 6969, "a"),
            ("fd09::2", "fd09::2", 69, ""),
            ("host:9.img", "host", 69, "9.img"),
        ] {
            let wanted = Remote { host: host.into(), port, file: file.into() };
            assert_eq!(Remote::parse(text, None).unwrap(), wanted, "{text}");
        }
        for wrong in [":x", "tftp:///x", "tftp://h:x/y", "[fd09::2:x", "ada@h/x", "http://h/x"] {
            assert!(Remote::parse(wrong, None).is_err(), "{wrong}");
        }
        assert!(Remote::parse("boot.img", None).unwrap().own_name().is_err(), "a host without a file");
        assert_eq!(Remote::parse("h/a", Some(70)).unwrap().port, 70);
        assert!(Remote::parse("h:71/a", Some(70)).is_err());
        assert_eq!(Remote::parse("h:/a/b", None).unwrap().own_name().unwrap(), "b");
        assert!(Remote::parse("h:/a/", None).unwrap().own_name().is_err());
    }
}
