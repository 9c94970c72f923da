//! Where a connection's time went: each nanosecond of its age in exactly one cause of each ledger.

use crate::Environment;
use alloc::boxed::Box;
use inhost_base::{Duration, Instant};
use inhost_event::{CauseChanged, Event, Mask, ReceiveCause, SendCause};

/// Time by cause of the sending side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct SendLedger([Duration; SendCause::COUNT]);

/// Time by cause of the receiving side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct ReceiveLedger([Duration; ReceiveCause::COUNT]);

impl SendLedger {
    /// Time spent on `cause`.
    pub fn of(&self, cause: SendCause) -> Duration {
        self.0[cause as usize]
    }
    /// The times by cause, in the order of display.
    pub fn times(&self) -> [Duration; SendCause::COUNT] {
        self.0
    }
    /// Every cause with its time, in the order of display.
    pub fn iter(&self) -> impl Iterator<Item = (SendCause, Duration)> + '_ {
        SendCause::ALL.iter().map(|&cause| (cause, self.of(cause)))
    }
    /// All of it: the connection's age.
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, &d| sum + d)
    }
}

impl ReceiveLedger {
    /// Time spent on `cause`.
    pub fn of(&self, cause: ReceiveCause) -> Duration {
        self.0[cause as usize]
    }
    /// The times by cause, in the order of display.
    pub fn times(&self) -> [Duration; ReceiveCause::COUNT] {
        self.0
    }
    /// Every cause with its time, in the order of display.
    pub fn iter(&self) -> impl Iterator<Item = (ReceiveCause, Duration)> + '_ {
        ReceiveCause::ALL.iter().map(|&cause| (cause, self.of(cause)))
    }
    /// All of it: the connection's age.
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, &d| sum + d)
    }
}

/// Both ledgers as they stand at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Ledgers {
    /// Of the sending side.
    pub send: SendLedger,
    /// Of the receiving side.
    pub receive: ReceiveLedger,
}

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
        let account = match self.send {
            SendCause::Opening => &mut self.opening,
            SendCause::ApplicationIdle => &mut self.idle,
            SendCause::AwaitingAcknowledgment => &mut self.awaiting_acknowledgment,
            SendCause::Link => &mut self.link,
            _ if elapsed == Duration::ZERO => &mut self.idle,
            other => &mut self.others.get_or_insert_default().send.0[other as usize],
        };
        *account += elapsed;
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
        let account = match self.receive {
            // Both ledgers leave it in the same call, and the sending one has counted it.
            ReceiveCause::Opening => {
                self.receive = cause;
                return true;
            }
            ReceiveCause::AwaitingData => &mut self.awaiting_data,
            ReceiveCause::ApplicationSlow => &mut self.application_slow,
            _ if elapsed == Duration::ZERO => &mut self.awaiting_data,
            other => &mut self.others.get_or_insert_default().receive.0[other as usize],
        };
        *account += elapsed;
        self.receive = cause;
        true
    }
    /// Both ledgers as they stand at `now`.
    pub fn at(&self, now: Instant) -> Ledgers {
        let mut ledgers = self.others.as_deref().copied().unwrap_or_default();
        let send = &mut ledgers.send.0;
        send[SendCause::Opening as usize] = self.opening;
        send[SendCause::ApplicationIdle as usize] = self.idle;
        send[SendCause::AwaitingAcknowledgment as usize] = self.awaiting_acknowledgment;
        send[SendCause::Link as usize] = self.link;
        send[self.send as usize] += now.since(self.send_since);
        let receive = &mut ledgers.receive.0;
        receive[ReceiveCause::Opening as usize] = self.opening;
        receive[ReceiveCause::AwaitingData as usize] = self.awaiting_data;
        receive[ReceiveCause::ApplicationSlow as usize] = self.application_slow;
        receive[self.receive as usize] += now.since(self.receive_since);
        ledgers
    }
}
