//! A host within a tokio runtime.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use inhost_base::Duration;
use inhost_runtime::Turn;
use inhost_socket::{Either, RemoteHost, race};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::builder::{BuildError, Built, Plan};
use super::keeper::{Keeper, Kept};

/// How often a host that is going down looks whether its connections have closed.
const LOOK: Duration = Duration::from_millis(5);

/// Drives a host that was built by [`Builder::within_tokio`](super::Builder::within_tokio): a future that runs until every
/// handle of the host is dropped and its connections have closed. It stays on its thread.
#[must_use = "the host does nothing unless its driver is polled"]
pub struct HostTask(Pin<Box<dyn Future<Output = io::Result<()>>>>);

impl HostTask {
    /// Builds a host as `plan` says, on this thread.
    pub(super) fn start(plan: Plan) -> Result<(RemoteHost, Keeper, HostTask), BuildError> {
        let linger = plan.linger;
        let built = plan.build()?;
        let (keeper, kept) = Keeper::new();
        let descriptor = built.runtime.as_fd().try_clone_to_owned();
        #[expect(
            deprecated,
            reason = "it is unsound for types that give away a descriptor that is not theirs; OwnedFd does not"
        )]
        let watched = descriptor.and_then(|fd| AsyncFd::with_interest(fd, Interest::READABLE));
        let watched = watched.map_err(BuildError::System)?;
        let remote = built.runtime.host().remote();
        Ok((remote, keeper, HostTask(Box::pin(drive(built, watched, kept, linger)))))
    }
}

impl Future for HostTask {
    type Output = io::Result<()>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for HostTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostTask")
    }
}

async fn drive(mut built: Built, watched: AsyncFd<OwnedFd>, kept: Kept, linger: Duration) -> io::Result<()> {
    let requested = built.end_requested();
    turn_until(&mut built, &watched, pin!(race(kept.stopped(), requested))).await?;
    let host = built.runtime.host().clone();
    host.drain();
    let (mut lingered, mut is_over) = (pin!(host.sleep(linger)), false);
    while !is_over && built.runtime.open_connections() > 0 {
        let look = async {
            is_over = matches!(race(lingered.as_mut(), host.sleep(LOOK)).await, Either::First(()));
        };
        turn_until(&mut built, &watched, pin!(look)).await?;
    }
    built.runtime.shutdown(Duration::ZERO)?;
    Ok(())
}

/// Drives the host until `end` is done.
async fn turn_until<F: Future>(
    built: &mut Built,
    watched: &AsyncFd<OwnedFd>,
    mut end: Pin<&mut F>,
) -> io::Result<()> {
    poll_fn(|context| {
        if end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        built.runtime.wake_by(context.waker());
        if built.runtime.turn()? == Turn::Wait {
            match watched.poll_read_ready(context)? {
                // What made it ready is taken by the next turn.
                Poll::Ready(mut guard) => guard.clear_ready(),
                Poll::Pending => return Poll::Pending,
            }
        }
        // A turn is a round; between two of them tokio's other tasks have theirs, also those that are not of the same
        // `LocalSet`, which a mere wake-up would go before.
        let _ = pin!(tokio::task::yield_now()).poll(context);
        Poll::Pending
    })
    .await
}
