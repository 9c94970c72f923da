//! The programs.

use super::common::{side, talk, upload};
use crate::explain::path::Plan;
use crate::explain::script::Step;
use crate::explain::situation::{Draw, Expected, Recipe, Situation};
use inhost_base::Duration;
use inhost_explain::Cause;

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "application", make };
    vec![
        recipe("application-thinks", thinks),
        recipe("application-answers-soon", answers_soon),
        recipe("application-slow-source", slow_source),
        recipe("application-exchanges", exchanges),
    ]
}

fn thinks(draw: &mut Draw) -> Situation {
    let (round_trip, think) = (draw.millis(10, 40), draw.millis(200, 450));
    let (request, answer) = (draw.number(100, 1_000) as usize, draw.number(1_000, 8_000) as usize);
    let about = format!("a server that thinks {think} about each of 8 requests, {round_trip}");
    let mut made = upload(about, 0, Plan::of(round_trip), Expected::of(1, Cause::ThinkTime));
    made.sides = talk(8, request, answer, think);
    made.ours = 1;
    made
}

fn answers_soon(draw: &mut Draw) -> Situation {
    // Less than a receiver delays acknowledgments, so that they come with the answers.
    let (round_trip, think) = (draw.millis(4, 8), draw.millis(20, 30));
    let (request, answer) = (draw.number(100, 1_000) as usize, draw.number(100, 1_000) as usize);
    let about = format!("a server that thinks {think} about each of 80 requests, {round_trip}");
    let mut made = upload(about, 0, Plan::of(round_trip), Expected::of(1, Cause::ThinkTime));
    made.sides = talk(80, request, answer, think);
    made.ours = 1;
    made
}

fn slow_source(draw: &mut Draw) -> Situation {
    let (round_trip, every) = (draw.millis(10, 40), draw.millis(150, 300));
    let piece = draw.number(2_000, 9_000) as usize;
    let about = format!("a program that writes {piece} bytes each {every}, {round_trip}");
    let mut made = upload(about, 0, Plan::of(round_trip), Expected::of(0, Cause::ApplicationIdle));
    made.sides[0] = side(vec![Step::Write { bytes: 14 * piece, piece, every }]);
    made
}

fn exchanges(draw: &mut Draw) -> Situation {
    let round_trip = draw.millis(30, 80);
    let (request, answer) = (draw.number(100, 1_000) as usize, draw.number(300, 1_200) as usize);
    let about = format!("40 requests, one after the other, answered at once, {round_trip}");
    let expected = Expected::of(0, Cause::AwaitingAcknowledgment).either();
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = talk(40, request, answer, Duration::ZERO);
    made
}
