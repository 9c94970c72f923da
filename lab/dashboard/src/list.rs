//! The list of connections: taken some at a time, sorted and filtered on other threads.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use inhost_base::{Duration, Instant};
use inhost_socket::Host;
use inhost_stack::{SocketInfo, SocketKind};
use serde::Serialize;

use crate::filter::Filter;
use crate::row::{Row, Shown};

/// Connections that are looked at in one round, and places of the table, free ones included.
const LOOKED_AT: usize = 64;
const PLACES: usize = 4096;
/// A list is shown again for this time, and longer for each of its rows: taking it costs others little.
const LASTS: Duration = Duration::from_millis(900);
const LASTS_A_ROW: Duration = Duration::from_micros(20);
/// A list of this age is shown while a new one is taken.
const SHOWN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Rows of an answer at most.
pub(crate) const MOST_ROWS: usize = 1000;

/// All sockets, as they were within a short time.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) taken: Instant,
    pub(crate) rows: Vec<Row>,
    pub(crate) listeners: Vec<Listener>,
    /// The first of those that are neither.
    pub(crate) others: Vec<Other>,
    /// How many there are of each kind.
    pub(crate) counts: [u64; KINDS],
}

/// Kinds of sockets.
const KINDS: usize = 5;

/// A listener with its queues.
#[derive(Debug, Serialize)]
pub(crate) struct Listener {
    local: String,
    /// Connections that wait for the application, and how many may.
    accept_queue: usize,
    accept_limit: Option<usize>,
    /// Handshakes that have begun.
    handshakes: usize,
}

/// The list of a host's connections. Nothing is taken before somebody asks.
pub(crate) struct List {
    host: Host,
    latest: RefCell<Option<Arc<Snapshot>>>,
    is_taking: Cell<bool>,
}

impl List {
    pub(crate) fn new(host: &Host) -> Rc<List> {
        Rc::new(List { host: host.clone(), latest: RefCell::default(), is_taking: Cell::new(false) })
    }
    /// A list that is hardly older than a second, or a little older while a new one is taken.
    pub(crate) async fn latest(self: &Rc<List>) -> Arc<Snapshot> {
        loop {
            let latest = self.latest.borrow().clone();
            let age = latest.as_ref().map_or(Duration::MAX, |latest| self.host.now().since(latest.taken));
            let rows = latest.as_ref().map_or(0, |latest| latest.rows.len()) as u64;
            if age >= LASTS + LASTS_A_ROW.times(rows) && !self.is_taking.replace(true) {
                let list = self.clone();
                self.host.spawn(async move { list.take().await }).detach();
            }
            match latest {
                Some(latest) if age < SHOWN => return latest,
                _ => self.host.sleep(LOOK_AGAIN).await,
            }
        }
    }
    async fn take(&self) {
        let (mut snapshot, mut place) = (Snapshot::default(), 0);
        snapshot.taken = loop {
            let (next, now) = self.host.with_stack(|stack, now| {
                let instruments = stack.instruments();
                let (places, mut looked_at, first) = (instruments.socket_places(), 0, place);
                while place < places && looked_at < LOOKED_AT && place - first < PLACES {
                    if let Some(info) = instruments.socket_at(place, now) {
                        snapshot.add(&info, instruments.backlog(info.socket));
                        looked_at += 1;
                    }
                    place += 1;
                }
                ((place < places).then_some(place), now)
            });
            match next {
                None => break now,
                // Time goes on between rounds only.
                Some(_) => self.host.sleep(Duration::from_nanos(1)).await,
            }
        };
        let before = self.latest.borrow().clone();
        let snapshot = blocking::unblock(move || with_rates(snapshot, before.as_deref())).await;
        *self.latest.borrow_mut() = Some(Arc::new(snapshot));
        self.is_taking.set(false);
    }
}

/// A socket that is neither a connection nor a listener.
#[derive(Debug, Serialize)]
pub(crate) struct Other {
    kind: &'static str,
    local: String,
    remote: Option<String>,
    receive_queue: usize,
    send_queue: usize,
}

impl Snapshot {
    fn add(&mut self, info: &SocketInfo, backlog: Option<usize>) {
        self.counts[info.kind as usize] += 1;
        self.rows.extend(Row::new(info));
        let local = || info.local.to_string();
        let mut other = |kind| {
            if self.others.len() < MOST_ROWS {
                self.others.push(Other {
                    kind,
                    local: local(),
                    remote: info.remote.map(|remote| remote.to_string()),
                    receive_queue: info.receive_queue,
                    send_queue: info.send_queue,
                });
            }
        };
        match info.kind {
            SocketKind::Connection => {}
            SocketKind::Listener => self.listeners.push(Listener {
                local: local(),
                accept_queue: info.receive_queue,
                accept_limit: backlog,
                handshakes: info.send_queue,
            }),
            SocketKind::Udp => other("udp"),
            SocketKind::Echo => other("echo"),
            SocketKind::Probe => other("probe"),
        }
    }
}

/// The list with the rates of its rows since the list before.
fn with_rates(mut snapshot: Snapshot, before: Option<&Snapshot>) -> Snapshot {
    if let Some(before) = before {
        let seconds = snapshot.taken.since(before.taken).as_secs_f64().max(1e-3);
        let known: HashMap<u64, (u64, u64)> =
            before.rows.iter().map(|row| (row.id, (row.sent_bytes, row.received_bytes))).collect();
        for row in &mut snapshot.rows {
            if let Some((sent, received)) = known.get(&row.id) {
                row.send_rate = row.sent_bytes.saturating_sub(*sent) as f64 / seconds;
                row.receive_rate = row.received_bytes.saturating_sub(*received) as f64 / seconds;
            }
        }
    }
    snapshot
}

/// By what rows are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Age,
    Sent,
    Received,
    SendRate,
    ReceiveRate,
    RoundTrip,
    Retransmitted,
    Local,
    Remote,
    State,
    Cause,
    SendQueue,
    ReceiveQueue,
}

impl std::str::FromStr for Sort {
    type Err = ();
    fn from_str(text: &str) -> Result<Sort, ()> {
        Ok(match text {
            "age" => Sort::Age,
            "sent" => Sort::Sent,
            "received" => Sort::Received,
            "send_rate" | "rate" => Sort::SendRate,
            "receive_rate" => Sort::ReceiveRate,
            "rtt" => Sort::RoundTrip,
            "retransmitted" => Sort::Retransmitted,
            "local" => Sort::Local,
            "remote" => Sort::Remote,
            "state" => Sort::State,
            "cause" => Sort::Cause,
            "send_queue" => Sort::SendQueue,
            "receive_queue" => Sort::ReceiveQueue,
            _ => return Err(()),
        })
    }
}

/// Which rows of a list are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) sort: Sort,
    pub(crate) is_descending: bool,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    pub(crate) filter: Filter,
}

/// The rows of an answer.
#[derive(Serialize)]
struct Rows {
    total: usize,
    matched: usize,
    age_of_list_ns: u64,
    rows: Vec<Shown>,
}

impl Page {
    /// The rows as JSON. It takes some milliseconds where there are many.
    pub(crate) fn of(&self, snapshot: &Snapshot, age: Duration) -> Bytes {
        let mut rows: Vec<&Row> =
            snapshot.rows.iter().filter(|row| self.filter.has(&row.subject())).collect();
        // Those with equal keys keep their places from one list to the next.
        rows.sort_unstable_by(|one, other| {
            let order = self.order(one, other);
            let order = if self.is_descending { order.reverse() } else { order };
            order.then(one.id.cmp(&other.id))
        });
        let answer = Rows {
            total: snapshot.rows.len(),
            matched: rows.len(),
            age_of_list_ns: age.as_nanos(),
            rows: rows.iter().skip(self.offset).take(self.limit).map(|row| row.shown()).collect(),
        };
        serde_json::to_vec(&answer).unwrap_or_default().into()
    }
    fn order(&self, one: &Row, other: &Row) -> std::cmp::Ordering {
        match self.sort {
            Sort::Age => one.age_ns.cmp(&other.age_ns),
            Sort::Sent => one.sent_bytes.cmp(&other.sent_bytes),
            Sort::Received => one.received_bytes.cmp(&other.received_bytes),
            Sort::SendRate => one.send_rate.total_cmp(&other.send_rate),
            Sort::ReceiveRate => one.receive_rate.total_cmp(&other.receive_rate),
            Sort::RoundTrip => one.round_trip_ns.cmp(&other.round_trip_ns),
            Sort::Retransmitted => one.retransmitted_segments.cmp(&other.retransmitted_segments),
            Sort::Local => one.local.cmp(&other.local),
            Sort::Remote => one.remote.cmp(&other.remote),
            Sort::State => one.state.cmp(&other.state),
            Sort::Cause => one.cause.cmp(&other.cause),
            Sort::SendQueue => one.send_queue.cmp(&other.send_queue),
            Sort::ReceiveQueue => one.receive_queue.cmp(&other.receive_queue),
        }
    }
}
