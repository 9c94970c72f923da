//! `[dhcp]` of `host.toml`.

use crate::failure::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The DHCP client of links with `address=dhcp`.
#[derive(Deserialize, Serialize, JsonSchema, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Dhcp {
    /// Folder in which leases and the host's identifier are kept across restarts.
    /// Default: $XDG_STATE_HOME/inhost/dhcp, else ~/.local/state/inhost/dhcp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// Host name sent to servers. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Whether leases are given back when the host ends. Default false: the host asks for the same after a restart.
    pub release: bool,
}

impl Dhcp {
    /// Whether all that is said can be done.
    pub fn check(&self) -> Result<(), Failure> {
        let is_name = |name: &String| {
            (1..=63).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
        };
        match &self.host_name {
            Some(name) if !is_name(name) => {
                Err(Failure::setting("dhcp.host_name", name, "give letters, digits and hyphens, 63 at most"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_is_said() {
        let named = |name: &str| Dhcp { host_name: Some(name.into()), ..Dhcp::default() }.check().is_ok();
        assert!(Dhcp::default().check().is_ok() && named("ada-1"));
        assert!(!named("") && !named("a.b") && !named("a b") && !named(&"x".repeat(64)));
    }
}
