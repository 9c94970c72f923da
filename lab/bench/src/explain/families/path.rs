//! What paths do to segments besides losing them.

use super::common::{side, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "path", make };
    vec![
        recipe("path-reorders-and-window", reorders),
        recipe("path-duplicates-and-window", duplicates),
        recipe("path-mtu-black-hole", black_hole),
        recipe("path-clamps-mss-and-window", clamps),
    ]
}

fn reorders(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(30, 50), draw.number(40, 60) << 10);
    let held = Duration::from_micros(draw.number(1_000, 3_000));
    let about =
        format!("a path that holds 1 % of packets for {held}, and a window of {window} bytes, {round_trip}");
    let path =
        Plan::of(round_trip).bottleneck(0, 40_000_000, 0).with(0, Action::Hold(Pick::Random(0.01), held));
    let expected = Expected::of(0, Cause::ReceiverWindow).second_sign(Sign::Reordering).second_unknown_at(
        Vantage::Middle,
        "the middle is before the place that reorders: it sees selective acknowledgments that are withdrawn by progress, as after any hole",
    );
    let expected = expected
        .second_unknown_at(Vantage::Sender, "as in the middle")
        .second_unknown_at(Vantage::Live, "as in the middle");
    let mut made = upload(about, (window as f64 * 3.0 / round_trip.as_secs_f64()) as usize, path, expected);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn duplicates(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(30, 60), draw.number(32, 48) << 10);
    let chance = draw.real(0.03, 0.06);
    let about = format!(
        "a path that delivers {:.1} % of packets twice, and a window of {window} bytes, {round_trip}",
        chance * 100.0
    );
    let path = Plan::of(round_trip).with(0, Action::Duplicate(Pick::Random(chance)));
    let expected = Expected::of(0, Cause::ReceiverWindow);
    let mut made = upload(about, (window as f64 * 3.0 / round_trip.as_secs_f64()) as usize, path, expected);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn black_hole(draw: &mut Draw) -> Situation {
    let (round_trip, mtu) = (draw.millis(20, 50), draw.number(1_200, 1_400) as usize);
    let about = format!("a path that drops packets above {mtu} bytes without a word, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Mtu(mtu));
    let looks_like =
        [Cause::ApplicationIdle, Cause::AwaitingPeer, Cause::ThinkTime, Cause::AwaitingAcknowledgment];
    let reason = "the lost segments never came there";
    let expected = Expected::of(0, Cause::MtuBlackHole)
        .sign(Sign::MtuBlackHole)
        .unknown_at(Vantage::Receiver, &looks_like, reason)
        .unseen_at(Vantage::Receiver, &[Sign::MtuBlackHole], reason);
    let mut made = upload(about, 0, path, expected);
    made.sides[0] = side(vec![write(300), Step::Read(100), write(30_000)]);
    made.sides[1] = side(vec![Step::Read(300), write(100), Step::ReadToEnd]);
    made.limit = Duration::from_secs(6);
    made
}

fn clamps(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(30, 60), draw.number(20, 32) << 10);
    let mss = draw.number(536, 1_100) as u16;
    let about =
        format!("a device that clamps the MSS to {mss}, and a window of {window} bytes, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::ClampMss(mss)).with(1, Action::ClampMss(mss));
    let expected =
        Expected::of(0, Cause::ReceiverWindow).second_sign(Sign::ClampedMss).sign(Sign::ClampedMss);
    let mut made = upload(about, (window as f64 * 3.0 / round_trip.as_secs_f64()) as usize, path, expected);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}
