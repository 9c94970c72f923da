//! The section `[dashboard]` of a host's configuration.

use inhost_common::AdmissionLimits;
use inhost_common::service::{Limits, Problem};
use inhost_web::server::LIMITS;
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
    /// What everybody must know who asks, 16 characters at least. Without one only the user who runs the host is answered, and
    /// root, through a forward of this machine's loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Names under which it may be asked for, besides addresses and localhost.
    pub hosts: Vec<String>,
    /// How many callers it takes. Default: 128 sessions, 64 of one peer, 6000 connections of one peer in a minute.
    pub limits: Limits,
}

impl Default for Section {
    fn default() -> Section {
        Section { enabled: false, port: 80, token: None, hosts: Vec::new(), limits: Limits::default() }
    }
}

impl Section {
    pub(crate) fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or("dashboard", LIMITS)
    }
    pub(crate) fn check(&self) -> Result<(), Problem> {
        self.limits()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_the_dashboard_is_right() {
        #[derive(Deserialize)]
        struct File {
            dashboard: Section,
        }
        let page = include_str!("../../../docs/dashboard.md");
        let (_, rest) = page.split_once("```toml\n[dashboard]").unwrap();
        let example = format!("[dashboard]{}", rest.split_once("```").unwrap().0);
        let section = |text: &str| toml::from_str::<File>(text).unwrap().dashboard;
        assert_eq!(section(&example), Section::default(), "what stands there is the default");
        let all = section(&example.replace("\n# ", "\n"));
        assert!(all.token.is_some() && all.check().is_ok());
        assert!(all.limits != Limits::default() && all.limits().unwrap() == LIMITS);
        let short = Section { token: Some("short".to_owned()), ..Section::default() };
        assert!(short.check().is_err() && !format!("{:?}", short.check()).contains("short\""));
    }
}
