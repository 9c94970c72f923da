//! How a host is described and built.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use inhost_base::{Cidr, Duration, Instant, Ipv4Addr, Ipv6Addr, LinkId};
use inhost_link::{Driver, Kind, OpenError, Spec, SpecError};
use inhost_runtime::{AddLinkError, Recording, Runtime, interface, with_spec};
use inhost_stack::{DuplicateDetection, InterfaceConfig, Route, RouteOrigin, StackConfig};

use super::Host;
#[cfg(any(feature = "control", feature = "user"))]
use super::beside;
use super::beside::Found;
use super::keeper::Keeper;

/// For how long connections may close once the last handle is gone.
const LINGER: Duration = Duration::from_secs(1);
/// For how long a host's own thread looks again after something happened. Waking a thread on another core takes as long.
const BUSY_POLL: Duration = Duration::from_micros(50);

/// Describes a host; see [`Host::builder`].
///
/// ```no_run
/// use inhost::{Host, net::TcpStream};
///
/// let host = Host::builder().link("tun:in0,address=10.9.0.2/24,host=10.9.0.1/24").start()?;
/// let stream = host.block_on(TcpStream::connect("10.9.0.1:22"))?;
/// # std::io::Result::Ok(())
/// ```
#[must_use = "nothing happens before start"]
pub struct Builder {
    plan: Plan,
}

/// What a host is built from, on its own thread.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) linger: Duration,
    /// Default: [`BUSY_POLL`] on a thread of its own.
    busy_poll: Option<Duration>,
    record: Option<PathBuf>,
    record_memory: Option<usize>,
    #[cfg(feature = "control")]
    control: Option<PathBuf>,
    config: StackConfig,
    links: Vec<Link>,
    #[cfg(feature = "names")]
    nameservers: Vec<std::net::IpAddr>,
    /// The runtime whose timers the host's tasks may use.
    #[cfg(feature = "tokio")]
    pub(super) tokio: Option<tokio::runtime::Handle>,
}

/// A link as it was asked for.
enum Link {
    Spec(String),
    Driver { driver: Box<dyn Driver>, config: Configure },
    Any(Box<dyn Driver>),
}

/// Changes the configuration that fits a driver.
type Configure = Box<dyn FnOnce(InterfaceConfig) -> InterfaceConfig + Send>;

/// A host whose links are up, on this thread.
pub(super) struct Built {
    pub(super) runtime: Runtime,
    /// Ends the connections of a `user` link when it is dropped.
    #[cfg(feature = "user")]
    gateways: Vec<inhost_gateway::Running>,
    /// What belongs to the host is found until it is dropped.
    _found: Found,
    /// Ends the file when it is dropped.
    _recording: Option<std::rc::Rc<Recording>>,
    #[cfg(feature = "control")]
    control: Option<std::rc::Rc<inhost_runtime::control::Server>>,
    #[cfg(feature = "names")]
    nameservers: Vec<std::net::IpAddr>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            plan: Plan {
                name: "inhost".to_owned(),
                linger: LINGER,
                busy_poll: None,
                record: None,
                record_memory: None,
                #[cfg(feature = "control")]
                control: None,
                config: StackConfig::default(),
                links: Vec::new(),
                #[cfg(feature = "names")]
                nameservers: Vec::new(),
                #[cfg(feature = "tokio")]
                tokio: None,
            },
        }
    }
}

impl Builder {
    /// Adds a link by its SPEC, `kind[:device][,key=value]…`: see [`Spec`]. Kinds need their feature: `tun` and `tap` the
    /// feature `tun`, `user` and `serial` those of their name.
    pub fn link(mut self, spec: impl Into<String>) -> Builder {
        self.plan.links.push(Link::Spec(spec.into()));
        self
    }
    /// Adds a link on a driver of one's own, or one end of [`inhost_link::memory::pair`]. `configure` gives it addresses and
    /// gateways.
    ///
    /// ```
    /// use inhost::{Host, link::memory};
    ///
    /// // The ends of this link live on two threads, which wake each other.
    /// let config = memory::Config { doorbell: true, ..memory::Config::default() };
    /// let (near, far) = memory::pair(&config)?;
    /// let near = Host::builder().driver(near, |link| link.with_address("10.9.0.1/24".parse().unwrap())).start()?;
    /// let far = Host::builder().driver(far, |link| link.with_address("10.9.0.2/24".parse().unwrap())).start()?;
    /// let listener = far.block_on(far.listen("10.9.0.2:80"))?;
    /// let stream = near.block_on(near.connect("10.9.0.2:80"))?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn driver(
        mut self,
        driver: impl Driver + 'static,
        configure: impl FnOnce(InterfaceConfig) -> InterfaceConfig + Send + 'static,
    ) -> Builder {
        self.plan.links.push(Link::Driver { driver: Box::new(driver), config: Box::new(configure) });
        self
    }
    /// Adds a link on which every destination is this host's, for [`Host::listen_any`]: the host stands in for the whole
    /// network behind the link, and answers pings to any address. All that the host sends leaves by it.
    pub fn any_address(mut self, driver: impl Driver + 'static) -> Builder {
        self.plan.links.push(Link::Any(Box::new(driver)));
        self
    }
    /// Configures the stack: memory, TCP, IP.
    pub fn config(mut self, config: StackConfig) -> Builder {
        self.plan.config = config;
        self
    }
    /// Sets the memory of packets and queues. Default: 64 MiB.
    pub fn memory(mut self, bytes: usize) -> Builder {
        self.plan.config.memory_limit_bytes = bytes;
        self
    }
    /// Asks this name server, in the order of the calls. Default: what the links know of, else the system's servers
    /// (`/etc/resolv.conf`).
    #[cfg(feature = "names")]
    pub fn nameserver(mut self, address: std::net::IpAddr) -> Builder {
        self.plan.nameservers.push(address);
        self
    }
    /// Names the host: its thread, and the host in captures and views. Default: `inhost`.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.plan.name = name.into();
        self
    }
    /// Writes the heads of all frames on the host's links to a new file at `path`, as pcapng, with the host's events as comments:
    /// for Wireshark, `inhost peep` and `inhost explain`. The file is whole when the host has gone down, and grows every 20 ms until
    /// then; where the disk fails it ends, and [`Host::record_failure`] says why. The heads have 112 bytes each: addresses, ports
    /// and flags, but little of the data. [`Host::recorded`] gives the latest of them without a file.
    ///
    /// ```
    /// use inhost::{Host, device};
    ///
    /// let path = std::env::temp_dir().join(format!("inhost-record-{}.pcapng", std::process::id()));
    /// let (packets, driver) = device::packets(device::Config::default())?;
    /// let host = Host::builder()
    ///     .driver(driver, |link| link.with_address("10.9.0.1/24".parse().unwrap()))
    ///     .record(&path)
    ///     .start()?;
    /// let socket = host.block_on(host.udp("0.0.0.0:0"))?;
    /// host.block_on(socket.send_to(b"a datagram", "10.9.0.2:7"))?;
    /// inhost::block_on(packets.receive()).expect("the host is there");
    /// host.block_on(host.shutdown());
    /// assert!(std::fs::metadata(&path)?.len() > 100);
    /// # std::fs::remove_file(path)?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn record(mut self, path: impl Into<PathBuf>) -> Builder {
        self.plan.record = Some(path.into());
        self
    }
    /// Sets the memory of the flight recorder. Default: 1 MiB, which holds some 8,000 frames.
    pub fn record_memory(mut self, bytes: usize) -> Builder {
        self.plan.record_memory = Some(bytes);
        self
    }
    /// Opens a control socket at `path`, by which the command `inhost` looks at the host: `inhost netstat --via PATH`, `top`, `peep`,
    /// `explain` and `record`. Only this user and root may connect; others must not be able to write to the
    /// folder. Programs use [`control::Client`](crate::control::Client). A client may open sockets of the host, and may ask it to go down as
    /// [`Host::shutdown`] does.
    ///
    /// ```
    /// use inhost::Host;
    ///
    /// let folder = std::env::temp_dir();
    /// let path = folder.join(format!("inhost-control-{}.sock", std::process::id()));
    /// let host = Host::builder().name("proxy").control(&path).start()?;
    /// let listener = host.block_on(host.listen("127.0.0.1:80"))?;
    /// // In a terminal: inhost netstat --via PATH
    /// assert!(path.exists());
    /// # drop(listener);
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "control")]
    pub fn control(mut self, path: impl Into<PathBuf>) -> Builder {
        self.plan.control = Some(path.into());
        self
    }
    /// For how long connections may close, and deliver what was written, once the last handle of the host is dropped; then
    /// they are reset. Default: one second.
    pub fn linger(mut self, limit: std::time::Duration) -> Builder {
        self.plan.linger = Duration::from_nanos(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        self
    }
    /// Has the host's thread look again for so long after something happened, instead of sleeping: what comes next is handled at
    /// once, and is not preceded by the system's waking of a thread. It does so while what comes next has come within this
    /// time; after a longer wait it sleeps at once, until the next short one, and while more than 1 Gbit/s is received. The
    /// processor is busy meanwhile. Default: 50 µs with [`Builder::start`], zero with `within_tokio`. Where the process has
    /// one core only this is zero always, since whom the host waits for would have to wait for it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let host = inhost::Host::builder().busy_poll(Duration::from_micros(50)).start()?;
    /// let listener = host.block_on(host.listen("127.0.0.1:7"))?;
    /// assert!(host.block_on(host.connect("127.0.0.1:7")).is_ok());
    /// # drop(listener);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn busy_poll(mut self, limit: std::time::Duration) -> Builder {
        self.plan.busy_poll = Some(Duration::from_nanos(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)));
        self
    }
    /// Builds the host within the tokio runtime of this thread. Nothing happens unless the [`HostTask`](crate::HostTask) is
    /// polled: spawn it on a `LocalSet`, or wait for it beside what uses the host.
    ///
    /// Streams that are used on this thread read from their connection and write to it, with neither a buffer nor another
    /// thread in between. They are still `Send`: on another thread they go on as those of [`Builder::start`] do.
    ///
    /// ```
    /// use inhost::{Host, net::{TcpListener, TcpStream}};
    ///
    /// #[tokio::main(flavor = "current_thread")]
    /// async fn main() -> std::io::Result<()> {
    ///     let (host, task) = Host::builder().within_tokio()?;
    ///     let work = host.scope(async {
    ///         let listener = TcpListener::bind("127.0.0.1:80").await?;
    ///         let stream = TcpStream::connect("127.0.0.1:80").await?;
    ///         assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    ///         std::io::Result::Ok(())
    ///     });
    ///     tokio::select! {
    ///         done = work => done,
    ///         ended = task => ended,
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Builder::start`].
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O enabled.
    #[cfg(feature = "tokio")]
    pub fn within_tokio(self) -> Result<(Host, super::HostTask), BuildError> {
        let (remote, keeper, task) = super::HostTask::start(self.plan)?;
        Ok((Host { remote, keeper: Arc::new(keeper) }, task))
    }
    /// Starts the host on a thread of its own. It is ready when this returns. Within a tokio runtime (and with the feature
    /// `tokio`) tasks on the host's thread may use that runtime's timers.
    ///
    /// # Errors
    /// When a link cannot be opened or configured, or the system gives no thread.
    pub fn start(self) -> Result<Host, BuildError> {
        let plan = Plan { busy_poll: self.plan.busy_poll.or(Some(BUSY_POLL)), ..self.plan };
        #[cfg(feature = "tokio")]
        let plan = Plan { tokio: tokio::runtime::Handle::try_current().ok(), ..plan };
        let (remote, keeper) = Keeper::start(plan)?;
        Ok(Host { remote, keeper: Arc::new(keeper) })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.plan.name)
            .field("links", &self.plan.links.len())
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Builds the host on this thread.
    pub(super) fn build(self) -> Result<Built, BuildError> {
        let mut runtime = Runtime::new(self.config).map_err(BuildError::System)?;
        let host = runtime.host().clone();
        let mut recording = inhost_record::Config::default();
        recording.host.clone_from(&self.name);
        if let Some(bytes) = self.record_memory {
            recording.memory_bytes = bytes;
        }
        runtime.record(&host, Some(recording));
        let recorder = runtime.recorder(&host);
        let recording = match (&recorder, &self.record) {
            (Some(recorder), Some(path)) => Some(
                Recording::start(&host, recorder, path)
                    .map_err(|error| BuildError::Record { path: path.clone(), error })?
                    .into(),
            ),
            _ => None,
        };
        let mut built = Built {
            _found: Found::new(&host, recorder, recording.clone()),
            _recording: recording,
            #[cfg(feature = "control")]
            control: None,
            runtime,
            #[cfg(feature = "user")]
            gateways: Vec::new(),
            #[cfg(feature = "names")]
            nameservers: self.nameservers,
        };
        if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
            built.runtime.set_busy_poll(self.busy_poll.unwrap_or_default());
        }
        for link in self.links {
            match link {
                Link::Spec(text) => built.add_spec(&text)?,
                Link::Driver { driver, config } => {
                    let fitting = interface("link", &*driver);
                    built.add_driver(config(fitting), driver)?;
                }
                Link::Any(driver) => built.add_any(driver)?,
            }
        }
        #[cfg(feature = "names")]
        built.set_resolver().map_err(BuildError::System)?;
        #[cfg(feature = "control")]
        if let Some(path) = self.control {
            built
                .open_control(&path, self.name)
                .map_err(|error| BuildError::Control { path: path.clone(), error })?;
        }
        Ok(built)
    }
}

impl Built {
    fn add(
        &mut self,
        config: InterfaceConfig,
        driver: Box<dyn Driver>,
        what: &str,
    ) -> Result<LinkId, BuildError> {
        let host = self.runtime.host().clone();
        let added = self.runtime.add_link(&host, config, driver);
        added.map_err(|error| BuildError::Add { link: what.to_owned(), error })
    }
    fn add_driver(&mut self, config: InterfaceConfig, driver: Box<dyn Driver>) -> Result<LinkId, BuildError> {
        let what = driver.describe();
        if driver.descriptor().is_none() && driver.deadline(Instant::ZERO).is_none() {
            return Err(BuildError::Silent(what));
        }
        self.add(config, driver, &what)
    }
    /// Adds a link whose every destination is the host's.
    fn add_any(&mut self, driver: Box<dyn Driver>) -> Result<(), BuildError> {
        let what = driver.describe();
        let mut config = interface("any", &*driver);
        config.any_address = true;
        config.answer_any_echo = true;
        config.duplicate_detection = DuplicateDetection::Off;
        config.accept_router_advertisements = false;
        let link = self.add_driver(config, driver)?;
        for everywhere in [Cidr::new(Ipv4Addr::UNSPECIFIED, 0), Cidr::new(Ipv6Addr::UNSPECIFIED, 0)] {
            let Ok(destination) = everywhere else { continue };
            let route =
                Route { destination, link, gateway: None, preference: 0, origin: RouteOrigin::Configured };
            let added = self.runtime.host().with_stack(|stack, _| stack.ip_mut().add_route(route));
            let refused =
                |error| BuildError::Add { link: what.clone(), error: AddLinkError::Configure(error) };
            added.map_err(refused)?;
        }
        Ok(())
    }
    fn add_spec(&mut self, text: &str) -> Result<(), BuildError> {
        let spec: Spec = text.parse().map_err(|error| BuildError::Spec { link: text.to_owned(), error })?;
        let missing = |feature| BuildError::Feature { link: text.to_owned(), feature };
        let (config, driver) = match spec.kind {
            Kind::Tun | Kind::Tap if !cfg!(feature = "tun") => return Err(missing("tun")),
            Kind::Serial if !cfg!(feature = "serial") => return Err(missing("serial")),
            #[cfg(not(feature = "user"))]
            Kind::User => return Err(missing("user")),
            #[cfg(feature = "user")]
            Kind::User => self.user(&spec).map_err(BuildError::System)?,
            Kind::Memory => return Err(BuildError::Memory),
            _ => {
                let driver = inhost_link::open(&spec).map_err(BuildError::Open)?;
                let name = spec.device.rsplit('/').next().unwrap_or(&spec.device);
                let mut config = interface(name, &*driver);
                config.duplicate_detection = DuplicateDetection::WhileInUse;
                (config, driver)
            }
        };
        self.add(with_spec(config, &spec), driver, text)?;
        Ok(())
    }
    /// Waits until a client of the control socket asks for the host's end.
    #[cfg(feature = "control")]
    pub(super) fn end_requested(&self) -> impl Future<Output = ()> + use<> {
        let control = self.control.clone();
        async move {
            match control {
                Some(control) => control.shutdown_requested().await,
                None => std::future::pending().await,
            }
        }
    }
    #[cfg(not(feature = "control"))]
    pub(super) fn end_requested(&self) -> impl Future<Output = ()> + use<> {
        std::future::pending()
    }
    #[cfg(feature = "control")]
    fn open_control(&mut self, path: &std::path::Path, name: String) -> io::Result<()> {
        use inhost_dashboard::{Instruments, Log, Views};
        let host = self.runtime.host();
        let recorder = beside::find(host).and_then(|beside| beside.recorder.clone());
        let control = inhost_runtime::control::Server::open(host, self.runtime.handle(), path)?;
        control.show_links(self.runtime.links());
        if let Some(recorder) = &recorder {
            control.show_recorder(recorder);
        }
        let links = self.runtime.links();
        let log = Log::default();
        let instruments = Instruments { recorder, links, log, name, sessions: Default::default() };
        Views::new(host, instruments).offer(&control);
        self.control = Some(std::rc::Rc::new(control));
        Ok(())
    }
    #[cfg(feature = "names")]
    fn set_resolver(&mut self) -> io::Result<()> {
        use inhost_names::{Hosts, Names, NamesConfig, Servers};
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let servers = match self.nameservers.is_empty() {
            true => Servers::parse(&read("/etc/resolv.conf")),
            false => Servers::of(self.nameservers.iter().copied()),
        };
        let host = self.runtime.host();
        let config = NamesConfig::new(Hosts::parse(&read("/etc/hosts")), servers, inhost_runtime::entropy()?);
        host.set_resolver(Names::new(host, config));
        Ok(())
    }
    #[cfg(feature = "user")]
    fn user(&mut self, spec: &Spec) -> io::Result<(InterfaceConfig, Box<dyn Driver>)> {
        let mut config = inhost_gateway::GatewayConfig::of_spec(spec);
        if let Some(beside) = beside::find(self.runtime.host()) {
            config.callers = beside.callers.clone();
        }
        let interface = inhost_gateway::guest_interface("user", &config);
        #[cfg(feature = "names")]
        if self.nameservers.is_empty() {
            self.nameservers.extend(inhost_gateway::name_servers(&config));
        }
        let (host, reactor) = (self.runtime.host().clone(), self.runtime.handle().clone());
        let seed = inhost_runtime::entropy()?;
        let link = inhost_gateway::user_link(&host, config, &reactor, seed).map_err(io::Error::other)?;
        let (driver, running) = link.split();
        self.gateways.push(running);
        Ok((interface, inhost_link::Faults::around(Box::new(driver), spec.faults)))
    }
}

/// Why a host was not built. It is debugged as it is displayed, since that is what `main` shows of an error.
#[non_exhaustive]
pub enum BuildError {
    /// The SPEC of a link is wrong.
    Spec {
        /// The SPEC.
        link: String,
        /// What is wrong with it.
        error: SpecError,
    },
    /// The kind of a link was not built in.
    Feature {
        /// The SPEC.
        link: String,
        /// The feature of this crate that it needs.
        feature: &'static str,
    },
    /// `memory` joins two hosts: see [`Builder::driver`].
    Memory,
    /// The driver of a link has no descriptor and no deadline, so that nothing would wake the host for it.
    Silent(String),
    /// The device of a link cannot be opened.
    Open(OpenError),
    /// The file of [`Builder::record`] cannot be made.
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The socket of `Builder::control` cannot be opened.
    Control {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A link was refused by the host.
    Add {
        /// The SPEC.
        link: String,
        /// Why.
        error: AddLinkError,
    },
    /// The system refused a thread, a descriptor or its entropy.
    System(io::Error),
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Spec { link, error } => write!(f, "link {link}: {error}"),
            BuildError::Feature { link, feature } => {
                write!(f, "link {link}: this kind needs the feature {feature:?} of the crate inhost")
            }
            BuildError::Memory => f.write_str(
                "a memory link joins two hosts of one program: use Builder::driver with memory::pair",
            ),
            BuildError::Silent(link) => write!(
                f,
                "link {link}: its driver has no descriptor to wait for; a memory link has one with \
                 memory::Config::doorbell"
            ),
            BuildError::Open(error) => error.fmt(f),
            BuildError::Add { link, error } => write!(f, "link {link}: {error}"),
            BuildError::Record { path, error } => write!(f, "cannot record to {}: {error}", path.display()),
            BuildError::Control { path, error } => {
                write!(f, "cannot open the control socket {}: {error}", path.display())
            }
            BuildError::System(error) => write!(f, "the system refused: {error}"),
        }
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BuildError::Spec { error, .. } => Some(error),
            BuildError::Open(error) => Some(error),
            BuildError::Add { error, .. } => Some(error),
            BuildError::System(error)
            | BuildError::Record { error, .. }
            | BuildError::Control { error, .. } => Some(error),
            BuildError::Feature { .. } | BuildError::Memory | BuildError::Silent(_) => None,
        }
    }
}

impl From<BuildError> for io::Error {
    fn from(error: BuildError) -> io::Error {
        match error {
            BuildError::System(error) => error,
            BuildError::Spec { .. }
            | BuildError::Feature { .. }
            | BuildError::Memory
            | BuildError::Silent(_) => io::Error::new(io::ErrorKind::InvalidInput, error),
            BuildError::Record { error: ref why, .. } | BuildError::Control { error: ref why, .. } => {
                io::Error::new(why.kind(), error)
            }
            BuildError::Open(_) | BuildError::Add { .. } => io::Error::other(error),
        }
    }
}
