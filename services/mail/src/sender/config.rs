//! Configuration of a sender.

use std::collections::BTreeMap;

use inhost_base::Duration;

use super::route::{Route, SMTP_PORT};
use crate::client::TlsWish;
use crate::queue::Schedule;

/// Configuration of a sender.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SenderConfig {
    /// The name that it gives itself.
    pub host_name: String,
    /// Port of servers that the DNS names. Default 25.
    pub port: u16,
    /// Connections at once. Default 100.
    pub connections: usize,
    /// Connections at once to one destination. Default 5.
    pub connections_per_destination: usize,
    /// Messages over one connection. Default 100.
    pub messages_per_connection: usize,
    /// When messages are tried again.
    pub schedule: Schedule,
    /// Destinations that do not go where the DNS says; `*` is all others.
    pub routes: BTreeMap<String, Route>,
    /// Destinations for which TLS is wanted otherwise than if it is offered; `*` is all others.
    pub tls: BTreeMap<String, TlsWish>,
    /// Name and password for the server of the route `*`.
    pub login: Option<(String, String)>,
    /// How long a connection may take to come about. Default 60 seconds.
    pub connect: Duration,
    /// Time limits of dialogues: a server's greeting, its replies, and its reply to a whole message. Default 5, 5 and 10
    /// minutes.
    pub replies: [Duration; 3],
}

impl SenderConfig {
    /// A sender that calls itself `host_name`.
    pub fn new(host_name: &str) -> SenderConfig {
        SenderConfig {
            host_name: host_name.to_owned(),
            port: SMTP_PORT,
            connections: 100,
            connections_per_destination: 5,
            messages_per_connection: 100,
            schedule: Schedule::default(),
            routes: BTreeMap::new(),
            tls: BTreeMap::new(),
            login: None,
            connect: Duration::from_secs(60),
            replies: [300, 300, 600].map(Duration::from_secs),
        }
    }
    pub(super) fn route(&self, domain: &str) -> Option<&Route> {
        self.routes.get(domain).or_else(|| self.routes.get("*"))
    }
    pub(super) fn tls(&self, domain: &str) -> TlsWish {
        self.tls.get(domain).or_else(|| self.tls.get("*")).copied().unwrap_or_default()
    }
}
