//! Mailboxes: `local-part@domain` (RFC 5321 §4.1.2, RFC 6531 §3.3).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use inhost_base::IpAddr;

/// Most octets of a local part. RFC 5321 §4.5.3.1.1 asks for 64; bounce addresses are longer.
pub const LOCAL_BYTES: usize = 256;
/// Most octets of a domain (RFC 5321 §4.5.3.1.2).
pub const DOMAIN_BYTES: usize = 255;

/// A mailbox of an envelope.
///
/// ```
/// use inhost_mail::codec::Mailbox;
/// let ada: Mailbox = "Ada.Lovelace@Example.NET".parse()?;
/// assert_eq!((ada.local(), ada.domain()), ("Ada.Lovelace", "example.net"));
/// let odd: Mailbox = "\"two words\"@[192.0.2.7]".parse()?;
/// assert_eq!(odd.to_string(), "\"two words\"@[192.0.2.7]");
/// # Ok::<(), inhost_mail::codec::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mailbox {
    local: String,
    domain: String,
}

/// Why a text is not a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddressError {
    /// There is no `@`, or nothing on one side of it.
    Incomplete,
    /// A part is longer than it may be.
    TooLong,
    /// A character that may not stand there, or a quote that does not end.
    Character,
    /// An address literal that is not an address.
    Literal,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressError::Incomplete => "a mailbox is written local-part@domain",
            AddressError::TooLong => "the mailbox is too long",
            AddressError::Character => "the mailbox contains a character that may not stand there",
            AddressError::Literal => "the address literal is not an address",
        })
    }
}
impl std::error::Error for AddressError {}

impl Mailbox {
    /// The local part, without quotes.
    pub fn local(&self) -> &str {
        &self.local
    }
    /// The domain in lower case, or an address literal in brackets. It is empty for `postmaster` alone.
    pub fn domain(&self) -> &str {
        &self.domain
    }
    /// The address where the domain is a literal.
    pub fn literal(&self) -> Option<IpAddr> {
        literal(&self.domain)
    }
    /// Whether it can be sent without SMTPUTF8.
    pub fn is_ascii(&self) -> bool {
        self.local.is_ascii() && self.domain.is_ascii()
    }
    /// `postmaster` of whatever host is asked (RFC 5321 §4.5.1).
    pub fn postmaster() -> Mailbox {
        Mailbox { local: "postmaster".into(), domain: String::new() }
    }
    /// The mailbox in front of `text`, and what follows it.
    fn split(text: &str) -> Result<(Mailbox, &str), AddressError> {
        let (local, rest) = local_part(text)?;
        let Some(rest) = rest.strip_prefix('@') else {
            if local.eq_ignore_ascii_case("postmaster") {
                return Ok((Mailbox::postmaster(), rest));
            }
            return Err(AddressError::Incomplete);
        };
        let end = match rest.starts_with('[') {
            true => rest.find(']').ok_or(AddressError::Literal)? + 1,
            false => rest.find(|c: char| !is_domain_character(c)).unwrap_or(rest.len()),
        };
        let (domain, rest) = rest.split_at(end);
        Ok((Mailbox { local, domain: check_domain(domain)? }, rest))
    }
}

impl std::str::FromStr for Mailbox {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Mailbox, AddressError> {
        match Mailbox::split(text)? {
            (mailbox, "") if !mailbox.domain.is_empty() => Ok(mailbox),
            (_, "") => Err(AddressError::Incomplete),
            _ => Err(AddressError::Character),
        }
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = !self.local.is_empty()
            && self.local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_character));
        if is_plain {
            f.write_str(&self.local)?;
        } else {
            f.write_str("\"")?;
            for character in self.local.chars() {
                if matches!(character, '"' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{character}")?;
            }
            f.write_str("\"")?;
        }
        if !self.domain.is_empty() {
            write!(f, "@{}", self.domain)?;
        }
        Ok(())
    }
}

/// A path in angle brackets in front of `text`, and what follows it. `None` is the null path `<>`. Source routes are
/// taken and ignored (RFC 5321 §4.1.1.3).
pub(super) fn path(text: &str) -> Result<(Option<Mailbox>, &str), AddressError> {
    let inside = text.strip_prefix('<').ok_or(AddressError::Incomplete)?;
    if let Some(rest) = inside.strip_prefix('>') {
        return Ok((None, rest));
    }
    let inside = match inside.starts_with('@') {
        true => inside.split_once(':').ok_or(AddressError::Incomplete)?.1,
        false => inside,
    };
    let (mailbox, rest) = Mailbox::split(inside)?;
    let rest = rest.strip_prefix('>').ok_or(AddressError::Character)?;
    Ok((Some(mailbox), rest))
}

fn local_part(text: &str) -> Result<(String, &str), AddressError> {
    let mut local = String::new();
    let rest = if let Some(quoted) = text.strip_prefix('"') {
        let mut characters = quoted.char_indices();
        loop {
            match characters.next().ok_or(AddressError::Character)? {
                (at, '"') => break quoted.get(at + 1..).unwrap_or_default(),
                (_, '\\') => local.push(characters.next().ok_or(AddressError::Character)?.1),
                (_, character) => local.push(character),
            }
        }
    } else {
        let end = text.find(|c| c != '.' && !is_atom_character(c)).unwrap_or(text.len());
        let (atoms, rest) = text.split_at(end);
        if atoms.is_empty() || atoms.split('.').any(str::is_empty) {
            return Err(if atoms.is_empty() { AddressError::Incomplete } else { AddressError::Character });
        }
        local.push_str(atoms);
        rest
    };
    match local.len() > LOCAL_BYTES {
        true => Err(AddressError::TooLong),
        false if local.chars().any(char::is_control) => Err(AddressError::Character),
        false => Ok((local, rest)),
    }
}

/// A domain or address literal as it is kept: in lower case.
pub(crate) fn check_domain(text: &str) -> Result<String, AddressError> {
    if text.len() > DOMAIN_BYTES {
        return Err(AddressError::TooLong);
    }
    if text.starts_with('[') {
        return literal(text).map(|_| text.to_ascii_lowercase()).ok_or(AddressError::Literal);
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label =
        |label: &str| (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-');
    match text.is_empty() {
        true => Err(AddressError::Incomplete),
        false if text.split('.').all(is_label) => Ok(text.to_lowercase()),
        false => Err(AddressError::Character),
    }
}

fn literal(text: &str) -> Option<IpAddr> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    match inside.get(..5) {
        Some(tag) if tag.eq_ignore_ascii_case("IPv6:") => {
            inside.get(5..)?.parse::<Ipv6Addr>().ok().map(IpAddr::from)
        }
        _ => inside.parse::<Ipv4Addr>().ok().map(IpAddr::from),
    }
}

fn is_atom_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || (!c.is_ascii() && !c.is_control())
}

fn is_domain_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') || (!c.is_ascii() && !c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: RFC5321 §4.1.2
    #[test]
    fn what_is_a_mailbox() {
        for text in ["a@b.example", "\"a b\\\"\"@b.example", "x+y=z@[IPv6:2001:db8::1]", "用户@例子.测试"]
        {
            let mailbox: Mailbox = text.parse().unwrap();
            assert_eq!(mailbox.to_string().to_lowercase(), text.to_lowercase());
        }
        let literal: Mailbox = "a@[192.0.2.1]".parse().unwrap();
        assert_eq!(literal.literal(), Some(IpAddr::from([192, 0, 2, 1])));
        for text in [
            "",
            "a",
            "@b",
            "a@",
            "a..b@c",
            ".a@c",
            "a@-b",
            "a@b..c",
            "a b@c",
            "\"a@c",
            "a@[300.1.1.1]",
            "a@b>c",
            "a@b\r",
            "\"a\u{0}\"@c",
            "postmaster",
        ] {
            assert!(text.parse::<Mailbox>().is_err(), "{text:?}");
        }
        assert!(format!("{}@b", "a".repeat(LOCAL_BYTES + 1)).parse::<Mailbox>().is_err());
    }

    #[test]
    fn paths_have_brackets_and_routes_are_ignored() {
        assert_eq!(path("<> SIZE=1").unwrap(), (None, " SIZE=1"));
        let (mailbox, rest) = path("<@one.example,@two.example:a@b.example>").unwrap();
        assert_eq!((mailbox.unwrap().to_string().as_str(), rest), ("a@b.example", ""));
        assert_eq!(path("<Postmaster>").unwrap().0, Some(Mailbox::postmaster()));
        assert!(path("a@b.example").is_err() && path("<a@b.example").is_err());
    }
}
