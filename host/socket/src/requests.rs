//! The queue of what other threads have the thread of a host do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_channel::{Receiver, Sender};

use crate::error::Gone;

/// Capacity of a queue of requests. A thread that finds it full waits.
const REQUESTS: usize = 256;

/// Says which host of which thread a queue of requests is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place(u64);

/// The number of the next place.
static NEXT_PLACE: AtomicU64 = AtomicU64::new(0);

/// The end of a queue of requests that other threads have. Each request is an `R`.
pub(crate) struct Requests<R> {
    requests: Sender<R>,
    place: Place,
    /// The process in which the host's thread runs.
    process: u32,
}

impl<R> Requests<R> {
    /// A queue of requests, with a place of its own.
    pub(crate) fn open() -> (Arc<Requests<R>>, Receiver<R>) {
        let (requests, incoming) = async_channel::bounded(REQUESTS);
        let place = Place(NEXT_PLACE.fetch_add(1, Ordering::Relaxed));
        (Arc::new(Requests { requests, place, process: std::process::id() }), incoming)
    }
    pub(crate) fn place(&self) -> Place {
        self.place
    }
    pub(crate) fn lives(&self) -> Result<(), Gone> {
        // A forked process has the handle, but not the thread.
        let lives = self.process == std::process::id() && !self.requests.is_closed();
        lives.then_some(()).ok_or(Gone)
    }
    pub(crate) async fn send(&self, request: R) -> Result<(), Gone> {
        self.requests.send(request).await.map_err(|_| Gone)
    }
}

impl<R> core::fmt::Debug for Requests<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Requests").field(&self.place).finish()
    }
}

/// Carries out what comes. When the future is dropped, further requests are refused, and those that wait are dropped.
pub(crate) fn serve<R>(incoming: Receiver<R>, carry_out: impl Fn(R)) -> impl Future<Output = ()> {
    let incoming = Served(incoming);
    async move {
        while let Ok(request) = incoming.0.recv().await {
            carry_out(request);
        }
    }
}

/// Refuses requests once the task that serves them is gone, and drops those that wait.
struct Served<R>(Receiver<R>);

impl<R> Drop for Served<R> {
    fn drop(&mut self) {
        self.0.close();
        while self.0.try_recv().is_ok() {}
    }
}
