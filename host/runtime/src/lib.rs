//! A host under the real clock: the loop that drives links, timers and tasks on one thread, and its interface to the
//! operating system.
//!
//! [`Runtime`] owns hosts and their link drivers; [`Shards`] are one host on several threads, each with a runtime. [`Reactor`] and [`AsyncFd`] let the tasks of a host wait for the
//! system's descriptors in the same loop, without a thread: a gateway's sockets, a pty, the control socket. A [`Recording`] writes
//! what a host's flight recorder sees to a file.
//! [`control`] is the control socket, both ends. Nothing here decides anything about a protocol.
//!
//! ```
//! use inhost_base::{Duration, Endpoint, Ipv4Addr};
//! use inhost_runtime::Runtime;
//! use inhost_stack::{ListenOptions, StackConfig};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let mut runtime = Runtime::new(StackConfig::default())?;
//! let host = runtime.host().clone();
//! let here = Endpoint::new(Ipv4Addr::LOCALHOST, 13);
//! let listener = host.listen(here, ListenOptions::default()).unwrap();
//! host.spawn(async move {
//!     while let Ok(mut caller) = listener.accept().await {
//!         caller.write_all(b"a quarter past").await.unwrap();
//!     }
//! }).detach();
//! let time = runtime.run(async {
//!     let mut time = String::new();
//!     host.connect(here).await.unwrap().read_to_string(&mut time).await.unwrap();
//!     time
//! })?;
//! assert_eq!(time, "a quarter past");
//! runtime.shutdown(Duration::from_secs(1))?;
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod async_fd;
mod busy_poll;
mod clock;
pub mod control;
mod descriptors;
mod layers;
mod link;
mod reactor;
mod recording;
mod runtime;
mod shards;
mod signals;

pub use async_fd::AsyncFd;
pub use clock::{Clock, entropy};
pub use descriptors::{DescriptorLimit, is_shortage, raise_descriptor_limit};
pub use layers::{FrameHead, LayerWatch, Phase};
pub use link::{BATCHES_A_ROUND, FRAMES_A_ROUND, LinkChange, LinkReport, LinkState, Links};
pub use reactor::{Interest, MAX_DESCRIPTORS, Reactor};
pub use recording::{Recording, write_recorded};
pub use runtime::{AddLinkError, POLLS_A_ROUND, Runtime, Shutdown, Turn, interface, with_spec};
pub use shards::{MAX_SHARDS, Shard, Shards};
pub use signals::{HeldSignals, Signal, Signals};
