//! The BIND of an SNA session, as far as a terminal on TN3270E reads it (RFC 2355 §10.2; IBM GA27-3136, "BIND").

/// BIND that is not negotiable, with the profiles of a 3270 session (LU type 2) and request units of 1536 octets.
const HEAD: [u8; 20] = [
    0x31, 0x01, 0x03, 0x03, 0xb1, 0x90, 0x30, 0x80, 0x00, 0x00, 0x85, 0xc7, 0x00, 0x00, 0x02, 0x00, 0x00,
    0x00, 0x00, 0x00,
];
/// Both sizes of the screen are given.
const BOTH_SIZES: u8 = 0x7f;
/// The default size is given, and there is no other.
const ONE_SIZE: u8 = 0x7e;
/// Characters of the name of an application.
const NAME_BYTES: usize = 8;

/// A BIND.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bind {
    /// Rows and columns of the default size.
    pub default: (u8, u8),
    /// Rows and columns of the alternate size.
    pub alternate: (u8, u8),
    /// The name of the application (primary LU), in EBCDIC, at most 8 octets.
    pub application: Vec<u8>,
}

impl Bind {
    /// The octets of a record.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = HEAD.to_vec();
        octets.extend_from_slice(&[self.default.0, self.default.1, self.alternate.0, self.alternate.1]);
        octets.push(BOTH_SIZES);
        octets.extend_from_slice(&[0, 0]);
        let name = self.application.get(..NAME_BYTES).unwrap_or(&self.application);
        octets.push(u8::try_from(name.len()).unwrap_or(0));
        octets.extend_from_slice(name);
        // There is no user data.
        octets.push(0);
        octets
    }
    /// Reads a record. `None` where it is not a BIND, or does not give sizes.
    pub fn parse(octets: &[u8]) -> Option<Bind> {
        let rest = octets.get(HEAD.len()..).filter(|_| octets.first() == HEAD.first())?;
        let (&[rows, columns, alternate_rows, alternate_columns, size], rest) = rest.split_first_chunk()?;
        let default = (rows, columns);
        let alternate = match size {
            BOTH_SIZES => (alternate_rows, alternate_columns),
            ONE_SIZE => default,
            _ => return None,
        };
        let length = rest.get(2).map_or(0, |length| usize::from(*length).min(NAME_BYTES));
        let application = rest.get(3..).and_then(|rest| rest.get(..length)).unwrap_or_default().to_vec();
        Some(Bind { default, alternate, application })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_goes_both_ways() {
        let bind = Bind { default: (24, 80), alternate: (43, 80), application: vec![0xc9, 0xd5] };
        assert_eq!(Bind::parse(&bind.octets()), Some(bind.clone()));
        for length in 0..bind.octets().len() {
            let _ = Bind::parse(&bind.octets()[..length]);
        }
        assert_eq!(Bind::parse(&[0x32; 40]), None);
    }
}
