//! Both ends of a measurement in this process, on one face, over the loopback: faces beside each other.

mod threads;

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use futures_util::future::join;
use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_runtime::Runtime;
use inhost_runtime::control::Server;
use inhost_socket::{Host, RemoteHost, blocking};
use inhost_stack::StackConfig;
use serde::{Deserialize, Serialize};

use crate::driver::{RunError, ServeOptions, Served, Stop, run, serve};
use crate::face::{ControlFace, Face, Kernel, LocalFace, RemoteFace, ZeroCopyFace};
use crate::plan::Plan;
use crate::result::Outcome;

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
    /// connects.
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

/// Measures `plan` between two ends on this face.
///
/// # Errors
/// When a host cannot be started, or the measurement fails.
pub fn measure(face: FaceName, plan: &Plan) -> Result<Outcome, HereError> {
    match face {
        FaceName::System => over_system(plan),
        FaceName::Local => on_a_host(plan, LocalFace::under_real_clock),
        FaceName::ZeroCopy => on_a_host(plan, ZeroCopyFace::under_real_clock),
        #[cfg(feature = "xti")]
        FaceName::Xti => on_a_host(plan, crate::face::XtiFace::under_real_clock),
        FaceName::Send => {
            beside_a_host(None, |remote| blocking::block_on(both(&RemoteFace::new(remote), plan)))
        }
        FaceName::Blocking => beside_a_host(None, |remote| threads::measure(&remote, plan)),
        FaceName::Control => over_control(plan),
    }
}

fn over_system(plan: &Plan) -> Result<Outcome, HereError> {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let client = runtime()?;
    let (give, take) = mpsc::channel();
    let (stopper, stop) = Stop::new();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let mut told = |served| {
                if let Served::Listening(at) = served {
                    let _ = give.send(at);
                }
            };
            let at = Endpoint::new(Ipv4Addr::LOCALHOST, 0);
            runtime()?.block_on(serve(&Kernel::new(), at, &ServeOptions::default(), &stop, &mut told))
        });
        let (_never, never) = Stop::new();
        let outcome = match take.recv() {
            Ok(at) => client.block_on(async { run(&Kernel::new(), at, plan, &never, &mut |_| {}).await }),
            Err(_) => Err(RunError::Closed),
        };
        stopper.stop();
        server.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        Ok(outcome?)
    })
}

fn on_a_host<F: Face>(plan: &Plan, face: impl FnOnce(Host) -> F) -> Result<Outcome, HereError> {
    let mut runtime = Runtime::new(StackConfig::default())?;
    let face = face(runtime.host().clone());
    let outcome = runtime.run(both(&face, plan))?;
    runtime.shutdown(CLOSE_WITHIN)?;
    outcome
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

/// Runs a host on this thread, with a control socket if a path is given, while `work` measures it from another.
fn beside_a_host(
    control: Option<&PathBuf>,
    work: impl FnOnce(RemoteHost) -> Result<Outcome, HereError> + Send,
) -> Result<Outcome, HereError> {
    let mut runtime = Runtime::new(StackConfig::default())?;
    let server = control.map(|path| Server::open(runtime.host(), runtime.handle(), path)).transpose()?;
    let outcome = beside(&mut runtime, work)?;
    drop(server);
    runtime.shutdown(CLOSE_WITHIN)?;
    outcome.unwrap_or(Err(HereError::Thread))
}

fn over_control(plan: &Plan) -> Result<Outcome, HereError> {
    let folder = Folder::new()?;
    let path = folder.0.join("host.sock");
    beside_a_host(Some(&path), |_| {
        let mut waits = Runtime::new(StackConfig::default())?;
        let face = ControlFace::open(&path, waits.host().clone(), waits.handle())?;
        let outcome = waits.run(both(&face, plan))?;
        drop(face);
        waits.shutdown(CLOSE_WITHIN)?;
        outcome
    })
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

/// Both ends on one face, in one task.
async fn both<F: Face>(face: &F, plan: &Plan) -> Result<Outcome, HereError> {
    let (stopper, stop) = Stop::new();
    let (give, take) = async_channel::bounded(1);
    let server = async {
        let mut told = |served| {
            if let Served::Listening(at) = served {
                let _ = give.try_send(at);
            }
        };
        let at = Endpoint::new(Ipv4Addr::LOCALHOST, 5201);
        serve(face, at, &ServeOptions::default(), &stop, &mut told).await
    };
    let client = async {
        let (_never, never) = Stop::new();
        let outcome = match take.recv().await {
            Ok(at) => run(face, at, plan, &never, &mut |_| {}).await,
            Err(_) => Err(RunError::Closed),
        };
        stopper.stop();
        outcome
    };
    let (served, outcome) = join(server, client).await;
    served?;
    Ok(outcome?)
}
