//! The causes of waiting: the rows of a direction's account.

use serde::Serialize;

macro_rules! causes {
    ($($(#[doc = $doc:literal])* $variant:ident => $text:literal,)*) => {
        /// Why a direction of a connection did not move more data. At each moment exactly one holds.
        /// `docs/explain-causes.md` has the definitions, the evidence, and what each vantage cannot see.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Cause { $($(#[doc = $doc])* $variant,)* }

        impl Cause {
            /// Every cause, in the order of display.
            pub const ALL: &[Cause] = &[$(Cause::$variant),*];
            /// How many causes there are.
            pub const COUNT: usize = Cause::ALL.len();
            /// The cause in words.
            pub const fn text(self) -> &'static str {
                match self { $(Cause::$variant => $text),* }
            }
        }
    };
}

causes! {
    /// The handshake is under way, and nothing of it was sent twice.
    Opening => "handshake",
    /// A SYN or its answer was lost; its retransmission is awaited.
    SynLoss => "SYN lost",
    /// The listener ignores a SYN or the acknowledgment that ends the handshake: its queue is full.
    AcceptQueue => "accept queue full",
    /// All is acknowledged and this application sends nothing, though it is not asked for anything: a slow source.
    ApplicationIdle => "application idle",
    /// The peer's message has come, and this application has not answered yet.
    ThinkTime => "think time",
    /// This side has said its part; the peer's application is to speak.
    AwaitingPeer => "peer's turn",
    /// All that the application gave is sent; its acknowledgment is awaited.
    AwaitingAcknowledgment => "awaiting acknowledgment",
    /// All that the receiver's window allows is in flight.
    ReceiverWindow => "receiver's window",
    /// The receiver's window is 0, or unread data takes most of it: the application there does not read.
    ZeroWindow => "receiver does not read",
    /// The receiver's window is open by less than a segment: silly window syndrome (RFC 813).
    SillyWindow => "silly window",
    /// The congestion window is full, and still grows as in slow start.
    SlowStart => "slow start",
    /// As slow start, after the window was reduced for an idle time (RFC 5681 §4.1).
    SlowStartRestart => "slow-start restart",
    /// The congestion window is full, and no queue stands on the path.
    CongestionWindow => "congestion window",
    /// The congestion window is full, and a queue stands on the path: the bottleneck is used to its rate.
    BottleneckRate => "bottleneck's rate",
    /// Full segments leave at intervals that no acknowledgment sets: a pacer, or the sender's own link.
    Pacing => "pacing",
    /// The send buffer is full of data that is in flight. Told by a host of its own connections only: in a capture it
    /// looks like a congestion window.
    SendBuffer => "send buffer",
    /// The link, or the neighbour's address, is waited for. Told by a host of its own connections only.
    Link => "waiting for the link",
    /// A small write waits for the acknowledgment of the last one (RFC 896).
    Nagle => "Nagle",
    /// As Nagle, and the receiver delays that acknowledgment (RFC 1122 §4.2.3.2).
    NagleDelayedAck => "Nagle and delayed ACK",
    /// Losses were found by duplicate or selective acknowledgments and are repaired.
    FastRecovery => "fast recovery",
    /// The retransmission timer is awaited or backs off, or its repair is under way.
    Timeout => "timeout",
    /// As timeout, and the original had arrived.
    SpuriousTimeout => "spurious timeout",
    /// The last segments of a flight were lost, and no later ones show it.
    TailLoss => "tail loss",
    /// Recovery by a sender that mostly resends what the receiver had acknowledged.
    BrokenRecovery => "broken recovery",
    /// Segments above a size vanish on the path without an ICMP error.
    MtuBlackHole => "MTU black hole",
    /// FIN is sent and not acknowledged.
    Closing => "closing",
    /// This side has closed, or the connection is reset: nothing is left to send.
    Closed => "nothing left to send",
    /// The capture does not tell.
    Unknown => "not known",
}

impl Cause {
    /// Whether this is not a fault of the path or of a configuration: the application has nothing to send.
    pub const fn is_idle(self) -> bool {
        matches!(
            self,
            Cause::ApplicationIdle | Cause::ThinkTime | Cause::AwaitingPeer | Cause::Closed | Cause::Closing
        )
    }
}

macro_rules! signs {
    ($($(#[doc = $doc:literal])* $variant:ident => $text:literal,)*) => {
        /// What was found in a connection, beside where its time went. Each finding cites frames.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Sign { $($(#[doc = $doc])* $variant,)* }

        impl Sign {
            /// Every sign.
            pub const ALL: &[Sign] = &[$(Sign::$variant),*];
            /// The sign in words.
            pub const fn text(self) -> &'static str {
                match self { $(Sign::$variant => $text),* }
            }
        }
    };
}

signs! {
    /// Retransmissions after duplicate or selective acknowledgments.
    FastRetransmission => "fast retransmissions",
    /// Retransmissions by the retransmission timer.
    TimeoutRetransmission => "retransmissions after a timeout",
    /// The last segment sent again early (RFC 8985 §7), or by the timer with nothing behind it.
    TailProbe => "tail probes",
    /// Retransmissions of data that the sender knew to be received: acknowledged or selectively acknowledged before.
    NeedlessRetransmission => "retransmissions of acknowledged data",
    /// Retransmissions whose original had arrived, as D-SACK or timestamps show.
    SpuriousRetransmission => "spurious retransmissions",
    /// Fast retransmissions of segments that were only reordered.
    ReorderingMistaken => "reordering mistaken for loss",
    /// Segments arrived out of order and nothing was lost.
    Reordering => "reordering",
    /// Segments lost one by one, without a standing queue.
    RandomLoss => "random loss",
    /// Several segments of one window lost together.
    BurstLoss => "burst loss",
    /// Round trips grow to a multiple of the least one under load.
    Bufferbloat => "bufferbloat",
    /// Routers marked congestion (ECN).
    CongestionMarks => "congestion marks",
    /// Probes of an idle connection.
    KeepAlive => "keep-alives",
    /// Probes of a closed window.
    WindowProbe => "window probes",
    /// Windows of 0.
    ZeroWindow => "zero windows",
    /// A peer did not offer window scaling, so that its window ends at 65,535 bytes.
    NoWindowScaling => "no window scaling",
    /// An offered option is missing in the answer, or vanished after the handshake.
    OptionMissing => "TCP option missing",
    /// The announced segment size is below that of the link's usual size: a tunnel, or a device that clamps it.
    ClampedMss => "small MSS",
    /// Large segments vanish, small ones pass.
    MtuBlackHole => "MTU black hole",
    /// More duplicate acknowledgments than segments could cause.
    DuplicateAckStorm => "duplicate-ACK storm",
    /// Acknowledgments of four segments and more at once: a device thins them, or the receiver merges segments.
    StretchAcks => "stretch ACKs",
    /// A SYN sent again.
    SynRetransmission => "SYN retransmissions",
    /// The answer to a SYN was sent again although it had been acknowledged.
    AcceptQueueFull => "accept queue full",
    /// The connection was reset.
    Reset => "reset",
    /// A segment whose hop limit differs from its sender's others: perhaps made by a device on the path.
    ForeignSegment => "segment of another origin",
    /// Checksums that the capturing host's device completes later: no error.
    ChecksumOffload => "offloaded checksums",
    /// Wrong checksums.
    WrongChecksum => "wrong checksums",
    /// Frames that the capture holds twice.
    DuplicateFrame => "frames captured twice",
    /// Data that was acknowledged and is not in the capture.
    CaptureGap => "frames missing in the capture",
    /// The receiver's processor is the bottleneck. Not told: from a capture it is not told apart from a delay of the
    /// path. It is never reported.
    ReceiverProcessor => "receiver's processor",
    /// Sequence numbers that a device rewrote. Not told: it takes captures on both sides of the device. It is never
    /// reported.
    Rewritten => "rewritten sequence numbers",
}
