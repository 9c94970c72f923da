//! The lingering close of a stream: unread and late data is discarded until the peer has acknowledged everything.
//!
//! A plain close sends a reset when received data is unread or arrives later, so that the peer learns of the loss (RFC
//! 9293 §3.6.1). Such a reset also discards data that the peer has not received yet.

use std::convert::Infallible;
use std::future::poll_fn;
use std::task::Poll;

use inhost_base::Duration;
use inhost_event::TcpState;

use crate::future::race;
use crate::host::tcp;
use crate::stream::Stream;
use crate::waiters::Wait;

/// Time without an acknowledgment after which undelivered data is given up.
const DELIVERY_LIMIT: Duration = Duration::from_secs(60);
/// The pauses between two checks of the peer's acknowledgments. They double while nothing happens.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

impl Stream {
    /// Closes a stream that is no longer read, and still delivers the written data: a FIN is sent, received data is
    /// discarded, and when the peer has acknowledged everything, the FIN included, the connection is reset if anything
    /// was discarded. `is_lost` says that data was discarded before.
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
            let _ = self.host().core(|core| tcp(core).consume(socket, usize::MAX));
        }
        is_any
    }
    pub(crate) fn has_unread(&self) -> bool {
        self.queued().is_some_and(|queued| queued.readable_bytes > 0)
    }
    /// Unacknowledged bytes, with the FIN counted as one; `None` when everything is acknowledged, or never will be.
    pub(crate) fn undelivered_bytes(&self) -> Option<usize> {
        use TcpState::{Closing, FinWait1, LastAck};
        let queued = self.queued()?.unacknowledged_bytes;
        let state = self.host().core(|core| {
            core.stack.instruments().connection(self.socket()).map(|connection| connection.state())
        })?;
        let is_end_outstanding = matches!(state, FinWait1 | Closing | LastAck);
        (state != TcpState::Closed && (is_end_outstanding || queued > 0))
            .then_some(queued + usize::from(is_end_outstanding))
    }
}
