//! The queue as a service of a host: its section of `host.toml`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::future::{block_on, or};
use inhost_common::service::{self, Description, Doors, HostFiles, Problem, Reach, Service, ServiceContext};
use inhost_common::tls::{read_certificate, server_config};
use inhost_common::users::{Source, ThreadAuthenticator};
use inhost_common::{Admission, AdmissionLimits, Transport, state_folder};
use inhost_socket::{Host, Task};
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsAcceptor;
use tracing::{error, info, warn};

use crate::backend::Backend;
use crate::client::Client;
use crate::codec::Limits;
use crate::machine::Shares;
use crate::queue::{Queue, QueueConfig};
use crate::remote::{Dial, Remote};
use crate::runner::{Local, LocalConfig};
use crate::server::{LOG, PORT, Server, config, sessions};
use crate::slurm::{Slurm, SlurmConfig};
use crate::store::{LOCAL, RunLock, Store};

/// How often it is seen whether another host still runs the jobs.
const LOOK_AGAIN: inhost_base::Duration = inhost_base::Duration::from_secs(1);
/// How long the end of a host waits for cancelled jobs: longer than they have between TERM and KILL.
const FINISH: Duration = Duration::from_secs(7);
const FINISH_STEP: Duration = Duration::from_millis(20);

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(64, 8, 600);

/// `[jobs]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false: its users run programs here.
    pub enabled: bool,
    /// The folder of the queue. Default `~/.local/state/inhost/jobs`.
    pub folder: Option<PathBuf>,
    /// Its port. 0: jobs come from this host alone. Default 71.
    pub port: u16,
    /// Certificate chain and key, in PEM.
    pub certificate: Option<PathBuf>,
    /// See `certificate`.
    pub key: Option<PathBuf>,
    /// Whether passwords may come without TLS, where there is no certificate. Default false.
    pub cleartext: bool,
    /// Jobs that run at a time. Default 4.
    pub slots: usize,
    /// Jobs of one user that run at a time. Default 4.
    pub slots_per_user: usize,
    /// Jobs of one user that are not over. Default 2000.
    pub jobs_per_user: u64,
    /// Octets of output that are kept for one user. Default 1 GiB.
    pub output_bytes_per_user: u64,
    /// Days that a job is kept after its end. Default 14.
    pub keep_days: u64,
    /// Jobs that are kept after their end. Default 10000.
    pub keep_jobs: u64,
    /// Limits of jobs that say none. Default: 16 MiB of output.
    pub job_limits: Limits,
    /// Other places to which jobs may go, by the name that `inhost job submit --to` has.
    pub places: BTreeMap<String, Place>,
    /// How many callers it takes. Default: 64 sessions, 8 of one peer, 600 connections of one peer in a minute; each request of the client is a connection.
    pub limits: service::Limits,
}

/// A place to which jobs may go.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Place {
    /// A cluster with Slurm, whose nodes see the queue's folder. Jobs run there as the user of this host.
    Slurm {
        /// More arguments of `sbatch`, such as `--partition=long`.
        #[serde(default)]
        options: Vec<String>,
        /// Jobs that are there at a time, waiting or running. Default 10000.
        #[serde(default = "place_slots")]
        slots: usize,
    },
    /// Another inhost that takes jobs.
    Host(HostPlace),
}

/// Another inhost that takes jobs.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct HostPlace {
    /// Its name or address.
    pub host: String,
    /// Its port. Default 71.
    #[serde(default = "place_port")]
    pub port: u16,
    /// The user there who all these jobs belong to.
    pub user: String,
    /// The file of the user's password.
    pub password_file: PathBuf,
    /// Certificates that are trusted, in PEM. Default: the system's.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Whether the password goes out without TLS. Default false.
    #[serde(default)]
    pub cleartext: bool,
    /// Jobs that are there at a time, waiting or running. Default 10000.
    #[serde(default = "place_slots")]
    pub slots: usize,
}

fn place_slots() -> usize {
    10_000
}
fn place_port() -> u16 {
    PORT
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            folder: None,
            port: PORT,
            certificate: None,
            key: None,
            cleartext: false,
            slots: 4,
            slots_per_user: 4,
            jobs_per_user: 2000,
            output_bytes_per_user: 1 << 30,
            keep_days: 14,
            keep_jobs: 10_000,
            job_limits: Limits { output_bytes: Some(16 << 20), ..Limits::default() },
            places: BTreeMap::new(),
            limits: service::Limits::default(),
        }
    }
}

impl Section {
    fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or(Jobs::NAME, LIMITS)
    }
    /// The folder of the queue.
    pub fn folder(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| state_folder("jobs"))
    }
    /// What the queue allows.
    pub fn queue(&self) -> QueueConfig {
        let mut config = QueueConfig::default();
        (config.quotas.jobs, config.quotas.output_bytes) = (self.jobs_per_user, self.output_bytes_per_user);
        config.retention.age_s = self.keep_days.saturating_mul(86_400);
        config.retention.jobs = self.keep_jobs;
        config.places = self.places.keys().cloned().collect();
        config
    }
}

/// The running queue.
pub struct Jobs {
    queue: Rc<Queue>,
    local: Rc<Local>,
    doors: Doors,
    port: u16,
    is_secure: bool,
    host: Host,
    limits: Limits,
    places: BTreeMap<String, HostPlace>,
    loops: RefCell<Vec<Task<()>>>,
    turn: Rc<Turn>,
}

/// The right to run the jobs of a queue. While another host has it, as during an upgrade, it is waited for; a host that goes
/// down gives it up, and the jobs that run go on.
struct Turn {
    host: Host,
    store: Store,
    lock: RefCell<Option<RunLock>>,
}

impl Turn {
    /// Runs `task` while the right is this host's.
    async fn runs(self: Rc<Self>, task: impl Future<Output = ()>) {
        let over = async {
            self.host.draining().await;
            self.lock.take();
        };
        let turn = async {
            self.comes().await;
            task.await;
        };
        or(over, turn).await;
    }
    async fn comes(&self) {
        let mut is_told = false;
        while self.lock.borrow().is_none() {
            match self.store.lock() {
                Ok(lock) => {
                    self.lock.replace(Some(lock));
                    return;
                }
                Err(why) if !is_told => warn!(target: "jobs", "nothing is run yet: {why}"),
                Err(_) => {}
            }
            is_told = true;
            self.host.sleep(LOOK_AGAIN).await;
        }
    }
}

/// How a host is reached that takes jobs: as a user, by connections.
pub type Way = (Client, Rc<dyn Dial>);

impl Jobs {
    /// The queue, for the host's own commands and its operators.
    pub fn queue(&self) -> Rc<Queue> {
        self.queue.clone()
    }
    /// Hands jobs to other hosts from now on, as `way` reaches them.
    ///
    /// # Errors
    /// Those of `way`.
    pub fn reach<E>(&self, way: impl Fn(&HostPlace) -> Result<Way, E>) -> Result<(), E> {
        for (name, place) in &self.places {
            let (client, dial) = way(place)?;
            let clock = Rc::new(self.host.clone());
            let remote = Remote::new(client, dial, clock, self.queue.store.clone(), self.limits);
            self.run(name, Rc::new(remote), shares(place.slots, place.slots));
        }
        Ok(())
    }
    fn run(&self, name: &str, backend: Rc<dyn Backend>, shares: Shares) {
        let (queue, name) = (self.queue.clone(), name.to_owned());
        self.in_turn(async move { queue.run(&name, backend, shares).await });
    }
    fn in_turn(&self, task: impl Future<Output = ()> + 'static) {
        let task = self.host.spawn(self.turn.clone().runs(task));
        self.loops.borrow_mut().push(task);
    }
}

fn shares(slots: usize, slots_per_user: usize) -> Shares {
    let mut shares = Shares::default();
    (shares.slots, shares.slots_per_user) = (slots, slots_per_user);
    shares
}

impl Service for Jobs {
    const NAME: &'static str = "jobs";
    type Section = Section;
    type Prepared = Option<TlsAcceptor>;

    fn check(section: &Section) -> Result<(), Problem> {
        section.limits()?;
        let is_secure = section.certificate.is_some() && section.key.is_some();
        if section.certificate.is_some() != section.key.is_some() {
            return Err(Problem::usage("jobs.certificate and jobs.key go together"));
        }
        if section.enabled && section.port != 0 && !is_secure && !section.cleartext {
            let expected =
                "passwords need jobs.certificate and jobs.key; jobs.cleartext = true allows them without";
            return Err(Problem::setting("jobs.port", section.port, expected));
        }
        if section.slots == 0 || section.slots > 256 {
            return Err(Problem::setting("jobs.slots", section.slots, "give 1 to 256"));
        }
        for (name, place) in &section.places {
            let (Place::Slurm { slots, .. } | Place::Host(HostPlace { slots, .. })) = place;
            if *slots == 0 {
                return Err(Problem::setting("jobs.places.slots", slots, "give 1 or more"));
            }
            let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
            if name == LOCAL || name.is_empty() || !name.chars().all(is_plain) {
                let expected = "a name of letters, digits, -, _ and . that is not \"local\"";
                return Err(Problem::setting("jobs.places", name, expected));
            }
        }
        Ok(())
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(section: &Section, _: &HostFiles) -> Result<Option<TlsAcceptor>, Problem> {
        let (Some(certificate), Some(key)) = (&section.certificate, &section.key) else { return Ok(None) };
        let (chain, key) = read_certificate(Self::NAME, certificate, key)?;
        let config =
            server_config(&chain, &key).map_err(|error| Problem::operation(format!("jobs: {error}")))?;
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }
    fn start(section: &Section, tls: Option<TlsAcceptor>, context: &ServiceContext) -> Result<Jobs, Problem> {
        let failed = |why: String| Problem::operation(format!("jobs: {why}"));
        let store = Store::open(&section.folder()).map_err(|error| failed(error.to_string()))?;
        let host = context.host.clone();
        let turn = Turn { host: host.clone(), store: store.clone(), lock: RefCell::default() };
        let queue = Rc::new(Queue::new(store, section.queue(), Rc::new(host.clone()), context.unix_time));
        let admission = Admission::sharing(section.limits()?, &context.denials);
        let doors = Doors::new(Self::NAME, &host, &context.callers, admission, LOG);
        let is_secure = tls.is_some();
        if section.port != 0 {
            let users = ThreadAuthenticator::start(Source::File(context.files.users()?.to_owned()))?;
            let server = Server { queue: queue.clone(), users: Rc::new(users), config: config(), tls };
            doors.listen(section.port, sessions(&host, server))?;
        }
        let local = LocalConfig::new(context.unix_time);
        let limits = section.job_limits.or(local.limits);
        let local = Rc::new(Local::new(LocalConfig { limits, ..local }));
        let mut jobs = Jobs {
            queue,
            local: local.clone(),
            doors,
            port: section.port,
            is_secure,
            host,
            limits,
            places: BTreeMap::new(),
            loops: RefCell::default(),
            turn: Rc::new(turn),
        };
        jobs.in_turn(jobs.queue.clone().deliver());
        jobs.run(LOCAL, local, shares(section.slots, section.slots_per_user));
        for (name, place) in &section.places {
            match place {
                Place::Host(place) => {
                    jobs.places.insert(name.clone(), place.clone());
                }
                Place::Slurm { options, slots } => {
                    let mut config = SlurmConfig::new(context.unix_time);
                    (config.options, config.limits) = (options.clone(), limits);
                    jobs.run(name, Rc::new(Slurm::new(config)), shares(*slots, *slots));
                }
            }
        }
        Ok(jobs)
    }
    fn reload(&self, section: &Section, _: Option<TlsAcceptor>) -> Result<(), Problem> {
        self.doors.admission().set_limits(section.limits()?);
        self.queue.set_config(section.queue());
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        let is_at_once = matches!(key, "jobs_per_user" | "output_bytes_per_user" | "keep_days" | "keep_jobs");
        (is_at_once || key.starts_with("limits")).then_some("at once")
    }
    fn describe(&self) -> Description {
        let scheme = if self.is_secure { "" } else { "http://" };
        let page =
            move |at: std::net::SocketAddr| format!("inhost job list --link user --server {scheme}NAME@{at}");
        let reach = Reach::new(Transport::Tcp, self.port, "submit jobs", page);
        let reach = if self.port == 0 { Vec::new() } else { vec![reach] };
        Description { summary: format!("port {}", self.port), reach, notice: None }
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
    #[allow(clippy::disallowed_methods, reason = "the host has ended, and jobs are the system's")]
    fn finish(&self) {
        let held = self.turn.lock.take();
        let Ok(_lock) = held.map_or_else(|| self.queue.store.lock(), Ok) else { return };
        // What was cancelled last may not have been told yet, and no other host may come to tell it.
        let until = Instant::now() + FINISH;
        loop {
            match block_on(self.queue.end_cancelled(LOCAL, &*self.local)) {
                Ok(0) => return,
                Ok(_) if Instant::now() < until => std::thread::sleep(FINISH_STEP),
                Ok(left) => return info!(target: "jobs", left, "cancelled jobs have not ended yet"),
                Err(problem) => return error!(target: "jobs", "{problem}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_the_clear_have_to_be_allowed() {
        let mut section = Section { enabled: true, folder: Some("/q".into()), ..Section::default() };
        assert!(Jobs::check(&Section::default()).is_ok());
        assert!(Jobs::check(&section).unwrap_err().to_string().contains("jobs.port"));
        section.cleartext = true;
        assert!(Jobs::check(&section).is_ok());
        section.key = Some("/k".into());
        assert!(Jobs::check(&section).is_err());
    }
}
