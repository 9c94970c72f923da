//! Domain names as mail has them: ASCII, lower case, without the final dot.

/// RFC 1035 §2.3.4, without the length octet of the first label and the root.
pub(crate) const NAME_BYTES: usize = 253;
/// RFC 1035 §2.3.4.
const LABEL_BYTES: usize = 63;

/// `text` as a domain of at least two labels, in A-labels and lower case (RFC 5890 §2.3). `None` where it is not one.
pub(crate) fn domain(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let text = text.strip_suffix('.').unwrap_or(text);
    let ascii = match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        // U-labels grow at most so much; longer ones cost time and are not names.
        false if text.len() > 4 * NAME_BYTES => return None,
        false => idna::domain_to_ascii(text).ok()?,
    };
    let is_host = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    let is_whole =
        ascii.contains('.') && is_askable(&ascii) && ascii.bytes().all(|c| c == b'.' || is_host(c));
    // All digits at the end is an address (RFC 3696 §2).
    let has_letter = ascii.rsplit('.').next().is_some_and(|top| !top.bytes().all(|c| c.is_ascii_digit()));
    (is_whole && has_letter).then_some(ascii)
}

/// Whether labels and name are as long as the DNS can carry.
pub(crate) fn is_askable(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= NAME_BYTES && name.split('.').all(|label| (1..=LABEL_BYTES).contains(&label.len()))
}

/// Whether `name` is `parent` or a name below it.
pub(crate) fn is_within(name: &str, parent: &str) -> bool {
    let rest = name.len().checked_sub(parent.len()).and_then(|at| name.split_at_checked(at));
    rest.is_some_and(|(front, end)| {
        end.eq_ignore_ascii_case(parent) && (front.is_empty() || front.ends_with('.'))
    })
}

/// The domain of an address: what follows its last `@`.
pub(crate) fn of_address(address: &str) -> &str {
    address.rsplit_once('@').map_or("", |(_, domain)| domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_have_one_form() {
        assert_eq!(domain("Example.COM.").as_deref(), Some("example.com"));
        assert_eq!(domain("bücher.example").as_deref(), Some("xn--bcher-kva.example"));
        for bad in
            ["", ".", "com", "a..b", "[10.0.0.1]", "10.0.0.1", "a b.example", "é".repeat(9000).as_str()]
        {
            assert_eq!(domain(bad), None, "{bad:.20}");
        }
        assert!(is_within("A.example.com", "example.com") && is_within("example.com", "EXAMPLE.com"));
        assert!(!is_within("anexample.com", "example.com") && !is_within("com", "example.com"));
    }
}
