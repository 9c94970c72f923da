//! Questions and their answers.

use std::path::Path;

use inhost_base::Cidr;
use inhost_event::{ReceiveCause, SendCause};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::record::Times;
use crate::store::{SUMS, TIMES, address, columns, open_to_read, record, times};
use crate::{HistoryError, Limit, Record};

/// Records that a question looks at: so many are read within a tenth of a second.
const LOOKED_AT: u32 = 10_000;
/// Records of a network that are put into the order of time at once. One with more is met often enough by who goes through
/// all records in that order.
const PUT_IN_ORDER: u32 = 60_000;
const MINUTE_MS: u64 = 60_000;

/// In which order records are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The latest first.
    #[default]
    Latest,
    /// Those with the least rate first.
    Slowest,
    /// Those that lived longest first.
    Longest,
    /// Those with the most bytes first.
    Largest,
    /// Those with the most segments sent again first.
    MostRetransmitted,
}

/// Which records are wanted. The default is the latest twenty.
#[derive(Clone, Debug)]
pub struct Question {
    /// Those with a peer in this network.
    pub peer: Option<Cidr>,
    /// Those with this port at either end.
    pub port: Option<u16>,
    /// Those that one of these limited; empty for any.
    pub limits: Vec<Limit>,
    /// Those that ended with an error, or without.
    pub failed: Option<bool>,
    /// Those that ended at this time or later: milliseconds since 1970, UTC.
    pub since_ms: u64,
    /// Those that ended before this time.
    pub until_ms: u64,
    /// Those with this rate or more, in bits per second.
    pub least_rate: u64,
    /// Those with this rate or less.
    pub most_rate: u64,
    /// The order.
    pub order: Order,
    /// The most records of an answer.
    pub count: u32,
}

impl Default for Question {
    fn default() -> Question {
        Question {
            peer: None,
            port: None,
            limits: Vec::new(),
            failed: None,
            since_ms: 0,
            until_ms: i64::MAX as u64,
            least_rate: 0,
            most_rate: i64::MAX as u64,
            order: Order::Latest,
            count: 20,
        }
    }
}

impl Question {
    /// Whether it asks for nothing but a time.
    fn is_of_time_alone(&self) -> bool {
        self.peer.is_none()
            && self.port.is_none()
            && self.limits.is_empty()
            && self.failed.is_none()
            && !self.has_rate()
    }
    fn has_rate(&self) -> bool {
        self.least_rate > 0 || self.most_rate < i64::MAX as u64
    }
}

/// Sums over connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sums {
    /// How many there were.
    pub connections: u64,
    /// How many of them ended with an error.
    pub failed: u64,
    /// Bytes that the peers acknowledged.
    pub sent_bytes: u64,
    /// Bytes that came in order.
    pub received_bytes: u64,
    /// Segments that were sent again.
    pub retransmitted_segments: u64,
    /// Time of the sending sides by cause, in the order of [`SendCause::ALL`].
    pub send_ns: [u64; SendCause::COUNT],
    /// Time of the receiving sides by cause, in the order of [`ReceiveCause::ALL`].
    pub receive_ns: [u64; ReceiveCause::COUNT],
}

/// Sums over a time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Span {
    /// From when: milliseconds since 1970, UTC.
    pub from_unix_ms: u64,
    /// For how long.
    pub length_ms: u64,
    /// The connections that ended meanwhile.
    pub sums: Sums,
}

/// The answer to a [`Question`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The records, in the order that was asked for.
    pub records: Vec<Record>,
    /// Sums over all that match.
    pub sums: Sums,
    /// There are more than were looked at: `records` and `sums` are of the latest 10,000, or, where only a rate was asked
    /// for, of the slowest.
    pub is_partial: bool,
}

/// The records of a folder, for questions.
#[derive(Debug)]
pub struct History {
    db: Connection,
}

impl History {
    /// Opens the records in `folder`, which another process may be writing.
    pub fn open(folder: &Path) -> Result<History, HistoryError> {
        Ok(History { db: open_to_read(folder)? })
    }
    /// Answers a question. It looks at a limited number of records, whatever there are.
    pub fn ask(&self, question: &Question) -> Result<Answer, HistoryError> {
        let is_sparse = match question.peer {
            Some(peer) => self.count(peer)? < PUT_IN_ORDER,
            None => false,
        };
        let chosen = Chosen::new(question, is_sparse);
        let order = match question.order {
            Order::Latest => "ended DESC, id DESC",
            Order::Slowest => "rate, id",
            Order::Longest => "age DESC, id",
            Order::Largest => "sent + received DESC, id",
            Order::MostRetransmitted => "again DESC, id",
        };
        let (from, columns) = (&chosen.text, columns());
        let text = format!(
            "SELECT {columns} FROM connection WHERE id IN ({from}) ORDER BY {order} LIMIT {}",
            question.count
        );
        let mut statement = self.db.prepare_cached(&text)?;
        let records =
            statement.query_map(params_from_iter(&chosen.values), record)?.collect::<Result<_, _>>()?;
        let is_partial = self
            .db
            .prepare_cached(&format!("SELECT count(*) FROM ({})", chosen.inner))?
            .query_row(params_from_iter(&chosen.values[..chosen.inner_values]), |row| {
                Ok(row.get::<_, u32>(0)? >= LOOKED_AT)
            })?;
        if is_partial && question.is_of_time_alone() {
            // The minutes know them all.
            let spans = self.spans(question.since_ms, question.until_ms, u64::MAX)?;
            if let Some(span) = spans.into_iter().next() {
                return Ok(Answer { records, sums: span.sums, is_partial });
            }
        }
        let sum = |name: &str| format!("ifnull(sum({name}), 0)");
        let of = ["sent", "received", "again"].map(sum).join(", ");
        let text = format!(
            "SELECT count(*), count(error), {of}, {} FROM connection WHERE id IN ({from})",
            times(sum)
        );
        let mut statement = self.db.prepare_cached(&text)?;
        let sums = statement.query_row(params_from_iter(&chosen.values), |row| sums(row, 0))?;
        Ok(Answer { records, sums, is_partial })
    }
    /// How many records there are of a network, as far as it matters.
    fn count(&self, network: Cidr) -> Result<u32, HistoryError> {
        let text = "SELECT count(*) FROM (SELECT 1 FROM connection INDEXED BY by_peer WHERE remote BETWEEN ?1 AND ?2 LIMIT ?3)";
        let [low, high] = range(network).map(|end| Value::Blob(end.to_vec()));
        let values = [low, high, Value::Integer(PUT_IN_ORDER.into())];
        Ok(self.db.prepare_cached(text)?.query_row(params_from_iter(values), |row| row.get(0))?)
    }
    /// Sums over spans of `length_ms`, whole minutes, from the minute of `since_ms` to that of `until_ms`. Spans in which no
    /// connection ended are left out.
    pub fn spans(&self, since_ms: u64, until_ms: u64, length_ms: u64) -> Result<Vec<Span>, HistoryError> {
        let minutes = (length_ms / MINUTE_MS).max(1);
        let first = since_ms / MINUTE_MS;
        let sum = |name: &str| format!("sum({name})");
        let sums_of = SUMS.split(", ").map(sum).collect::<Vec<_>>().join(", ");
        let text = format!(
            "SELECT (minute - ?1) / ?2, {sums_of}, {} FROM minute WHERE minute >= ?1 AND minute * {MINUTE_MS} < ?3 \
             GROUP BY 1 ORDER BY 1",
            times(sum)
        );
        let integer = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let values = [first, minutes, until_ms].map(integer);
        let mut statement = self.db.prepare_cached(&text)?;
        let span = |row: &Row<'_>| {
            let place = row.get::<_, i64>(0)?.cast_unsigned();
            let from_unix_ms = (first + place * minutes) * MINUTE_MS;
            Ok(Span { from_unix_ms, length_ms: minutes.saturating_mul(MINUTE_MS), sums: sums(row, 1)? })
        };
        let spans = statement.query_map(params_from_iter(values), span)?;
        Ok(spans.collect::<Result<_, _>>()?)
    }
    /// When the first and the last connection ended, where there is one.
    pub fn covers(&self) -> Result<Option<(u64, u64)>, HistoryError> {
        let text = "SELECT min(ended), max(ended) FROM connection";
        let ends = self
            .db
            .query_row(text, [], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?)))?;
        Ok(ends.0.zip(ends.1).map(|(first, last)| (first.cast_unsigned(), last.cast_unsigned())))
    }
}

/// The numbers of the records that a question chooses, as a query: an inner one goes along an index and stops in time, an
/// outer one looks at what it gives.
struct Chosen {
    text: String,
    inner: String,
    values: Vec<Value>,
    /// How many of the values are the inner query's.
    inner_values: usize,
}

impl Chosen {
    fn new(question: &Question, is_sparse: bool) -> Chosen {
        let mut inner = Conditions::default();
        let mut outer = Conditions::default();
        let exact = question.peer.filter(Cidr::is_whole);
        let (index, order) = match (question.peer, &question.limits[..]) {
            (Some(_), _) if is_sparse || exact.is_some() => ("by_peer", "ended DESC"),
            (None, [_]) => ("by_cause", "ended DESC"),
            (None, []) if question.has_rate() => ("by_rate", "rate"),
            _ => ("by_time", "ended DESC"),
        };
        if let Some(peer) = question.peer {
            let [low, high] = range(peer).map(|end| Value::Blob(end.to_vec()));
            match exact {
                Some(_) => inner.add("remote = ?", [low]),
                None => inner.add("remote BETWEEN ? AND ?", [low, high]),
            }
        }
        let numbers =
            question.limits.iter().map(|limit| limit.number().to_string()).collect::<Vec<_>>().join(", ");
        let of_cause = if index == "by_cause" { &mut inner } else { &mut outer };
        if !numbers.is_empty() {
            of_cause.add(&format!("cause IN ({numbers})"), []);
        }
        let of_time = if index == "by_rate" { &mut outer } else { &mut inner };
        of_time.add("ended >= ? AND ended < ?", [question.since_ms, question.until_ms].map(integer));
        if question.has_rate() {
            let of_rate = if index == "by_rate" { &mut inner } else { &mut outer };
            of_rate.add("rate BETWEEN ? AND ?", [question.least_rate, question.most_rate].map(integer));
        }
        if let Some(port) = question.port {
            outer.add("? IN (local_port, remote_port)", [integer(u64::from(port))]);
        }
        if let Some(failed) = question.failed {
            outer.add(if failed { "error IS NOT NULL" } else { "error IS NULL" }, []);
        }
        let inner_text = format!(
            "SELECT id FROM connection INDEXED BY {index} WHERE {} ORDER BY {order} LIMIT {LOOKED_AT}",
            inner.text()
        );
        let text = format!("SELECT id FROM connection WHERE id IN ({inner_text}) AND {}", outer.text());
        let inner_values = inner.values.len();
        let values = [inner.values, outer.values].concat();
        Chosen { text, inner: inner_text, values, inner_values }
    }
}

/// Conditions that all hold, and the values in them.
#[derive(Default)]
struct Conditions {
    texts: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    fn add<const N: usize>(&mut self, text: &str, values: [Value; N]) {
        self.texts.push(text.to_owned());
        self.values.extend(values);
    }
    fn text(&self) -> String {
        if self.texts.is_empty() { "1".to_owned() } else { self.texts.join(" AND ") }
    }
}

fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The first and the last address of a network, as the tables have them.
fn range(network: Cidr) -> [[u8; 16]; 2] {
    let low = address(network.network());
    let bits = Cidr::whole(network.address()).prefix_bits();
    let host_bits = u32::from(bits - network.prefix_bits());
    let hosts = u128::MAX.checked_shr(128 - host_bits).unwrap_or(0);
    [low, (u128::from_be_bytes(low) | hosts).to_be_bytes()]
}

/// Sums from a row, whose columns begin at `first`.
fn sums(row: &Row<'_>, first: usize) -> rusqlite::Result<Sums> {
    let number = |at: usize| row.get::<_, i64>(first + at).map(i64::cast_unsigned);
    let mut times = [0; TIMES];
    for (at, time) in times.iter_mut().enumerate() {
        *time = number(5 + at)?;
    }
    let (send, receive) = times.split_at(SendCause::COUNT);
    Ok(Sums {
        connections: number(0)?,
        failed: number(1)?,
        sent_bytes: number(2)?,
        received_bytes: number(3)?,
        retransmitted_segments: number(4)?,
        send_ns: send.try_into().unwrap_or_default(),
        receive_ns: receive.try_into().unwrap_or_default(),
    })
}

impl Serialize for Sums {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("connections", &self.connections)?;
        map.serialize_entry("failed", &self.failed)?;
        map.serialize_entry("sent_bytes", &self.sent_bytes)?;
        map.serialize_entry("received_bytes", &self.received_bytes)?;
        map.serialize_entry("retransmitted_segments", &self.retransmitted_segments)?;
        map.serialize_entry("send_ns", &Times(SendCause::ALL, &self.send_ns))?;
        map.serialize_entry("receive_ns", &Times(ReceiveCause::ALL, &self.receive_ns))?;
        map.end()
    }
}
