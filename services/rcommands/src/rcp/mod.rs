//! rcp: files to and from another host, over rsh. The protocol is 4.2BSD's: the end that has files announces each in a
//! line, the end that gets them answers.

mod codec;
mod driver;
mod folder;
mod machine;
mod name;
#[cfg(test)]
mod tests;

pub use codec::Times;
pub use driver::{CopyError, CopySummary, fetch, send};
pub use folder::Folder;
pub use machine::{Event, Progress, Sink, Source};
pub use name::{Expected, NameError, check};

/// The deepest nesting of folders.
pub const DEPTH_LIMIT: usize = 64;

/// Options of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Copies folders with their contents.
    pub recursive: bool,
    /// Keeps times and permissions.
    pub preserve: bool,
}

impl Options {
    /// Folders if `recursive`; times and permissions if `preserve`.
    ///
    /// ```
    /// use inhost_rcommands::rcp::Options;
    /// assert_eq!(Options::new(true, false).fetch_command("src"), "rcp -r -f src");
    /// ```
    pub fn new(recursive: bool, preserve: bool) -> Options {
        Options { recursive, preserve }
    }
    /// The command that makes the other end's rcp send `path` to us.
    pub fn fetch_command(self, path: &str) -> String {
        format!("rcp{} -f {}", self.flags(), named(path))
    }
    /// The command that makes the other end's rcp take files to `path`, which is to be a folder when there are several.
    pub fn send_command(self, path: &str, several: bool) -> String {
        let folder = if several { " -d" } else { "" };
        format!("rcp{}{folder} -t {}", self.flags(), named(path))
    }
    fn flags(self) -> &'static str {
        match (self.recursive, self.preserve) {
            (false, false) => "",
            (true, false) => " -r",
            (false, true) => " -p",
            (true, true) => " -r -p",
        }
    }
}

/// A path that is not an option. Nothing of it is quoted: the other end's shell is to expand it, as ever with rcp.
fn named(path: &str) -> String {
    match path {
        "" => ".".to_owned(),
        path if path.starts_with('-') => format!("./{path}"),
        path => path.to_owned(),
    }
}
