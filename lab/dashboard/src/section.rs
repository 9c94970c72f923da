//! The section `[dashboard]` of a host's configuration.

use inhost_common::service::Problem;
use serde::{Deserialize, Serialize};

/// Characters of a token.
const LEAST_TOKEN: usize = 16;

/// A page that shows the host, and figures for Prometheus.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// Whether it runs. Default false; `inhost serve --dashboard` starts it, too.
    pub enabled: bool,
    /// Its port on the host. Default 80.
    pub port: u16,
    /// What everybody must know who asks, 16 characters at least. Without one only this machine is answered, through a
    /// forward of its loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Names under which it may be asked for, besides addresses and localhost.
    pub hosts: Vec<String>,
}

impl Default for Section {
    fn default() -> Section {
        Section { enabled: false, port: 80, token: None, hosts: Vec::new() }
    }
}

impl Section {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        match &self.token {
            Some(token)
                if token.len() < LEAST_TOKEN
                    || !token
                        .bytes()
                        .all(|octet| octet.is_ascii_alphanumeric() || b"-_".contains(&octet)) =>
            {
                let expected = "give 16 letters, digits, hyphens or underscores at least, such as openssl rand -hex 16 prints";
                Err(Problem::setting("dashboard.token", "(not shown)", expected))
            }
            _ => Ok(()),
        }
    }
}
