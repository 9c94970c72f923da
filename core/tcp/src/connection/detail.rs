//! A connection's whole state, read from both halves.

use super::Connection;
use super::timers::SHRINK_AFTER;
use crate::detail::{AgreedDetail, Detail, OptionsDetail, Spent, Timer, ns};
use alloc::string::ToString;
use alloc::vec::Vec;
use inhost_base::{Deadline, Instant};
use inhost_event::{ReceiveCause, SendCause, TcpState};

impl Connection {
    /// The whole state as it stands at `now`, for a debugger. It costs a list of at most [`LISTED`](crate::LISTED) transmissions.
    pub fn detail(&self, now: Instant) -> Detail<'_> {
        let ledgers = self.accounts.at(now);
        let last = self.last_segment_at();
        let lingering = match self.common.state() {
            TcpState::TimeWait => "time-wait",
            TcpState::FinWait2 => "fin-wait-2",
            _ => "orphan",
        };
        let release_at =
            if self.holds_empty_buffers() { Deadline::at(last + SHRINK_AFTER) } else { Deadline::NEVER };
        let others = [
            ("delayed acknowledgment", self.receiver.acknowledge_at()),
            (lingering, self.common.linger_at()),
            ("memory release", release_at),
        ];
        Detail {
            now_ns: now.as_nanos(),
            age_ns: ns(ledgers.send.total()),
            state: self.common.state().text(),
            error: self.common.error().map(|error| error.to_string()),
            soft_error: self.common.soft_error().map(|error| error.to_string()),
            send: self.sender.detail(&self.common, self.accounts.send_cause(), now),
            receive: self.receiver.detail(&self.common, self.accounts.receive_cause(), now),
            round_trip: self.sender.round_trip_detail(&self.common, self.receiver.measured_round_trip()),
            congestion: self.sender.congestion_detail(),
            recovery: self.sender.recovery_detail(&self.common),
            timers: running(self.sender.timers(&self.common, last).into_iter().chain(others)),
            scoreboard: self.sender.scoreboard(),
            agreed: AgreedDetail::of(&self.common),
            options: OptionsDetail::of(&self.common),
            policy: &self.common.config().policy,
            send_ledger: SendCause::ALL
                .iter()
                .map(|&cause| Spent { cause: cause.text(), time_ns: ns(ledgers.send.of(cause)) })
                .collect(),
            receive_ledger: ReceiveCause::ALL
                .iter()
                .map(|&cause| Spent { cause: cause.text(), time_ns: ns(ledgers.receive.of(cause)) })
                .collect(),
        }
    }
}

/// Those of `timers` that run, by when they are due.
fn running(timers: impl IntoIterator<Item = (&'static str, Deadline)>) -> Vec<Timer> {
    let running = timers.into_iter().filter(|(_, at)| at.is_set());
    let mut timers: Vec<Timer> =
        running.map(|(name, at)| Timer { name, due_ns: at.instant().as_nanos() }).collect();
    timers.sort_by_key(|timer| timer.due_ns);
    timers
}
