//! The views of a running host, as its control socket offers them.

use crate::causes::is_idle;
use crate::failure::Failure;
use crate::through::open_host;
use inhost_runtime::control::{self, Client, ClientError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// By how much the priority of who looks is lowered.
const NICE: i32 = 10;

/// The host but for its connections.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Overview {
    pub name: String,
    pub uptime_ns: u64,
    pub memory: Memory,
    pub sockets: Sockets,
    pub retransmissions: u64,
    pub links: Vec<Link>,
    pub listeners: Vec<Listener>,
    pub others: Vec<Other>,
    /// How many sessions its services have.
    pub sessions: usize,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Memory {
    pub used_bytes: u64,
    pub limit_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Sockets {
    pub connections: u64,
    pub listeners: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Link {
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// How many by each reason.
    pub dropped: std::collections::BTreeMap<String, u64>,
}

/// A listener with its queues.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Listener {
    pub local: String,
    pub accept_queue: u64,
    pub accept_limit: Option<u64>,
    pub handshakes: u64,
}

/// A socket that is neither a connection nor a listener.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Other {
    pub kind: String,
    pub local: String,
    pub remote: Option<String>,
    pub receive_queue: u64,
    pub send_queue: u64,
}

/// A session of a service.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Session {
    pub service: String,
    pub peer: String,
    pub user: Option<String>,
    pub age_ns: u64,
}

/// Sessions, as many as were asked for.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SessionRows {
    pub rows: Vec<Session>,
}

/// Connections in the order of the list.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Rows {
    pub total: usize,
    pub matched: usize,
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Row {
    pub id: String,
    pub local: String,
    pub remote: String,
    pub state: String,
    pub age_ns: u64,
    pub send_rate: f64,
    pub receive_rate: f64,
    pub rtt_ns: Option<u64>,
    pub retransmitted_segments: u32,
    pub send_queue: u64,
    pub receive_queue: u64,
    /// What sending waited for, with the shares in per cent.
    pub causes: Vec<(String, f64)>,
}

impl Row {
    /// The largest of what can be mended, in words.
    pub fn waits_for(&self) -> String {
        let mended = self.causes.iter().filter(|(name, share)| !is_idle(name) && *share >= 1.0);
        let largest = mended.max_by(|one, other| one.1.total_cmp(&other.1));
        largest.map_or_else(|| "idle".to_owned(), |(name, share)| format!("{share:.0} % {name}"))
    }
}

/// Which rows are wanted: sorted by a name of the interface.
pub fn list(sort: &str, is_descending: bool, offset: usize, limit: usize, filter: &str) -> String {
    let order = if is_descending { "desc" } else { "asc" };
    let filter = percent_encoding::utf8_percent_encode(filter, percent_encoding::NON_ALPHANUMERIC);
    format!("connections?sort={sort}&order={order}&offset={offset}&limit={limit}&filter={filter}")
}

/// Lets the host and what it serves go first: who looks at a busy host does not slow it down.
pub fn step_back() {
    let _ = rustix::process::nice(NICE);
}

/// The control socket that is meant, and a conversation with its host.
pub fn open(via: Option<&Path>) -> Result<(PathBuf, Client), Failure> {
    let path = via.map_or_else(control::default_path, Path::to_owned);
    let client = open_host(&path)?;
    Ok((path, client))
}

/// Asks for a view.
pub fn view<T: DeserializeOwned>(client: &mut Client, target: &str) -> Result<T, ClientError> {
    let bytes = client.view(target)?;
    serde_json::from_slice(&bytes).map_err(|why| ClientError::Protocol(format!("{target}: {why}")))
}
