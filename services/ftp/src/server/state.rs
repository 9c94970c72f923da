//! What a session keeps of its user, its parameters and its transfer.

use inhost_base::{Duration, Instant};

use super::action::{Channel, Digest, FileRequest, Rights};
use super::config::ServerConfig;
use crate::codec::{Parameters, Verb};
use inhost_common::storage::VirtualPath;

/// Login state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nobody yet.
    Visitor,
    /// USER was said.
    Named(String),
    /// The password was right, and ACCT is to come.
    Account { user: String, account: String, rights: Rights },
    /// Somebody.
    User { user: String, rights: Rights },
}

/// Pending work that blocks the next command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    /// Nothing.
    Nothing,
    /// Whether the password is right.
    Verdict(String),
    /// The answer to a wrong password is held back until then.
    Denial(Instant),
    /// TLS to begin, until then.
    Tls(Instant),
    /// TLS to end, until then.
    Clear(Instant),
    /// Files.
    File(FileRequest),
    /// A port, for this verb.
    Port(Verb),
}

/// TLS state of the control connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Security {
    pub(super) encrypted: bool,
    /// PBSZ was said.
    pub(super) sized: bool,
    /// PROT P.
    pub(super) data: bool,
}

/// Session parameters; REIN and a new USER restore the defaults.
pub(super) struct Settings {
    pub(super) directory: VirtualPath,
    pub(super) parameters: Parameters,
    pub(super) umask: u32,
    pub(super) idle: Duration,
    pub(super) rename_from: Option<VirtualPath>,
    pub(super) restart: Option<u64>,
    pub(super) allocated: Option<u64>,
    pub(super) data: DataPort,
    pub(super) facts: u8,
    pub(super) digest: Digest,
}

impl Settings {
    pub(super) fn new(config: &ServerConfig) -> Settings {
        Settings {
            directory: VirtualPath::root(),
            parameters: Parameters::default(),
            umask: 0o022,
            idle: config.idle_time,
            rename_from: None,
            restart: None,
            allocated: None,
            data: DataPort::default(),
            facts: u8::MAX,
            digest: Digest::Sha256,
        }
    }
}

/// Data port as the client requested it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DataPort {
    /// `None` is the default of RFC 959 §5.2.
    pub(super) channel: Option<Channel>,
    /// EPSV ALL was said (RFC 2428 §4).
    pub(super) extended_only: bool,
}

impl DataPort {
    /// It is used once, so that no later transfer uses the endpoint of an earlier one.
    pub(super) fn take(&mut self) -> Option<Channel> {
        self.channel.take()
    }
}

/// The transfer under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Running {
    /// Its name in STAT.
    pub(super) name: String,
    /// Whether 150 was said.
    pub(super) opened: bool,
    pub(super) size_bytes: Option<u64>,
    pub(super) moved_bytes: u64,
}
