//! The handshake.

use super::common::upload;
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "handshake", make };
    vec![recipe("handshake-syn-lost", syn_lost)]
}

fn syn_lost(draw: &mut Draw) -> Situation {
    let round_trip = draw.millis(20, 60);
    let about = format!("a path that loses the first SYN, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::Syn(1)));
    let expected = Expected::of(0, Cause::SynLoss)
        .sign(Sign::SynRetransmission)
        .unseen_at(Vantage::Receiver, &[Sign::SynRetransmission], "the lost SYN never came there")
        .unknown_at(
            Vantage::Receiver,
            &[Cause::AwaitingAcknowledgment, Cause::Opening, Cause::SlowStart, Cause::CongestionWindow],
            "the lost SYN never came there",
        );
    upload(about, 60_000, path, expected)
}
