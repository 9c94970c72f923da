//! Packetization-layer path MTU discovery (PLPMTUD): when full segments are lost repeatedly without an ICMP error,
//! smaller ones are sent, and larger sizes are then probed one at a time (RFC 4821, RFC 8899).

use super::Sender;
use crate::RecoveryState;
use crate::common::{Common, IPV6_LEAST_MSS};
use crate::config::PathMtuProbing;
use crate::flags::{ConnectionFlags, SenderFlags};
use inhost_base::{Deadline, Duration, Instant, Offset};

/// What almost every path takes (RFC 4821 §7.2): payload, options included.
// spec: RFC4821 7.2-2
const BASE_MSS: u16 = 1024;

/// It is not made smaller than this (RFC 8899 §5.1.2's least for IPv4, less headers).
pub(crate) const LEAST_MSS: u16 = 512;

/// Time-outs in a row that make a black hole likely (RFC 4821 §7.7).
const TIMEOUTS_IN_A_HOLE: u8 = 2;
/// Time-outs in a row that make one likely for segments that almost every path takes.
const TIMEOUTS_IN_A_NARROW_HOLE: u8 = 6;

/// So near to the largest the search ends.
const CLOSE_ENOUGH: u16 = 16;

/// Time after the end of a search when larger sizes are probed again (RFC 8899 §5.1.1, PMTU_RAISE_TIMER).
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// The state of the search, in payload bytes with options.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Search {
    /// Known to work.
    low: u16,
    /// The largest that may work.
    high: u16,
    /// How often the size in question was tried.
    tries: u8,
    /// The largest was tried in vain.
    halves: bool,
    /// The range of the outstanding probe.
    probe: Option<(Offset, Offset)>,
    /// The size of the latest probe.
    probe_size: u16,
    /// When a search that has ended is restarted.
    raise_at: Deadline,
}

impl Search {
    /// The next size to try.
    // spec: RFC4821 7.1-2, 7.3-1
    fn candidate(&self) -> Option<u16> {
        let gap = self.high.saturating_sub(self.low);
        if self.probe.is_some() || gap < CLOSE_ENOUGH {
            return None;
        }
        // The largest first, for mostly that is it; then halfway.
        Some(if self.halves { self.low + gap.div_ceil(2) } else { self.high })
    }
    /// The outstanding probe was lost.
    // spec: RFC4821 4-5, 7.3-2, 7.6.4-1
    pub fn failed(&mut self, now: Instant) {
        if self.probe.take().is_none() {
            return;
        }
        if self.tries >= MOST_TRIES || self.probe_size == self.high {
            (self.high, self.tries, self.halves) = (self.probe_size - 1, 0, true);
        }
        self.rest(now);
    }
    /// Stops a search that has converged until it is restarted.
    // spec: RFC4821 7.3-2, 7.3-2a
    fn rest(&mut self, now: Instant) {
        if !self.raise_at.is_set() && self.high.saturating_sub(self.low) < CLOSE_ENOUGH {
            self.raise_at.set(now + RAISE_AFTER);
        }
    }
}

/// Attempts at one size (RFC 8899 §5.1.2, MAX_PROBES).
const MOST_TRIES: u8 = 3;

/// The size that a search begins with.
pub(super) fn base_mss(common: &Common) -> u16 {
    if common.has(ConnectionFlags::IPV6) { IPV6_LEAST_MSS } else { BASE_MSS }
}
/// The smallest size that a search tries.
pub(super) fn least_mss(common: &Common) -> u16 {
    if common.has(ConnectionFlags::IPV6) { IPV6_LEAST_MSS } else { LEAST_MSS }
}

impl Sender {
    /// Payload of a probe that may be sent now, with `unsent` bytes to send and `usable` of them within the peer's
    /// window: larger than a full segment, and followed by enough data to detect its loss.
    // spec: RFC4821 5.1-1, 7.4-1, 7.4-2
    pub fn search_probe(&self, common: &Common, full_bytes: u32, unsent: u32, usable: u32) -> Option<u32> {
        if !self.flags.contains(SenderFlags::PMTU_SEARCH)
            || self.recovery.state != RecoveryState::Open
            || common.opens()
            // What SACK takes of the segment would come on top of the size that is tried, beyond what the peer takes. With
            // other options it would be larger than it says.
            || full_bytes < self.segment_bytes()
        {
            return None;
        }
        let size = self.search()?.candidate().filter(|&size| size <= common.largest_mss())?;
        let payload = u32::from(size).saturating_sub(u32::from(common.options_bytes()));
        let room = self.congestion.window().window_bytes.saturating_sub(self.in_flight_bytes());
        let enough = payload + 3 * full_bytes;
        (payload > full_bytes && unsent.min(usable) >= enough && room >= payload).then_some(payload)
    }
    /// Repeated timeouts indicate an MTU black hole. They alone decide, full segment or not, because a search that leaves
    /// the size unchanged is useless.
    // spec: RFC4821 7.7-1, 7.7-2
    pub fn suspect_black_hole(&mut self, common: &Common) {
        let now_mss = common.largest_mss().min(self.searched_mss());
        let first_bytes =
            self.buffers.as_ref().and_then(|b| b.flight.records().front()).map_or(0, |r| r.bytes());
        let lost = u32::from(now_mss).min(first_bytes + u32::from(common.options_bytes())) as u16;
        let base = base_mss(common);
        let (low, enough) = match lost > base {
            true => (base, TIMEOUTS_IN_A_HOLE),
            false => ((lost / 2).max(least_mss(common)), TIMEOUTS_IN_A_NARROW_HOLE),
        };
        let is_probed = common.config().path_mtu_probing != PathMtuProbing::Off;
        if is_probed && low < lost && common.round_trip().backoff() >= enough {
            self.search_from(common, low);
        }
    }
    /// The handshake is done: where probing is always on the search begins small (RFC 8899 §5.2).
    // spec: RFC4821 7.2-1
    pub fn begin_search(&mut self, common: &Common) {
        if common.config().path_mtu_probing == PathMtuProbing::Always {
            self.search_from(common, base_mss(common).min(common.largest_mss()));
        }
    }
    fn search_from(&mut self, common: &Common, low: u16) {
        self.history_mut().search = Some(Search { low, high: common.largest_mss(), ..Search::default() });
        self.flags.insert(SenderFlags::PMTU_SEARCH);
        self.congestion.resize(self.effective_mss(common));
    }
    pub fn search(&self) -> Option<&Search> {
        self.history.as_deref()?.search.as_ref()
    }
    pub fn search_mut(&mut self) -> Option<&mut Search> {
        self.history.as_deref_mut()?.search.as_mut()
    }
    /// What the search allows; no limit without one.
    pub fn searched_mss(&self) -> u16 {
        self.search().map_or(u16::MAX, |search| search.low)
    }
    /// New data from `start` to `end` was sent; if it was larger than a segment it was a probe.
    #[inline]
    pub fn search_probe_sent(&mut self, common: &Common, start: Offset, end: Offset) {
        let bytes = end.since(start);
        if !self.flags.contains(SenderFlags::PMTU_SEARCH) || bytes <= self.segment_bytes() {
            return;
        }
        let size = bytes as u16 + common.options_bytes();
        if let Some(search) = self.search_mut() {
            (search.probe, search.probe_size) = (Some((start, end)), size);
            search.tries = search.tries.saturating_add(1);
        }
    }
    /// Whether only the MTU probe is lost: then its size was the cause, not congestion (RFC 4821 §7.6.2). It is
    /// retransmitted in smaller segments.
    // spec: RFC4821 4-4, 7.6.2-1
    pub fn search_probe_lost(&mut self, now: Instant) -> bool {
        let Some((start, end)) = self.search().and_then(|search| search.probe) else { return false };
        let Some(buffers) = &mut self.buffers else { return false };
        let only = buffers.flight.lost_run(u32::MAX / 2, false) == Some((start, end))
            && buffers.flight.sums().lost_bytes == end.since(start);
        if only {
            buffers.flight.refuse();
            // Further duplicate acknowledgments report the same loss.
            self.recovery.duplicates = 0;
            self.recovery.recover = self.space.next();
        }
        if let Some(search) = self.search_mut() {
            search.failed(now);
        }
        only
    }
    /// An acknowledgment arrived: checks whether it covers the outstanding probe, and whether the search is due to
    /// restart.
    pub fn judge_search(&mut self, common: &Common, now: Instant) {
        let (unacknowledged, high) = (self.space.unacknowledged(), common.largest_mss());
        let Some(search) = self.search_mut() else { return };
        // Routing may have learned better meanwhile.
        search.high = search.high.min(high);
        if let Some((_, end)) = search.probe
            && end <= unacknowledged
        {
            *search = Search { low: search.probe_size, probe: None, tries: 0, ..*search };
            search.rest(now);
            self.congestion.resize(self.effective_mss(common));
            return;
        }
        if search.raise_at.has_come(now) {
            *search = Search { low: search.low, high, ..Search::default() };
        }
        search.rest(now);
    }
}
