//! Terminals: small writes, with and without Nagle's algorithm, and readers with little room.

use super::common::{IDLE_AT_RECEIVER, bytes_through, side, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::Cause;

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "shell", make };
    vec![
        recipe("shell-log-lines", log_lines),
        recipe("shell-pointer", pointer),
        recipe("shell-answers-in-two", answers_in_two),
        recipe("shell-tiny-window", tiny_window),
    ]
}

fn log_lines(draw: &mut Draw) -> Situation {
    let (round_trip, every) = (draw.millis(150, 250), draw.millis(15, 30));
    let line = draw.number(30, 70) as usize;
    let about = format!(
        "a program that writes a line of {line} bytes each {every}, Nagle's algorithm, a path that delivers everything twice, {round_trip}"
    );
    // Our receiver delays acknowledgments, but not that of a second copy.
    let path = Plan::of(round_trip).with(0, Action::Duplicate(Pick::Random(1.0)));
    let mut made = upload(about, 0, path, Expected::of(0, Cause::Nagle));
    let lines = 5_000_000 / every.as_micros() as usize;
    made.sides[0] = side(vec![Step::Write { bytes: lines * line, piece: line, every }]);
    made
}

fn pointer(draw: &mut Draw) -> Situation {
    let (round_trip, every) = (draw.millis(80, 140), draw.millis(20, 35));
    let move_bytes = draw.number(20, 60) as usize;
    let about = format!(
        "a program that writes {move_bytes} bytes each {every} without Nagle's algorithm, {round_trip}"
    );
    let expected = Expected::of(0, Cause::ApplicationIdle).unknown_at(
        Vantage::Receiver,
        &[Cause::TailLoss, Cause::Timeout],
        IDLE_AT_RECEIVER,
    );
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    let moves = 4_000_000 / every.as_micros() as usize;
    made.sides[0] = side(vec![Step::Write { bytes: moves * move_bytes, piece: move_bytes, every }]);
    made.sides[0].settings.nagle = false;
    made
}

fn answers_in_two(draw: &mut Draw) -> Situation {
    let (round_trip, half) = (draw.millis(25, 40), draw.number(100, 500) as usize);
    let about = format!(
        "40 commands, each answered in two writes of {half} bytes, Nagle's algorithm at the server, {round_trip}"
    );
    let expected = Expected::of(1, Cause::NagleDelayedAck).second(Cause::AwaitingAcknowledgment);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    let two = Step::Write { bytes: 2 * half, piece: half, every: Duration::from_micros(60) };
    made.sides[0] = side(vec![Step::Repeat(40, vec![write(40), Step::Read(2 * half)])]);
    made.sides[1] = side(vec![Step::Repeat(40, vec![Step::Read(40), two])]);
    made.ours = 1;
    made
}

fn tiny_window(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(20, 40), draw.number(900, 1_200));
    let bytes = bytes_through(window, round_trip, 3.0);
    let about = format!("a terminal with a window of {window} bytes, less than a segment, {round_trip}");
    let expected = Expected::of(1, Cause::SillyWindow);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides[0] = side(vec![Step::ReadToEnd]);
    made.sides[1] = side(vec![write(bytes)]);
    made.sides[0].settings.receive_window_bytes = Some(window as u32);
    made
}
