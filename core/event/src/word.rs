//! Causes as a user types them.

use crate::{ReceiveCause, SendCause};
use alloc::string::String;

/// Words as one that no shell changes.
fn word(text: &str) -> String {
    text.replace(' ', "-").replace('\'', "")
}

impl SendCause {
    /// The cause as one word that no shell changes: `receivers-window`.
    pub fn word(self) -> String {
        word(self.text())
    }
}

impl ReceiveCause {
    /// The cause as one word that no shell changes: `our-window-closed`.
    pub fn word(self) -> String {
        word(self.text())
    }
}
