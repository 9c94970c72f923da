//! The interface between a server session and its host.

use std::rc::Rc;

use inhost_base::IpAddr;
use inhost_common::{Admission, Callers, SessionEvent};

use super::{Clock, Network, PassivePorts, TlsServer};
use crate::codec::UnixTime;
use crate::server::Rights;
use inhost_common::LocalFuture;
use inhost_common::storage::Storage;

/// A user who was let in.
pub struct Granted {
    /// The files.
    pub storage: Rc<dyn Storage>,
    /// Access rights.
    pub rights: Rights,
    /// Account that ACCT must give, if required.
    pub account: Option<String>,
    /// Octets of data a second, each way; as fast as it goes when `None`.
    pub rate_bytes_per_second: Option<u64>,
}

/// Result of a login attempt.
pub enum Entry {
    /// Name and password are right.
    Granted(Granted),
    /// They are not, or the user has no files here.
    Denied,
    /// Too many passwords are being checked: this one was not looked at.
    Busy,
    /// They could not be verified.
    Unavailable(String),
}

/// The host, as a session sees it.
pub trait Services: 'static {
    /// Its time.
    type Clock: Clock;
    /// Its connections.
    type Network: Network;
    /// The clock.
    fn clock(&self) -> &Self::Clock;
    /// The wall clock, for listings.
    fn unix_time(&self) -> UnixTime;
    /// Its connections.
    fn network(&self) -> &Self::Network;
    /// Its ports for passive data connections.
    fn ports(&self) -> &PassivePorts<Self::Network>;
    /// Callers behind a gateway.
    fn callers(&self) -> &Callers;
    /// Counts and rates of sessions.
    fn admission(&self) -> &Admission;
    /// Its certificate.
    fn tls(&self) -> Option<TlsServer>;
    /// Whether a user may log in.
    fn log_in(&self, user: String, password: String) -> LocalFuture<Entry>;
    /// Something for the log.
    fn record(&self, event: SessionEvent<'_>);
    /// A transfer, for the log.
    fn record_transfer(&self, transfer: Transferred<'_>);
}

/// A file was moved, or could not be.
#[derive(Clone, Copy, Debug)]
pub struct Transferred<'a> {
    /// From where the user comes.
    pub peer: IpAddr,
    /// Who.
    pub user: &'a str,
    /// The command and its file.
    pub what: &'a str,
    /// Octets of the file, or why not.
    pub outcome: Result<u64, &'a str>,
}
