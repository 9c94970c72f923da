//! The little services as a service of a host: their section.

use inhost_common::Transport;
use inhost_common::service::{Description, Doors, HostFiles, Problem, Reach, ServiceContext, ServiceSession};
use serde::{Deserialize, Serialize};

use crate::{Inetd, InetdConfig, Service, serve};

/// `[little]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether they run. Default true.
    pub enabled: bool,
    /// TCP connections at a time, all four together. Default 1024.
    pub connections: usize,
    /// TCP connections of one peer at a time. Default 64.
    pub connections_per_peer: usize,
}

impl Default for Section {
    fn default() -> Self {
        Section { enabled: true, connections: 1024, connections_per_peer: 64 }
    }
}

impl inhost_common::service::Service for Inetd {
    const NAME: &'static str = "little";
    type Section = Section;
    type Prepared = ();

    fn check(_: &Section) -> Result<(), Problem> {
        Ok(())
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(_: &Section, _: &HostFiles) -> Result<(), Problem> {
        Ok(())
    }
    fn start(section: &Section, (): (), context: &ServiceContext) -> Result<Inetd, Problem> {
        let config = InetdConfig {
            connections_limit: section.connections,
            connections_per_peer: section.connections_per_peer,
            ..InetdConfig::default()
        };
        let unix_time = context.unix_time;
        serve(&context.host, config, context.callers.clone(), move || unix_time().as_secs())
            .map_err(|e| Problem::operation(e.to_string()))
    }
    fn reload(&self, _: &Section, _: Result<(), Problem>) {}
    fn effect(_: &str) -> Option<&'static str> {
        None
    }
    fn describe(&self) -> Description {
        let names = Service::ALL.map(|s| format!("{} {}", s.name(), s.port()));
        let reach = Service::ALL.map(|service| {
            let purpose = match service {
                Service::Echo => "what you type comes back",
                Service::Discard => "what you type is taken",
                Service::Daytime => "the time of day",
                Service::Chargen => "characters without end",
            };
            Reach::new(Transport::Tcp, service.port(), purpose, |at| format!("nc {} {}", at.ip(), at.port()))
        });
        Description {
            summary: format!("{} (TCP and UDP)", names.join(", ")),
            reach: reach.into(),
            notice: None,
        }
    }
    fn doors(&self) -> &Doors {
        Inetd::doors(self)
    }
    fn end_session(&self, number: u64) -> bool {
        self.end(number)
    }
    fn sessions(&self) -> Vec<ServiceSession> {
        self.list(Self::NAME)
    }
}
