//! Who keeps a host running: the word that it is to stop, and its thread where it has one.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use inhost_socket::{RemoteHost, race};

use super::builder::{BuildError, Plan};

/// Tells a host to stop when it is dropped, and waits for its thread, except in a task of a host.
pub(super) struct Keeper {
    /// Closed when the host is to stop.
    stop: async_channel::Sender<()>,
    /// Ends when the host has gone down.
    ended: async_channel::Receiver<()>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The process in which the thread runs.
    process: u32,
}

impl Keeper {
    /// A keeper, and what the host has of it.
    pub(super) fn new() -> (Keeper, Kept) {
        let (stop, stopped) = async_channel::bounded(1);
        let (end, ended) = async_channel::bounded(1);
        let process = std::process::id();
        (Keeper { stop, ended, thread: Mutex::default(), process }, Kept { stopped, _end: end })
    }
    /// Has the host go down, and waits until it has.
    pub(super) async fn shut_down(&self) {
        self.stop.close();
        let _ = self.ended.recv().await;
    }
    /// Starts a host as `plan` says on a thread of its own, and gives its handle once its links are up.
    pub(super) fn start(plan: Plan) -> Result<(RemoteHost, Keeper), BuildError> {
        let (keeper, kept) = Keeper::new();
        let (begun, begins) = async_channel::bounded(1);
        let name = plan.name.clone();
        let work = move || {
            let linger = plan.linger;
            #[cfg(feature = "tokio")]
            let tokio = plan.tokio.clone();
            // Tokio's timers and blocking calls work in the host's tasks, too.
            #[cfg(feature = "tokio")]
            let _entered = tokio.as_ref().map(tokio::runtime::Handle::enter);
            let mut built = match plan.build() {
                Ok(built) => built,
                Err(error) => return drop(begun.try_send(Err(error))),
            };
            let _ = begun.try_send(Ok(built.runtime.host().remote()));
            // What fails from here on has nobody to be told.
            let requested = built.end_requested();
            let _ = built.runtime.run(race(kept.stopped(), requested));
            let _ = built.runtime.shutdown(linger);
            drop(built);
            drop(kept);
        };
        let thread = std::thread::Builder::new().name(name).spawn(work).map_err(BuildError::System)?;
        match begins.recv_blocking() {
            Ok(Ok(remote)) => {
                *keeper.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
                Ok((remote, keeper))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(BuildError::System(io::Error::other("the host's thread failed before it began"))),
        }
    }
}

/// The host's end of a [`Keeper`], dropped when the host has gone down.
pub(super) struct Kept {
    stopped: async_channel::Receiver<()>,
    _end: async_channel::Sender<()>,
}

impl Kept {
    /// Waits until the host is to stop. Nothing is ever sent: the channel is closed.
    pub(super) async fn stopped(&self) {
        let _ = self.stopped.recv().await;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // This process was forked: the host goes on in the other one, and its thread is not here.
            return;
        }
        self.stop.close();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A host that waited for another one could be what that one waits for.
        if let Some(thread) = thread
            && inhost_socket::Host::current().is_none()
        {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keeper")
    }
}
