//! Faces: the sockets over which is measured. The drivers know nothing else of a network.

#[cfg(feature = "control")]
mod control;
#[cfg(feature = "kernel")]
mod counts;
mod host;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "control")]
mod layers;
#[cfg(feature = "xti")]
mod xti;
mod zero_copy;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use inhost_base::{Endpoint, Instant};
use inhost_event::Layer;
#[cfg(feature = "kernel")]
use nix::sys::resource::{UsageWho, getrusage};
#[cfg(feature = "kernel")]
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(feature = "control")]
pub use control::{ControlFace, ControlListener};
pub use host::{LocalFace, RemoteFace};
#[cfg(feature = "kernel")]
pub use kernel::Kernel;
#[cfg(feature = "control")]
pub use layers::watch_layers;
#[cfg(feature = "xti")]
pub use xti::{XtiFace, XtiListener, XtiStream};
pub use zero_copy::ZeroCopyFace;

/// How a socket is to be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SocketOptions {
    /// Send and receive buffer, in bytes. Default: the system's.
    pub window_bytes: Option<u32>,
    /// Congestion control by name. Default: the system's.
    pub congestion: Option<String>,
    /// No Nagle. Default: no.
    pub no_delay: bool,
}

/// What a face knows of a connection.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StreamFigures {
    /// Segments that were sent again.
    pub retransmits: Option<u64>,
    /// Smoothed round trip, in microseconds.
    pub round_trip_us: Option<f64>,
    /// Congestion control by name.
    pub congestion: Option<String>,
    /// Seconds for which the sender waited, by cause, in the words of a host's ledgers.
    pub waits_s: BTreeMap<String, f64>,
}

/// Cycles and instructions of a process, by the processor's performance counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Cycles.
    pub cycles: u64,
    /// Instructions.
    pub instructions: u64,
    /// Whether the kernel's own are left out, because this process may not count them.
    pub is_user_only: bool,
}

/// Nanoseconds of a host by layer, in the order of [`Layer::ALL`].
pub type LayerTimes = [u64; Layer::ALL.len()];

/// Processor time of this process, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Processor {
    /// In user mode.
    pub user_s: f64,
    /// In the kernel.
    pub system_s: f64,
    /// Of all, on the thread of the host that is the face; none for other faces.
    pub host_thread_s: Option<f64>,
    /// Cycles and instructions; none where the system has no counter of them for this process.
    pub counts: Option<Counts>,
    /// The time of that host by layer, where its layers are watched.
    pub layers: Option<LayerTimes>,
}

impl Processor {
    /// What was used since `before`.
    pub fn since(self, before: Processor) -> Processor {
        let thread = self.host_thread_s.zip(before.host_thread_s);
        let counts = self.counts.zip(before.counts).map(|(after, before)| Counts {
            cycles: after.cycles.saturating_sub(before.cycles),
            instructions: after.instructions.saturating_sub(before.instructions),
            ..after
        });
        let layers = self.layers.zip(before.layers);
        Processor {
            user_s: self.user_s - before.user_s,
            system_s: self.system_s - before.system_s,
            host_thread_s: thread.map(|(after, before)| after - before),
            counts,
            layers: layers
                .map(|(after, before)| std::array::from_fn(|at| after[at].saturating_sub(before[at]))),
        }
    }
    /// Of this process, by getrusage and the performance counters.
    #[cfg(feature = "kernel")]
    pub(crate) fn of_process() -> Option<Processor> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
        let (user_s, system_s) = (seconds(usage.user_time()), seconds(usage.system_time()));
        Some(Processor { user_s, system_s, counts: counts::of_process(), ..Processor::default() })
    }
}

/// What only this thread knows: its processor time in seconds, and the time of its host by layer.
#[cfg(feature = "kernel")]
fn of_thread() -> (Option<f64>, Option<LayerTimes>) {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok();
    let used_s = usage.map(|usage| seconds(usage.user_time()) + seconds(usage.system_time()));
    #[cfg(feature = "control")]
    let layers = layers::of_thread();
    #[cfg(not(feature = "control"))]
    let layers = None;
    (used_s, layers)
}

#[cfg(feature = "kernel")]
fn seconds(time: nix::sys::time::TimeVal) -> f64 {
    time.num_microseconds() as f64 / 1e6
}

/// Sockets of a system. Clones are the same. Futures are polled on the thread that made them.
///
/// Waiting calls may be dropped: what they waited for is then not done, or not lost.
#[allow(async_fn_in_trait, reason = "drivers run in one task, on one thread")]
pub trait Face: Clone + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + 'static;
    /// Where connections are accepted.
    type Listener: 'static;
    /// A UDP socket.
    type Datagrams: 'static;

    /// Now, on a clock that only goes forward.
    fn now(&self) -> Instant;
    /// Ready at `at`, or soon after.
    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()>;
    /// A number that differs from run to run, for cookies. A simulator's follows from its seed.
    fn entropy(&self) -> u64;
    /// Processor time so far; `None` where it has no meaning.
    fn processor(&self) -> Option<Processor>;
    /// Opens a connection.
    async fn connect(&self, to: Endpoint, options: &SocketOptions) -> io::Result<Self::Stream>;
    /// Listens.
    async fn listen(&self, at: Endpoint) -> io::Result<Self::Listener>;
    /// Where it listens.
    fn local(&self, listener: &Self::Listener) -> io::Result<Endpoint>;
    /// The next connection, and the endpoint of its peer. Dropping the future loses no connection.
    async fn accept(&self, listener: &Self::Listener) -> io::Result<(Self::Stream, Endpoint)>;
    /// Applies options to a connection that was accepted.
    async fn prepare(&self, stream: &Self::Stream, options: &SocketOptions) -> io::Result<()>;
    /// One write of bulk data: as many of `bytes`, from `from` on, as there is room for. Default: a copy of them.
    fn poll_send(
        stream: &mut Self::Stream,
        context: &mut Context<'_>,
        bytes: &Bytes,
        from: usize,
    ) -> Poll<io::Result<usize>> {
        Pin::new(stream).poll_write(context, &bytes[from..])
    }
    /// One read of bulk data that nobody looks at: how many bytes came; 0 is the end. Default: a copy into `room`.
    fn poll_receive(
        stream: &mut Self::Stream,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(room);
        ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
    /// Opens a UDP socket at `local`, which sends to `remote` and hears only it where that is given.
    async fn datagrams(
        &self,
        local: Endpoint,
        remote: Option<Endpoint>,
        options: &SocketOptions,
    ) -> io::Result<Self::Datagrams>;
    /// Sends a datagram, to the connected end where none is given.
    async fn send_to(&self, socket: &Self::Datagrams, bytes: &[u8], to: Option<Endpoint>) -> io::Result<()>;
    /// The next datagram: its length and source. Dropping the future loses none.
    async fn receive_from(&self, socket: &Self::Datagrams, into: &mut [u8]) -> io::Result<(usize, Endpoint)>;
    /// What is known of a connection.
    async fn figures(&self, stream: &Self::Stream) -> StreamFigures;
}
