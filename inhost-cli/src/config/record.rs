//! The section `[record]`: the flight recorder.

use crate::failure::Failure;
use inhost_common::service::size_bytes;
use inhost_record::Trap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The flight recorder: the heads of the latest frames and the latest events.
#[derive(Deserialize, Serialize, JsonSchema, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Memory for the heads of frames, such as "8M": 128 bytes each. Default 1M.
    pub memory: String,
    /// Folder for the files that traps write. Without it traps are logged only.
    pub folder: Option<PathBuf>,
    /// Traps, such as "reset port 80" or "share receivers-window over 50".
    pub traps: Vec<String>,
    /// Name of this host in files. Default: the machine's name.
    pub name: Option<String>,
}

impl Default for Record {
    fn default() -> Record {
        Record { memory: "1M".into(), folder: None, traps: Vec::new(), name: None }
    }
}

impl Record {
    /// The memory in bytes.
    pub fn memory_bytes(&self) -> Result<usize, Failure> {
        let wrong = || {
            let expected = "give a number with K, M or G, from 4K to 1G, such as 8M";
            Failure::setting("record.memory", &self.memory, expected)
        };
        size_bytes(&self.memory).filter(|bytes| (4 << 10..=1 << 30).contains(bytes)).ok_or_else(wrong)
    }
    /// The traps.
    pub fn traps(&self) -> Result<Vec<Trap>, Failure> {
        let parse = |text: &String| text.parse().map_err(|why| Failure::setting("record.traps", text, why));
        self.traps.iter().map(parse).collect()
    }
}
