//! Requests of TFTP, whose replies come from an ephemeral port (RFC 1350 §4).
//!
//! A flow known by address and port would never see such a reply. A flow that begins with a request takes replies from
//! every port of the server's address, as a NAT with support for TFTP does.

/// The longest request.
const REQUEST_BYTES: usize = 512;
const MODES: [&[u8]; 3] = [b"octet", b"netascii", b"mail"];

/// Whether a datagram asks for a file, at whatever port.
pub(crate) fn is_file_request(bytes: &[u8]) -> bool {
    let [0, 1 | 2, rest @ ..] = bytes else { return false };
    if bytes.len() > REQUEST_BYTES {
        return false;
    }
    let mut parts = rest.split(|&octet| octet == 0);
    let (name, mode, end) = (parts.next(), parts.next(), parts.next());
    let is_mode = mode.is_some_and(|mode| MODES.iter().any(|known| mode.eq_ignore_ascii_case(known)));
    name.is_some_and(|name| !name.is_empty()) && is_mode && end.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_others() {
        assert!(is_file_request(b"\0\x01boot\0octet\0"));
        assert!(is_file_request(b"\0\x02boot\0NetASCII\0blksize\x001024\0"));
        let long = [b"\0\x01".as_slice(), &[b'x'; 600], b"\0octet\0"].concat();
        for other in [
            &b"\0\x03boot\0octet\0"[..],
            b"\0\x01boot\0octet",
            b"\0\x01\0octet\0",
            b"\0\x01a\0b\0",
            b"",
            &long,
        ] {
            assert!(!is_file_request(other), "{other:?}");
        }
    }
}
