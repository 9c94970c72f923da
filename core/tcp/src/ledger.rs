//! Where a connection's time went: each nanosecond of its age in exactly one cause of each ledger.

use crate::Environment;
use alloc::boxed::Box;
use inhost_base::{Duration, Instant};
use inhost_event::{CauseChanged, Event, Ledgers, Mask, ReceiveCause, SendCause};

/// The accounts of a connection. The causes that an ordinary quiet connection knows are kept in place; the first of
/// any other takes one box for all of them.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Accounts {
    send_since: Instant,
    receive_since: Instant,
    /// Of both ledgers: the handshake is the same for both.
    opening: Duration,
    idle: Duration,
    awaiting_acknowledgment: Duration,
    link: Duration,
    awaiting_data: Duration,
    application_slow: Duration,
    others: Option<Box<Ledgers>>,
    /// Transmissions that the peer got before the box of queues was last freed.
    delivered_segments: u32,
    send: SendCause,
    receive: ReceiveCause,
}

impl Accounts {
    /// Accounts of a connection that is born `now`.
    pub fn new(now: Instant) -> Self {
        Accounts { send_since: now, receive_since: now, ..Accounts::default() }
    }
    /// The peer got so many transmissions: since the queues were made, which are freed now, or without any.
    pub fn delivered(&mut self, segments: u32) {
        self.delivered_segments = self.delivered_segments.wrapping_add(segments);
    }
    /// Transmissions that the peer got, but for those that the queues there are now count.
    pub fn delivered_segments(&self) -> u32 {
        self.delivered_segments
    }
    /// What sending waits for.
    pub fn send_cause(&self) -> SendCause {
        self.send
    }
    /// What receiving waits for.
    pub fn receive_cause(&self) -> ReceiveCause {
        self.receive
    }
    /// From now on sending waits for `send`, and receiving for `receive`. Emits both if one of them has changed.
    #[inline]
    pub fn wait_for(&mut self, send: SendCause, receive: ReceiveCause, env: &mut Environment<'_>) {
        if (self.send, self.receive) == (send, receive) {
            return;
        }
        let now = env.now();
        if self.send != send {
            if now > self.send_since {
                self.count_sending(now);
            }
            self.send = send;
        }
        if self.receive != receive {
            if now > self.receive_since {
                self.count_receiving(now);
            }
            self.receive = receive;
        }
        let socket = env.socket();
        env.emit(Mask::CAUSE, || Event::CauseChanged(CauseChanged { socket, send, receive }));
    }
    #[inline(never)]
    fn count_sending(&mut self, now: Instant) {
        let elapsed = now.since(self.send_since);
        self.send_since = now;
        match self.send {
            SendCause::Opening => self.opening += elapsed,
            SendCause::ApplicationIdle => self.idle += elapsed,
            SendCause::AwaitingAcknowledgment => self.awaiting_acknowledgment += elapsed,
            SendCause::Link => self.link += elapsed,
            other => self.others.get_or_insert_default().send.add(other, elapsed),
        }
    }
    #[inline(never)]
    fn count_receiving(&mut self, now: Instant) {
        let elapsed = now.since(self.receive_since);
        self.receive_since = now;
        match self.receive {
            // Both ledgers leave it in the same call, and the sending one has counted it.
            ReceiveCause::Opening => {}
            ReceiveCause::AwaitingData => self.awaiting_data += elapsed,
            ReceiveCause::ApplicationSlow => self.application_slow += elapsed,
            other => self.others.get_or_insert_default().receive.add(other, elapsed),
        }
    }
    /// Both ledgers as they stand at `now`.
    pub fn at(&self, now: Instant) -> Ledgers {
        let mut ledgers = self.others.as_deref().copied().unwrap_or_default();
        for (cause, time) in [
            (SendCause::Opening, self.opening),
            (SendCause::ApplicationIdle, self.idle),
            (SendCause::AwaitingAcknowledgment, self.awaiting_acknowledgment),
            (SendCause::Link, self.link),
            (self.send, now.since(self.send_since)),
        ] {
            ledgers.send.add(cause, time);
        }
        for (cause, time) in [
            (ReceiveCause::Opening, self.opening),
            (ReceiveCause::AwaitingData, self.awaiting_data),
            (ReceiveCause::ApplicationSlow, self.application_slow),
            (self.receive, now.since(self.receive_since)),
        ] {
            ledgers.receive.add(cause, time);
        }
        ledgers
    }
}
