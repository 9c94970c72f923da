//! Radio links: hand-overs that hold everything, rates that fall, losses, slow beginnings.

use super::common::{LIKE_IDLE, TIMER_AT_RECEIVER, bytes_at, bytes_through, talk, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "mobile", make };
    vec![
        recipe("mobile-handover-and-window", handover),
        recipe("mobile-handover-plain", handover_plain),
        recipe("mobile-rate-falls", rate_falls),
        recipe("mobile-losses-and-think", losses_and_think),
        recipe("mobile-calls-twice", calls_twice),
        recipe("mobile-reorders-and-window", reorders_and_window),
    ]
}

fn handover(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(40, 60), draw.number(32, 56) << 10);
    let lasts = draw.millis(2_200, 2_400);
    let about =
        format!("a path that holds everything for {lasts}, and a window of {window} bytes, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Stall { after: Duration::from_millis(700), lasts });
    let expected = Expected::of(0, Cause::SpuriousTimeout)
        .second(Cause::ReceiverWindow)
        .sign(Sign::SpuriousRetransmission)
        .unknown_at(Vantage::Receiver, &LIKE_IDLE, TIMER_AT_RECEIVER);
    let mut made = upload(about, bytes_through(window, round_trip, 1.0), path, expected);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn handover_plain(draw: &mut Draw) -> Situation {
    let (round_trip, lasts) = (draw.millis(60, 100), draw.millis(2_300, 2_600));
    let about = format!(
        "a path that holds everything for {lasts}, between hosts without selective acknowledgments and timestamps, {round_trip}"
    );
    let path = Plan::of(round_trip).with(0, Action::Stall { after: Duration::from_millis(400), lasts });
    let reason =
        "without D-SACK and timestamps nothing tells that the original had arrived (docs/explain-causes.md)";
    let mut expected = Expected::of(0, Cause::SpuriousTimeout);
    for at in [Vantage::Sender, Vantage::Middle, Vantage::Live] {
        expected = expected.unknown_at(at, &[Cause::Timeout], reason);
    }
    let expected = expected.unknown_at(Vantage::Receiver, &LIKE_IDLE, TIMER_AT_RECEIVER);
    let window = draw.number(40, 60) << 10;
    let mut made = upload(about, bytes_through(window, round_trip, 0.7), path, expected);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    for side in &mut made.sides {
        side.settings.sack = false;
        side.settings.timestamps = false;
    }
    made
}

fn rate_falls(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(60, 90), draw.number(96, 128) << 10);
    let (rate, after) = (draw.number(1_500_000, 2_000_000), draw.millis(1_850, 2_100));
    let about = format!(
        "a path of 30 Mbit/s that has {rate} bit/s after {after}, and a window of {window} bytes, {round_trip}"
    );
    let path = Plan::of(round_trip).bottleneck(0, 30_000_000, 1 << 20).changes(0, after, rate);
    let expected =
        Expected::of(0, Cause::BottleneckRate).second(Cause::ReceiverWindow).sign(Sign::Bufferbloat);
    let bytes = bytes_through(window, round_trip, after.as_secs_f64()) + bytes_at(rate, 4.5);
    let mut made = upload(about, bytes, path, expected);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn losses_and_think(draw: &mut Draw) -> Situation {
    let (round_trip, every) = (draw.millis(80, 110), draw.number(80, 120) as u32);
    let think = draw.millis(600, 700);
    let about = format!(
        "a server that thinks {think} before each of 4 answers, Reno without timestamps, and a path that loses one segment in {every}, {round_trip}"
    );
    let lost = (0..20).map(|number| 50 + every * number).collect();
    let path = Plan::of(round_trip).with(1, Action::Lose(Pick::Data(lost)));
    let expected = Expected::of(1, Cause::CongestionWindow).second(Cause::ThinkTime).sign(Sign::RandomLoss);
    let mut made = upload(about, 0, path, expected);
    made.sides = talk(4, 300, 300_000, think);
    made.sides[0].settings.receive_window_bytes = Some(1 << 20);
    for side in &mut made.sides {
        side.settings.timestamps = false;
        side.settings.congestion = "reno";
        side.settings.restart_after_idle = false;
    }
    made.ours = 1;
    made
}

fn calls_twice(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(60, 120), draw.number(700_000, 1_200_000));
    let about = format!("a path of {rate} bit/s that loses the first two SYNs, {round_trip}");
    let path = Plan::of(round_trip).bottleneck(0, rate, 1 << 20).with(0, Action::Lose(Pick::Syn(2)));
    let reason = "the lost SYNs never came there";
    let expected = Expected::of(0, Cause::SynLoss)
        .second(Cause::BottleneckRate)
        .sign(Sign::SynRetransmission)
        .unseen_at(Vantage::Receiver, &[Sign::SynRetransmission], reason)
        .unknown_at(Vantage::Receiver, &[Cause::BottleneckRate, Cause::Opening, Cause::SlowStart], reason);
    let mut made = upload(about, bytes_at(rate, 1.8), path, expected);
    made.sides[1].settings.receive_window_bytes = Some(bytes_at(rate, 0.3) as u32);
    made
}

fn reorders_and_window(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(60, 110), draw.number(64, 120) << 10);
    let held = Duration::from_micros(draw.number(3_000, 6_000));
    let about = format!(
        "a path to the client that holds 2 % of packets for {held}, and a window of {window} bytes, {round_trip}"
    );
    let path =
        Plan::of(round_trip).bottleneck(1, 50_000_000, 0).with(1, Action::Hold(Pick::Random(0.02), held));
    let expected = Expected::of(1, Cause::ReceiverWindow).second_sign(Sign::Reordering);
    let mut made = upload(about, 0, path, expected);
    made.sides = talk(1, 300, bytes_through(window, round_trip, 3.5), Duration::ZERO);
    made.sides[0].settings.receive_window_bytes = Some(window as u32);
    made.ours = 1;
    made
}
