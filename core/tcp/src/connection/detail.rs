//! A connection's whole state, read from both halves.

use super::Connection;
use super::timers::SHRINK_AFTER;
use crate::detail::{agreed, ns, options};
use alloc::string::ToString;
use alloc::vec::Vec;
use inhost_base::{Deadline, Duration, Instant};
use inhost_event::TcpState;
use serde_json::{Value, json};

impl Connection {
    /// The whole state as it stands at `now`, for a debugger: an object of plain values, with sections for each half,
    /// the round trip, congestion, recovery, what the SYNs agreed on and what was configured. Times are in nanoseconds,
    /// sizes in bytes, as the names say; due times are on the host's clock. Positions count from the SYN of their
    /// direction, which is 0; `initial` is its number on the wire. Lists have at most [`LISTED`](crate::LISTED) items.
    pub fn detail(&self, now: Instant) -> Value {
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
        json!({
            "now_ns": now.as_nanos(),
            "age_ns": ns(ledgers.send.total()),
            "state": self.common.state().text(),
            "error": self.common.error().map(|error| error.to_string()),
            "soft_error": self.common.soft_error().map(|error| error.to_string()),
            "send": self.sender.detail(&self.common, self.accounts.send_cause(), now),
            "receive": self.receiver.detail(&self.common, self.accounts.receive_cause(), now),
            "round_trip": self.sender.round_trip_detail(&self.common, self.receiver.measured_round_trip()),
            "congestion": self.sender.congestion_detail(),
            "recovery": self.sender.recovery_detail(&self.common),
            "timers": running(self.sender.timers(&self.common, last).into_iter().chain(others)),
            "scoreboard": self.sender.scoreboard(),
            "agreed": agreed(&self.common),
            "options": options(&self.common),
            "policy": self.common.policy(),
            "send_ledger": spent(ledgers.send.iter().map(|(cause, time)| (cause.text(), time))),
            "receive_ledger": spent(ledgers.receive.iter().map(|(cause, time)| (cause.text(), time))),
        })
    }
}

/// Those of `timers` that run, by when they are due.
fn running(timers: impl IntoIterator<Item = (&'static str, Deadline)>) -> Vec<Value> {
    let mut running: Vec<_> = timers.into_iter().filter(|(_, at)| at.is_set()).collect();
    running.sort_by_key(|(_, at)| at.instant());
    running.iter().map(|(name, at)| json!({"name": name, "due_ns": at.instant().as_nanos()})).collect()
}

/// Time by cause of waiting.
fn spent(times: impl Iterator<Item = (&'static str, Duration)>) -> Vec<Value> {
    times.map(|(cause, time)| json!({"cause": cause, "time_ns": ns(time)})).collect()
}
