//! xtext: ASCII with `+41` for what cannot stand as it is (RFC 3461 §4).

use std::fmt::Write;

/// Decodes; `None` where it is not xtext, or not a text.
pub fn decode(text: &str) -> Option<String> {
    let (mut octets, mut rest) = (Vec::new(), text.bytes());
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'+' => {
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                high << 4 | low
            }
            b'!'..=b'~' if octet != b'=' => octet,
            _ => return None,
        });
    }
    String::from_utf8(octets).ok().filter(|text| !text.chars().any(char::is_control))
}

/// Encodes.
pub fn encode(text: &str) -> String {
    let mut xtext = String::new();
    for octet in text.bytes() {
        match octet {
            b'!'..=b'~' if !matches!(octet, b'+' | b'=') => xtext.push(char::from(octet)),
            _ => {
                let _ = write!(xtext, "+{octet:02X}");
            }
        }
    }
    xtext
}

fn digit(octet: u8) -> Option<u8> {
    match octet {
        b'0'..=b'9' => Some(octet - b'0'),
        b'A'..=b'F' => Some(octet - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_encoded_is_decoded() {
        for text in ["", "a+b=c@d", "ümlaut and space"] {
            let xtext = super::encode(text);
            assert!(xtext.is_ascii() && !xtext.contains(' '));
            assert_eq!(super::decode(&xtext).as_deref(), Some(text));
        }
        for wrong in ["+", "+4", "+4g", "a b", "a=b", "+0A", "+FF"] {
            assert_eq!(super::decode(wrong), None, "{wrong}");
        }
    }
}
