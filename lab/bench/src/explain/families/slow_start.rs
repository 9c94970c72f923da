//! Slow start.

use super::common::{IDLE_AT_RECEIVER, side, upload};
use crate::explain::path::Plan;
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_explain::Cause;

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "slow_start", make };
    vec![
        recipe("slow-start-short", short),
        recipe("slow-start-and-think", and_think),
        recipe("slow-start-restarts", restarts),
    ]
}

fn short(draw: &mut Draw) -> Situation {
    let (round_trip, bytes) = (draw.millis(80, 160), draw.number(200_000, 350_000) as usize);
    let about = format!("a transfer of {bytes} bytes that ends in slow start, {round_trip}");
    let mut made = upload(about, bytes, Plan::of(round_trip), Expected::of(0, Cause::SlowStart));
    made.sides[1].settings.receive_window_bytes = Some(2 << 20);
    made
}

fn and_think(draw: &mut Draw) -> Situation {
    let (round_trip, bytes) = (draw.millis(80, 120), draw.number(200_000, 300_000) as usize);
    let think = round_trip.times(2);
    let about = format!("a server that thinks {think} and then sends {bytes} bytes, {round_trip}");
    let expected = Expected::of(1, Cause::SlowStart).second(Cause::ThinkTime);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides[0].script = vec![write(300), Step::ReadToEnd];
    made.sides[0].settings.receive_window_bytes = Some(2 << 20);
    made.sides[1].script = vec![Step::Read(300), Step::Wait(think), write(bytes), Step::Shutdown];
    made.ours = 1;
    made
}

fn restarts(draw: &mut Draw) -> Situation {
    let (round_trip, pause) = (draw.millis(140, 160), draw.millis(2_000, 2_100));
    let bytes = draw.number(1_000_000, 1_200_000) as usize;
    let about = format!("bursts of {bytes} bytes, {pause} between them, on a path of {round_trip}");
    let expected = Expected::of(0, Cause::ApplicationIdle).second(Cause::SlowStartRestart).unknown_at(
        Vantage::Receiver,
        &[Cause::SlowStart, Cause::SlowStartRestart, Cause::TailLoss, Cause::Timeout],
        IDLE_AT_RECEIVER,
    );
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides[0] = side(vec![Step::Repeat(3, vec![write(bytes), Step::Wait(pause)]), write(1_000)]);
    made.sides[1].settings.receive_window_bytes = Some(2 << 20);
    made
}
