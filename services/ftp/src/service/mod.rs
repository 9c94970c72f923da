//! The FTP server as a service of a host: its users' folders, its certificate, its log.

mod section;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use inhost_base::Duration;
use inhost_common::service::{Description, Doors, HostFiles, Problem, Reach, Service, ServiceContext};
use inhost_common::storage::{Folder, Quotas, StorageResult};
use inhost_common::tls::read_certificate;
use inhost_common::users::{Authenticate, Source, ThreadAuthenticator, Users, Verdict};
use inhost_common::{Admission, Callers, LocalFuture, SessionEvent, Transport, session_log};
use inhost_socket::{Host, Stream};
use tracing::{info, warn};

use crate::codec::UnixTime;
use crate::driver::{
    Entry, Granted, HostNetwork, PassivePorts, Services, TlsServer, Transferred, serve_session,
};
use crate::server::{Rights, ServerConfig, TlsPolicy};
use section::may_write;
pub use section::{FtpUser, Section};

/// Writes the log of sessions.
const LOG: fn(SessionEvent<'_>) = session_log!("ftp");
/// How often folders are looked through for unfinished uploads that have expired.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Names that mean nobody in particular (RFC 1635).
const ANONYMOUS: [&str; 2] = ["anonymous", "ftp"];

/// Current configuration of users.
pub struct Places {
    config: ServerConfig,
    tls: Option<TlsServer>,
    anonymous: Option<Place>,
    shared: Option<Place>,
    users: BTreeMap<String, Place>,
    /// How long an unfinished upload is kept; for ever when zero.
    partial_time: std::time::Duration,
}

impl Places {
    fn all(&self) -> impl Iterator<Item = &Place> {
        self.users.values().chain(&self.shared)
    }
}

#[derive(Clone)]
struct Place {
    folder: Folder,
    rights: Rights,
    quota_bytes: Option<u64>,
    rate_bytes_per_second: Option<u64>,
    account: Option<String>,
}

/// The running server.
pub struct Ftp {
    services: Rc<FtpServices>,
    doors: Doors,
    port: u16,
    implicit_port: u16,
}

struct FtpServices {
    host: Host,
    network: HostNetwork,
    ports: PassivePorts<HostNetwork>,
    callers: Callers,
    admission: Admission,
    quotas: Quotas,
    authenticator: ThreadAuthenticator,
    places: RefCell<Rc<Places>>,
    unix_time: fn() -> std::time::Duration,
}

impl Service for Ftp {
    const NAME: &'static str = "ftp";
    type Section = Section;
    type Prepared = Places;

    fn check(section: &Section) -> Result<(), Problem> {
        section.check()
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(section: &Section, files: &HostFiles) -> Result<Places, Problem> {
        let places = places(section)?;
        warn_of_unknown(section, files.users()?);
        Ok(places)
    }
    fn start(section: &Section, places: Places, context: &ServiceContext) -> Result<Ftp, Problem> {
        let host = &context.host;
        let users = Source::FileOrElse(context.files.users()?.to_owned(), Default::default());
        let authenticator = ThreadAuthenticator::start(users)?;
        let admission = Admission::sharing(section.limits()?, &context.denials);
        let doors = Doors::new(Self::NAME, host, &context.callers, admission.clone(), LOG);
        let network = HostNetwork::new(host).with_received_limit(section.upload_bytes()?);
        let services = Rc::new(FtpServices {
            ports: PassivePorts::new(Rc::new(network.clone()), section.ports()?, context.callers.clone()),
            callers: context.callers.clone(),
            network,
            admission,
            quotas: Quotas::default(),
            authenticator,
            places: RefCell::new(Rc::new(places)),
            host: host.clone(),
            unix_time: context.unix_time,
        });
        host.spawn(expire(services.clone())).detach();
        let (port, implicit_port) = (section.port, section.implicit_port);
        for (port, is_implicit) in [(port, false), (implicit_port, true)] {
            if is_implicit && port == 0 {
                continue;
            }
            let served = services.clone();
            doors.listen_to_all(port, move |stream, _| session(stream, served.clone(), is_implicit))?;
        }
        Ok(Ftp { services, doors, port, implicit_port })
    }
    fn reload(&self, section: &Section, places: Places) -> Result<(), Problem> {
        self.doors.admission().set_limits(section.limits()?);
        self.services.places.replace(Rc::new(places));
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        (!matches!(key, "enabled" | "port" | "implicit_port" | "passive_ports")).then_some("for new sessions")
    }
    fn describe(&self) -> Description {
        let implicit = match self.implicit_port {
            0 => String::new(),
            port => format!(", with TLS from the start port {port}"),
        };
        let purpose = "list files; ftp://USER@... for a user's own";
        let curl = |at| format!("curl ftp://{at}/");
        Description {
            summary: format!("port {}{implicit}", self.port),
            reach: vec![Reach::new(Transport::Tcp, self.port, purpose, curl)],
            notice: None,
        }
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
}

/// Somebody with a folder and no password cannot log in, which nobody would see from the settings.
fn warn_of_unknown(ftp: &Section, path: &Path) {
    // An unreadable file is reported at each login attempt.
    let Ok(users) = Users::read_or_empty(path) else { return };
    for user in &ftp.user {
        if users.accounts().all(|account| account.name != user.name) {
            let name = &user.name;
            warn!(target: "ftp", "[[ftp.user]] {name:?} has no password; inhost user add {name}");
        }
    }
}

fn places(ftp: &Section) -> Result<Places, Problem> {
    let open = |path: &Path| {
        Folder::open(path)
            .map_err(|e| Problem::operation(format!("ftp: cannot open the folder {}: {e}", path.display())))
    };
    let place = |path: &Path, write: bool| {
        let folder = open(path)?;
        Ok::<_, Problem>(Place {
            folder: if write { folder } else { folder.read_only() },
            rights: Rights { write },
            quota_bytes: None,
            rate_bytes_per_second: None,
            account: None,
        })
    };
    let mut users = BTreeMap::new();
    for user in &ftp.user {
        let mut own = place(&user.root, may_write("ftp.user.rights", &user.rights)?)?;
        own.quota_bytes = user.quota_bytes()?;
        own.rate_bytes_per_second = user.rate_bytes()?;
        own.account.clone_from(&user.account);
        users.insert(user.name.clone(), own);
    }
    let write = may_write("ftp.rights", &ftp.rights)?;
    let tls = match (&ftp.certificate, &ftp.key) {
        (Some(certificate), Some(key)) => Some(certificate_of(certificate, key)?),
        _ => None,
    };
    Ok(Places {
        config: server_config(ftp, tls.is_some())?,
        tls,
        anonymous: ftp.anonymous.as_deref().map(|root| place(root, false)).transpose()?,
        shared: ftp.root.as_deref().map(|root| place(root, write)).transpose()?,
        users,
        partial_time: std::time::Duration::from_secs(ftp.partial_days.saturating_mul(24 * 60 * 60)),
    })
}

fn certificate_of(certificate: &Path, key: &Path) -> Result<TlsServer, Problem> {
    let (chain, key) = read_certificate("ftp", certificate, key)?;
    TlsServer::from_pem(&chain, &key)
        .map_err(|e| Problem::operation(format!("ftp: {}: {e}", certificate.display())))
}

fn server_config(ftp: &Section, has_certificate: bool) -> Result<ServerConfig, Problem> {
    Ok(ServerConfig {
        tls: match (ftp.tls_required()?, has_certificate) {
            (true, _) => TlsPolicy::Required,
            (false, true) => TlsPolicy::Offered,
            (false, false) => TlsPolicy::Off,
        },
        resumption_required: ftp.resumption,
        third_party: ftp.third_party,
        passive_address: ftp.passive_address,
        idle_time: Duration::from_secs(ftp.idle_min.max(1).saturating_mul(60)),
        ..ServerConfig::default()
    })
}

async fn session(stream: Stream, services: Rc<FtpServices>, is_implicit: bool) {
    // A reply does not wait until the client has acknowledged the one before it; those that are made together leave together.
    stream.set_nagle(false);
    let (local, peer) = (stream.local(), stream.remote());
    let config = Rc::new(services.places.borrow().config.clone());
    serve_session(stream, local, peer, is_implicit, config, services).await;
}

/// Removes unfinished uploads that nobody has gone on with, now and from time to time.
async fn expire(services: Rc<FtpServices>) {
    loop {
        let places = services.places.borrow().clone();
        let written_before = (services.unix_time)().saturating_sub(places.partial_time);
        for place in places.all().filter(|place| place.rights.write && !places.partial_time.is_zero()) {
            let folder = match place.clone().limited(&services.quotas) {
                Ok(folder) => folder,
                Err(error) => {
                    warn!(target: "ftp", "unfinished uploads cannot be looked for: {error}");
                    continue;
                }
            };
            let removed = folder.expire(UnixTime::since_1970(written_before)).await;
            if removed > 0 {
                info!(target: "ftp", removed, "unfinished uploads expired");
            }
        }
        services.host.sleep(EXPIRY_INTERVAL).await;
    }
}

impl Services for FtpServices {
    type Clock = Host;
    type Network = HostNetwork;
    fn clock(&self) -> &Host {
        &self.host
    }
    fn unix_time(&self) -> UnixTime {
        UnixTime::since_1970((self.unix_time)())
    }
    fn network(&self) -> &HostNetwork {
        &self.network
    }
    fn ports(&self) -> &PassivePorts<HostNetwork> {
        &self.ports
    }
    fn callers(&self) -> &Callers {
        &self.callers
    }
    fn admission(&self) -> &Admission {
        &self.admission
    }
    fn tls(&self) -> Option<TlsServer> {
        self.places.borrow().tls.clone()
    }
    fn log_in(&self, user: String, password: String) -> LocalFuture<Entry> {
        let places = self.places.borrow().clone();
        let quotas = self.quotas.clone();
        if ANONYMOUS.contains(&&*user)
            && let Some(place) = places.anonymous.clone()
        {
            return Box::pin(std::future::ready(place.entry(&quotas)));
        }
        let verdict = self.authenticator.authenticate(user, password);
        Box::pin(async move {
            match verdict.await {
                Verdict::Granted(account) => {
                    match places.users.get(&account.name).or(places.shared.as_ref()) {
                        Some(place) => place.clone().entry(&quotas),
                        None => Entry::Denied,
                    }
                }
                Verdict::Denied => Entry::Denied,
                Verdict::Busy => Entry::Busy,
                Verdict::Unavailable(why) => Entry::Unavailable(why),
            }
        })
    }
    fn record(&self, event: SessionEvent<'_>) {
        LOG(event);
    }
    // What a client named is a field: it is quoted and its control octets are escaped.
    fn record_transfer(&self, Transferred { peer, user, what, outcome }: Transferred<'_>) {
        match outcome {
            Ok(bytes) => info!(target: "ftp", %peer, user, what, bytes, "transferred"),
            Err(why) => info!(target: "ftp", %peer, user, what, "transfer failed: {why}"),
        }
    }
}

impl Place {
    /// The place for one session. What is used of a quota belongs to the folder, so that it is the same for all
    /// sessions, whenever the file was read that tells the limit.
    fn entry(self, quotas: &Quotas) -> Entry {
        let (rights, account) = (self.rights, self.account.clone());
        let rate_bytes_per_second = self.rate_bytes_per_second;
        match self.limited(quotas) {
            Ok(folder) => {
                let storage = Rc::new(folder);
                Entry::Granted(Granted { storage, rights, account, rate_bytes_per_second })
            }
            Err(error) => Entry::Unavailable(format!("the quota cannot be had: {error}")),
        }
    }
    /// The folder with its quota.
    fn limited(self, quotas: &Quotas) -> StorageResult<Folder> {
        match self.quota_bytes {
            None => Ok(self.folder),
            Some(bytes) => self.folder.limited(quotas, bytes),
        }
    }
}
