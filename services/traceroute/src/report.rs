//! Events of a trace.

use inhost_base::{Duration, IpAddr};
use inhost_stack::ErrorKind;

/// News of a trace, in the order of the hops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// All is known of one hop.
    Hop(Hop),
    /// The trace is over, and this came of it.
    Done(TraceOutcome),
}

/// One hop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Its number; 1 is the first router.
    pub number: u8,
    /// The reply to each probe, in the order in which they were sent; `None` where nothing came.
    pub replies: Vec<Option<Reply>>,
    /// Path MTU up to the hop; `None` when not measured or unknown.
    pub mtu: Option<Mtu>,
}

/// An answer to one probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The answering address.
    pub from: IpAddr,
    /// The time from the probe to the answer.
    pub round_trip: Duration,
    /// Why the probe got no further, unless it had come as far as it was meant to, or had arrived.
    pub error: Option<ErrorKind>,
}

/// The largest packet, IP header included, that came as far as a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mtu {
    /// Its length in bytes.
    pub bytes: u16,
    /// The router that said so, where larger ones came to a smaller link.
    pub told_by: Option<IpAddr>,
    /// Whether larger ones vanish before this hop, and nobody says so: a black hole (RFC 2923 §2.1).
    pub is_black_hole: bool,
}

/// Result of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceOutcome {
    /// The destination answered at this hop.
    Reached {
        /// Its number.
        hop: u8,
    },
    /// Somebody said that there is no way on.
    Stopped {
        /// The hop's number.
        hop: u8,
        /// Who.
        by: IpAddr,
        /// Why.
        why: ErrorKind,
    },
    /// The last hop asked for is not the destination.
    TooFar,
}
