//! A connection in the list.

use inhost_base::{Duration, Endpoint};
use inhost_event::{SendCause, TcpState};
use inhost_stack::SocketInfo;
use serde::Serialize;

use crate::filter::Subject;

/// A connection in the list.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Its socket, as one number.
    pub(crate) id: u64,
    pub(crate) local: Endpoint,
    pub(crate) remote: Endpoint,
    pub(crate) state: TcpState,
    pub(crate) age_ns: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// Bytes a second since the list before, or of its life.
    pub(crate) send_rate: f64,
    pub(crate) receive_rate: f64,
    pub(crate) round_trip_ns: Option<u64>,
    pub(crate) retransmitted_segments: u32,
    pub(crate) send_queue: usize,
    pub(crate) receive_queue: usize,
    /// What sending waits for.
    pub(crate) cause: SendCause,
    pub(crate) send_ns: [u64; SendCause::COUNT],
}

impl Row {
    /// None for a socket that is not a connection.
    pub(crate) fn new(of: &SocketInfo) -> Option<Row> {
        let (remote, tcp) = (of.remote?, of.tcp.as_ref()?);
        let seconds = tcp.age.as_secs_f64().max(1e-3);
        Some(Row {
            id: of.socket.0.to_bits(),
            local: of.local,
            remote,
            state: tcp.state,
            age_ns: tcp.age.as_nanos(),
            sent_bytes: tcp.sent_bytes,
            received_bytes: tcp.received_bytes,
            send_rate: tcp.sent_bytes as f64 / seconds,
            receive_rate: tcp.received_bytes as f64 / seconds,
            round_trip_ns: tcp.smoothed_round_trip.map(Duration::as_nanos),
            retransmitted_segments: tcp.retransmitted_segments,
            send_queue: of.send_queue,
            receive_queue: of.receive_queue,
            cause: tcp.send_cause,
            send_ns: tcp.ledgers.send.times().map(Duration::as_nanos),
        })
    }
    pub(crate) fn subject(&self) -> Subject {
        Subject { local: self.local, remote: self.remote, state: self.state, cause: self.cause }
    }
    /// As JSON.
    pub(crate) fn shown(&self) -> Shown {
        let all = self.send_ns.iter().map(|ns| *ns as f64).sum::<f64>().max(1.0);
        let spent = SendCause::ALL.iter().zip(&self.send_ns).filter(|(_, ns)| **ns > 0);
        Shown {
            id: id_text(self.id),
            local: self.local.to_string(),
            remote: self.remote.to_string(),
            state: self.state.text(),
            age_ns: self.age_ns,
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
            send_rate: self.send_rate,
            receive_rate: self.receive_rate,
            rtt_ns: self.round_trip_ns,
            retransmitted_segments: self.retransmitted_segments,
            send_queue: self.send_queue,
            receive_queue: self.receive_queue,
            limit: self.cause.text(),
            causes: spent.map(|(cause, ns)| (cause.text(), 100.0 * *ns as f64 / all)).collect(),
        }
    }
}

/// A row as JSON has it.
#[derive(Serialize)]
pub(crate) struct Shown {
    id: String,
    local: String,
    remote: String,
    state: &'static str,
    age_ns: u64,
    sent_bytes: u64,
    received_bytes: u64,
    /// Bytes a second.
    send_rate: f64,
    receive_rate: f64,
    rtt_ns: Option<u64>,
    retransmitted_segments: u32,
    send_queue: usize,
    receive_queue: usize,
    /// What sending waits for now.
    limit: &'static str,
    /// What it waited for, with the shares in per cent, in the order of display.
    causes: Vec<(&'static str, f64)>,
}

/// A socket's name, as the control socket has it.
pub(crate) fn id_text(id: u64) -> String {
    format!("{id:x}")
}
