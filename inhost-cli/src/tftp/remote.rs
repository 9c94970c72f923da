//! `HOST:FILE`, and `tftp://` (RFC 3617).

use crate::failure::Failure;
use std::fmt;

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
    /// Reads either form.
    pub fn parse(text: &str, port: u16) -> Result<Remote, Failure> {
        let wrong = || {
            Failure::usage(format!(
                "{text:?}: give HOST:FILE, such as 10.9.0.2:boot.img or [fd09::2]:boot.img, or tftp://HOST/FILE"
            ))
        };
        let (end, file, mut port) = match text.strip_prefix("tftp://") {
            Some(rest) => {
                let (end, file) = rest.split_once('/').unwrap_or((rest, ""));
                // RFC 3617 puts a mode there, which --mode says here.
                (end, file.split(";mode=").next().unwrap_or_default(), port)
            }
            None => {
                let behind_address = text.find(']').filter(|_| text.starts_with('[')).unwrap_or(0);
                let colon = text[behind_address..].find(':').ok_or_else(wrong)? + behind_address;
                return Self::of(&text[..colon], &text[colon + 1..], port).ok_or_else(wrong);
            }
        };
        let port_at = end.rfind(':').filter(|&colon| !end[colon..].contains(']'));
        let host = match port_at {
            Some(colon) => {
                port = end[colon + 1..].parse().map_err(|_| wrong())?;
                &end[..colon]
            }
            None => end,
        };
        Self::of(host, file, port).ok_or_else(wrong)
    }
    fn of(host: &str, file: &str, port: u16) -> Option<Remote> {
        let bare = host.strip_prefix('[').map_or(Some(host), |rest| rest.strip_suffix(']'))?;
        (!bare.is_empty()).then(|| Remote { host: bare.to_owned(), port, file: file.to_owned() })
    }
    /// The last part of the file's name.
    pub fn own_name(&self) -> Result<&str, Failure> {
        match self.file.rsplit('/').next() {
            Some(name) if !matches!(name, "" | "." | "..") => Ok(name),
            _ => Err(Failure::usage(format!("{self}: name a file"))),
        }
    }
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
    fn either_form() {
        for (text, host, port, file) in [
            ("10.9.0.2:boot.img", "10.9.0.2", 69, "boot.img"),
            ("host:/a/b:c", "host", 69, "/a/b:c"),
            ("[fd09::2]:x", "fd09::2", 69, "x"),
            ("host:", "host", 69, ""),
            ("tftp://host/a/b", "host", 69, "a/b"),
            ("tftp://host:6969/a;mode=octet", "host", 6969, "a"),
            ("tftp://[fd09::2]:70//abs", "fd09::2", 70, "/abs"),
            ("tftp://[fd09::2]/x", "fd09::2", 69, "x"),
        ] {
            let wanted = Remote { host: host.into(), port, file: file.into() };
            assert_eq!(Remote::parse(text, 69).unwrap(), wanted, "{text}");
        }
        for wrong in ["boot.img", ":x", "tftp:///x", "tftp://h:x/y", "[fd09::2:x"] {
            assert!(Remote::parse(wrong, 69).is_err(), "{wrong}");
        }
        assert_eq!(Remote::parse("h:/a/b", 69).unwrap().own_name().unwrap(), "b");
        assert!(Remote::parse("h:/a/", 69).unwrap().own_name().is_err());
    }
}
