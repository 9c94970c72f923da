//! `[history]` of `host.toml`.

use crate::failure::Failure;
use inhost_common::service::size_bytes;
use inhost_history::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Records of closed connections, for `inhost history`.
#[derive(Deserialize, Serialize, JsonSchema, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct History {
    /// Whether they are kept. Default false.
    pub enabled: bool,
    /// Folder of the records. Default: $XDG_STATE_HOME/inhost/history, else ~/.local/state/inhost/history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Days that a record is kept. Default 30.
    pub days: u32,
    /// The most records; one takes some 250 bytes. Default 1000000.
    pub connections: u64,
    /// Size of a file with a line of JSON for each connection, such as "64M"; there are two. Default "0": none.
    pub lines: String,
}

impl Default for History {
    fn default() -> History {
        let limits = Limits::default();
        History {
            enabled: false,
            folder: None,
            days: limits.days,
            connections: limits.connections,
            lines: "0".into(),
        }
    }
}

impl History {
    /// How much is kept.
    pub fn limits(&self) -> Result<Limits, Failure> {
        let mut limits = Limits::default();
        (limits.days, limits.connections) = (self.days, self.connections);
        let wrong = || {
            let expected = "give a number with K, M or G, such as 64M, or 0 for none";
            Failure::setting("history.lines", &self.lines, expected)
        };
        if self.connections == 0 {
            let expected = "give 1 or more; history.enabled = false keeps none";
            return Err(Failure::setting("history.connections", 0, expected));
        }
        if self.folder.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            return Err(Failure::setting("history.folder", "", "name a folder"));
        }
        limits.lines_bytes = size_bytes(&self.lines).ok_or_else(wrong)? as u64;
        Ok(limits)
    }
    /// The folder.
    pub fn folder(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| inhost_common::state_folder("history"))
    }
}
