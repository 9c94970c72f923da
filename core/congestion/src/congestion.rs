//! A connection's congestion control: one small enum, and what all algorithms share.

use crate::cubic::Cubic;
use crate::new_reno::NewReno;
use crate::usage::Usage;
use crate::window::{MOST_BYTES, initial_window_bytes};
use crate::{Acknowledged, CongestionController, CongestionWindow, PacingGains};
use inhost_base::{Duration, Instant};

/// Which congestion control a connection uses.
#[derive(Clone, Copy, Debug, Default)]
pub enum CongestionChoice {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 5681's window with RFC 6582's recovery.
    NewReno,
    /// Somebody's own, made for each connection.
    Custom(fn() -> Box<dyn CongestionController>),
}

/// A connection's congestion control. Its larger state is boxed, and made when first needed.
#[derive(Debug)]
pub struct Congestion {
    /// The figures that the algorithm moves, and loss recovery too.
    pub window: CongestionWindow,
    usage: Usage,
    algorithm: Algorithm,
}

/// Window and threshold before the last reduction, while that can be undone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prior {
    window_bytes: u32,
    /// Zero when there is nothing to undo.
    threshold_bytes: u32,
}

impl Prior {
    fn of(window: &CongestionWindow) -> Self {
        Prior { window_bytes: window.window_bytes, threshold_bytes: window.threshold_bytes }
    }
}

#[derive(Debug)]
enum Algorithm {
    NewReno(NewReno, Prior),
    Cubic(Option<Box<Cubic>>),
    Custom(Box<Own>),
}

#[derive(Debug)]
struct Own {
    controller: Box<dyn CongestionController>,
    prior: Prior,
}

impl Congestion {
    /// One that is not open yet: its window is empty.
    pub fn new(choice: CongestionChoice) -> Self {
        let algorithm = match choice {
            CongestionChoice::NewReno => Algorithm::NewReno(NewReno::default(), Prior::default()),
            CongestionChoice::Cubic => Algorithm::Cubic(None),
            CongestionChoice::Custom(make) => {
                Algorithm::Custom(Box::new(Own { controller: make(), prior: Prior::default() }))
            }
        };
        Congestion { window: CongestionWindow::CLOSED, usage: Usage::default(), algorithm }
    }
    /// Starts with `segments` of `segment_bytes`, at most ten of them or 14,600 bytes (RFC 6928 §2).
    pub fn open(&mut self, segments: u8, segment_bytes: u32) {
        self.window.segment_bytes = segment_bytes.max(1);
        self.window.window_bytes = initial_window_bytes(segments, segment_bytes);
    }
    /// The path's segments are of another size now.
    pub fn resize(&mut self, segment_bytes: u32) {
        self.window.segment_bytes = segment_bytes.max(1);
        self.window.window_bytes = self.window.window_bytes.max(segment_bytes);
    }
    /// The algorithm's name, as instruments print it.
    pub fn name(&self) -> &'static str {
        match &self.algorithm {
            Algorithm::NewReno(..) => "newreno",
            Algorithm::Cubic(_) => "cubic",
            Algorithm::Custom(own) => own.controller.name(),
        }
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
    /// Something new was acknowledged.
    pub fn acknowledged(&mut self, acknowledged: &Acknowledged) {
        let window = &mut self.window;
        let grows = self.usage.allows_growth(window);
        match &mut self.algorithm {
            Algorithm::Custom(own) => own.controller.acknowledged(window, acknowledged, grows),
            // RFC 9438 §5.8: a window that was not in use proves nothing.
            _ if acknowledged.recovering || !grows => return,
            Algorithm::NewReno(state, _) => state.acknowledged(window, acknowledged.bytes),
            Algorithm::Cubic(_) if window.in_slow_start() => {
                window.slow_start(acknowledged.bytes);
            }
            Algorithm::Cubic(state) => state.get_or_insert_default().acknowledged(
                window,
                acknowledged.bytes,
                acknowledged.smoothed_round_trip,
                acknowledged.now,
            ),
        }
        window.window_bytes = window.window_bytes.min(MOST_BYTES);
    }
    /// A loss was found with `in_flight_bytes` outstanding: sets the threshold, and leaves the window to recovery.
    /// Once for each window of data.
    pub fn lost(&mut self, in_flight_bytes: u32, now: Instant) {
        self.remember();
        match &mut self.algorithm {
            Algorithm::NewReno(state, _) => state.lost(&mut self.window, in_flight_bytes),
            Algorithm::Cubic(state) => state.get_or_insert_default().lost(&mut self.window, in_flight_bytes),
            Algorithm::Custom(own) => own.controller.lost(&mut self.window, in_flight_bytes, now),
        }
    }
    /// The peer saw a congestion mark (RFC 3168 §6.1.2): sets the threshold, higher than a loss would (RFC 8511), and
    /// leaves the window to whoever calls. Once for each window of data.
    pub fn marked(&mut self, in_flight_bytes: u32, now: Instant) {
        self.remember();
        match &mut self.algorithm {
            Algorithm::NewReno(state, _) => state.marked(&mut self.window, in_flight_bytes),
            Algorithm::Cubic(state) => state.get_or_insert_default().lost(&mut self.window, in_flight_bytes),
            Algorithm::Custom(own) => own.controller.marked(&mut self.window, in_flight_bytes, now),
        }
    }
    /// The retransmission timer expired with `in_flight_bytes` outstanding: one segment may go (RFC 5681 §3.1).
    /// `again` when this data has cost the window already, by the timer or by [`lost`](Congestion::lost): then the
    /// threshold stays.
    pub fn timed_out(&mut self, in_flight_bytes: u32, again: bool, now: Instant) {
        if !again {
            self.remember();
            match &mut self.algorithm {
                Algorithm::NewReno(state, _) => state.lost(&mut self.window, in_flight_bytes),
                Algorithm::Cubic(state) => {
                    state.get_or_insert_default().lost(&mut self.window, in_flight_bytes)
                }
                Algorithm::Custom(own) => own.controller.timed_out(&mut self.window, in_flight_bytes, now),
            }
        }
        self.window.window_bytes = self.window.segment_bytes;
    }
    /// Fast recovery, or the reduction after a mark, is over: the window is the threshold.
    pub fn recovered(&mut self, now: Instant) {
        match &mut self.algorithm {
            Algorithm::Custom(own) => own.controller.recovered(&mut self.window, now),
            _ => self.window.window_bytes = self.window.threshold_bytes,
        }
    }
    /// The last reduction was a mistake (RFC 3522, RFC 5682, a duplicate's SACK): all is as before it. False when
    /// there is none to undo.
    pub fn undo(&mut self, now: Instant) -> bool {
        let prior = core::mem::take(self.prior());
        if prior.threshold_bytes == 0 {
            return false;
        }
        self.window.window_bytes = self.window.window_bytes.max(prior.window_bytes);
        self.window.threshold_bytes = self.window.threshold_bytes.max(prior.threshold_bytes);
        if let Algorithm::Custom(own) = &mut self.algorithm {
            own.controller.undone(&mut self.window, now);
        }
        true
    }
    /// The sender was idle for `idle`, longer than a retransmission time-out: at most `segments` may burst out
    /// (RFC 5681 §4.1).
    pub fn restart(&mut self, segments: u8, _idle: Duration, _retransmission_timeout: Duration) {
        let initial = initial_window_bytes(segments, self.window.segment_bytes);
        self.window.window_bytes = self.window.window_bytes.min(initial);
        match &mut self.algorithm {
            Algorithm::NewReno(_, prior) => *prior = Prior::default(),
            Algorithm::Cubic(state) => *state = None,
            Algorithm::Custom(own) => {
                own.prior = Prior::default();
                own.controller.restarted();
            }
        }
    }
    /// The rate at which the window leaves over a path of `smoothed_round_trip`, in bytes a second: for
    /// [`Pacer::pace`](crate::Pacer::pace).
    pub fn pacing_rate_bytes_per_s(
        &self,
        gains: &PacingGains,
        in_flight_bytes: u32,
        smoothed_round_trip: Duration,
    ) -> u64 {
        let own = match &self.algorithm {
            Algorithm::Custom(own) => own.controller.pacing_rate_bytes_per_s(),
            _ => None,
        };
        own.unwrap_or_else(|| gains.rate_bytes_per_s(&self.window, in_flight_bytes, smoothed_round_trip))
    }
    fn remember(&mut self) {
        *self.prior() = Prior::of(&self.window);
    }
    fn prior(&mut self) -> &mut Prior {
        match &mut self.algorithm {
            Algorithm::NewReno(_, prior) => prior,
            Algorithm::Cubic(state) => &mut state.get_or_insert_default().prior,
            Algorithm::Custom(own) => &mut own.prior,
        }
    }
}
