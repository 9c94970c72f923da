//! What is to be measured: a plain value, which TOML and JSON can say.

use inhost_base::Duration;
use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, DistributionError};
use crate::statistics::Rule;

/// Characters that a screenful has: what a full-screen terminal is sent for one character.
pub const SCREEN_BYTES: u64 = 1966;
/// Most parallel streams, as in iperf3.
pub const STREAMS_MAX: u16 = 128;
/// Most connections of transactions.
pub const CONNECTIONS_MAX: u16 = 4096;
/// Longest run, in milliseconds: a day, as in iperf3.
pub const TIME_MAX_MS: u64 = 86_400_000;
/// Longest warm-up, in milliseconds, as in iperf3.
pub const WARM_UP_MAX_MS: u64 = 600_000;
/// Largest write, in bytes, as in iperf3.
pub const WRITE_MAX_BYTES: u32 = 1 << 20;
/// Least datagram, in bytes: its header.
pub const DATAGRAM_MIN_BYTES: u32 = 16;
/// Largest datagram, in bytes.
pub const DATAGRAM_MAX_BYTES: u32 = 65_507;
/// Largest window, in bytes, as in iperf3.
pub const WINDOW_MAX_BYTES: u32 = 512 << 20;
/// Largest request or response, in bytes.
pub const MESSAGE_MAX_BYTES: u64 = 64 << 20;
/// Longest think time, in microseconds.
pub const THINK_MAX_US: u64 = 60_000_000;
/// Most threads of artificial load.
pub const LOAD_MAX: u8 = 64;
/// Most repetitions.
pub const REPETITIONS_MAX: u32 = 10_000;
/// Least interval of reports, in milliseconds.
pub const INTERVAL_MIN_MS: u64 = 10;
/// Most reports of a run.
pub const INTERVALS_MAX: u64 = 86_400;
/// Longest name of a congestion control, in bytes.
const CONGESTION_MAX_BYTES: usize = 15;

/// Transport protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
}

/// Who sends, seen from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The client sends.
    #[default]
    Send,
    /// The server sends.
    Receive,
    /// Both send, on streams of their own.
    Both,
}

impl Direction {
    /// Whether the client sends, and whether the server does.
    pub fn senders(self) -> [bool; 2] {
        [self != Direction::Receive, self != Direction::Send]
    }
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Bulk data.
    #[default]
    Stream,
    /// A request and its response, of sizes by distribution.
    Request,
    /// One character, which comes back.
    Echo,
    /// One character, for which a screenful of [`SCREEN_BYTES`] comes.
    Screen,
    /// Connections, opened and closed one after another: connects a second.
    Connect,
    /// Many connections, opened at once and held together.
    Connections,
}

impl Kind {
    /// Whether transactions are timed; only our own server has them.
    pub fn is_transaction(self) -> bool {
        self != Kind::Stream
    }
}

/// What is to be measured. Begin with [`Plan::default`]: one TCP stream to the server for 10 s, once.
///
/// ```
/// use inhost_inett::plan::{Kind, Plan};
/// let plan: Plan = toml::from_str("kind = 'echo'\ncount = 1000\nthink_us = { exponential = { mean = 500 } }")?;
/// assert_eq!((plan.kind, plan.count), (Kind::Echo, Some(1000)));
/// plan.validate()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Plan {
    /// Default: TCP. Transactions are over TCP.
    pub protocol: Protocol,
    /// Default: bulk data.
    pub kind: Kind,
    /// Who sends bulk data. Default: the client.
    pub direction: Direction,
    /// Ends after this time, in milliseconds, warm-up not counted. Default: 10 s, where nothing else ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Ends after so many bytes of bulk data, all streams together. What is in flight at the end does not count as
    /// received, as with iperf3, so take many times what the buffers hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Ends after so many writes or datagrams of bulk data, or so many transactions of a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Bytes of one write or datagram. Default: 128 KiB for TCP, 1,448 for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_bytes: Option<u32>,
    /// Socket buffers, in bytes, at both ends. Default: the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// Rate of each stream, in bits a second; 0 is as fast as possible. Default: 0 for TCP, 1 Mbit/s for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_second: Option<u64>,
    /// Congestion control by name, at both ends. Default: the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Whether small segments leave at once (no Nagle). Default: as in iperf3, no for streams; transactions always.
    pub no_delay: bool,
    /// Parallel streams each way. Default: 1.
    pub streams: u16,
    /// Connections on which transactions run at the same time. Default: 1.
    pub connections: u16,
    /// Bytes of a request. Default: 64.
    pub request_bytes: Distribution,
    /// Bytes of a response. Default: 1,024.
    pub response_bytes: Distribution,
    /// Time between a response and the next request, in microseconds. Default: 0.
    pub think_us: Distribution,
    /// Time at the beginning that is left out, in milliseconds. Default: 0.
    pub warm_up_ms: u64,
    /// Interval of reports, in milliseconds; 0 is none. Default: 1,000.
    pub interval_ms: u64,
    /// Streams of bulk data in the background while transactions are timed. Default: 0.
    pub background_streams: u16,
    /// Who sends that bulk data. Default: the client.
    pub background_direction: Direction,
    /// Threads that multiply matrices without sleeping, at the client (VPI §2.5). Default: 0.
    pub load: u8,
    /// Repetitions at least. Default: 1; 3 or more give a confidence interval.
    pub repetitions_min: u32,
    /// Repetitions at most. Default: 1.
    pub repetitions_max: u32,
    /// Half width of the 95 % confidence interval that is asked for, as a share of the mean. Default: 0.05.
    pub half_width_share: f64,
    /// Seed of all draws. Default: 1.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            protocol: Protocol::Tcp,
            kind: Kind::Stream,
            direction: Direction::Send,
            time_ms: None,
            bytes: None,
            count: None,
            write_bytes: None,
            window_bytes: None,
            rate_bits_per_second: None,
            congestion: None,
            no_delay: false,
            streams: 1,
            connections: 1,
            request_bytes: Distribution::Constant(64),
            response_bytes: Distribution::Constant(1024),
            think_us: Distribution::Constant(0),
            warm_up_ms: 0,
            interval_ms: 1000,
            background_streams: 0,
            background_direction: Direction::Send,
            load: 0,
            repetitions_min: 1,
            repetitions_max: 1,
            half_width_share: 0.05,
            seed: 1,
        }
    }
}

impl Plan {
    /// Bytes of one write or datagram, where the plan does not say it.
    pub fn write_bytes(&self) -> u32 {
        self.write_bytes.unwrap_or(match self.protocol {
            Protocol::Tcp => 128 << 10,
            Protocol::Udp => 1448,
        })
    }
    /// Bits a second of a stream; 0 is as fast as possible.
    pub fn rate(&self) -> u64 {
        self.rate_bits_per_second.unwrap_or(match self.protocol {
            Protocol::Tcp => 0,
            Protocol::Udp => 1_000_000,
        })
    }
    /// How long it runs, warm-up not counted; `None` where something else ends it.
    pub fn time(&self) -> Option<Duration> {
        let ends_otherwise = self.bytes.is_some() || self.count.is_some() || self.kind == Kind::Connections;
        match self.time_ms {
            Some(ms) => Some(Duration::from_millis(ms)),
            None if ends_otherwise => None,
            None => Some(Duration::from_secs(10)),
        }
    }
    /// The rule of repetition.
    pub fn rule(&self) -> Rule {
        Rule { at_least: self.repetitions_min, at_most: self.repetitions_max, share: self.half_width_share }
    }
    /// Whether it can be measured.
    ///
    /// # Errors
    /// The first key whose value cannot be, and why.
    pub fn validate(&self) -> Result<(), PlanError> {
        self.validate_end()?;
        self.validate_stream()?;
        self.validate_transaction()?;
        within("warm_up_ms", self.warm_up_ms, 0, WARM_UP_MAX_MS)?;
        if !self.warm_up_ms.is_multiple_of(1000) {
            return Err(PlanError::WholeSeconds);
        }
        if self.interval_ms != 0 {
            within("interval_ms", self.interval_ms, INTERVAL_MIN_MS, TIME_MAX_MS)?;
        }
        within("load", self.load.into(), 0, LOAD_MAX.into())?;
        within("repetitions_max", self.repetitions_max.into(), 1, REPETITIONS_MAX.into())?;
        within("repetitions_min", self.repetitions_min.into(), 1, self.repetitions_max.into())?;
        match self.half_width_share > 0.0 && self.half_width_share < 1.0 {
            true => Ok(()),
            false => Err(PlanError::Share),
        }
    }
    fn validate_end(&self) -> Result<(), PlanError> {
        let ends = [self.time_ms.is_some(), self.bytes.is_some(), self.count.is_some()];
        if ends.iter().filter(|is_set| **is_set).count() > 1 {
            return Err(PlanError::ManyEnds);
        }
        within("time_ms", self.time_ms.unwrap_or(1), 1, TIME_MAX_MS)?;
        within("bytes", self.bytes.unwrap_or(1), 1, u64::MAX >> 11)?;
        within("count", self.count.unwrap_or(1), 1, u64::MAX >> 11)?;
        match self.kind.is_transaction() && self.bytes.is_some() {
            true => Err(PlanError::BytesOfTransactions),
            false => Ok(()),
        }
    }
    fn validate_stream(&self) -> Result<(), PlanError> {
        let write = u64::from(self.write_bytes());
        match self.protocol {
            Protocol::Tcp => within("write_bytes", write, 1, WRITE_MAX_BYTES.into())?,
            Protocol::Udp => {
                within("write_bytes", write, DATAGRAM_MIN_BYTES.into(), DATAGRAM_MAX_BYTES.into())?;
            }
        }
        within("window_bytes", self.window_bytes.unwrap_or(1).into(), 1, WINDOW_MAX_BYTES.into())?;
        within("rate_bits_per_second", self.rate(), 0, u64::MAX >> 11)?;
        within("streams", self.streams.into(), 1, STREAMS_MAX.into())?;
        let is_name = |name: &String| {
            (1..=CONGESTION_MAX_BYTES).contains(&name.len())
                && name.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"_-".contains(&octet))
        };
        match self.congestion.as_ref().is_none_or(is_name) {
            true => Ok(()),
            false => Err(PlanError::Congestion),
        }
    }
    fn validate_transaction(&self) -> Result<(), PlanError> {
        within("connections", self.connections.into(), 1, CONNECTIONS_MAX.into())?;
        within("background_streams", self.background_streams.into(), 0, STREAMS_MAX.into())?;
        for (key, of, most) in [
            ("request_bytes", &self.request_bytes, MESSAGE_MAX_BYTES),
            ("response_bytes", &self.response_bytes, MESSAGE_MAX_BYTES),
            ("think_us", &self.think_us, THINK_MAX_US),
        ] {
            of.validate().map_err(|why| PlanError::Distribution { key, why })?;
            within(key, of.greatest(), 0, most)?;
        }
        match self.kind.is_transaction() && self.protocol == Protocol::Udp {
            true => Err(PlanError::TransactionsOverUdp),
            false => Ok(()),
        }
    }
}

fn within(key: &'static str, value: u64, least: u64, most: u64) -> Result<(), PlanError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(PlanError::OutOfRange { key, value, least, most }),
    }
}

/// Why a plan cannot be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PlanError {
    /// A value is out of its range.
    #[allow(missing_docs)]
    OutOfRange { key: &'static str, value: u64, least: u64, most: u64 },
    /// A distribution makes no sense.
    #[allow(missing_docs)]
    Distribution { key: &'static str, why: DistributionError },
    /// More than one of time, bytes and count is set.
    ManyEnds,
    /// Transactions end by time or count.
    BytesOfTransactions,
    /// Transactions are over TCP only.
    TransactionsOverUdp,
    /// The warm-up has whole seconds, for iperf3 says no others.
    WholeSeconds,
    /// The name of the congestion control is not a name.
    Congestion,
    /// The half width is not a share between 0 and 1.
    Share,
}

impl core::fmt::Display for PlanError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PlanError::OutOfRange { key, value, least, most } => {
                write!(f, "{key} is {value}; it must be between {least} and {most}")
            }
            PlanError::Distribution { key, why } => write!(f, "{key}: {why}"),
            PlanError::ManyEnds => f.write_str("only one of time_ms, bytes and count may be set"),
            PlanError::BytesOfTransactions => {
                f.write_str("transactions end by time_ms or count, and not by bytes")
            }
            PlanError::TransactionsOverUdp => f.write_str("transactions are measured over TCP only"),
            PlanError::WholeSeconds => {
                f.write_str("warm_up_ms must be whole seconds: iperf3 knows no others")
            }
            PlanError::Congestion => f.write_str("congestion is not the name of a congestion control"),
            PlanError::Share => f.write_str("half_width_share must be above 0 and below 1"),
        }
    }
}
impl core::error::Error for PlanError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(toml: &str) -> PlanError {
        toml::from_str::<Plan>(toml).unwrap().validate().unwrap_err()
    }

    #[test]
    fn toml_and_json_say_the_same() {
        let plan: Plan = toml::from_str(
            "kind = 'request'\nrequest_bytes = { uniform = { least = 1, most = 9 } }\nload = 2\nrepetitions_max = 9",
        )
        .unwrap();
        plan.validate().unwrap();
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
        assert_eq!(toml::from_str::<Plan>(&toml::to_string(&plan).unwrap()).unwrap(), plan);
        assert!(toml::from_str::<Plan>("strems = 2").is_err());
        Plan::default().validate().unwrap();
    }

    #[test]
    fn each_limit_is_kept() {
        for (text, key) in [
            ("streams = 129", "streams"),
            ("write_bytes = 0", "write_bytes"),
            ("protocol = 'udp'\nwrite_bytes = 15", "write_bytes"),
            ("protocol = 'udp'\nwrite_bytes = 65508", "write_bytes"),
            ("time_ms = 0", "time_ms"),
            ("interval_ms = 1", "interval_ms"),
            ("load = 65", "load"),
            ("repetitions_min = 2", "repetitions_min"),
            ("repetitions_max = 0", "repetitions_max"),
            ("connections = 0", "connections"),
            ("request_bytes = { constant = 67108865 }", "request_bytes"),
        ] {
            assert!(
                matches!(refused(text), PlanError::OutOfRange { key: found, .. } if found == key),
                "{text}"
            );
        }
        assert_eq!(refused("time_ms = 5\ncount = 5"), PlanError::ManyEnds);
        assert_eq!(refused("kind = 'echo'\nprotocol = 'udp'"), PlanError::TransactionsOverUdp);
        assert_eq!(refused("kind = 'echo'\nbytes = 1"), PlanError::BytesOfTransactions);
        assert_eq!(refused("congestion = 'a b'"), PlanError::Congestion);
        assert_eq!(refused("half_width_share = nan"), PlanError::Share);
        assert_eq!(refused("warm_up_ms = 1500"), PlanError::WholeSeconds);
    }
}
