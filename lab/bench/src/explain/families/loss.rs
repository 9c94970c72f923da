//! Losses.

use super::common::{LIKE_IDLE, TIMER_AT_RECEIVER, talk, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "loss", make };
    vec![
        recipe("loss-random", random),
        recipe("loss-bursts", bursts),
        recipe("loss-one-early", one_early),
        recipe("loss-tail", tail),
        recipe("loss-tail-and-think", tail_and_think),
        recipe("loss-outage", outage),
        recipe("loss-spurious-timeout", spurious_timeout),
    ]
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

fn bursts(draw: &mut Draw) -> Situation {
    let (round_trip, length) = (draw.millis(30, 50), draw.number(4, 7) as u32);
    let chance = draw.real(0.006, 0.008);
    let about = format!("a path that loses {length} packets in a row now and then, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::Burst(chance, length)));
    let expected =
        Expected::of(0, Cause::CongestionWindow).second(Cause::FastRecovery).second_sign(Sign::BurstLoss);
    let mut made = upload(about, 2_500_000, path, expected.sign(Sign::BurstLoss));
    made.sides[1].settings.receive_window_bytes = Some(1 << 20);
    made
}

fn one_early(draw: &mut Draw) -> Situation {
    let (round_trip, number) = (draw.millis(60, 90), draw.number(25, 60) as u32);
    let about = format!("a path that loses one segment in slow start, the {number}th, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::Data(vec![number])));
    let expected = Expected::of(0, Cause::CongestionWindow).sign(Sign::RandomLoss);
    let mut made = upload(about, 2_500_000, path, expected);
    for side in &mut made.sides {
        side.settings.congestion = "reno";
    }
    made.sides[1].settings.receive_window_bytes = Some(4 << 20);
    made
}

fn tail(draw: &mut Draw) -> Situation {
    let (round_trip, bytes) =
        (draw.millis(20, 40), 1_448 * draw.number(2, 5) as usize + draw.number(100, 1_000) as usize);
    let about =
        format!("40 messages of {bytes} bytes, of most of which the last segment is lost, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::Tail(bytes as u32, 0.85)));
    let expected =
        Expected::of(0, Cause::TailLoss).unknown_at(Vantage::Receiver, &LIKE_IDLE, TIMER_AT_RECEIVER);
    let mut made = upload(about, 0, path, expected);
    // Each is answered with 100 bytes.
    made.sides = talk(40, bytes, 100, Duration::ZERO);
    made
}

fn tail_and_think(draw: &mut Draw) -> Situation {
    let (round_trip, think) = (draw.millis(45, 60), draw.millis(360, 390));
    let answer = 1_448 * draw.number(2, 4) as usize + draw.number(100, 1_000) as usize;
    let about = format!(
        "a server that thinks {think} about each of 16 requests; the last segment of most answers of {answer} bytes is lost, {round_trip}"
    );
    let path = Plan::of(round_trip).with(1, Action::Lose(Pick::Tail(answer as u32, 0.9)));
    let expected = Expected::of(1, Cause::ThinkTime)
        .second(Cause::TailLoss)
        .second_unknown_at(Vantage::Receiver, TIMER_AT_RECEIVER);
    // The device that loses them stands between the server and the middle.
    let expected = expected.second_unknown_at(Vantage::Middle, "the lost segments never came there");
    let mut made = upload(about, 0, path, expected);
    made.sides = talk(16, 200, answer, think);
    made.ours = 1;
    made
}

fn outage(draw: &mut Draw) -> Situation {
    let (round_trip, lasts) = (draw.millis(20, 40), draw.millis(1_500, 2_200));
    let about = format!("a path that carries nothing for {lasts}, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::During(Duration::from_millis(300), lasts)));
    let path = path.bottleneck(0, 8_000_000, 60_000);
    let expected = Expected::of(0, Cause::Timeout).sign(Sign::TimeoutRetransmission);
    let expected = expected.unknown_at(Vantage::Receiver, &LIKE_IDLE, TIMER_AT_RECEIVER);
    let expected = expected.unseen_at(Vantage::Receiver, &[Sign::TimeoutRetransmission], TIMER_AT_RECEIVER);
    let mut made = upload(about, 800_000, path, expected);
    made.sides[1].settings.receive_window_bytes = Some(50_000);
    made
}

fn spurious_timeout(draw: &mut Draw) -> Situation {
    let (round_trip, lasts) = (draw.millis(20, 40), draw.millis(800, 1_000));
    let about = format!("a path that holds everything for {lasts} and loses nothing, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Stall { after: Duration::from_millis(200), lasts });
    let expected = Expected::of(0, Cause::SpuriousTimeout)
        .unknown_at(Vantage::Receiver, &LIKE_IDLE, TIMER_AT_RECEIVER)
        .sign(Sign::SpuriousRetransmission);
    let mut made = upload(about, 400_000, path, expected);
    made.sides[1].settings.receive_window_bytes = Some(40_000);
    made
}
