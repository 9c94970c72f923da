//! The thread of a host.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use inhost_socket::RemoteHost;

use super::builder::{BuildError, Plan};

/// A running thread, which is told to stop and waited for when this is dropped.
pub(super) struct Thread {
    /// Closed when the host is to stop.
    stop: async_channel::Sender<()>,
    joined: Mutex<Option<JoinHandle<()>>>,
}

impl Thread {
    /// Starts a host as `plan` says, and gives its handle once its links are up.
    pub(super) fn start(plan: Plan) -> Result<(RemoteHost, Thread), BuildError> {
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let (begun, begins) = async_channel::bounded(1);
        let name = plan.name.clone();
        let work = move || {
            let linger = plan.linger;
            let mut running = match plan.build() {
                Ok(running) => running,
                Err(error) => return drop(begun.try_send(Err(error))),
            };
            let _ = begun.try_send(Ok(running.runtime.host().remote()));
            // The channel is never written to: it ends when the last handle is dropped. What follows has nobody to tell.
            let _ = running.runtime.run(stopped.recv());
            let _ = running.runtime.shutdown(linger);
        };
        let thread = std::thread::Builder::new().name(name).spawn(work).map_err(BuildError::System)?;
        match begins.recv_blocking() {
            Ok(Ok(remote)) => Ok((remote, Thread { stop, joined: Mutex::new(Some(thread)) })),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(BuildError::System(io::Error::other("the host's thread failed before it began"))),
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop.close();
        let thread = self.joined.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Thread")
    }
}
