//! Error types, one for each operation.

use core::fmt;

/// An error of a route lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum RouteError {
    /// No route leads there, or the route's own entry says that it is unreachable.
    NoRoute,
    /// The link that leads there has no address that could be the source.
    NoSource,
    /// The link that leads there has an address, but it is still being tested for duplicates; try again soon.
    Tentative,
    /// The source asked for is not an address of ours, or not one of the link asked for.
    NotOurs,
    /// The link asked for does not exist.
    NoLink,
    /// The destination cannot be one: unspecified, reserved, or of another family than the source.
    BadDestination,
    /// The destination is link-local or multicast, and which link is meant is not clear.
    Ambiguous,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RouteError::NoRoute => "no route to the destination",
            RouteError::NoSource => "no address of ours to send from",
            RouteError::Tentative => "our address is still being tested for duplicates",
            RouteError::NotOurs => "the source is not an address of ours",
            RouteError::NoLink => "no such link",
            RouteError::BadDestination => "the destination cannot be sent to",
            RouteError::Ambiguous => "the destination does not say on which link it is",
        })
    }
}
impl core::error::Error for RouteError {}

/// Why a datagram was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendDatagramError {
    /// Neighbour resolution is in progress; nothing was sent. Try again after [`crate::Paths::take_resolved`] returns the
    /// neighbour.
    Pending,
    /// The neighbour does not answer.
    Unreachable,
    /// The device has no room now; nothing was sent.
    Full,
    /// Longer than a datagram can be (65,535 bytes with its header).
    TooLong,
    /// Longer than the path takes in one piece, and fragments were not allowed.
    WouldFragment {
        /// The largest packet, IP header included.
        mtu_bytes: u16,
    },
    /// No buffer memory is left.
    NoMemory,
}

impl fmt::Display for SendDatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendDatagramError::Pending => f.write_str("the neighbour's address is not known yet"),
            SendDatagramError::Unreachable => f.write_str("the neighbour does not answer"),
            SendDatagramError::Full => f.write_str("the device has no room"),
            SendDatagramError::TooLong => f.write_str("longer than a datagram can be"),
            SendDatagramError::WouldFragment { mtu_bytes } => {
                write!(f, "longer than the {mtu_bytes} bytes that the path takes in one piece")
            }
            SendDatagramError::NoMemory => f.write_str("no buffer memory is left"),
        }
    }
}
impl core::error::Error for SendDatagramError {}

/// Why an interface, address, route, gateway or group was not added or not removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConfigureError {
    /// The link does not exist.
    NoLink,
    /// The table is full.
    Limit,
    /// It exists already.
    Exists,
    /// There is no such entry.
    Absent,
    /// The value makes no sense there: a multicast address as a host's, a gateway of another family …
    Invalid,
}

impl fmt::Display for ConfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfigureError::NoLink => "no such link",
            ConfigureError::Limit => "the table is full",
            ConfigureError::Exists => "it is there already",
            ConfigureError::Absent => "there is no such entry",
            ConfigureError::Invalid => "the value makes no sense there",
        })
    }
}
impl core::error::Error for ConfigureError {}
