//! The services that `inhost serve` can run.

use crate::args::Serve;
use crate::config::Config;
use crate::failure::Failure;
use inhost_common::service::{
    Description, Doors, HostFiles, Problem, Service, ServiceContext, ServiceSession,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use std::any::Any;
use std::path::Path;
use std::rc::Rc;
use toml::de::{DeValue, Error, ValueDeserializer};
use toml::{Spanned, Table};
use tracing::error;

/// Every service, in the order of the banner. A service is added by a line here and its crate in Cargo.toml.
pub const SERVICES: &[Kind] = &[
    Kind::of::<inhost_telnet::service::Telnet>(),
    Kind::of::<inhost_tn3270::service::Tn3270>(),
    Kind::of::<inhost_ftp::service::Ftp>(),
    Kind::of::<inhost_tftp::service::Tftp>(),
    Kind::of::<inhost_nfs::service::Nfs>(),
    Kind::of::<inhost_names::service::NameServer>(),
    Kind::of::<inhost_mail::service::Mail>(),
    Kind::of::<inhost_mailcatch::service::MailCatcher>(),
    Kind::of::<inhost_jobs::service::Jobs>(),
    Kind::of::<inhost_finger::service::Finger>(),
    Kind::of::<inhost_rcommands::service::Rlogin>(),
    Kind::of::<inhost_rcommands::service::Rsh>(),
    Kind::of::<inhost_little::Little>(),
    Kind::of::<inhost_dashboard::Dashboard>(),
];

/// The section of a service in the configuration file `path`, or in the one of the current folder.
pub fn section<S: Service>(path: Option<&Path>) -> Result<S::Section, Failure> {
    let config = Config::read(&Serve { config: path.map(Path::to_owned), ..Serve::default() })?;
    let kind = SERVICES.iter().find(|kind| kind.name == S::NAME);
    let table = kind.map(|kind| config.section(kind).clone()).unwrap_or_default();
    table.try_into().map_err(|e: Error| Failure::usage(format!("[{}]: {}", S::NAME, e.message())))
}

/// Prepared resources of a service.
type Prepared = Box<dyn Any + Send>;
/// A service that was started.
type Started = Result<Rc<dyn Running>, Problem>;

/// A service by its functions. A section is a table in which each key has its value, given or by default.
pub struct Kind {
    /// See [`Service::NAME`].
    pub name: &'static str,
    /// Reads the section of a file; `None` is a file that has none.
    pub section: fn(Option<Spanned<DeValue<'_>>>) -> Result<Table, Error>,
    /// See [`Service::check`].
    pub check: fn(&Table) -> Result<(), Problem>,
    /// See [`Service::effect`].
    pub effect: fn(&str) -> Option<&'static str>,
    /// The schema of the section.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    is_enabled: fn(&Table) -> Result<bool, Problem>,
    prepare: fn(&Table, &HostFiles) -> Result<Prepared, Problem>,
    start: fn(&Table, Prepared, &ServiceContext) -> Started,
}

/// A running service.
pub trait Running: Any {
    /// See [`Service::reload`].
    fn reload(&self, section: &Table, prepared: Prepared) -> Result<(), Problem>;
    /// See [`Service::describe`].
    fn describe(&self) -> Description;
    /// See [`Service::sessions`].
    fn sessions(&self) -> Vec<ServiceSession>;
    /// See [`Service::end_session`].
    fn end_session(&self, number: u64) -> bool;
    /// See [`Service::doors`].
    fn doors(&self) -> &Doors;
    /// See [`Service::finish`].
    fn finish(&self);
}

impl Kind {
    const fn of<S: Service<Section: JsonSchema>>() -> Kind {
        Kind {
            name: S::NAME,
            section: |value| {
                let section = value.map_or_else(
                    || Ok(S::Section::default()),
                    |value| S::Section::deserialize(ValueDeserializer::from(value)),
                )?;
                Table::try_from(section).map_err(serde::de::Error::custom)
            },
            check: |section| S::check(&typed::<S>(section)?),
            effect: S::effect,
            schema: SchemaGenerator::subschema_for::<S::Section>,
            is_enabled: |section| Ok(S::is_enabled(&typed::<S>(section)?)),
            prepare: |section, files| Ok(Box::new(S::prepare(&typed::<S>(section)?, files)?)),
            start: |section, prepared, context| {
                let started = S::start(&typed::<S>(section)?, prepared_for::<S>(prepared)?, context)?;
                Ok(Rc::new(started))
            },
        }
    }

    /// Whether the section wants the service to run; then what it names has been opened once.
    pub fn try_files(&self, section: &Table, files: &HostFiles) -> Result<bool, Problem> {
        let is_enabled = (self.is_enabled)(section)?;
        if is_enabled {
            (self.prepare)(section, files)?;
        }
        Ok(is_enabled)
    }

    /// Starts the service where the section wants it to run.
    pub fn start(
        &self,
        section: &Table,
        context: &ServiceContext,
    ) -> Result<Option<Rc<dyn Running>>, Problem> {
        if !(self.is_enabled)(section)? {
            return Ok(None);
        }
        let prepared = (self.prepare)(section, &context.files)?;
        (self.start)(section, prepared, context).map(Some)
    }
}

impl<S: Service> Running for S {
    fn reload(&self, section: &Table, prepared: Prepared) -> Result<(), Problem> {
        Service::reload(self, &typed::<S>(section)?, prepared_for::<S>(prepared)?)
    }
    fn describe(&self) -> Description {
        Service::describe(self)
    }
    fn sessions(&self) -> Vec<ServiceSession> {
        Service::sessions(self)
    }
    fn end_session(&self, number: u64) -> bool {
        Service::end_session(self, number)
    }
    fn doors(&self) -> &Doors {
        Service::doors(self)
    }
    fn finish(&self) {
        Service::finish(self);
    }
}

fn typed<S: Service>(section: &Table) -> Result<S::Section, Problem> {
    section.clone().try_into().map_err(|e: Error| Problem::usage(format!("{}: {}", S::NAME, e.message())))
}

fn prepared_for<S: Service>(prepared: Prepared) -> Result<S::Prepared, Problem> {
    let other = |_| Problem::operation(format!("{}: prepared for another service", S::NAME));
    prepared.downcast().map(|prepared| *prepared).map_err(other)
}

/// The services that run, each with its kind.
pub struct Services {
    running: Vec<(&'static Kind, Rc<dyn Running>)>,
}

/// What was opened and read again for the services that run, in their order.
pub type PreparedAgain = Vec<Result<Prepared, Problem>>;

impl Services {
    /// Starts those that their sections want to run. `section` gives the section of a kind.
    pub fn start<'a>(
        section: impl Fn(&Kind) -> &'a Table,
        context: &ServiceContext,
    ) -> Result<Services, Problem> {
        let mut running = Vec::new();
        for kind in SERVICES {
            if let Some(started) = kind.start(section(kind), context)? {
                let listed = Rc::downgrade(&started);
                context.sessions.add(move || listed.upgrade().map_or_else(Vec::new, |s| s.sessions()));
                running.push((kind, started));
            }
        }
        Ok(Services { running })
    }
    /// The kinds that run.
    pub fn kinds(&self) -> Vec<&'static Kind> {
        self.running.iter().map(|(kind, _)| *kind).collect()
    }
    /// The running service of type `S`.
    pub fn find<S: Service>(&self) -> Option<&S> {
        self.running.iter().find_map(|(_, service)| {
            let any: &dyn Any = &**service;
            any.downcast_ref::<S>()
        })
    }
    /// The services that run, those included whose doors are closed, each with its name.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &dyn Running)> {
        self.running.iter().map(|(kind, service)| (kind.name, &**service))
    }
    /// The running service of this name, in any case of letters, with its name.
    pub fn named(&self, name: &str) -> Option<(&'static str, &dyn Running)> {
        self.all().find(|(known, _)| known.eq_ignore_ascii_case(name))
    }
    /// Opens the doors that are closed: those who wait there tell their sessions that the host ends.
    pub fn open_all(&self) {
        self.all().for_each(|(_, service)| drop(service.doors().open()));
    }
    /// The descriptions of all services.
    pub fn describe(&self) -> Vec<(&'static str, Description)> {
        self.running.iter().map(|(kind, service)| (kind.name, service.describe())).collect()
    }
    /// Has each take over what can change. One that cannot stays as it was, and the log says so.
    pub fn reload<'a>(&self, section: impl Fn(&Kind) -> &'a Table, prepared: PreparedAgain) {
        for ((kind, service), prepared) in self.running.iter().zip(prepared) {
            let reloaded = prepared.and_then(|prepared| service.reload(section(kind), prepared));
            if let Err(problem) = reloaded {
                error!(target: "host", "{} stays as it was: {problem}", kind.name);
            }
        }
    }
    /// When a changed key, `telnet.port`, takes effect, if it is of a service.
    pub fn effect(&self, key: &str) -> Option<&'static str> {
        let (name, key) = key.split_once('.')?;
        let (kind, _) = self.running.iter().find(|(kind, _)| kind.name == name)?;
        (kind.effect)(key)
    }
    /// The host's connections have closed.
    pub fn finish(&self) {
        self.running.iter().for_each(|(_, service)| service.finish());
    }
}

/// Opens and reads again what the sections of `kinds` name. It may wait for the disk.
pub fn prepare<'a>(
    kinds: &[&'static Kind],
    section: impl Fn(&Kind) -> &'a Table,
    files: &HostFiles,
) -> PreparedAgain {
    kinds.iter().map(|kind| (kind.prepare)(section(kind), files)).collect()
}
