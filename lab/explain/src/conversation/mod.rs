//! Conversations: both directions of each TCP connection of a capture.

mod context;
mod direction;
mod evidence;
mod latest;
mod leg;
mod outstanding;
mod rate;
mod receive;
mod recovery;
mod sequence;
mod steady;
mod table;

pub(crate) use direction::Direction;
pub(crate) use evidence::Evidence;
pub(crate) use leg::Leg;
pub(crate) use outstanding::Budget;
pub(crate) use receive::DELAYED_ACK_NS;
#[cfg(feature = "draw")]
pub(crate) use sequence::Unwrapper;
pub(crate) use table::Table;

use inhost_wire::Ecn;
use inhost_wire::tcp::TcpOptions;

use crate::capture::{Checksum, Flow, Segment};
use crate::cause::Sign;
use crate::live::Agreed;
use context::Context;

/// Frames of each end among which a second copy is looked for.
const RECENT_FRAMES: usize = 16;
/// Hops by which a forged segment differs.
const FOREIGN_HOPS: u8 = 3;
/// Bytes of timestamps in each segment.
const TIMESTAMPS_BYTES: u32 = 12;
/// The largest shift of a window (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;
/// An MSS below this is a tunnel's or clamped.
const USUAL_LEAST_MSS_BYTES: u16 = 1400;

/// What tells a frame from a retransmission of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Identity {
    identification: u16,
    sequence: u32,
    acknowledgment: u32,
    payload_bytes: u32,
    stamps: Option<(u32, u32)>,
}

/// One end of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    pub(crate) syn: Option<TcpOptions>,
    first_sequence: Option<u32>,
    syn_ns: Option<u64>,
    hop_limit: Option<u8>,
    recent: [(Identity, u64); RECENT_FRAMES],
    next_recent: usize,
    has_stamps: bool,
    pub(crate) checksums_offloaded: u64,
}

/// A segment in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub(crate) side: usize,
    pub(crate) frame: u64,
    pub(crate) what: &'static str,
}

fn what(segment: &Segment) -> &'static str {
    match segment.flags {
        flags if flags.syn() => "SYN",
        flags if flags.fin() => "FIN",
        _ if segment.payload_bytes > 0 => "data",
        _ => "acknowledgment",
    }
}

/// A connection, as far as the capture shows it.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    /// From who opened it, or whose frame came first.
    pub(crate) flow: Flow,
    pub(crate) started_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) frames: u64,
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
    pub(crate) directions: [Direction; 2],
    /// To each end and back.
    pub(crate) legs: [Leg; 2],
    pub(crate) ends: [End; 2],
    pub(crate) has_handshake: bool,
    /// Signs that belong to no direction.
    pub(crate) evidence: Evidence,
    /// What came last, or before the reset.
    pub(crate) last: Last,
    /// Who reset it.
    pub(crate) reset_by: Option<usize>,
    pub(crate) times_went_back: u64,
}

impl Conversation {
    pub(crate) fn new(flow: Flow, segment: &Segment) -> Conversation {
        let mut directions = [Direction::new(segment.at_ns), Direction::new(segment.at_ns)];
        let has_handshake = segment.flags.syn();
        if !has_handshake {
            directions.iter_mut().for_each(Direction::begins_open);
        }
        Conversation {
            started_ns: segment.at_ns,
            last_ns: segment.at_ns,
            first_frame: segment.frame,
            last_frame: segment.frame,
            directions,
            has_handshake,
            last: Last { side: 0, frame: segment.frame, what: what(segment) },
            ..Conversation::unseen(flow)
        }
    }
    /// Takes what the handshake agreed on from the host at end `side`, for the frames do not show it.
    pub(crate) fn knows(&mut self, side: usize, agreed: &Agreed) {
        let [own, peer] = agreed.options();
        (self.ends[side].syn, self.ends[1 - side].syn) = (Some(own), Some(peer));
        self.agrees();
    }
    /// Whether it is known what the handshake agreed on.
    pub(crate) fn is_agreed(&self) -> bool {
        self.has_handshake || self.ends.iter().all(|end| end.syn.is_some())
    }
    /// A connection of which no frame was seen.
    pub(crate) fn unseen(flow: Flow) -> Conversation {
        Conversation {
            flow,
            started_ns: 0,
            last_ns: 0,
            frames: 0,
            first_frame: 0,
            last_frame: 0,
            directions: [Direction::new(0), Direction::new(0)],
            legs: Default::default(),
            ends: Default::default(),
            has_handshake: false,
            evidence: Evidence::default(),
            last: Last { side: 0, frame: 0, what: "" },
            reset_by: None,
            times_went_back: 0,
        }
    }
    /// Whether a segment opens another connection between the same endpoints.
    pub(crate) fn is_over_by(&self, side: usize, segment: &Segment) -> bool {
        let is_other = self.ends[side].first_sequence.is_none_or(|first| first != segment.sequence);
        let is_over = self.reset_by.is_some() || self.directions.iter().any(|of| of.has_fin);
        segment.flags.syn() && !segment.flags.ack() && is_other && (is_over || self.directions[0].next > 1)
    }
    /// Takes a frame that end `side` sent.
    pub(crate) fn take(&mut self, side: usize, segment: &Segment, budget: &mut Budget) {
        let now_ns = segment.at_ns.max(self.last_ns);
        self.times_went_back += u64::from(segment.at_ns < self.last_ns);
        self.last_ns = now_ns;
        self.frames += 1;
        self.last_frame = segment.frame;
        if self.is_copy(side, segment, now_ns) {
            self.evidence.mark(Sign::DuplicateFrame, segment.frame);
            return;
        }
        if !self.has_right_checksum(side, segment) {
            return;
        }
        self.looks_at_origin(side, segment);
        if segment.flags.syn() {
            self.takes_syn(side, segment, now_ns);
        } else {
            self.measures_handshake(side, segment, now_ns);
        }
        self.measures_stamps(side, segment, now_ns);
        if segment.flags.rst() {
            self.reset_by.get_or_insert(side);
        } else if self.reset_by.is_none() {
            self.last = Last { side, frame: segment.frame, what: what(segment) };
        }
        if segment.ecn == Ecn::CongestionExperienced {
            self.directions[side].evidence.mark(Sign::CongestionMarks, segment.frame);
        }
        let scale = self.scale(side);
        let [legs_0, legs_1] = &self.legs;
        let (own, other) = if side == 0 { (legs_0, legs_1) } else { (legs_1, legs_0) };
        let sender = &mut Context { budget, near: own, far: other };
        self.directions[side].sent(segment, now_ns, sender);
        if segment.flags.syn() {
            let wait = self.directions[side].syn_wait();
            self.directions[1 - side].peer_sent_syn(wait, segment.frame, now_ns);
        }
        let receiver = &mut Context { budget, near: other, far: own };
        let sample = self.directions[1 - side].passes(segment, scale, now_ns, receiver);
        if let Some((ns, is_prompt)) = sample {
            self.sample(side, ns, is_prompt, now_ns);
        }
    }
    fn sample(&mut self, side: usize, ns: u64, is_prompt: bool, now_ns: u64) {
        let rtt_ns = self.legs.iter().map(Leg::current_ns).sum();
        self.legs[side].sample(ns, is_prompt, now_ns, rtt_ns);
    }
    /// Ends the accounts.
    pub(crate) fn finish(&mut self, budget: &mut Budget) {
        let [legs_0, legs_1] = &self.legs;
        for (side, direction) in self.directions.iter_mut().enumerate() {
            let (near, far) = if side == 0 { (legs_0, legs_1) } else { (legs_1, legs_0) };
            direction.finish(self.last_ns, &mut Context { budget, near, far });
        }
    }
    /// A copy as if it were over.
    pub(crate) fn ended(&self, budget: &Budget) -> Box<Conversation> {
        let mut copy = Box::new(self.clone());
        copy.finish(&mut budget.clone());
        copy
    }
    /// The shift of the windows that `side` advertises, where it is known.
    pub(crate) fn scale(&self, side: usize) -> Option<u8> {
        let [a, b] = self.ends.each_ref().map(|end| end.syn.map(|syn| syn.window_scale));
        match (a, b) {
            (Some(Some(a)), Some(Some(b))) => Some([a, b][side].min(MAX_SHIFT)),
            // One that does not offer it has none, and then nobody has.
            (Some(None), _) | (_, Some(None)) => Some(0),
            _ => None,
        }
    }
    fn is_copy(&mut self, side: usize, segment: &Segment, now_ns: u64) -> bool {
        let stamps = segment.options.timestamps;
        // Without an identification timestamps tell data from its retransmission, and that comes a round trip later.
        if segment.identification == 0 && (segment.payload_bytes == 0 || stamps.is_none()) {
            return false;
        }
        let round_trip_ns = self.legs.iter().filter_map(Leg::least_ns).sum();
        let identity = Identity {
            identification: segment.identification,
            sequence: segment.sequence,
            acknowledgment: segment.acknowledgment,
            payload_bytes: segment.payload_bytes,
            stamps,
        };
        let end = &mut self.ends[side];
        let is_soon = |at_ns: u64| segment.identification != 0 || now_ns - at_ns < round_trip_ns;
        let is_copy = end.recent.iter().any(|&(of, at_ns)| of == identity && is_soon(at_ns));
        end.recent[end.next_recent % RECENT_FRAMES] = (identity, now_ns);
        end.next_recent = (end.next_recent + 1) % RECENT_FRAMES;
        is_copy
    }
    /// A wrong checksum is a frame that its receiver drops, unless the device of the capturing host makes it later.
    fn has_right_checksum(&mut self, side: usize, segment: &Segment) -> bool {
        match segment.checksum {
            Checksum::Right | Checksum::Unknown => true,
            Checksum::Offloaded => {
                self.ends[side].checksums_offloaded += 1;
                self.evidence.mark(Sign::ChecksumOffload, segment.frame);
                true
            }
            Checksum::Wrong => {
                self.directions[side].evidence.mark(Sign::WrongChecksum, segment.frame);
                false
            }
        }
    }
    /// Segments of one end come over one path, and with timestamps if these were agreed.
    fn looks_at_origin(&mut self, side: usize, segment: &Segment) {
        let usual = *self.ends[side].hop_limit.get_or_insert(segment.hop_limit);
        if segment.hop_limit.abs_diff(usual) >= FOREIGN_HOPS {
            self.evidence.mark(Sign::ForeignSegment, segment.frame);
        }
        let stamps = self.ends.each_ref().map(|end| end.syn.is_some_and(|syn| syn.timestamps.is_some()));
        let is_bare = segment.options.timestamps.is_none() && !segment.flags.rst() && !segment.flags.syn();
        if stamps == [true, true] && is_bare && !self.ends[side].has_stamps {
            self.evidence.mark(Sign::OptionMissing, segment.frame);
        }
        self.ends[side].has_stamps |= segment.options.timestamps.is_some() && !segment.flags.syn();
    }
    fn takes_syn(&mut self, side: usize, segment: &Segment, now_ns: u64) {
        let end = &mut self.ends[side];
        let is_first = end.syn.is_none();
        end.syn = Some(segment.options);
        end.first_sequence.get_or_insert(segment.sequence);
        end.syn_ns = is_first.then_some(now_ns);
        let other = &self.ends[1 - side];
        if segment.flags.ack()
            && is_first
            && let Some(syn_ns) = other.syn_ns
        {
            let rtt_ns = now_ns - syn_ns;
            self.legs[side].sample(rtt_ns, true, now_ns, rtt_ns);
        }
        if let Some(mss) = segment.options.mss
            && mss < USUAL_LEAST_MSS_BYTES
            && is_first
        {
            self.evidence.mark(Sign::ClampedMss, segment.frame);
        }
        if segment.flags.ack()
            && is_first
            && let Some(offered) = other.syn
        {
            let answered = &segment.options;
            if offered.window_scale.is_some() && answered.window_scale.is_none()
                || offered.sack_permitted && !answered.sack_permitted
                || offered.timestamps.is_some() && answered.timestamps.is_none()
            {
                self.evidence.mark(Sign::OptionMissing, segment.frame);
            }
        }
        if is_first && segment.options.window_scale.is_none() {
            self.evidence.mark(Sign::NoWindowScaling, segment.frame);
        }
        self.agrees();
    }
    /// Whether nothing shows that a retransmission was in vain: neither SACK nor timestamps were agreed on.
    pub(crate) fn hides_spurious(&self) -> bool {
        let syns = self.ends.each_ref().map(|end| end.syn);
        let have = |has: fn(&TcpOptions) -> bool| syns.iter().all(|syn| syn.as_ref().is_some_and(has));
        let are_known = syns.iter().all(Option::is_some);
        are_known && !have(|syn| syn.sack_permitted) && !have(|syn| syn.timestamps.is_some())
    }
    /// What both SYNs together say.
    fn agrees(&mut self) {
        let syns = self.ends.each_ref().map(|end| end.syn);
        let has_stamps = syns.iter().all(|syn| syn.is_some_and(|syn| syn.timestamps.is_some()));
        let mss = syns.iter().flatten().filter_map(|syn| syn.mss).min().unwrap_or(536);
        let room = if has_stamps { TIMESTAMPS_BYTES } else { 0 };
        for side in [0, 1] {
            let is_known = self.scale(1 - side).is_some();
            let direction = &mut self.directions[side];
            direction.mss_bytes = u32::from(mss).saturating_sub(room).max(1);
            direction.is_window_known = is_known;
            direction.is_mss_known = syns.iter().any(Option::is_some);
        }
    }
    /// The third segment of the handshake.
    fn measures_handshake(&mut self, side: usize, segment: &Segment, now_ns: u64) {
        if let Some(syn_ns) = self.ends[1 - side].syn_ns.take()
            && segment.flags.ack()
            && self.ends[side].syn.is_some()
            && segment.acknowledgment
                == self.ends[1 - side].first_sequence.unwrap_or_default().wrapping_add(1)
        {
            self.sample(side, now_ns - syn_ns, true, now_ns);
        }
    }
    fn measures_stamps(&mut self, side: usize, segment: &Segment, now_ns: u64) {
        let Some((value, echo)) = segment.options.timestamps else { return };
        self.legs[1 - side].stamped(value, now_ns);
        if !segment.flags.ack() {
            return;
        }
        // While data is in flight, a sender answers an acknowledgment at once.
        let is_prompt = segment.payload_bytes >= self.directions[side].mss_bytes
            && self.directions[side].flight() > 2 * i64::from(self.directions[side].mss_bytes);
        if let Some(ns) = self.legs[side].echoed(echo, now_ns)
            && !segment.flags.syn()
            && (is_prompt || self.legs[side].least_ns().is_none_or(|least| ns < least))
        {
            self.sample(side, ns, is_prompt, now_ns);
        }
    }
}
