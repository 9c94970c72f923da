//! Live feeds and video: servers that send at a rate, and players that stop.

use super::common::{IDLE_AT_RECEIVER, side, upload};
use crate::explain::path::Plan;
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "stream", make };
    vec![
        recipe("stream-live-feed", live_feed),
        recipe("stream-player-stops", player_stops),
        recipe("stream-paced-segments", paced_segments),
        recipe("stream-bursts-restart", bursts_restart),
    ]
}

/// A server that sends unasked, and a client that reads.
fn feed(about: String, script: Vec<Step>, round_trip: Duration, expected: Expected) -> Situation {
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = [vec![Step::ReadToEnd], script].map(side);
    made.ours = 1;
    made
}

fn live_feed(draw: &mut Draw) -> Situation {
    let (round_trip, piece) = (draw.millis(30, 45), draw.number(3_000, 9_000) as usize);
    let every = round_trip.times(5).divided_by(2);
    let about = format!("a camera at the server that gives {piece} bytes each {every}, {round_trip}");
    let expected = Expected::of(1, Cause::ApplicationIdle).second(Cause::AwaitingAcknowledgment).unknown_at(
        Vantage::Receiver,
        &[Cause::TailLoss, Cause::Timeout],
        IDLE_AT_RECEIVER,
    );
    feed(about, vec![Step::Write { bytes: 50 * piece, piece, every }], round_trip, expected)
}

fn player_stops(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(50, 90), draw.number(250_000, 400_000) as usize);
    let (window, pause) = (draw.number(80, 110) << 10, draw.millis(3_200, 3_600));
    let about = format!(
        "a server that sends {rate} bytes a second, and a player that stops for {pause} behind a window of {window} bytes, {round_trip}"
    );
    let expected = Expected::of(1, Cause::ZeroWindow)
        .second(Cause::Pacing)
        .sign(Sign::ZeroWindow)
        .sign(Sign::WindowProbe);
    let mut made = feed(about, vec![write(2 * rate)], round_trip, expected);
    made.sides[0].script = vec![Step::Read(rate * 5 / 4), Step::Wait(pause), Step::ReadToEnd];
    made.sides[0].settings.receive_window_bytes = Some(window as u32);
    made.sides[1].settings.pacing_bytes_per_second = Some(rate as u64);
    made
}

fn paced_segments(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(90, 130), draw.number(400_000, 800_000));
    let piece = rate as usize * 7 / 10;
    let every = draw.millis(1_250, 1_350);
    let about = format!(
        "a server that sends a segment of {piece} bytes each {every} at {rate} bytes a second, and keeps its window, {round_trip}"
    );
    let expected = Expected::of(1, Cause::Pacing)
        .second(Cause::ApplicationIdle)
        .second_unknown_at(Vantage::Receiver, IDLE_AT_RECEIVER);
    let script = vec![Step::Write { bytes: 5 * piece, piece, every }];
    let mut made = feed(about, script, round_trip, expected);
    made.sides[1].settings.pacing_bytes_per_second = Some(rate);
    made.sides[1].settings.restart_after_idle = false;
    made
}

fn bursts_restart(draw: &mut Draw) -> Situation {
    let (round_trip, every) = (draw.millis(165, 185), draw.millis(2_450, 2_600));
    let bytes = draw.number(550_000, 700_000) as usize;
    let about = format!("a server that sends {bytes} bytes each {every}, {round_trip}");
    let expected = Expected::of(1, Cause::ApplicationIdle).second(Cause::SlowStartRestart).unknown_at(
        Vantage::Receiver,
        &[Cause::SlowStart, Cause::SlowStartRestart, Cause::TailLoss, Cause::Timeout],
        IDLE_AT_RECEIVER,
    );
    let script = vec![Step::Write { bytes: 4 * bytes, piece: bytes, every }];
    let mut made = feed(about, script, round_trip, expected);
    made.sides[0].settings.receive_window_bytes = Some(2 << 20);
    made
}
