//! Paths as users write them.

use std::fmt;

/// A path from the user's root: no `.`, no `..`, no empty parts, no NUL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct VirtualPath {
    parts: Vec<String>,
}

impl VirtualPath {
    /// The root.
    pub fn root() -> VirtualPath {
        VirtualPath::default()
    }
    /// What `text` means to somebody who is here, without what no name can hold. Above the root is the root.
    pub fn join(&self, text: &str) -> VirtualPath {
        // First: `..` may stand there without it.
        let text = &text.replace('\0', "");
        let mut parts = if text.starts_with('/') { Vec::new() } else { self.parts.clone() };
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part.to_owned()),
            }
        }
        VirtualPath { parts }
    }
    /// The directory above; of the root the root.
    pub fn parent(&self) -> VirtualPath {
        let mut parts = self.parts.clone();
        parts.pop();
        VirtualPath { parts }
    }
    /// The last part; `None` for the root.
    pub fn name(&self) -> Option<&str> {
        self.parts.last().map(String::as_str)
    }
    /// The path below the root as the system writes it; `.` for the root.
    pub fn relative(&self) -> String {
        if self.parts.is_empty() { ".".to_owned() } else { self.parts.join("/") }
    }
}

impl fmt::Display for VirtualPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_above_the_root() {
        let here = VirtualPath::root().join("pub/files");
        for (text, wanted) in [
            ("x", "/pub/files/x"),
            ("/x//y/", "/x/y"),
            ("../../../../etc/passwd", "/etc/passwd"),
            ("./.././a/..", "/pub"),
            ("", "/pub/files"),
            ("...", "/pub/files/..."),
            ("/..", "/"),
            ("\0../.\0./.\0/\0/x", "/x"),
        ] {
            assert_eq!(here.join(text).to_string(), wanted, "{text}");
        }
        assert_eq!(VirtualPath::root().relative(), ".");
        assert_eq!((here.name(), here.parent().to_string()), (Some("files"), "/pub".into()));
    }
}
