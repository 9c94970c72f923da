//! `[tftp]` of `host.toml`.

use super::size_bytes;
use crate::failure::Failure;
use inhost_base::Duration;
use inhost_tftp::driver::ServerConfig;
use inhost_tftp::{BLOCK_BYTES_LIMITS, DeskLimits, Limits, Rights, Rollover, Settings, WINDOW_LIMIT};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The TFTP server.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Tftp {
    /// Whether it runs. Default false: it shows files to anybody.
    pub enabled: bool,
    /// Its port. Default 69.
    pub port: u16,
    /// The folder that is served, and all that is reached.
    pub root: Option<PathBuf>,
    /// What anybody may do: "read", "create" new files, or "write" over others too. Default "read".
    pub rights: String,
    /// Transfers at a time. Default 64.
    pub transfers: usize,
    /// Transfers of one address at a time. Default 8.
    pub transfers_per_client: usize,
    /// The largest block that is granted. Default 65464; 1468 keeps blocks whole on an Ethernet.
    pub block_size: u16,
    /// The largest window that is granted, in blocks. Default 64.
    pub window: u16,
    /// How long a file that comes may be. Default "1G".
    pub upload: String,
    /// Seconds without a word after which a transfer is given up. Default 30.
    pub patience_s: u64,
    /// What follows block 65535 where nothing was agreed on: 0 or 1. Default 0.
    pub rollover: u8,
}

impl Default for Tftp {
    fn default() -> Self {
        Tftp {
            enabled: false,
            port: 69,
            root: None,
            rights: "read".into(),
            transfers: 64,
            transfers_per_client: 8,
            block_size: BLOCK_BYTES_LIMITS.1,
            window: 64,
            upload: "1G".into(),
            patience_s: 30,
            rollover: 0,
        }
    }
}

impl Tftp {
    /// What the server is told. Fails on what cannot be acted on.
    pub fn server(&self) -> Result<ServerConfig, Failure> {
        let rights = match &*self.rights {
            "read" => Rights::Read,
            "create" => Rights::Create,
            "write" => Rights::Write,
            other => {
                let choice = "give \"read\", \"create\" or \"write\"";
                return Err(Failure::setting("tftp.rights", other, choice));
            }
        };
        let between = |key: &str, value: u16, (least, most): (u16, u16)| match (least..=most).contains(&value)
        {
            true => Ok(value),
            false => {
                Err(Failure::setting(&format!("tftp.{key}"), value, format_args!("give {least} to {most}")))
            }
        };
        let Some(size_limit_bytes) = size_bytes(&self.upload) else {
            return Err(Failure::setting("tftp.upload", &self.upload, "give a number with K, M or G"));
        };
        // Zero is what every sender counts on to; a receiver is told only what is unusual, and sees the rest.
        let rollover = match self.rollover {
            0 => None,
            1 => Some(Rollover::ToOne),
            other => return Err(Failure::setting("tftp.rollover", other, "give 0 or 1")),
        };
        if self.enabled && self.root.is_none() {
            return Err(Failure::usage("tftp.root: name the folder that is served"));
        }
        let patience = Duration::from_secs(self.patience_s.max(1));
        Ok(ServerConfig {
            desk: DeskLimits { transfers: self.transfers, transfers_per_client: self.transfers_per_client },
            rights,
            limits: Limits {
                block_size: between("block_size", self.block_size, BLOCK_BYTES_LIMITS)?,
                window: between("window", self.window, (1, WINDOW_LIMIT))?,
            },
            settings: Settings {
                patience,
                rollover,
                size_limit_bytes: size_limit_bytes as u64,
                ..Settings::default()
            },
        })
    }
}
