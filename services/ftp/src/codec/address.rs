//! Addresses of data connections in PORT, PASV, EPRT and EPSV.

use std::fmt;

use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};

/// The families of RFC 2428.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// 1, IPv4.
    V4,
    /// 2, IPv6.
    V6,
}

impl Family {
    /// The family of an address; one of IPv4 within IPv6 is IPv4.
    pub fn of(address: IpAddr) -> Family {
        if address.to_canonical().is_ipv4() { Family::V4 } else { Family::V6 }
    }
    /// Its number (RFC 2428 §2).
    pub fn number(self) -> u8 {
        match self {
            Family::V4 => 1,
            Family::V6 => 2,
        }
    }
}

/// Why an address cannot be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddressError {
    /// It is not written as the RFC says.
    Syntax,
    /// A family that is neither 1 nor 2: reply 522.
    Family,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressError::Syntax => "no address",
            AddressError::Family => "Network protocol not supported, use (1,2)",
        })
    }
}
impl std::error::Error for AddressError {}

/// `h1,h2,h3,h4,p1,p2` of PORT.
pub fn parse_port(text: &str) -> Result<Endpoint, AddressError> {
    let mut octets = [0u8; 6];
    let mut fields = text.trim().split(',');
    for octet in &mut octets {
        *octet = number(fields.next().ok_or(AddressError::Syntax)?)?;
    }
    if fields.next().is_some() {
        return Err(AddressError::Syntax);
    }
    let [a, b, c, d, high, low] = octets;
    Ok(Endpoint::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])))
}

/// An endpoint of IPv4 as PORT and the reply to PASV write it; `None` for IPv6.
pub fn port_text(endpoint: Endpoint) -> Option<String> {
    let IpAddr::V4(address) = endpoint.address.to_canonical() else { return None };
    let [a, b, c, d] = address.octets();
    let [high, low] = endpoint.port.to_be_bytes();
    Some(format!("{a},{b},{c},{d},{high},{low}"))
}

/// The text of reply 227.
pub fn pasv_text(endpoint: Endpoint) -> Option<String> {
    Some(format!("Entering Passive Mode ({}).", port_text(endpoint)?))
}

/// The endpoint in the text of reply 227. RFC 1123 §4.1.2.6: the parentheses may be missing.
pub fn parse_pasv(text: &str) -> Result<Endpoint, AddressError> {
    let is_part = |c: char| c.is_ascii_digit() || c == ',';
    let found =
        text.split(|c: char| !is_part(c)).find(|word| word.bytes().filter(|&b| b == b',').count() == 5);
    parse_port(found.ok_or(AddressError::Syntax)?)
}

/// `|1|132.235.1.2|6275|` of EPRT (RFC 2428 §2).
pub fn parse_extended(text: &str) -> Result<Endpoint, AddressError> {
    let mut fields = extended_fields(text)?;
    let family = match fields.next() {
        Some("1") => Family::V4,
        Some("2") => Family::V6,
        Some(other) if !other.is_empty() && other.bytes().all(|b| b.is_ascii_digit()) => {
            return Err(AddressError::Family);
        }
        _ => return Err(AddressError::Syntax),
    };
    let address = fields.next().ok_or(AddressError::Syntax)?;
    let port = port(fields.next().ok_or(AddressError::Syntax)?)?;
    let address: IpAddr = match family {
        Family::V4 => address.parse::<Ipv4Addr>().map_err(|_| AddressError::Syntax)?.into(),
        Family::V6 => address.parse::<Ipv6Addr>().map_err(|_| AddressError::Syntax)?.into(),
    };
    Ok(Endpoint::new(address, port))
}

/// An endpoint as EPRT writes it.
pub fn extended_text(endpoint: Endpoint) -> String {
    let address = endpoint.address.to_canonical();
    format!("|{}|{address}|{}|", Family::of(address).number(), endpoint.port)
}

/// The text of reply 229.
pub fn epsv_text(port: u16) -> String {
    format!("Entering Extended Passive Mode (|||{port}|)")
}

/// The port in the text of reply 229.
pub fn parse_epsv(text: &str) -> Result<u16, AddressError> {
    let (_, rest) = text.rsplit_once('(').ok_or(AddressError::Syntax)?;
    let (inside, _) = rest.split_once(')').ok_or(AddressError::Syntax)?;
    let mut fields = extended_fields(inside)?;
    port(fields.nth(2).ok_or(AddressError::Syntax)?)
}

/// `4,4,h1,h2,h3,h4,2,p1,p2` and `6,16,…` of LPRT (RFC 1639), which a few old clients still send.
pub fn parse_long(text: &str) -> Result<Endpoint, AddressError> {
    let octets = text.trim().split(',').map(number).collect::<Result<Vec<u8>, _>>()?;
    match octets[..] {
        [4, 4, a, b, c, d, 2, high, low] => {
            Ok(Endpoint::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])))
        }
        [6, 16, ref address @ .., 2, high, low] if address.len() == 16 => {
            let address: [u8; 16] = address.try_into().map_err(|_| AddressError::Syntax)?;
            Ok(Endpoint::new(Ipv6Addr::from(address), u16::from_be_bytes([high, low])))
        }
        [4 | 6, ..] => Err(AddressError::Syntax),
        _ => Err(AddressError::Family),
    }
}

/// Fields between delimiters of the writer's choice: an octet from 33 to 126, most often `|`.
fn extended_fields(text: &str) -> Result<impl Iterator<Item = &str>, AddressError> {
    let text = text.trim();
    let delimiter = text.chars().next().filter(char::is_ascii_graphic).ok_or(AddressError::Syntax)?;
    let inside = text[1..].strip_suffix(delimiter).ok_or(AddressError::Syntax)?;
    let fields = inside.split(delimiter);
    if fields.clone().count() != 3 {
        return Err(AddressError::Syntax);
    }
    Ok(fields)
}

fn number(text: &str) -> Result<u8, AddressError> {
    let text = text.trim();
    if text.is_empty() || text.len() > 3 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(AddressError::Syntax);
    }
    text.parse().map_err(|_| AddressError::Syntax)
}

fn port(text: &str) -> Result<u16, AddressError> {
    match text.parse::<u16>() {
        Ok(port) if port > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(port),
        _ => Err(AddressError::Syntax),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Endpoint {
        text.parse::<std::net::SocketAddr>().unwrap().into()
    }

    #[test]
    fn addresses_as_the_rfcs_write_them() {
        // The examples of RFC 2428 §2.
        assert_eq!(parse_extended("|1|132.235.1.2|6275|"), Ok(at("132.235.1.2:6275")));
        assert_eq!(parse_extended("|2|1080::8:800:200C:417A|5282|"), Ok(at("[1080::8:800:200c:417a]:5282")));
        assert_eq!(parse_epsv("Entering Extended Passive Mode (|||6446|)"), Ok(6446));
        assert_eq!(parse_extended("|3|x|1|"), Err(AddressError::Family));
        for wrong in
            ["", "|", "|1|1.2.3.4|5", "|1|1.2.3.4|0|", "|1|::1|5|", "1|1.2.3.4|5|", "|1|1.2.3.4|5|6|", "é1é"]
        {
            assert_eq!(parse_extended(wrong), Err(AddressError::Syntax), "{wrong}");
        }
        assert_eq!(parse_port("132,235,1,2,24,131"), Ok(at("132.235.1.2:6275")));
        for wrong in
            ["1,2,3,4,5", "1,2,3,4,5,6,7", "256,2,3,4,5,6", "1,2,3,4,-5,6", "a,b,c,d,e,f", "1,2,3,4,5,0006"]
        {
            assert_eq!(parse_port(wrong), Err(AddressError::Syntax), "{wrong}");
        }
        assert_eq!(parse_long("4,4,10,0,0,1,2,4,1"), Ok(at("10.0.0.1:1025")));
        assert_eq!(parse_long("6,16,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,2,4,1"), Ok(at("[::1]:1025")));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let v4 = at("10.1.2.3:1025");
        assert_eq!(parse_pasv(&pasv_text(v4).unwrap()), Ok(v4));
        assert_eq!(parse_pasv("=10,1,2,3,4,1"), Ok(v4));
        assert_eq!(pasv_text(at("[::1]:9")), None);
        for endpoint in [v4, at("[2001:db8::1]:65535")] {
            assert_eq!(parse_extended(&extended_text(endpoint)), Ok(endpoint));
        }
        assert_eq!(parse_epsv(&epsv_text(99)), Ok(99));
    }
}
