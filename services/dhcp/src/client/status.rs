//! Status and stored state of a client.

use crate::lease::Lease;
use inhost_base::Ipv4Addr;

/// State kept across restarts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remembered {
    /// The lease, where it has not ended.
    pub lease: Option<Lease>,
    /// An address to ask for where there is no lease.
    pub wanted: Option<Ipv4Addr>,
    /// The address of the link's own that was used last (RFC 3927 §2.1).
    pub link_local: Option<Ipv4Addr>,
}

/// A client, to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status<'a> {
    /// Its state, as RFC 2131 §4.4 calls it: init, selecting, requesting, rebooting, checking, bound, renewing, rebinding.
    pub state: &'static str,
    /// The lease in hand: under test while checking, in use behind that.
    pub lease: Option<&'a Lease>,
    /// The address of the link's own that is in use.
    pub link_local: Option<Ipv4Addr>,
}
