//! The little services as a service of a host: their section.

use inhost_common::service::{Description, Doors, HostFiles, Limits, Problem, Reach, ServiceContext};
use inhost_common::{AdmissionLimits, Transport};
use serde::{Deserialize, Serialize};

use crate::{Little, LittleConfig, Service, serve};

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(1024, 64, u32::MAX);

/// `[little]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether they run. Default true.
    pub enabled: bool,
    /// How many callers they take by TCP, all four together. Default: 1024 sessions, 64 of one peer, in any number a
    /// minute.
    pub limits: Limits,
}

impl Default for Section {
    fn default() -> Self {
        Section { enabled: true, limits: Limits::default() }
    }
}

impl Section {
    fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or(<Little as inhost_common::service::Service>::NAME, LIMITS)
    }
}

impl inhost_common::service::Service for Little {
    const NAME: &'static str = "little";
    type Section = Section;
    type Prepared = ();

    fn check(section: &Section) -> Result<(), Problem> {
        section.limits().map(drop)
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(_: &Section, _: &HostFiles) -> Result<(), Problem> {
        Ok(())
    }
    fn start(section: &Section, (): (), context: &ServiceContext) -> Result<Little, Problem> {
        let config = LittleConfig { limits: section.limits()?, ..LittleConfig::default() };
        let unix_time = context.unix_time;
        serve(&context.host, config, context.callers.clone(), move || unix_time().as_secs())
    }
    fn reload(&self, section: &Section, (): ()) -> Result<(), Problem> {
        Little::doors(self).admission().set_limits(section.limits()?);
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        key.starts_with("limits").then_some("at once")
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
        Little::doors(self)
    }
}
