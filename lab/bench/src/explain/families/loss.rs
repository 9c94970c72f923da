//! Losses.

use super::common::upload;
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::situation::{Draw, Expected, Recipe, Situation};
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "loss", make };
    vec![recipe("loss-random", random)]
}

fn random(draw: &mut Draw) -> Situation {
    let (round_trip, chance) = (draw.millis(30, 60), draw.real(0.008, 0.015));
    let about = format!("a path that loses {:.1} % of packets by chance, {round_trip}", chance * 100.0);
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::Random(chance)));
    let expected =
        Expected::of(0, Cause::CongestionWindow).second(Cause::FastRecovery).second_sign(Sign::RandomLoss);
    let mut made = upload(about, 1_800_000, path, expected.sign(Sign::RandomLoss));
    made.sides[1].settings.receive_window_bytes = Some(1 << 20);
    made
}
