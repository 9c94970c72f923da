//! The handshake.

use super::common::{side, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "handshake", make };
    vec![
        recipe("handshake-syn-lost", syn_lost),
        recipe("handshake-answer-lost-and-think", answer_lost),
        recipe("handshake-accept-queue", accept_queue),
    ]
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

fn answer_lost(draw: &mut Draw) -> Situation {
    let (round_trip, think) = (draw.millis(20, 50), draw.millis(400, 600));
    let about =
        format!("a path that loses the first SYN+ACK, and a server that thinks {think}, {round_trip}");
    let path = Plan::of(round_trip).with(1, Action::Lose(Pick::Syn(1)));
    let reason = "the lost SYN+ACK never came there, and the client need not send its SYN again";
    let expected = Expected::of(1, Cause::SynLoss)
        .second(Cause::ThinkTime)
        .sign(Sign::SynRetransmission)
        .unseen_at(Vantage::Middle, &[Sign::SynRetransmission], reason)
        .unseen_at(Vantage::Receiver, &[Sign::SynRetransmission], reason);
    let mut made = upload(about, 0, path, expected);
    made.sides[0] = side(vec![write(300), Step::Read(5_000)]);
    made.sides[1] = side(vec![Step::Read(300), Step::Wait(think), write(5_000)]);
    made.ours = 1;
    made
}

fn accept_queue(draw: &mut Draw) -> Situation {
    let (round_trip, wait) = (draw.millis(20, 50), draw.millis(1_300, 1_700));
    let about = format!(
        "a server with room for one waiting connection that accepts nothing for {wait}, {round_trip}"
    );
    let reason = "whether the path lost the SYN or the server dropped it (docs/explain-causes.md, SYN lost)";
    let expected = Expected::of(0, Cause::AcceptQueue)
        .unknown_at(Vantage::Sender, &[Cause::SynLoss], reason)
        .unknown_at(Vantage::Middle, &[Cause::SynLoss], reason);
    let mut made = upload(about, 40_000, Plan::of(round_trip), expected);
    made.sides[1].settings.backlog = Some(1);
    made.sides[1].settings.wait_first = wait + Duration::from_millis(200);
    made.ours = 1;
    made
}
