//! The lingering close of a stream: unread and late data is discarded until the peer has acknowledged everything.
//!
//! TCP's own close sends a reset where received bytes were not read, and where more come in later, so that the peer learns
//! that they are lost (RFC 9293 §3.6.1). Such a reset also gives up what is still on its way to the peer.

use std::convert::Infallible;
use std::future::poll_fn;
use std::task::Poll;

use inhost_base::Duration;
use inhost_event::TcpState;

use crate::future::race;
use crate::stream::Stream;
use crate::waiters::Wait;

/// How long the peer may acknowledge nothing before what is left to deliver is given up.
const DELIVERY_LIMIT: Duration = Duration::from_secs(60);
/// The pauses between two looks at what the peer has acknowledged: they double while nothing happens.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

impl Stream {
    /// Closes a stream of which nobody reads any more so that nothing that was written is given up: the sending half is
    /// ended, what the peer still sends is thrown away, and when the peer has acknowledged all, the end included, the
    /// connection is reset if anything was thrown away. `is_lost` says that something was before.
    ///
    /// A peer that acknowledges nothing for a minute is given up.
    pub async fn deliver_and_close(self, is_lost: bool) {
        self.shutdown();
        let mut is_lost = is_lost;
        let (mut left_bytes, mut since, mut pause) = (usize::MAX, self.host().now(), PAUSE.0);
        loop {
            is_lost |= self.discard_read();
            let Some(unacknowledged_bytes) = self.undelivered_bytes() else { break };
            let now = self.host().now();
            if unacknowledged_bytes < left_bytes {
                (left_bytes, since, pause) = (unacknowledged_bytes, now, PAUSE.0);
            }
            if now.since(since) >= DELIVERY_LIMIT {
                break;
            }
            let more = poll_fn(|context| {
                self.host().register(self.socket(), Wait::Read, context);
                if self.has_unread() { Poll::Ready(()) } else { Poll::Pending }
            });
            race(more, self.host().sleep(pause)).await;
            pause = (pause + pause).min(PAUSE.1);
        }
        if is_lost {
            self.abort();
        }
    }
    /// Throws away whatever the peer sends, so that a peer that reads only while it can write goes on reading. `lost` is
    /// called when there was anything. Never ends.
    pub async fn discard_all(&self, lost: impl Fn()) -> Infallible {
        poll_fn(|context| {
            self.host().register(self.socket(), Wait::Read, context);
            if self.discard_read() {
                lost();
            }
            Poll::Pending
        })
        .await
    }
    /// Whether there was anything to throw away.
    pub(crate) fn discard_read(&self) -> bool {
        let is_any = self.has_unread();
        if is_any {
            let socket = self.socket();
            let _ = self
                .host()
                .core(|core| core.stack.tcp().consume(socket, usize::MAX, core.now, &mut *core.sink));
        }
        is_any
    }
    fn has_unread(&self) -> bool {
        self.queued().is_some_and(|queued| queued.readable_bytes > 0)
    }
    /// What the peer has not acknowledged, the end counted as a byte; none when that is nothing, or never will be.
    fn undelivered_bytes(&self) -> Option<usize> {
        use TcpState::{Closing, FinWait1, LastAck};
        let queued = self.queued()?.unacknowledged_bytes;
        let state = self.host().core(|core| core.stack.instruments().state(self.socket()))?;
        let is_end_outstanding = matches!(state, FinWait1 | Closing | LastAck);
        (state != TcpState::Closed && (is_end_outstanding || queued > 0))
            .then_some(queued + usize::from(is_end_outstanding))
    }
}
