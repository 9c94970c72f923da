//! Small writes, and pacing.

use super::common::{side, upload};
use crate::explain::path::Plan;
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation};
use inhost_base::Duration;
use inhost_explain::Cause;

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "small", make };
    vec![
        recipe("small-nagle-delayed-ack", nagle),
        recipe("small-paced", paced),
        recipe("small-paced-and-think", paced_and_think),
    ]
}

fn nagle(draw: &mut Draw) -> Situation {
    let (round_trip, half) = (draw.millis(2, 8), draw.number(50, 400) as usize);
    let about = format!("40 requests in two writes of {half} bytes each, Nagle's algorithm, {round_trip}");
    let mut made = upload(about, 0, Plan::of(round_trip), Expected::of(0, Cause::NagleDelayedAck));
    let two = Step::Write { bytes: 2 * half, piece: half, every: Duration::from_micros(60) };
    made.sides[0] = side(vec![Step::Repeat(40, vec![two, Step::Read(100)])]);
    made.sides[1] = side(vec![Step::Repeat(40, vec![Step::Read(2 * half), write(100)])]);
    made
}

fn paced(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(20, 60), draw.number(250_000, 600_000));
    let about = format!("a sender that is told to send {rate} bytes a second, {round_trip}");
    let mut made = upload(about, 3 * rate as usize, Plan::of(round_trip), Expected::of(0, Cause::Pacing));
    made.sides[0].settings.pacing_bytes_per_second = Some(rate);
    made
}

fn paced_and_think(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(20, 40), draw.number(250_000, 500_000));
    let pause = draw.millis(500, 650);
    let piece = (rate as f64 * 0.9) as usize;
    let about = format!(
        "three uploads of {piece} bytes, paced to {rate} bytes a second; the client thinks {pause} about each answer, {round_trip}"
    );
    let expected = Expected::of(0, Cause::Pacing).second(Cause::ThinkTime);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    // A write ends when the last of it is in the send buffer.
    let step = Step::Repeat(3, vec![write(piece), Step::Read(1), Step::Wait(pause)]);
    made.sides[0] = side(vec![step, write(1_000)]);
    made.sides[1] = side(vec![Step::Repeat(3, vec![Step::Read(piece), write(1)]), Step::ReadToEnd]);
    made.sides[0].settings.pacing_bytes_per_second = Some(rate);
    made
}
