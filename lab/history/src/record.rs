//! A closed connection.

use std::fmt;
use std::net::SocketAddr;

use inhost_base::Duration;
use inhost_event::{Ended, ReceiveCause, SendCause};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A cause has to have this part of the time, in per cent, to be what limited a connection.
const LIMITING_PER_CENT: u64 = 10;

/// A closed connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When it ended: milliseconds since 1970, UTC.
    pub ended_ms: u64,
    /// Our end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Whether we called.
    pub called: bool,
    /// How long it lived.
    pub age_ns: u64,
    /// Bytes that the peer acknowledged.
    pub sent_bytes: u64,
    /// Bytes that came in order.
    pub received_bytes: u64,
    /// Segments that were sent again.
    pub retransmitted_segments: u32,
    /// Bytes that were sent again.
    pub retransmitted_bytes: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u32,
    /// The smoothed round trip, where one was measured.
    pub round_trip_ns: Option<u64>,
    /// Why it ended, where not by both sides closing.
    pub error: Option<String>,
    /// Time of the sending side by cause, in the order of [`SendCause::ALL`].
    pub send_ns: [u64; SendCause::COUNT],
    /// Time of the receiving side by cause, in the order of [`ReceiveCause::ALL`].
    pub receive_ns: [u64; ReceiveCause::COUNT],
}

/// What limited a connection most, on the side that carried more bytes. Time that the application was idle, nothing was to be
/// received, or the side was closed counts only where no other cause has a tenth of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// A cause of the sending side.
    Sending(SendCause),
    /// A cause of the receiving side.
    Receiving(ReceiveCause),
}

/// Numbers of the receiving side's causes begin here.
const RECEIVING: usize = 100;

impl Limit {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Limit::Sending(cause) => cause.text(),
            Limit::Receiving(cause) => cause.text(),
        }
    }
    /// As one word that no shell changes: `receivers-window`.
    pub fn word(self) -> String {
        match self {
            Limit::Sending(cause) => cause.word(),
            Limit::Receiving(cause) => cause.word(),
        }
    }
    /// Every one that has this name, in words or as one; the two sides have a few in common.
    pub fn named(name: &str) -> Vec<Limit> {
        Limit::all().filter(|limit| limit.text() == name || limit.word() == name).collect()
    }
    /// Every one.
    pub fn all() -> impl Iterator<Item = Limit> {
        let sending = SendCause::ALL.iter().map(|&cause| Limit::Sending(cause));
        sending.chain(ReceiveCause::ALL.iter().map(|&cause| Limit::Receiving(cause)))
    }
    pub(crate) fn number(self) -> i64 {
        let number = match self {
            Limit::Sending(cause) => cause as usize,
            Limit::Receiving(cause) => RECEIVING + cause as usize,
        };
        number as i64
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl Record {
    /// The record of a connection that ended at `ended_ms`, in milliseconds since 1970, UTC.
    pub fn new(ended_ms: u64, ended: &Ended) -> Record {
        Record {
            ended_ms,
            local: ended.local.into(),
            remote: ended.remote.into(),
            called: ended.active,
            age_ns: ended.age.as_nanos(),
            sent_bytes: ended.sent_bytes,
            received_bytes: ended.received_bytes,
            retransmitted_segments: ended.retransmitted_segments,
            retransmitted_bytes: ended.retransmitted_bytes,
            timeouts: ended.timeouts,
            round_trip_ns: ended.smoothed_round_trip.map(Duration::as_nanos),
            error: ended.error.map(str::to_owned),
            send_ns: ended.ledgers.send.times().map(Duration::as_nanos),
            receive_ns: ended.ledgers.receive.times().map(Duration::as_nanos),
        }
    }
    /// What limited it.
    pub fn limit(&self) -> Limit {
        let limits = |ns: u64| ns > 0 && ns >= self.age_ns / 100 * LIMITING_PER_CENT;
        if self.sent_bytes >= self.received_bytes {
            let aside = [SendCause::Closed, SendCause::ApplicationIdle];
            let ns = |cause: &SendCause| self.send_ns[*cause as usize];
            let causes = SendCause::ALL.iter().copied().filter(|cause| !aside.contains(cause));
            let most = causes.max_by_key(ns).filter(|cause| limits(ns(cause)));
            let most = most.or(aside.into_iter().max_by_key(ns));
            return Limit::Sending(most.unwrap_or(SendCause::ApplicationIdle));
        }
        let aside = [ReceiveCause::Closed, ReceiveCause::AwaitingData];
        let ns = |cause: &ReceiveCause| self.receive_ns[*cause as usize];
        let causes = ReceiveCause::ALL.iter().copied().filter(|cause| !aside.contains(cause));
        let most = causes.max_by_key(ns).filter(|cause| limits(ns(cause)));
        let most = most.or(aside.into_iter().max_by_key(ns));
        Limit::Receiving(most.unwrap_or(ReceiveCause::AwaitingData))
    }
    /// Bits per second of both directions, over its life.
    pub fn bits_per_second(&self) -> u64 {
        let bits = u128::from(self.sent_bytes + self.received_bytes) * 8_000_000_000;
        u64::try_from(bits / u128::from(self.age_ns.max(1))).unwrap_or(u64::MAX)
    }
}

/// Times by cause, those of no time left out.
pub(crate) struct Times<'a, C>(pub(crate) &'a [C], pub(crate) &'a [u64]);

impl<C: fmt::Display> Serialize for Times<'_, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spent = self.0.iter().zip(self.1).filter(|(_, ns)| **ns > 0);
        serializer.collect_map(spent.map(|(cause, ns)| (cause.to_string(), ns)))
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("ended_unix_ms", &self.ended_ms)?;
        map.serialize_entry("local", &self.local)?;
        map.serialize_entry("remote", &self.remote)?;
        map.serialize_entry("opened_by", if self.called { "us" } else { "peer" })?;
        map.serialize_entry("age_ns", &self.age_ns)?;
        map.serialize_entry("sent_bytes", &self.sent_bytes)?;
        map.serialize_entry("received_bytes", &self.received_bytes)?;
        map.serialize_entry("bits_per_second", &self.bits_per_second())?;
        map.serialize_entry("retransmitted_segments", &self.retransmitted_segments)?;
        map.serialize_entry("retransmitted_bytes", &self.retransmitted_bytes)?;
        map.serialize_entry("timeouts", &self.timeouts)?;
        map.serialize_entry("round_trip_ns", &self.round_trip_ns)?;
        map.serialize_entry("error", &self.error)?;
        map.serialize_entry("limit", self.limit().text())?;
        map.serialize_entry("send_ns", &Times(SendCause::ALL, &self.send_ns))?;
        map.serialize_entry("receive_ns", &Times(ReceiveCause::ALL, &self.receive_ns))?;
        map.end()
    }
}
