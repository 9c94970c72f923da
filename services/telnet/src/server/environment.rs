//! The two things of a peer's environment that reach a shell, and what they may look like. TERM names a
//! file of the terminal database and LANG one of the locales, so neither may name a path.

/// TERM: a letter or digit, then up to 39 letters, digits, `-`, `_`, `+`, `.`, in lower case.
pub fn terminal(name: &str) -> Option<String> {
    let first = name.bytes().next()?.is_ascii_alphanumeric();
    let rest = name.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_+.".contains(&c));
    (first && rest && name.len() <= 40 && !name.contains("..")).then(|| name.to_ascii_lowercase())
}

/// LANG: `C`, `POSIX`, or language, territory, codeset and modifier as in `de_AT.UTF-8@euro`; at most 32.
pub fn language(value: &[u8]) -> Option<String> {
    let text = core::str::from_utf8(value).ok()?;
    let first = text.bytes().next()?.is_ascii_alphabetic();
    let rest = text.bytes().all(|c| c.is_ascii_alphanumeric() || b"_.@-".contains(&c));
    (first && rest && text.len() <= 32 && !text.contains("..")).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_a_path_or_a_command() {
        assert_eq!(terminal("XTERM-256color").as_deref(), Some("xterm-256color"));
        assert_eq!(language(b"de_AT.UTF-8@euro").as_deref(), Some("de_AT.UTF-8@euro"));
        let long = "x".repeat(41);
        for bad in ["", "../x", "/etc/x", "a/b", "a..b", "-x", ".x", "a b", "a;b", "a\n", "é", &long] {
            assert_eq!(terminal(bad), None, "{bad}");
            assert_eq!(language(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(language(b"\xff"), None);
    }
}
