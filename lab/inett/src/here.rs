//! Both ends of a measurement in this process, on one face: faces and links beside each other.

mod ground;
mod threads;

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use futures_util::future::join;
use inhost_base::{Duration, Endpoint, IpAddr, Ipv4Addr};
use inhost_runtime::Runtime;
use inhost_runtime::control::Server;
use inhost_socket::{Host, RemoteHost, blocking};
use inhost_stack::StackConfig;
use serde::{Deserialize, Serialize};

use crate::driver::{RunError, ServeOptions, Served, Stop, run, serve};
use crate::face::{ControlFace, Face, Kernel, LocalFace, RemoteFace, ZeroCopyFace, watch_layers};
use crate::iperf3::PORT;
use crate::plan::Plan;
use crate::result::Outcome;
use ground::{Ground, Place};

pub use ground::Link;

/// How long a host that was measured may take to close its connections.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// A face by its name.
#[derive(Serialize, Deserialize, Default, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum FaceName {
    /// The operating system's sockets, each end on a thread of its own.
    #[default]
    System,
    /// A host's, both ends in a task of it.
    Local,
    /// The same, with bulk data by reference.
    ZeroCopy,
    /// X/Open's transport interface, both ends in a task of the host.
    #[cfg(feature = "xti")]
    Xti,
    /// A host's, both ends on another thread.
    Send,
    /// A host's, in calls that block, each end on a thread of its own. It has a single TCP stream to the server, echoes and
    /// connects, and both ends on hosts.
    Blocking,
    /// Descriptors of the host's control socket, both ends on another thread.
    Control,
}

impl FaceName {
    /// Every face.
    pub const ALL: &'static [FaceName] = &[
        FaceName::System,
        FaceName::Local,
        FaceName::ZeroCopy,
        #[cfg(feature = "xti")]
        FaceName::Xti,
        FaceName::Send,
        FaceName::Blocking,
        FaceName::Control,
    ];
    /// The name, as plans and commands write it.
    pub const fn text(self) -> &'static str {
        match self {
            FaceName::System => "system",
            FaceName::Local => "local",
            FaceName::ZeroCopy => "zero-copy",
            #[cfg(feature = "xti")]
            FaceName::Xti => "xti",
            FaceName::Send => "send",
            FaceName::Blocking => "blocking",
            FaceName::Control => "control",
        }
    }
}

/// Why nothing was measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum HereError {
    /// A host or its server could not be started, or did not go on.
    Host(io::Error),
    /// The measurement failed.
    Run(RunError),
    /// A thread of the measurement has failed.
    Thread,
    /// The face cannot measure this.
    Unsupported,
    /// Links and layers are a host's, and this face is not one of a host in this process.
    NotOfAHost(FaceName),
    /// The link cannot be made, and why.
    Link(String),
}

impl core::fmt::Display for HereError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            HereError::Host(why) => write!(f, "the host: {why}"),
            HereError::Run(why) => why.fmt(f),
            HereError::Thread => f.write_str("a thread of the measurement has failed"),
            HereError::Unsupported => {
                f.write_str("this face measures a single TCP stream to the server, echoes and connects")
            }
            HereError::NotOfAHost(face) => write!(
                f,
                "link and layers are of a host in this process; the face {} has no such host",
                face.text()
            ),
            HereError::Link(why) => write!(f, "the link: {why}"),
        }
    }
}
impl core::error::Error for HereError {}

impl From<io::Error> for HereError {
    fn from(why: io::Error) -> Self {
        HereError::Host(why)
    }
}
impl From<RunError> for HereError {
    fn from(why: RunError) -> Self {
        HereError::Run(why)
    }
}

/// A measurement of this machine: which sockets, how their ends are joined, and what is measured.
///
/// ```
/// let setup: inhost_inett::here::Setup = toml::from_str(
///     "face = 'local'\nlink = 'memory:wire,delay=1ms'\nplan = { kind = 'echo', count = 3 }",
/// )?;
/// assert!(setup.measure()?.summary.unwrap().mean > 2000.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Setup {
    /// Default: the system's sockets.
    pub face: FaceName,
    /// Default: the loopback of one host. Other links are of the faces `local`, `zero-copy`, `xti`, `send` and `blocking`.
    pub link: Link,
    /// Whether the time by layer is measured, of the same faces. Default: no, for it costs time itself. The hosts of both ends
    /// are on one thread, so it is that of both.
    pub layers: bool,
    /// What is measured.
    pub plan: Plan,
}

/// Measures `plan` between two ends on this face, over the loopback.
///
/// # Errors
/// When a host cannot be started, or the measurement fails.
pub fn measure(face: FaceName, plan: &Plan) -> Result<Outcome, HereError> {
    Setup { face, plan: plan.clone(), ..Setup::default() }.measure()
}

impl Setup {
    /// Measures.
    ///
    /// # Errors
    /// When the face has no links or layers, a link or a host cannot be made, or the measurement fails.
    pub fn measure(&self) -> Result<Outcome, HereError> {
        let is_of_a_host = !matches!(self.face, FaceName::System | FaceName::Control);
        if !is_of_a_host && (self.layers || self.link != Link::Loopback) {
            return Err(HereError::NotOfAHost(self.face));
        }
        self.plan.validate().map_err(RunError::Plan)?;
        match self.face {
            FaceName::System => over_system(&self.plan),
            FaceName::Control => over_control(&self.plan),
            _ => self.on_hosts(),
        }
    }
    fn on_hosts(&self) -> Result<Outcome, HereError> {
        let mut ground = Ground::new(&self.link)?;
        if self.layers {
            watch_layers(&mut ground.runtime);
        }
        let outcome = match ground.server {
            Place::Host(_) => self.over(&mut ground, PORT),
            Place::System(address) => beside_a_system_server(address, |at| self.over(&mut ground, at.port)),
        };
        ground.runtime.shutdown(CLOSE_WITHIN)?;
        outcome
    }
    fn over(&self, ground: &mut Ground, port: u16) -> Result<Outcome, HereError> {
        match self.face {
            FaceName::ZeroCopy => self.by(ground, port, ZeroCopyFace::under_real_clock),
            #[cfg(feature = "xti")]
            FaceName::Xti => self.by(ground, port, crate::face::XtiFace::under_real_clock),
            FaceName::Send | FaceName::Blocking => self.beside(ground, port),
            _ => self.by(ground, port, LocalFace::under_real_clock),
        }
    }
    /// From a task on the hosts' own thread.
    fn by<F: Face>(
        &self,
        ground: &mut Ground,
        port: u16,
        face: impl Fn(Host) -> F,
    ) -> Result<Outcome, HereError> {
        let client = face(ground.runtime.host().clone());
        let server = ground.server.host().cloned().map(face);
        let at = Endpoint::new(ground.address, port);
        ground.runtime.run(between(&client, server.as_ref(), at, &self.plan))?
    }
    /// From other threads.
    fn beside(&self, ground: &mut Ground, port: u16) -> Result<Outcome, HereError> {
        let (server, at) = (ground.server.host().map(Host::remote), Endpoint::new(ground.address, port));
        let outcome = beside(&mut ground.runtime, |client| match (self.face, server) {
            (FaceName::Blocking, Some(server)) => threads::measure([&client, &server], at, &self.plan),
            (FaceName::Blocking, None) => Err(HereError::Unsupported),
            (_, server) => {
                let (client, server) = (RemoteFace::new(client), server.map(RemoteFace::new));
                blocking::block_on(between(&client, server.as_ref(), at, &self.plan))
            }
        })?;
        outcome.unwrap_or(Err(HereError::Thread))
    }
}

fn over_system(plan: &Plan) -> Result<Outcome, HereError> {
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    beside_a_system_server(Ipv4Addr::LOCALHOST.into(), |at| {
        client.block_on(between(&Kernel::new(), None, at, plan))
    })
}

/// Does `work` while a thread serves at an address of the system.
fn beside_a_system_server(
    address: IpAddr,
    work: impl FnOnce(Endpoint) -> Result<Outcome, HereError>,
) -> Result<Outcome, HereError> {
    let (give, take) = mpsc::channel();
    let (stopper, stop) = Stop::new();
    std::thread::scope(move |scope| {
        let server = scope.spawn(move || {
            let mut told = |served| {
                if let Served::Listening(at) = served {
                    let _ = give.send(at);
                }
            };
            let at = Endpoint::new(address, 0);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(serve(&Kernel::new(), at, &ServeOptions::default(), &stop, &mut told))
        });
        let outcome = take.recv().map(work);
        stopper.stop();
        server.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        outcome.unwrap_or(Err(RunError::Closed.into()))
    })
}

/// Runs a host on this thread while `work` uses it from another. Gives what `work` gave; `None` where it panicked.
///
/// # Errors
/// When the host cannot wait.
pub fn beside<T: Send>(
    runtime: &mut Runtime,
    work: impl FnOnce(RemoteHost) -> T + Send,
) -> io::Result<Option<T>> {
    let (remote, (over, ended)) = (runtime.host().remote(), async_channel::bounded::<()>(1));
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let done = work(remote);
            drop(over);
            done
        });
        runtime.run(async { ended.recv().await.is_err() })?;
        Ok(work.join().ok())
    })
}

fn over_control(plan: &Plan) -> Result<Outcome, HereError> {
    let folder = Folder::new()?;
    let path = folder.0.join("host.sock");
    let mut runtime = Runtime::new(StackConfig::default())?;
    let server = Server::open(runtime.host(), runtime.handle(), &path)?;
    let outcome = beside(&mut runtime, |_| {
        let mut waits = Runtime::new(StackConfig::default())?;
        let face = ControlFace::open(&path, waits.host().clone(), waits.handle())?;
        let at = Endpoint::new(Ipv4Addr::LOCALHOST, PORT);
        let outcome = waits.run(between(&face, Some(&face), at, plan))?;
        drop(face);
        waits.shutdown(CLOSE_WITHIN)?;
        outcome
    })?;
    drop(server);
    runtime.shutdown(CLOSE_WITHIN)?;
    outcome.unwrap_or(Err(HereError::Thread))
}

/// A folder of this user alone, for the control socket; it is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("inhost-inett-{}-{number}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The client in this task, and beside it the server, unless that is somewhere else.
async fn between<F: Face>(
    client: &F,
    server: Option<&F>,
    at: Endpoint,
    plan: &Plan,
) -> Result<Outcome, HereError> {
    let (_never, never) = Stop::new();
    let Some(server) = server else { return Ok(run(client, at, plan, &never, &mut |_| {}).await?) };
    let (stopper, stop) = Stop::new();
    let (give, take) = async_channel::bounded(1);
    let server = async {
        let mut told = |served| {
            if let Served::Listening(at) = served {
                let _ = give.try_send(at);
            }
        };
        serve(server, at, &ServeOptions::default(), &stop, &mut told).await
    };
    let client = async {
        let outcome = match take.recv().await {
            Ok(at) => run(client, at, plan, &never, &mut |_| {}).await,
            Err(_) => Err(RunError::Closed),
        };
        stopper.stop();
        outcome
    };
    let (served, outcome) = join(server, client).await;
    served?;
    Ok(outcome?)
}
