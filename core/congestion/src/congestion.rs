//! A connection's congestion control: one small enum, and what all algorithms share.

use crate::controller::Made;
use crate::cubic::Cubic;
use crate::cubic_in_segments::{self, CubicInSegments};
use crate::first_window::FirstWindow;
use crate::hystart::HyStart;
use crate::new_reno::NewReno;
use crate::prior::Prior;
use crate::usage::Usage;
use crate::window::{MOST_BYTES, initial_window_bytes, smaller_restart_bytes};
use crate::{Acknowledged, CongestionAlgorithm, CongestionController, CongestionWindow, Pace, PacingGains};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::panic::{RefUnwindSafe, UnwindSafe};
use inhost_base::{Duration, Instant};

/// Which congestion control a connection uses.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum CongestionChoice {
    /// RFC 9438, its first slow start by RFC 9406.
    #[default]
    Cubic,
    /// CUBIC computed in whole segments and milliseconds, with its own HyStart: what Linux does.
    CubicInSegments,
    /// RFC 5681's window with RFC 6582's recovery.
    NewReno,
    /// Somebody's own, which is started for each connection.
    // Nothing knows how to write it.
    #[cfg_attr(feature = "freeze", serde(skip))]
    Custom(Arc<dyn CongestionAlgorithm>),
}

impl CongestionChoice {
    /// Somebody's own: `make` is called for each connection.
    ///
    /// ```
    /// use inhost_base::Instant;
    /// use inhost_congestion::{Acknowledged, CongestionChoice, CongestionController, CongestionWindow};
    ///
    /// /// A window of one size, whatever happens: for a link whose capacity is known.
    /// #[derive(Debug)]
    /// struct FixedWindow {
    ///     bytes: u32,
    /// }
    ///
    /// impl CongestionController for FixedWindow {
    ///     fn name(&self) -> &'static str {
    ///         "fixed"
    ///     }
    ///     fn opened(&mut self, window: &mut CongestionWindow) {
    ///         window.window_bytes = self.bytes;
    ///     }
    ///     fn acknowledged(&mut self, window: &mut CongestionWindow, seen: &Acknowledged, _window_limited: bool) {
    ///         if !seen.recovering {
    ///             window.window_bytes = self.bytes;
    ///         }
    ///     }
    ///     fn lost(&mut self, window: &mut CongestionWindow, _in_flight_bytes: u32, _now: Instant) {
    ///         window.threshold_bytes = self.bytes;
    ///     }
    /// }
    ///
    /// let bytes = 64 << 10;
    /// let choice = CongestionChoice::custom(move || FixedWindow { bytes });
    /// # let mut congestion = inhost_congestion::Congestion::new(&choice);
    /// # congestion.open(10, 1448);
    /// # assert_eq!(congestion.window().window_bytes, bytes);
    /// ```
    pub fn custom<C: CongestionController + 'static>(
        make: impl Fn() -> C + Send + Sync + UnwindSafe + RefUnwindSafe + 'static,
    ) -> CongestionChoice {
        CongestionChoice::Custom(Arc::new(Made(make)))
    }
}

/// A connection's congestion control. Its larger state is boxed, and made when first needed.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Congestion {
    window: CongestionWindow,
    usage: Usage,
    first: FirstWindow,
    /// The latest reduction, for a mark, is to less than two segments.
    to_one_segment: bool,
    /// Segments leave as fast as the link takes them.
    bursts: bool,
    algorithm: Algorithm,
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
enum Algorithm {
    NewReno(NewReno, Prior),
    /// CUBIC that knows nothing yet: no data was acknowledged, or only while the window was not in use.
    CubicNew,
    /// CUBIC in its first slow start.
    CubicStart(Box<HyStart>),
    Cubic(Box<Cubic>),
    CubicInSegments(Option<Box<CubicInSegments>>),
    // Nothing knows how to write it.
    #[cfg_attr(feature = "freeze", serde(skip))]
    Custom(Box<Own>),
}

#[derive(Debug)]
struct Own {
    controller: Box<dyn CongestionController>,
    prior: Prior,
}

impl Algorithm {
    fn new(choice: &CongestionChoice) -> Self {
        match choice {
            CongestionChoice::NewReno => Algorithm::NewReno(NewReno::default(), Prior::default()),
            CongestionChoice::Cubic => Algorithm::CubicNew,
            CongestionChoice::CubicInSegments => Algorithm::CubicInSegments(None),
            CongestionChoice::Custom(own) => {
                Algorithm::Custom(Box::new(Own { controller: own.start(), prior: Prior::default() }))
            }
        }
    }
}

impl Congestion {
    /// One that is not open yet: its window is empty.
    pub fn new(choice: &CongestionChoice) -> Self {
        Congestion {
            window: CongestionWindow::CLOSED,
            usage: Usage::default(),
            first: FirstWindow::default(),
            to_one_segment: false,
            bursts: false,
            algorithm: Algorithm::new(choice),
        }
    }
    /// The figures that the algorithm moves, and loss recovery too.
    #[inline]
    pub fn window(&self) -> &CongestionWindow {
        &self.window
    }
    /// Sets what may be in flight, as loss recovery says.
    #[inline]
    pub fn set_window_bytes(&mut self, bytes: u32) {
        self.window.window_bytes = bytes;
    }
    /// Sets the payload of a full segment before there is a window; later [`Congestion::resize`] does.
    #[inline]
    pub fn set_segment_bytes(&mut self, bytes: u32) {
        self.window.segment_bytes = bytes;
    }
    /// Checks a thawed state: its figures are in the range that its sums keep to.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        let CongestionWindow { window_bytes, segment_bytes, .. } = self.window;
        let is_closed = segment_bytes == 0 && window_bytes == 0;
        let is_open = (1..=u32::from(u16::MAX)).contains(&segment_bytes) && window_bytes <= MOST_BYTES;
        inhost_base::freeze::require(is_closed || is_open, "a congestion window")
    }
    /// Goes on by another algorithm, from the window and threshold that there are.
    pub fn choose(&mut self, choice: &CongestionChoice) {
        self.algorithm = Algorithm::new(choice);
        // Before the connection is open there is no window to begin with.
        if self.window.segment_bytes != 0 {
            self.opened_by_own();
        }
    }
    /// The connection is idle: frees what congestion avoidance learned. The threshold stays, and the next stage of
    /// CUBIC begins at its plateau.
    pub fn tidy(&mut self) {
        match &mut self.algorithm {
            Algorithm::CubicInSegments(state) => *state = None,
            Algorithm::CubicStart(_) | Algorithm::Cubic(_) => self.algorithm = Algorithm::CubicNew,
            Algorithm::NewReno(..) | Algorithm::CubicNew | Algorithm::Custom(_) => {}
        }
    }
    /// Whether segments leave spaced over the round trip. Default true. If not, what one acknowledgment frees leaves as
    /// one burst, and the first slow start keeps that small (RFC 9406 §4.2).
    pub fn set_spaced(&mut self, spaced: bool) {
        self.bursts = !spaced;
    }
    /// Starts with `segments` of `segment_bytes`, at most ten of them or 14,600 bytes (RFC 6928 §2).
    pub fn open(&mut self, segments: u8, segment_bytes: u32) {
        self.window.segment_bytes = segment_bytes.max(1);
        self.window.window_bytes = self.initial_bytes(segments);
        self.opened_by_own();
        self.first.begin(&self.window);
    }
    fn opened_by_own(&mut self) {
        if let Algorithm::Custom(own) = &mut self.algorithm {
            own.controller.opened(&mut self.window);
            self.window.window_bytes = self.window.open_bytes();
        }
    }
    /// The path's segments are of another size now. As many smaller ones may be in flight as there were larger ones
    /// (RFC 5681 §3.1, RFC 4821 §4); of larger ones no more bytes.
    // spec: RFC5681 3.1-5; RFC4821 4-6, 4-7
    pub fn resize(&mut self, segment_bytes: u32) {
        let window = &mut self.window;
        let (before, after) = (u64::from(window.segment_bytes.max(1)), u64::from(segment_bytes.max(1)));
        let bytes = u64::from(window.window_bytes) * after.min(before) / before;
        let bytes = match self.algorithm {
            Algorithm::CubicInSegments(_) => bytes / after * after,
            _ => bytes,
        };
        window.segment_bytes = after as u32;
        window.window_bytes = bytes.max(after) as u32;
        if let Algorithm::Cubic(cubic) = &mut self.algorithm
            && before != after
        {
            cubic.end_stage();
        }
    }
    /// The algorithm's name, as instruments print it.
    pub fn name(&self) -> &'static str {
        match &self.algorithm {
            Algorithm::NewReno(..) => "newreno",
            Algorithm::CubicNew | Algorithm::CubicStart(_) | Algorithm::Cubic(_) => "cubic",
            Algorithm::CubicInSegments(_) => "cubic",
            Algorithm::Custom(own) => own.controller.name(),
        }
    }
    /// Whether it is somebody's own, whose state nothing knows how to write.
    pub fn is_custom(&self) -> bool {
        matches!(self.algorithm, Algorithm::Custom(_))
    }
    /// A batch left, after which `in_flight_bytes` are outstanding; `window_limited` if the window let no further
    /// segment out that was there to send. The counts are those of [`Acknowledged`].
    pub fn transmitted(
        &mut self,
        in_flight_bytes: u32,
        window_limited: bool,
        acknowledged_bytes: u64,
        sent_bytes: u64,
    ) {
        self.usage.transmitted(in_flight_bytes, window_limited, acknowledged_bytes, sent_bytes);
    }
    /// Data is about to leave while none is in flight, `idle` after it last did.
    pub fn resumed(&mut self, idle: Duration, now: Instant) {
        match &mut self.algorithm {
            Algorithm::Cubic(cubic) => cubic.resume(now),
            Algorithm::CubicInSegments(Some(cubic)) => cubic.resumed(idle, now),
            _ => {}
        }
    }
    /// Something new was acknowledged.
    // spec: RFC5681 3.1-1
    pub fn acknowledged(&mut self, acknowledged: &Acknowledged) {
        let window = &mut self.window;
        self.first.acknowledged(acknowledged.bytes, window.segment_bytes);
        let grows = self.usage.allows_growth(window);
        match &mut self.algorithm {
            Algorithm::Custom(own) => own.controller.acknowledged(window, acknowledged, grows),
            Algorithm::CubicInSegments(state) => {
                let cubic = state.get_or_insert_default();
                cubic.measured(window, acknowledged);
                if grows && !acknowledged.recovering {
                    cubic.acknowledged(window, acknowledged.bytes, acknowledged.now);
                }
            }
            _ if acknowledged.recovering => {}
            // RFC 9438 §5.8: a window that was not in use proves nothing, and the curve waits.
            Algorithm::Cubic(cubic) if !grows => cubic.pause(acknowledged.now),
            _ if !grows => {}
            Algorithm::NewReno(state, _) => state.acknowledged(window, acknowledged.bytes),
            _ => self.acknowledged_by_cubic(acknowledged),
        }
        self.window.window_bytes = self.window.window_bytes.min(MOST_BYTES);
    }
    // spec: RFC9438 4.10-1, 4.10-2
    fn acknowledged_by_cubic(&mut self, acknowledged: &Acknowledged) {
        let window = &mut self.window;
        let now = acknowledged.now;
        match &mut self.algorithm {
            Algorithm::CubicStart(start) if window.in_slow_start() => {
                start.acknowledged(window, acknowledged, self.bursts);
            }
            // RFC 9406 §4.3: the first slow start only; the others know their threshold.
            algorithm if window.is_unexplored() => {
                let mut start = Box::new(HyStart::new(acknowledged));
                start.acknowledged(window, acknowledged, self.bursts);
                *algorithm = Algorithm::CubicStart(start);
            }
            Algorithm::Cubic(_) | Algorithm::CubicNew if window.in_slow_start() => {
                // RFC 9438 §4.10; past the threshold the rest waits for the next acknowledgment.
                window.window_bytes += window.slow_start_bytes(acknowledged.bytes);
            }
            algorithm => {
                let cubic = cubic_of(algorithm);
                cubic.acknowledged(window, acknowledged);
                if acknowledged.acknowledged_bytes >= acknowledged.sent_bytes {
                    // Nothing is in flight: from here on the application is the limit, until it sends.
                    cubic.pause(now);
                }
            }
        }
    }
    /// A loss was found with `in_flight_bytes` outstanding: sets the threshold, and leaves the window to recovery.
    /// Once for each window of data.
    pub fn lost(&mut self, in_flight_bytes: u32, now: Instant) {
        self.remember();
        self.first.lost();
        self.to_one_segment = false;
        let window = &mut self.window;
        match &mut self.algorithm {
            Algorithm::NewReno(state, _) => state.lost(window, in_flight_bytes),
            Algorithm::CubicInSegments(state) => state.get_or_insert_default().lost(window),
            Algorithm::Custom(own) => own.controller.lost(window, in_flight_bytes, now),
            algorithm => cubic_of(algorithm).lost(window),
        }
    }
    /// The peer saw a congestion mark (RFC 3168 §6.1.2): sets the threshold, higher than a loss would (RFC 8511), and
    /// leaves the window to whoever calls. Once for each window of data.
    // spec: RFC9438 4.6-4
    pub fn marked(&mut self, in_flight_bytes: u32, now: Instant) {
        self.remember();
        let window = &mut self.window;
        self.to_one_segment = match &mut self.algorithm {
            Algorithm::NewReno(state, _) => state.marked(window, in_flight_bytes),
            Algorithm::CubicInSegments(state) => {
                state.get_or_insert_default().lost(window);
                false
            }
            Algorithm::Custom(own) => {
                own.controller.marked(window, in_flight_bytes, now);
                false
            }
            algorithm => cubic_of(algorithm).marked(window),
        };
    }
    /// The retransmission timer expired with `in_flight_bytes` outstanding: one segment may go (RFC 5681 §3.1).
    /// `again` when this data has cost the window already, by the timer or by [`lost`](Congestion::lost): then the
    /// threshold stays.
    // spec: RFC5681 3.1-12, 3.1-13, 3.1-14
    pub fn timed_out(&mut self, in_flight_bytes: u32, again: bool, now: Instant) {
        if !again {
            match &mut self.algorithm {
                Algorithm::Custom(_) => {
                    self.remember();
                    self.first.lost();
                    self.to_one_segment = false;
                }
                // RFC 9438 §4.8: the threshold as after a loss.
                _ => self.lost(in_flight_bytes, now),
            }
        }
        match &mut self.algorithm {
            Algorithm::NewReno(..) => {}
            Algorithm::CubicInSegments(state) => state.get_or_insert_default().timed_out(),
            Algorithm::Custom(own) if !again => {
                own.controller.timed_out(&mut self.window, in_flight_bytes, now);
            }
            Algorithm::Custom(_) => {}
            algorithm => cubic_of(algorithm).timed_out(),
        }
        self.window.window_bytes = self.window.segment_bytes;
    }
    /// Fast recovery, or the reduction after a mark, is over: the window is the threshold, or after a mark perhaps less
    /// (RFC 9438 §4.6): the threshold is never below two segments.
    // spec: RFC5681 3.2-11, 4.3-3
    pub fn recovered(&mut self, now: Instant) {
        match &mut self.algorithm {
            Algorithm::Custom(own) => own.controller.recovered(&mut self.window, now),
            _ if self.to_one_segment => self.window.window_bytes = self.window.segment_bytes,
            _ => self.window.window_bytes = self.window.threshold_bytes,
        }
    }
    /// The last reduction was a mistake (RFC 3522, RFC 5682, a duplicate's SACK): all is as before it. False when
    /// there is none to undo.
    pub fn undo(&mut self, now: Instant) -> bool {
        let prior = self.prior().map(core::mem::take).unwrap_or_default();
        if prior.threshold_bytes == 0 {
            return false;
        }
        self.first.undone();
        let window = &mut self.window;
        if window.window_bytes > prior.window_bytes {
            // RFC 9438 §4.9.2: the window is past that already, and what was learned since stands. Linux takes the
            // threshold all the same.
            // spec: RFC9438 4.9-2
            if let Algorithm::CubicInSegments(_) = self.algorithm {
                window.threshold_bytes = window.threshold_bytes.max(prior.threshold_bytes);
            }
            return true;
        }
        window.window_bytes = prior.window_bytes;
        match &mut self.algorithm {
            Algorithm::CubicInSegments(_) => {
                window.threshold_bytes = window.threshold_bytes.max(prior.threshold_bytes);
                return true;
            }
            Algorithm::Cubic(cubic) => cubic.undo(),
            _ => {}
        }
        window.threshold_bytes = prior.threshold_bytes;
        if let Algorithm::Custom(own) = &mut self.algorithm {
            own.controller.undone(window, now);
        }
        true
    }
    /// The sender was idle for `idle`, longer than `retransmission_timeout`: at most `segments` may burst out
    /// (RFC 5681 §4.1).
    pub fn restart(&mut self, segments: u8, idle: Duration, retransmission_timeout: Duration) {
        let mut initial = self.initial_bytes(segments);
        if self.first.did_harm() {
            // spec: RFC6928 2-4
            initial = initial.min(smaller_restart_bytes(self.window.segment_bytes));
        }
        self.prior().map(core::mem::take);
        match &mut self.algorithm {
            Algorithm::CubicInSegments(_) => {
                let initial = self.initial_bytes(segments);
                cubic_in_segments::restart(&mut self.window, initial, idle, retransmission_timeout);
                return;
            }
            Algorithm::CubicStart(_) => self.algorithm = Algorithm::CubicNew,
            Algorithm::Cubic(cubic) => cubic.end_stage(),
            Algorithm::NewReno(..) | Algorithm::CubicNew | Algorithm::Custom(_) => {}
        }
        let window = &mut self.window;
        if window.window_bytes > initial {
            window.threshold_bytes = window.threshold_kept_bytes();
            window.window_bytes = initial;
        }
        if let Algorithm::Custom(own) = &mut self.algorithm {
            own.controller.restarted(window);
            window.window_bytes = window.open_bytes();
        }
        self.first.begin(window);
    }
    /// How the window leaves over a path of `smoothed_round_trip`: for [`Pacer::pace`](crate::Pacer::pace).
    pub fn pace(&self, gains: &PacingGains, in_flight_bytes: u32, smoothed_round_trip: Duration) -> Pace {
        let own = match &self.algorithm {
            Algorithm::Custom(own) => own.controller.pacing_rate_bytes_per_s(),
            _ => None,
        };
        own.map_or_else(|| gains.pace(&self.window, in_flight_bytes, smoothed_round_trip), Pace::of)
    }
    fn initial_bytes(&self, segments: u8) -> u32 {
        match self.algorithm {
            // Linux counts segments whatever their size.
            Algorithm::CubicInSegments(_) => u32::from(segments.max(1)) * self.window.segment_bytes,
            _ => initial_window_bytes(segments, self.window.segment_bytes),
        }
    }
    fn remember(&mut self) {
        let CongestionWindow { window_bytes, threshold_bytes, .. } = self.window;
        let prior = match &mut self.algorithm {
            Algorithm::NewReno(_, prior) => prior,
            Algorithm::CubicInSegments(state) => state.get_or_insert_default().prior(),
            Algorithm::Custom(own) => &mut own.prior,
            algorithm => cubic_of(algorithm).prior(),
        };
        *prior = Prior { window_bytes, threshold_bytes };
    }
    fn prior(&mut self) -> Option<&mut Prior> {
        match &mut self.algorithm {
            Algorithm::NewReno(_, prior) => Some(prior),
            Algorithm::Cubic(cubic) => Some(cubic.prior()),
            Algorithm::CubicInSegments(cubic) => cubic.as_mut().map(|cubic| cubic.prior()),
            Algorithm::Custom(own) => Some(&mut own.prior),
            Algorithm::CubicNew | Algorithm::CubicStart(_) => None,
        }
    }
}

/// The state of `algorithm`, which is CUBIC's: its first slow start, if it was in it, is over.
fn cubic_of(algorithm: &mut Algorithm) -> &mut Cubic {
    match algorithm {
        Algorithm::Cubic(cubic) => cubic,
        other => {
            *other = Algorithm::Cubic(Box::default());
            cubic_of(other)
        }
    }
}

#[cfg(test)]
impl Congestion {
    pub(crate) fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }
}
