//! Tag lists (RFC 6376 §3.2).

/// Most tags of a list.
const TAGS_LIMIT: usize = 64;

/// The tags of a list, in order.
#[derive(Debug)]
pub(crate) struct Tags<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Tags<'a> {
    /// Reads a list. `None` where it is not one, or has a tag twice.
    pub(crate) fn parse(text: &'a str) -> Option<Tags<'a>> {
        let mut tags: Vec<(&str, &str)> = Vec::new();
        for part in text.split(';') {
            let part = part.trim_matches(is_blank);
            if part.is_empty() {
                continue;
            }
            let (name, value) = part.split_once('=')?;
            let (name, value) = (name.trim_matches(is_blank), value.trim_matches(is_blank));
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name || tags.len() == TAGS_LIMIT || tags.iter().any(|(known, _)| *known == name) {
                return None;
            }
            tags.push((name, value));
        }
        Some(Tags(tags))
    }
    pub(crate) fn value(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
    /// A value of Base64, in which blanks do not count.
    pub(crate) fn base64(&self, name: &str) -> Option<Vec<u8>> {
        base64(self.value(name)?)
    }
    pub(crate) fn number(&self, name: &str) -> Option<Option<u64>> {
        let Some(value) = self.value(name) else { return Some(None) };
        let is_number = !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit());
        // Numbers that do not fit saturate (RFC 6376 §3.5 allows 76 digits for a length).
        is_number.then(|| Some(value.parse().unwrap_or(u64::MAX)))
    }
    pub(crate) fn first(&self) -> Option<(&'a str, &'a str)> {
        self.0.first().copied()
    }
    /// The items of a colon-separated value.
    pub(crate) fn items(&self, name: &str) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
        Some(self.value(name)?.split(':').map(|item| item.trim_matches(is_blank)))
    }
}

pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|c| !is_blank(*c)).collect();
    data_encoding::BASE64.decode(text.as_bytes()).ok()
}
