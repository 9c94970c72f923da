//! Results of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Numbers by name, in alphabetical order. A name ends with its unit, such as `echo_ms`; counts have none.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Measured(BTreeMap<String, f64>);

impl Measured {
    /// The number of this name.
    pub fn of(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }
    /// All numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, f64)> + '_ {
        self.0.iter().map(|(name, &value)| (name.as_str(), value))
    }
    pub(crate) fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), value);
    }
}
