//! How sure a verdict is, and what its vantage cannot show.

use super::Case;
use crate::cause::{Cause, Sign};
use crate::report::Vantage;

/// Where confidence begins: a passive observer is never certain.
const BEGIN: f64 = 0.95;
/// Round-trip samples below which times are not trusted.
const FEW_SAMPLES: u64 = 4;
/// Two shares nearer than this, in per cent, may change places.
const NEAR_PER_CENT: f64 = 10.0;

/// What a send buffer that is full looks like: its last segment is a partial one.
const BUFFERED: [Cause; 4] = [Cause::SlowStart, Cause::CongestionWindow, Cause::Pacing, Cause::Nagle];

/// From 0 to 1, with what lowers it.
pub(super) fn confidence(case: &Case<'_>) -> (f64, Vec<String>) {
    let (mut value, mut reasons) = (BEGIN, Vec::new());
    let mut lower = |factor: f64, why: &str| {
        value *= factor;
        reasons.push(why.to_owned());
    };
    let of = case.of;
    let is_windowed = matches!(case.cause, Cause::ReceiverWindow | Cause::SillyWindow);
    if !of.is_agreed() {
        let factor = if is_windowed { 0.5 } else { 0.7 };
        lower(
            factor,
            "the handshake is not in the capture: the window's scale and the segment size are assumed",
        );
    }
    if case.is_unanswered() {
        lower(0.5, "whether something was lost, dropped or not captured does not show");
    }
    let samples: u64 = of.legs.iter().map(super::super::conversation::Leg::samples).sum();
    let is_handshake = matches!(case.cause, Cause::SynLoss | Cause::AcceptQueue)
        || case.is_unanswered()
        || case.is_refused();
    if samples < FEW_SAMPLES && !is_handshake {
        lower(0.8, "few round trips were measured");
    }
    if case.vantage == Vantage::Unknown {
        lower(0.85, "it is not known where the capture was taken");
    }
    if is_inferred(case.cause) && !is_at_sender(case) && case.vantage != Vantage::Unknown {
        lower(0.8, "the capture was not taken at the sender, whose state is inferred");
    }
    if hides_spurious(case) {
        lower(0.8, "without SACK and timestamps nothing shows whether what was sent again was needed");
    }
    let factor = ambiguity(case);
    if factor < 1.0 {
        lower(factor, "other causes look alike in a capture");
    }
    let share = case.share(case.cause);
    if case.second.is_some_and(|second| share - second.per_cent < NEAR_PER_CENT) {
        lower(0.8, "two causes have nearly the same share");
    }
    if BUFFERED.iter().filter(|&&cause| cause != case.cause).map(|&cause| case.share(cause)).sum::<f64>()
        > share - NEAR_PER_CENT
    {
        lower(0.8, "a send buffer looks like several causes, which together have as large a share");
    }
    if share < 40.0 {
        lower(0.8, "no cause has a large share");
    }
    let gaps: u64 = of.directions.iter().map(|direction| direction.evidence.count(Sign::CaptureGap)).sum();
    if gaps > 0 {
        lower(0.7, "frames are missing in the capture");
    }
    if of.times_went_back > 0 {
        lower(0.8, "time stamps go back");
    }
    (value, reasons)
}
fn is_at_sender(case: &Case<'_>) -> bool {
    case.vantage == if case.direction == 0 { Vantage::Client } else { Vantage::Server }
}
/// Causes that are read from when the sender sends.
fn is_inferred(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::ApplicationIdle
            | Cause::ThinkTime
            | Cause::SlowStart
            | Cause::SlowStartRestart
            | Cause::CongestionWindow
            | Cause::BottleneckRate
            | Cause::Pacing
            | Cause::Nagle
            | Cause::NagleDelayedAck
            | Cause::Timeout
            | Cause::TailLoss
    )
}
/// Whether retransmissions count that may have been in vain.
fn hides_spurious(case: &Case<'_>) -> bool {
    let repairs = [Cause::Timeout, Cause::FastRecovery, Cause::TailLoss, Cause::BrokenRecovery];
    repairs.contains(&case.cause) && case.of.hides_spurious()
}
fn is_below_its_largest(case: &Case<'_>) -> bool {
    let sender = case.sender();
    sender.limiting_window_bytes() < sender.largest_window_bytes / 4 * 3
}
/// What else it could be.
fn ambiguity(case: &Case<'_>) -> f64 {
    let losses =
        case.sender().evidence.count(Sign::RandomLoss) + case.sender().evidence.count(Sign::BurstLoss);
    match case.cause {
        // Unread data may take a part of the window: a slow reader looks alike.
        Cause::ReceiverWindow if is_below_its_largest(case) => 0.8,
        // Lost on the path or dropped by the server.
        Cause::SynLoss if case.vantage != Vantage::Server && !case.is_unanswered() => 0.75,
        // A send buffer looks like a congestion window.
        Cause::CongestionWindow if losses == 0 => 0.7,
        Cause::Pacing => 0.75,
        // A short queue comes and goes, and acknowledgments that the receiver delays look like one.
        Cause::BottleneckRate if case.sender().evidence.count(Sign::Bufferbloat) == 0 => 0.8,
        Cause::Nagle => 0.8,
        // A lost last segment upstream of the capture looks like a pause.
        Cause::ApplicationIdle | Cause::AwaitingAcknowledgment if !is_at_sender(case) => 0.8,
        Cause::MtuBlackHole => 0.9,
        Cause::Unknown if !case.is_unanswered() => 0.1,
        _ => 1.0,
    }
}

/// What this vantage cannot show.
pub(super) fn unknown(case: &Case<'_>) -> Vec<String> {
    let mut unknown = Vec::new();
    if case.is_unanswered() {
        unknown.push("whether the SYN reached the server".to_owned());
    }
    if !case.of.is_agreed() {
        unknown.push("the scale of windows, which only the handshake tells".to_owned());
    }
    if !is_at_sender(case) {
        unknown.push("the sender's timers and losses before the capture, which look like pauses".to_owned());
    }
    let is_at_receiver =
        case.vantage != Vantage::Unknown && !is_at_sender(case) && case.vantage != Vantage::Middle;
    if !is_at_receiver {
        unknown.push("whether a segment arrived, but for its acknowledgment".to_owned());
    }
    if hides_spurious(case) {
        unknown.push("whether what was sent again was lost, without SACK and timestamps".to_owned());
    }
    if matches!(case.cause, Cause::CongestionWindow | Cause::SlowStart) {
        unknown.push("the sender's send buffer, whose limit looks like a congestion window".to_owned());
    }
    if matches!(case.cause, Cause::ZeroWindow | Cause::ThinkTime | Cause::ApplicationIdle) {
        unknown.push("whether the application or its processor is slow".to_owned());
    }
    unknown
}
