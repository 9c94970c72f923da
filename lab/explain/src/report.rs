//! The report: what is found, as values for a program.

use serde::Serialize;

use crate::cause::{Cause, Sign};

/// What a capture holds.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Report {
    /// Frames of the file.
    pub frames: u64,
    /// Frames with a TCP segment.
    pub tcp_frames: u64,
    /// Frames of other protocols.
    pub other_frames: u64,
    /// Fragments of IP datagrams, which are not put together.
    pub fragments: u64,
    /// Frames whose headers are cut or contradict each other.
    pub malformed_frames: u64,
    /// What limits the analysis as a whole.
    pub warnings: Vec<Warning>,
    /// The connections, those with the most time lost first.
    pub conversations: Vec<Verdict>,
    /// Connections that were left out, because there were too many.
    pub conversations_left_out: u64,
}

/// Something that limits the analysis.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// What.
    pub text: String,
    /// How often.
    pub count: u64,
}

/// What is known of one connection.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Verdict {
    /// Who opened the connection, or whose frame came first: address and port.
    pub client: String,
    /// The other end.
    pub server: String,
    /// Interface of the file, from 0.
    pub interface: u32,
    /// Time stamp of the first frame, in nanoseconds since 1970.
    pub started_ns: u64,
    /// From the first frame to the last.
    pub duration_ns: u64,
    /// Frames of the connection.
    pub frames: u64,
    /// Number of its first frame in the file.
    pub first_frame: u64,
    /// Number of its last frame.
    pub last_frame: u64,
    /// Whether the capture holds the SYN.
    pub has_handshake: bool,
    /// Where the capture was taken.
    pub vantage: Vantage,
    /// The round trip, as far as it was measured.
    pub round_trip: Option<RoundTrip>,
    /// From client to server, and back.
    pub directions: [DirectionReport; 2],
    /// The direction that the diagnosis is about: 0 or 1.
    pub direction: usize,
    /// The main cause.
    pub cause: Cause,
    /// Time lost in that direction to causes other than an idle application.
    pub lost_ns: u64,
    /// What is the matter, in one sentence.
    pub diagnosis: String,
    /// What to do, in one sentence, with the figure to set where there is one.
    pub remedy: String,
    /// Claims with the frames that show them.
    pub evidence: Vec<Claim>,
    /// What was found beside the causes.
    pub findings: Vec<Finding>,
    /// From 0 (a guess) to 1 (proved).
    pub confidence: f64,
    /// What lowers the confidence.
    pub confidence_reasons: Vec<String>,
    /// What cannot be known from this vantage.
    pub unknown: Vec<String>,
}

/// Where a capture was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Vantage {
    /// At the client, or near it.
    Client,
    /// At the server, or near it.
    Server,
    /// Between them.
    Middle,
    /// It does not show: the ends are too near to each other, or too little was captured.
    Unknown,
}

/// Round-trip times, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundTrip {
    /// Least.
    pub least_ns: u64,
    /// Largest that lasted: of the least ones of eight in a row.
    pub largest_ns: u64,
    /// Least from the capture to the client and back.
    pub client_ns: u64,
    /// Least from the capture to the server and back.
    pub server_ns: u64,
}

/// One direction.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionReport {
    /// Payload, retransmissions not counted.
    pub bytes: u64,
    /// Segments.
    pub segments: u64,
    /// The account: causes of time, the largest first. They sum to the connection's duration.
    pub shares: Vec<Share>,
    /// Data that was sent again.
    pub retransmissions: Retransmissions,
    /// Largest window that the receiver advertised, in bytes.
    pub largest_window_bytes: u64,
    /// Most that was in flight, in bytes.
    pub peak_flight_bytes: u64,
    /// Segment size in bytes of payload.
    pub mss_bytes: u32,
    /// Shift of the receiver's windows; none where it is not known.
    pub window_scale: Option<u8>,
}

/// A cause and its time.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// The cause.
    pub cause: Cause,
    /// Its time.
    pub ns: u64,
    /// In per cent of the connection's duration.
    pub per_cent: f64,
}

/// Segments with data that had been sent before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retransmissions {
    /// All.
    pub total: u64,
    /// Of data that the sender knew to be received.
    pub needless: u64,
    /// Of data that had been received, which the sender could not know.
    pub spurious: u64,
}

/// A claim and its proof.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// What is claimed.
    pub claim: String,
    /// Numbers of the frames that show it.
    pub frames: Vec<u64>,
}

/// Something found in a connection.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What.
    pub sign: Sign,
    /// In which direction's data: 0 or 1; none where it is of the connection.
    pub direction: Option<usize>,
    /// How often.
    pub count: u64,
    /// Numbers of the first frames that show it.
    pub frames: Vec<u64>,
}

impl Report {
    pub(crate) fn add(&mut self, verdict: Verdict, limit: usize) {
        self.conversations.push(verdict);
        // Twice the limit, so that sorting is rare.
        if self.conversations.len() > limit.max(1).saturating_mul(5) / 4 {
            self.sort();
            self.conversations_left_out += (self.conversations.len() - limit.max(1)) as u64;
            self.conversations.truncate(limit.max(1));
        }
    }
    fn sort(&mut self) {
        self.conversations.sort_by_key(|of| (std::cmp::Reverse(of.lost_ns), of.first_frame));
    }
    pub(crate) fn finish(&mut self, forgotten: u64) {
        self.sort();
        let counted = [
            (forgotten, "segments in flight were forgotten, because too many were in flight"),
            (self.malformed_frames, "frames have cut or contradictory headers and were left out"),
            (self.fragments, "fragments of IP datagrams were left out"),
            (self.conversations_left_out, "connections were left out, because there were too many"),
        ];
        for (count, text) in counted {
            if count > 0 {
                self.warnings.push(Warning { text: text.to_owned(), count });
            }
        }
    }
}

impl Verdict {
    /// Whether an end of the connection has this sign.
    pub fn has(&self, sign: Sign) -> bool {
        self.findings.iter().any(|found| found.sign == sign)
    }
    /// A cause's part of the time of a direction, in per cent.
    pub fn per_cent(&self, direction: usize, cause: Cause) -> f64 {
        let shares = self.directions.get(direction).map_or(&[][..], |of| &of.shares);
        shares.iter().find(|share| share.cause == cause).map_or(0.0, |share| share.per_cent)
    }
}
