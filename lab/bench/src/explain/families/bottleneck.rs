//! The bottleneck's rate, and its queue.

use super::common::{IDLE_AT_RECEIVER, bytes_at, side, talk, upload};
use crate::explain::path::Plan;
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "bottleneck", make };
    vec![
        recipe("bottleneck-bufferbloat", bufferbloat),
        recipe("bottleneck-bufferbloat-and-think", bufferbloat_and_think),
        recipe("bottleneck-and-pauses", and_pauses),
        recipe("bottleneck-and-slow-start", and_slow_start),
        recipe("bottleneck-short-queue", short_queue),
    ]
}

fn bufferbloat(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(20, 40), draw.number(4_000_000, 10_000_000));
    // A quarter to half a second of queue.
    let queue = bytes_at(rate, draw.real(0.3, 0.5)) as u64;
    let about = format!("{rate} bit/s with a queue of {queue} bytes, {round_trip}");
    let path = Plan::of(round_trip).bottleneck(0, rate, 2 * queue);
    let expected = Expected::of(0, Cause::BottleneckRate).sign(Sign::Bufferbloat);
    let mut made = upload(about, bytes_at(rate, 4.0), path, expected);
    // Twice the queue is never filled: nothing is lost.
    made.sides[1].settings.receive_window_bytes = Some(queue as u32);
    made
}

fn bufferbloat_and_think(draw: &mut Draw) -> Situation {
    let (round_trip, rate, think) =
        (draw.millis(20, 30), draw.number(5_000_000, 9_000_000), draw.millis(600, 700));
    let (queue, answer) = (bytes_at(rate, draw.real(0.25, 0.35)) as u64, bytes_at(rate, 1.3));
    let about = format!(
        "a server that thinks {think} before each of 3 answers of {answer} bytes; {rate} bit/s with a queue of {queue} bytes, {round_trip}"
    );
    let path = Plan::of(round_trip).bottleneck(1, rate, 2 * queue);
    let expected = Expected::of(1, Cause::BottleneckRate).second(Cause::ThinkTime).sign(Sign::Bufferbloat);
    let mut made = upload(about, 0, path, expected);
    made.sides = talk(3, 200, answer, think);
    made.sides[0].settings.receive_window_bytes = Some(queue as u32);
    made.ours = 1;
    made
}

fn and_pauses(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(15, 30), draw.number(6_000_000, 12_000_000));
    let (piece, pause) = (bytes_at(rate, 0.9), draw.millis(450, 600));
    let about = format!("three uploads of {piece} bytes at {rate} bit/s, {pause} between them, {round_trip}");
    let path = Plan::of(round_trip).bottleneck(0, rate, bytes_at(rate, 0.3) as u64);
    let expected = Expected::of(0, Cause::BottleneckRate)
        .second(Cause::ApplicationIdle)
        .second_unknown_at(Vantage::Receiver, IDLE_AT_RECEIVER);
    let mut made = upload(about, 0, path, expected);
    let pause = pause + Duration::from_millis(100);
    made.sides[0] = side(vec![Step::Repeat(3, vec![write(piece), Step::Wait(pause)]), write(10_000)]);
    made.sides[1].settings.receive_window_bytes = Some(bytes_at(rate, 0.1) as u32);
    made
}

fn and_slow_start(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(150, 180), draw.number(6_000_000, 9_000_000));
    let about = format!("a transfer of 2.2 seconds at {rate} bit/s on a path of {round_trip}");
    let path = Plan::of(round_trip).bottleneck(0, rate, bytes_at(rate, 0.6) as u64);
    let expected = Expected::of(0, Cause::BottleneckRate).second(Cause::SlowStart);
    let mut made = upload(about, bytes_at(rate, 2.2), path, expected);
    // The bandwidth-delay product and 0.15 seconds of queue.
    made.sides[1].settings.receive_window_bytes =
        Some(bytes_at(rate, round_trip.as_secs_f64() + 0.15) as u32);
    made
}

fn short_queue(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(20, 40), draw.number(8_000_000, 12_000_000));
    let queue = (bytes_at(rate, round_trip.as_secs_f64()) as f64 * draw.real(0.7, 1.0)) as u64;
    let about = format!("{rate} bit/s with a queue of {queue} bytes, which overflows, {round_trip}");
    let path = Plan::of(round_trip).bottleneck(0, rate, queue);
    let expected =
        Expected::of(0, Cause::BottleneckRate).second(Cause::FastRecovery).second_sign(Sign::BurstLoss);
    let mut made = upload(about, bytes_at(rate, 4.0), path, expected.sign(Sign::BurstLoss));
    made.sides[1].settings.receive_window_bytes = Some(1 << 20);
    made
}
