//! Where a connection's time went: each nanosecond of its age in exactly one cause of each ledger.

use crate::Environment;
use alloc::boxed::Box;
use inhost_base::{Duration, Instant};
use inhost_event::{CauseChanged, Event, Mask, ReceiveCause, SendCause};

/// Time by cause of the sending side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendLedger([Duration; SendCause::COUNT]);

/// Time by cause of the receiving side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
pub struct Ledgers {
    /// Of the sending side.
    pub send: SendLedger,
    /// Of the receiving side.
    pub receive: ReceiveLedger,
}

/// The accounts of a connection. The causes that an ordinary quiet connection knows are kept in place; the first of
/// any other takes one box for all of them.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Accounts {
    send_since: Instant,
    receive_since: Instant,
    /// Of both ledgers: the handshake is the same for both.
    opening_ns: u64,
    idle_ns: u64,
    awaiting_acknowledgment_ns: u64,
    link_ns: u64,
    awaiting_data_ns: u64,
    application_slow_ns: u64,
    others: Option<Box<Others>>,
    /// Transmissions that the peer got before the box of queues was last freed.
    pub delivered_segments: u32,
    send: SendCause,
    receive: ReceiveCause,
}

#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Others {
    send_ns: [u64; SendCause::COUNT],
    receive_ns: [u64; ReceiveCause::COUNT],
}

impl Accounts {
    /// Accounts of a connection that is born `now`.
    pub fn new(now: Instant) -> Self {
        Accounts {
            send_since: now,
            receive_since: now,
            opening_ns: 0,
            idle_ns: 0,
            awaiting_acknowledgment_ns: 0,
            link_ns: 0,
            awaiting_data_ns: 0,
            application_slow_ns: 0,
            others: None,
            delivered_segments: 0,
            send: SendCause::Opening,
            receive: ReceiveCause::Opening,
        }
    }
    /// Emits the causes of both ledgers.
    pub fn emit_causes(&self, env: &mut Environment<'_>) {
        let (socket, send, receive) = (env.socket, self.send_cause(), self.receive_cause());
        env.emit(Mask::CAUSE, || Event::CauseChanged(CauseChanged { socket, send, receive }));
    }
    /// Updates the receive ledger's cause. Emits both causes if it changed, or if the send ledger's cause `changed`.
    #[inline]
    pub fn update_receiving(&mut self, cause: ReceiveCause, mut changed: bool, env: &mut Environment<'_>) {
        changed |= self.receive_waits_for(cause, env.now);
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
        let elapsed_ns = now.since(self.send_since).as_nanos();
        self.send_since = self.send_since.max(now);
        let account = match self.send {
            SendCause::Opening => &mut self.opening_ns,
            SendCause::ApplicationIdle => &mut self.idle_ns,
            SendCause::AwaitingAcknowledgment => &mut self.awaiting_acknowledgment_ns,
            SendCause::Link => &mut self.link_ns,
            _ if elapsed_ns == 0 => &mut self.idle_ns,
            other => &mut self.others.get_or_insert_default().send_ns[other as usize],
        };
        *account += elapsed_ns;
        self.send = cause;
        true
    }
    /// From `now` on receiving waits for `cause`; true when it waited for something else.
    #[inline]
    pub fn receive_waits_for(&mut self, cause: ReceiveCause, now: Instant) -> bool {
        if self.receive == cause {
            return false;
        }
        let elapsed_ns = now.since(self.receive_since).as_nanos();
        self.receive_since = self.receive_since.max(now);
        let account = match self.receive {
            // Both ledgers leave it in the same call, and the sending one has counted it.
            ReceiveCause::Opening => {
                self.receive = cause;
                return true;
            }
            ReceiveCause::AwaitingData => &mut self.awaiting_data_ns,
            ReceiveCause::ApplicationSlow => &mut self.application_slow_ns,
            _ if elapsed_ns == 0 => &mut self.awaiting_data_ns,
            other => &mut self.others.get_or_insert_default().receive_ns[other as usize],
        };
        *account += elapsed_ns;
        self.receive = cause;
        true
    }
    /// Both ledgers as they stand at `now`.
    pub fn at(&self, now: Instant) -> Ledgers {
        let mut ledgers = Ledgers::default();
        if let Some(others) = &self.others {
            ledgers.send.0 = others.send_ns.map(Duration::from_nanos);
            ledgers.receive.0 = others.receive_ns.map(Duration::from_nanos);
        }
        let send = &mut ledgers.send.0;
        send[SendCause::Opening as usize] = Duration::from_nanos(self.opening_ns);
        send[SendCause::ApplicationIdle as usize] = Duration::from_nanos(self.idle_ns);
        send[SendCause::AwaitingAcknowledgment as usize] =
            Duration::from_nanos(self.awaiting_acknowledgment_ns);
        send[SendCause::Link as usize] = Duration::from_nanos(self.link_ns);
        send[self.send as usize] += now.since(self.send_since);
        let receive = &mut ledgers.receive.0;
        receive[ReceiveCause::Opening as usize] = Duration::from_nanos(self.opening_ns);
        receive[ReceiveCause::AwaitingData as usize] = Duration::from_nanos(self.awaiting_data_ns);
        receive[ReceiveCause::ApplicationSlow as usize] = Duration::from_nanos(self.application_slow_ns);
        receive[self.receive as usize] += now.since(self.receive_since);
        ledgers
    }
}
