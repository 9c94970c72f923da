//! The receiver's window.

use super::common::{IDLE_AT_RECEIVER, bytes_through, side, talk, upload};
use crate::explain::path::Plan;
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "window", make };
    vec![
        recipe("window-small", small),
        recipe("window-no-scaling", no_scaling),
        recipe("window-reader-stops", reader_stops),
        recipe("window-slow-reader", slow_reader),
        recipe("window-and-pauses", and_pauses),
        recipe("window-and-think", and_think),
    ]
}

fn small(draw: &mut Draw) -> Situation {
    let (window, round_trip) = (draw.number(20, 50) << 10, draw.millis(30, 90));
    let path = Plan::of(round_trip);
    let about = format!("a receive buffer with a window of {window} bytes on a path of {round_trip}");
    let mut made =
        upload(about, bytes_through(window, round_trip, 3.0), path, Expected::of(0, Cause::ReceiverWindow));
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn no_scaling(draw: &mut Draw) -> Situation {
    let round_trip = draw.millis(60, 120);
    let about = format!("a server that does not offer window scaling, on a path of {round_trip}");
    let expected = Expected::of(0, Cause::ReceiverWindow).sign(Sign::NoWindowScaling);
    let mut made = upload(about, bytes_through(65_535, round_trip, 4.0), Plan::of(round_trip), expected);
    made.sides[1].settings.window_scaling = false;
    made
}

fn reader_stops(draw: &mut Draw) -> Situation {
    let (round_trip, pause) = (draw.millis(15, 40), draw.millis(1_500, 2_500));
    let window = draw.number(64, 128) << 10;
    let about = format!("a server that reads nothing for {pause}, behind a window of {window} bytes");
    let expected = Expected::of(0, Cause::ZeroWindow).sign(Sign::ZeroWindow);
    let mut made = upload(about, 4 * window as usize, Plan::of(round_trip), expected);
    made.sides[1].script = vec![Step::Wait(pause), Step::ReadToEnd];
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn and_pauses(draw: &mut Draw) -> Situation {
    let (window, round_trip) = (draw.number(20, 40) << 10, draw.millis(40, 80));
    let (pause, times) = (draw.millis(600, 700), draw.number(3, 4) as usize);
    let piece = bytes_through(window, round_trip, 1.2);
    let about = format!(
        "{times} uploads of {piece} bytes, {pause} between them, through a window of {window} bytes, {round_trip}"
    );
    let expected = Expected::of(0, Cause::ReceiverWindow).second(Cause::ApplicationIdle);
    let expected = expected.second_unknown_at(Vantage::Receiver, IDLE_AT_RECEIVER);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    let steps = vec![write(piece), Step::Wait(pause + round_trip)];
    made.sides[0] = side(vec![Step::Repeat(times, steps), write(10_000)]);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn slow_reader(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(20, 40), draw.number(64, 100) << 10);
    let every = draw.millis(40, 60);
    // Far less than the path carries.
    let piece = (window as f64 * every.as_secs_f64() / round_trip.as_secs_f64() / 8.0) as usize;
    let about = format!(
        "a server that reads {piece} bytes each {every}, behind a window of {window} bytes, {round_trip}"
    );
    let expected = Expected::of(0, Cause::ZeroWindow).or(
        Cause::ReceiverWindow,
        "a reader that is slow and steady looks like a small window (docs/explain-causes.md, receiver's window)",
    );
    let mut made = upload(about, window as usize + 50 * piece, Plan::of(round_trip), expected);
    made.sides[1].script = vec![Step::ReadSlowly { piece, every }];
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn and_think(draw: &mut Draw) -> Situation {
    let (window, round_trip) = (draw.number(20, 32) << 10, draw.millis(40, 80));
    let (think, answer) = (draw.millis(300, 400), bytes_through(window, round_trip, 0.8));
    let about = format!(
        "a server that thinks {think} before each of 3 answers of {answer} bytes, through a window of {window} bytes, {round_trip}"
    );
    let expected = Expected::of(1, Cause::ReceiverWindow).second(Cause::ThinkTime);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = talk(3, 200, answer, think);
    made.sides[0].settings.receive_window_bytes = Some(window as u32);
    made.ours = 1;
    made
}
