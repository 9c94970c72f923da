//! What a process that was measured says: figures by name, and the settings under which they came about.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One line of JSON.
#[derive(Serialize, Default)]
pub struct Answer {
    figures: BTreeMap<String, f64>,
    settings: String,
}

impl Answer {
    /// No figures yet.
    pub fn new(settings: impl Into<String>) -> Answer {
        Answer { figures: BTreeMap::new(), settings: settings.into() }
    }
    /// With one more figure.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Answer {
        self.figures.insert(name.to_owned(), value);
        self
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}
