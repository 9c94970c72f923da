//! A service of a host, and what a host and its services tell each other.
//!
//! A host keeps a registry of [`Service`]s and knows nothing else of them: it reads the section of each, starts those that
//! are enabled, reloads them, shows what they say of themselves and their sessions, and lets them finish.

mod description;
mod doors;
mod endpoint;
mod limits;
mod operator;
mod problem;
mod sessions;
mod size;

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use inhost_base::Endpoint;
use inhost_socket::Host;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::admission::ServiceSession;
pub use description::{Description, Notice, Reach};
pub use doors::Doors;
pub use endpoint::endpoint;
pub use limits::Limits;
pub use operator::{Line, NoOperator, Operator, Order};
pub use problem::Problem;
pub use sessions::Sessions;
pub use size::size_bytes;

use crate::{Callers, Denials};

/// A service that a host can run.
///
/// The host calls, in this order: [`check`](Service::check) whenever it has read the configuration;
/// [`prepare`](Service::prepare) and [`start`](Service::start) if the section [is enabled](Service::is_enabled); at each
/// reload `prepare` on a thread that may wait for the disk, then [`reload`](Service::reload) if that succeeded; at the end, once connections
/// have closed, [`finish`](Service::finish). Dropping a service ends it.
pub trait Service: Sized + 'static {
    /// The name of the section in `host.toml`, of the log's target and in the banner.
    const NAME: &'static str;
    /// The section. Its keys refuse what they do not know.
    type Section: Serialize + DeserializeOwned + Default + Clone + PartialEq + Debug + Send + 'static;
    /// Resources read from disk: folders, certificates.
    type Prepared: Send + 'static;

    /// Refuses a section that cannot be acted on.
    fn check(section: &Self::Section) -> Result<(), Problem>;
    /// Whether the section wants the service to run.
    fn is_enabled(section: &Self::Section) -> bool;
    /// Opens and reads what the section names. It may wait for the disk.
    fn prepare(section: &Self::Section, files: &HostFiles) -> Result<Self::Prepared, Problem>;
    /// Starts the service.
    fn start(
        section: &Self::Section,
        prepared: Self::Prepared,
        context: &ServiceContext,
    ) -> Result<Self, Problem>;
    /// Takes over what can change while the service runs, or leaves all as it was.
    fn reload(&self, section: &Self::Section, prepared: Self::Prepared) -> Result<(), Problem>;
    /// When a change of `key`, without its section's name, takes effect in a running service: "at once", "for new
    /// sessions". `None` is after a restart.
    fn effect(key: &str) -> Option<&'static str>;
    /// The service's description in the banner.
    fn describe(&self) -> Description;
    /// Its doors. An operator can close them, and open them again.
    fn doors(&self) -> &Doors;
    /// Sessions that exist now, for `inhost netstat` and finger.
    fn sessions(&self) -> Vec<ServiceSession> {
        self.doors().admission().list(Self::NAME)
    }
    /// Ends the session with this [number](ServiceSession::number); false when there is none, or it cannot be ended.
    fn end_session(&self, number: u64) -> bool {
        self.doors().admission().end(number)
    }
    /// The host's connections have closed. May wait for what sessions left behind.
    fn finish(&self) {}
}

/// Files of the host that several services read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostFiles {
    /// Whether the configuration names the file of users, rather than it being the user's own.
    pub are_users_named: bool,
    /// Users and password hashes; `None` when none is named and no home folder is known.
    pub users: Option<PathBuf>,
    /// Names and addresses, as `/etc/hosts`.
    pub hosts: PathBuf,
}

impl HostFiles {
    /// The file of users.
    pub fn users(&self) -> Result<&Path, Problem> {
        let unknown = "no home folder is known; name the users file with --users FILE";
        self.users.as_deref().ok_or_else(|| Problem::usage(unknown))
    }
}

/// Context of a service: the host and its shared resources.
pub struct ServiceContext {
    /// Its sockets, clock and tasks.
    pub host: Host,
    /// Watches descriptors of the operating system.
    #[cfg(feature = "runtime")]
    pub reactor: inhost_runtime::Reactor,
    /// Outer callers of what gateways forward.
    pub callers: Callers,
    /// Wrong passwords, which count at all services together.
    pub denials: Denials,
    /// Sessions of all services.
    pub sessions: Sessions,
    /// Files of the host.
    pub files: HostFiles,
    /// DNS servers of the host.
    pub resolvers: Resolvers,
    /// The program's name, for commands that a user can type.
    pub program: String,
    /// Descriptors that a program started by a service may have open; `None` is as many as the host.
    pub descriptor_limit: Option<u64>,
    /// The host's interfaces and sockets as text, the part that a visitor may see.
    pub netstat: Rc<dyn Fn() -> String>,
    /// What operators can do, and the part of it that a visitor may see.
    pub operator: Rc<dyn Operator>,
    /// Since the start of 1970, UTC.
    pub unix_time: fn() -> Duration,
    /// Octets that nobody else knows.
    pub entropy: fn() -> io::Result<[u8; 32]>,
}

impl ServiceContext {
    /// Octets that nobody else knows.
    pub fn entropy(&self) -> Result<[u8; 32], Problem> {
        (self.entropy)().map_err(|e| Problem::operation(format!("the system has no entropy: {e}")))
    }
}

/// DNS servers of a host.
#[derive(Clone, Debug, Default)]
pub struct Resolvers {
    /// Name servers.
    pub servers: Vec<Endpoint>,
    /// Whether those are configured, rather than the system's.
    pub is_configured: bool,
    /// Whether a link's address comes by DHCP, and name servers may come with it.
    pub may_be_leased: bool,
}
