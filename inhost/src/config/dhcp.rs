//! `[dhcp]` of `host.toml`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The DHCP client of links with `address=dhcp`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Dhcp {
    /// Folder in which leases and the host's identifier are kept across restarts.
    /// Default: $XDG_STATE_HOME/inhost/dhcp, else ~/.local/state/inhost/dhcp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
}
