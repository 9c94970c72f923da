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
    /// The queues are freed. The peer got so many transmissions since they were made.
    pub fn delivered(&mut self, segments: u32) {
        self.delivered_segments = self.delivered_segments.wrapping_add(segments);
    }
    /// Transmissions that the peer got before the queues were last freed.
    pub fn delivered_segments(&self) -> u32 {
        self.delivered_segments
    }
    /// Emits the causes of both ledgers.
    pub fn emit_causes(&self, env: &mut Environment<'_>) {
        let (socket, send, receive) = (env.socket(), self.send_cause(), self.receive_cause());
        env.emit(Mask::CAUSE, || Event::CauseChanged(CauseChanged { socket, send, receive }));
    }
    /// Updates the receive ledger's cause. Emits both causes if it changed, or if the send ledger's cause `changed`.
    #[inline]
    pub fn update_receiving(&mut self, cause: ReceiveCause, mut changed: bool, env: &mut Environment<'_>) {
        changed |= self.receive_waits_for(cause, env.now());
        if changed {
            self.emit_causes(env);
        }
    }
    /// What sending waits for.
    pub fn send_cause(&self) -> SendCause {
        self.send
    }
    /// What receiving waits for.
    pub fn receive_cause(&self) -> ReceiveCause {
        self.receive
    }
    /// From `now` on sending waits for `cause`; true when it waited for something else.
    #[inline]
    pub fn send_waits_for(&mut self, cause: SendCause, now: Instant) -> bool {
        if self.send == cause {
            return false;
        }
        let elapsed = now.since(self.send_since);
        self.send_since = self.send_since.max(now);
        match self.send {
            SendCause::Opening => self.opening += elapsed,
            SendCause::ApplicationIdle => self.idle += elapsed,
            SendCause::AwaitingAcknowledgment => self.awaiting_acknowledgment += elapsed,
            SendCause::Link => self.link += elapsed,
            _ if elapsed == Duration::ZERO => {}
            other => self.others.get_or_insert_default().send.add(other, elapsed),
        }
        self.send = cause;
        true
    }
    /// From `now` on receiving waits for `cause`; true when it waited for something else.
    #[inline]
    pub fn receive_waits_for(&mut self, cause: ReceiveCause, now: Instant) -> bool {
        if self.receive == cause {
            return false;
        }
        let elapsed = now.since(self.receive_since);
        self.receive_since = self.receive_since.max(now);
        match self.receive {
            // Both ledgers leave it in the same call, and the sending one has counted it.
            ReceiveCause::Opening => {}
            ReceiveCause::AwaitingData => self.awaiting_data += elapsed,
            ReceiveCause::ApplicationSlow => self.application_slow += elapsed,
            _ if elapsed == Duration::ZERO => {}
            other => self.others.get_or_insert_default().receive.add(other, elapsed),
        }
        self.receive = cause;
        true
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
