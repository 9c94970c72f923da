//! `[names]` of `host.toml`.

use hickory_proto::rr::Name;
use inhost_base::{Cidr, Endpoint};
use inhost_common::service::{Limits, Problem, endpoint, size_bytes};
use serde::{Deserialize, Serialize};

use crate::forward::{ClientLimits, ForwardConfig};
use crate::{DNS_PORT, Hosts};

/// The least memory for answers that is of use.
const LEAST_CACHE_BYTES: usize = 64 << 10;

/// `[names]` of `host.toml`: the caching forwarder.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false.
    pub enabled: bool,
    /// Its port, for UDP and TCP. Default 53.
    pub port: u16,
    /// The servers that it asks, as ADDRESS or ADDRESS:PORT. Default: those of the host.
    pub servers: Vec<String>,
    /// Names of its own, each a line as in /etc/hosts, beside those of the host's table.
    pub local: Vec<String>,
    /// Networks that are answered beside loopback and those of the links.
    pub allow: Vec<String>,
    /// Memory for answers. Default 8M.
    pub cache: String,
    /// Questions that are asked of the servers at a time. Default 256.
    pub questions: usize,
    /// Questions of one client that wait for the servers. Default 128.
    pub questions_per_client: usize,
    /// Questions that one client may ask in a second. Default 500.
    pub per_second: u32,
    /// How many callers it takes by TCP. Default: 64 sessions, 8 of one peer, in any number a minute.
    pub limits: Limits,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            port: DNS_PORT,
            servers: Vec::new(),
            local: Vec::new(),
            allow: Vec::new(),
            cache: "8M".into(),
            questions: 256,
            questions_per_client: 128,
            per_second: 500,
            limits: Limits::default(),
        }
    }
}

impl Section {
    /// Configuration of the forwarder; `own` are the servers that the host itself asks.
    pub fn forward(&self, own: &[Endpoint]) -> Result<ForwardConfig, Problem> {
        let servers = match self.servers.is_empty() {
            true => own.to_vec(),
            false => self.servers.iter().map(|text| of_section(text)).collect::<Result<_, _>>()?,
        };
        let allow = self.allow.iter().map(|text| {
            text.parse::<Cidr>()
                .map_err(|_| Problem::setting("names.allow", text, "give a network such as 192.0.2.0/24"))
        });
        let cache_bytes = size_bytes(&self.cache)
            .filter(|bytes| *bytes >= LEAST_CACHE_BYTES)
            .ok_or_else(|| Problem::setting("names.cache", &self.cache, "give at least 64K, such as 8M"))?;
        let clients = ClientLimits {
            waiting_each: self.questions_per_client,
            per_second: self.per_second,
            burst: self.per_second.saturating_mul(2),
            ..ClientLimits::default()
        };
        Ok(ForwardConfig {
            servers,
            allow: allow.collect::<Result<_, _>>()?,
            cache_bytes,
            clients,
            asked_limit: self.questions,
            limits: self.limits.or("names", ForwardConfig::default().limits)?,
        })
    }
    /// The table of hosts with the names of its own in front.
    pub fn table(&self, hosts: &str) -> Hosts {
        Hosts::parse(&format!("{}\n{hosts}", self.local.join("\n")))
    }
    /// Whether all that is said can be done.
    pub fn check(&self) -> Result<(), Problem> {
        for line in &self.local {
            let mut names = line.split('#').next().unwrap_or_default().split_ascii_whitespace().skip(1);
            if Hosts::parse(line).is_empty() || names.any(|name| Name::from_ascii(name).is_err()) {
                let expected = "give an address and its names, such as \"10.9.0.7 printer.lan\"";
                return Err(Problem::setting("names.local", line, expected));
            }
        }
        let per_second = usize::try_from(self.per_second).unwrap_or(usize::MAX);
        for (key, value) in [
            ("names.questions", self.questions),
            ("names.questions_per_client", self.questions_per_client),
            ("names.per_second", per_second),
        ] {
            if value == 0 {
                return Err(Problem::setting(key, value, "give 1 or more"));
            }
        }
        self.forward(&[]).map(drop)
    }
}

/// What a server's address looks like.
const EXPECTED: &str = "give an address such as 10.9.0.1 or [fd00::1]:5353";

/// ADDRESS, ADDRESS:PORT or `[ADDRESS]:PORT`.
pub fn server(text: &str) -> Result<Endpoint, Problem> {
    let wrong = || Problem::usage(format!("name server {text:?}: {EXPECTED}"));
    endpoint(text, DNS_PORT).ok_or_else(wrong)
}
fn of_section(text: &str) -> Result<Endpoint, Problem> {
    endpoint(text, DNS_PORT).ok_or_else(|| Problem::setting("names.servers", text, EXPECTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_as_people_write_them() {
        let shown = |text: &str| server(text).map(|at| at.to_string()).map_err(drop);
        assert_eq!(shown("10.9.0.1"), Ok("10.9.0.1:53".into()));
        assert_eq!(shown("10.9.0.1:5353"), Ok("10.9.0.1:5353".into()));
        assert_eq!(shown("fd00::1"), Ok("[fd00::1]:53".into()));
        assert_eq!(shown("[fd00::1]:54"), Ok("[fd00::1]:54".into()));
        assert_eq!(shown("resolver.example"), Err(()));
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let wrong = [
            Section { servers: vec!["x".into()], ..Section::default() },
            Section { allow: vec!["10.0.0.1/99".into()], ..Section::default() },
            Section { cache: "1K".into(), ..Section::default() },
            Section { local: vec!["printer".into()], ..Section::default() },
        ];
        for names in wrong {
            assert!(names.check().is_err(), "{names:?}");
        }
        assert!(Section::default().check().is_ok());
    }
}
