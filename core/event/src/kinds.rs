//! The events, one plain struct each.

use crate::{Ledgers, ReceiveCause, SendCause};
use alloc::boxed::Box;
use inhost_base::{Duration, Endpoint, HardwareAddress, IpAddr, Key, LinkId, Sequence};

/// Something that happened.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs)] // Each variant is the struct of the same name.
pub enum Event {
    FrameReceived(FrameReceived),
    FrameSent(FrameSent),
    FrameDropped(FrameDropped),
    NeighbourChanged(NeighbourChanged),
    SegmentReceived(SegmentReceived),
    SegmentSent(SegmentSent),
    Connected(Connected),
    Disconnected(Disconnected),
    Ended(Box<Ended>),
    StateChanged(StateChanged),
    Retransmitted(Retransmitted),
    WindowChanged(WindowChanged),
    CauseChanged(CauseChanged),
}

/// A frame came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameReceived {
    /// Where.
    pub link: LinkId,
    /// Its length with all headers.
    pub length_bytes: u32,
}

/// A frame was accepted by its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameSent {
    /// Where.
    pub link: LinkId,
    /// Its length with all headers.
    pub length_bytes: u32,
}

/// A received frame, or a datagram in it, went no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameDropped {
    /// Where it came in.
    pub link: LinkId,
    /// Why.
    pub why: Drop,
}

/// Why something received went no further. Each is also a counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Drop {
    /// Too short, or lengths that contradict each other.
    Malformed,
    /// A checksum is wrong.
    Checksum,
    /// Not for any address of ours.
    NotForUs,
    /// From an address that cannot be a source.
    BadSource,
    /// A protocol or EtherType that we do not speak.
    UnknownProtocol,
    /// An IP option or extension header that we refuse.
    BadOption,
    /// A fragment that overlaps, exceeds a limit, or timed out.
    Fragment,
    /// Nobody listens.
    NoSocket,
    /// The receiver's queue, or the listener's, is full.
    QueueFull,
    /// No buffer memory is left.
    NoMemory,
    /// A limit on the rate of something.
    RateLimited,
    /// An ICMP, ARP or neighbour message that contradicts known state.
    NotCredible,
    /// A TCP segment outside the window, or with an acknowledgment out of range.
    OutOfWindow,
    /// A TCP segment with an old timestamp (PAWS).
    OldTimestamp,
    /// To be forwarded, but no route leads there, or the next hop does not answer.
    NoRoute,
    /// To be forwarded, but its hops are spent.
    HopLimit,
    /// To be forwarded, but longer than the next link takes, and not to be cut.
    TooBig,
}

impl Drop {
    /// Every reason, in the order of display.
    pub const ALL: &[Drop] = &[
        Drop::Malformed,
        Drop::Checksum,
        Drop::NotForUs,
        Drop::BadSource,
        Drop::UnknownProtocol,
        Drop::BadOption,
        Drop::Fragment,
        Drop::NoSocket,
        Drop::QueueFull,
        Drop::NoMemory,
        Drop::RateLimited,
        Drop::NotCredible,
        Drop::OutOfWindow,
        Drop::OldTimestamp,
        Drop::NoRoute,
        Drop::HopLimit,
        Drop::TooBig,
    ];
    /// How many reasons there are.
    pub const COUNT: usize = Drop::ALL.len();
    /// The reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Drop::Malformed => "malformed",
            Drop::Checksum => "bad checksum",
            Drop::NotForUs => "not for us",
            Drop::BadSource => "bad source",
            Drop::UnknownProtocol => "unknown protocol",
            Drop::BadOption => "bad option",
            Drop::Fragment => "bad fragment",
            Drop::NoSocket => "no socket",
            Drop::QueueFull => "queue full",
            Drop::NoMemory => "no memory",
            Drop::RateLimited => "rate limited",
            Drop::NotCredible => "not credible",
            Drop::OutOfWindow => "out of window",
            Drop::OldTimestamp => "old timestamp",
            Drop::NoRoute => "no route",
            Drop::HopLimit => "hop limit",
            Drop::TooBig => "too big",
        }
    }
}

/// A neighbour's state changed (RFC 4861 §7.3.2; ARP has the same states here).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighbourChanged {
    /// On which link.
    pub link: LinkId,
    /// Whose.
    pub address: IpAddr,
    /// Where it is, once known.
    pub hardware: Option<HardwareAddress>,
    /// The new state.
    pub state: NeighbourState,
}

/// How sure a host is of where a neighbour is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The names are those of RFC 4861 §7.3.2.
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum NeighbourState {
    Incomplete,
    Reachable,
    Stale,
    Delay,
    Probe,
    Failed,
}

/// A TCP segment arrived for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentReceived {
    /// The connection's socket.
    pub socket: Key,
    /// First sequence number.
    pub sequence: Sequence,
    /// Acknowledgment number, where the ACK flag is set.
    pub acknowledgment: Option<Sequence>,
    /// The TCP flags as on the wire.
    pub flags: u16,
    /// Payload bytes.
    pub payload_bytes: u32,
    /// The window field, unscaled.
    pub window_field: u16,
}

/// A TCP segment was accepted by the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentSent {
    /// The connection's socket.
    pub socket: Key,
    /// First sequence number.
    pub sequence: Sequence,
    /// Acknowledgment number, where the ACK flag is set.
    pub acknowledgment: Option<Sequence>,
    /// The TCP flags as on the wire.
    pub flags: u16,
    /// Payload bytes.
    pub payload_bytes: u32,
    /// The window field, unscaled.
    pub window_field: u16,
}

/// A connection came into being.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connected {
    /// Its socket.
    pub socket: Key,
    /// Our end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Whether we called.
    pub active: bool,
}

/// A connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disconnected {
    /// Its socket.
    pub socket: Key,
    /// How long it lived.
    pub age: Duration,
    /// Stream bytes sent and acknowledged.
    pub sent_bytes: u64,
    /// Stream bytes received in order.
    pub received_bytes: u64,
}

/// A connection is over, but for TIME-WAIT: what it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its socket.
    pub socket: Key,
    /// Our end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Whether we called.
    pub active: bool,
    /// How long it lived.
    pub age: Duration,
    /// Stream bytes sent and acknowledged.
    pub sent_bytes: u64,
    /// Stream bytes received in order.
    pub received_bytes: u64,
    /// Segments sent again.
    pub retransmitted_segments: u32,
    /// Bytes sent again.
    pub retransmitted_bytes: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u32,
    /// The smoothed round-trip time, where one was measured.
    pub smoothed_round_trip: Option<Duration>,
    /// Why it ended, where not by both sides closing.
    pub error: Option<&'static str>,
    /// Where its time went.
    pub ledgers: Ledgers,
}

/// The states of RFC 9293 §3.3.2, without LISTEN, which is a listener's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[allow(missing_docs)] // The names are those of RFC 9293 §3.3.2.
#[repr(u8)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum TcpState {
    #[default]
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

impl TcpState {
    /// The state's name as RFC 9293 writes it.
    pub const fn text(self) -> &'static str {
        match self {
            TcpState::SynSent => "SYN-SENT",
            TcpState::SynReceived => "SYN-RECEIVED",
            TcpState::Established => "ESTABLISHED",
            TcpState::FinWait1 => "FIN-WAIT-1",
            TcpState::FinWait2 => "FIN-WAIT-2",
            TcpState::CloseWait => "CLOSE-WAIT",
            TcpState::Closing => "CLOSING",
            TcpState::LastAck => "LAST-ACK",
            TcpState::TimeWait => "TIME-WAIT",
            TcpState::Closed => "CLOSED",
        }
    }
}

/// A connection changed its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateChanged {
    /// Its socket.
    pub socket: Key,
    /// From this.
    pub from: TcpState,
    /// To this.
    pub to: TcpState,
}

/// Data was sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retransmitted {
    /// The connection's socket.
    pub socket: Key,
    /// First sequence number.
    pub sequence: Sequence,
    /// Bytes.
    pub payload_bytes: u32,
    /// The cause.
    pub why: RetransmittedWhy,
}

/// The trigger of a retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetransmittedWhy {
    /// The retransmission timer.
    Timeout,
    /// Loss detected from acknowledgments: duplicates, SACK, or time (RFC 8985).
    Fast,
    /// A probe of the flight's tail (RFC 8985 §7).
    TailProbe,
    /// A zero-window probe.
    Probe,
    /// The peer's window, or the path for its size, had refused it: nothing was lost.
    Refused,
}

/// The sender's windows, after a change worth telling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowChanged {
    /// The connection's socket.
    pub socket: Key,
    /// The congestion window.
    pub congestion_window_bytes: u32,
    /// The slow-start threshold.
    pub slow_start_threshold_bytes: u32,
    /// The peer's window.
    pub send_window_bytes: u32,
    /// The smoothed round-trip time.
    pub smoothed_round_trip: Duration,
}

/// A connection waits for something else than before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CauseChanged {
    /// The connection's socket.
    pub socket: Key,
    /// The cause for which sending waits.
    pub send: SendCause,
    /// The cause for which receiving waits.
    pub receive: ReceiveCause,
}
