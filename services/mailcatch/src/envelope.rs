//! How a message came: its envelope (RFC 5321 §2.3.1) and its session.

use serde::{Deserialize, Serialize};

/// How a message came.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(default)]
pub struct Envelope {
    /// The sender; none for the null sender.
    pub from: Option<String>,
    /// The recipients that were accepted.
    pub to: Vec<String>,
    /// The client's address and port.
    pub client: String,
    /// Its name by HELO or EHLO.
    pub hello: String,
    /// The version of TLS.
    pub tls: Option<String>,
    /// The user who logged in.
    pub user: Option<String>,
    /// The session's number.
    pub session: u64,
    /// The rules that fired in the session so far.
    pub rules: Vec<String>,
}
