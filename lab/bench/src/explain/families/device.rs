//! Devices that meddle, and ends that vanish or reset.

use super::common::{side, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Options, Pick};
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "device", make };
    vec![
        recipe("device-strips-scaling", strips),
        recipe("device-resets", resets),
        recipe("device-thins-acks", thins),
        recipe("device-damages", damages),
        recipe("server-resets", server_resets),
        recipe("server-vanishes", server_vanishes),
    ]
}

/// A transfer through a window, of so many seconds.
fn through_window(
    about: String,
    window: u64,
    round_trip: Duration,
    path: Plan,
    expected: Expected,
) -> Situation {
    let bytes = (window as f64 * 3.0 / round_trip.as_secs_f64()) as usize;
    let mut made = upload(about, bytes, path, expected);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made
}

fn strips(draw: &mut Draw) -> Situation {
    let round_trip = draw.millis(60, 120);
    let about = format!("a device that removes window scaling from SYNs, {round_trip}");
    let which = Options { window_scale: true, ..Options::default() };
    let path = Plan::of(round_trip).with(0, Action::Strip(which));
    let reason = "the SYN came there without the option";
    let expected = Expected::of(0, Cause::ReceiverWindow)
        .sign(Sign::NoWindowScaling)
        .second_sign(Sign::OptionMissing)
        .second_unknown_at(Vantage::Receiver, reason);
    upload(about, (65_535.0 * 4.0 / round_trip.as_secs_f64()) as usize, path, expected)
}

fn resets(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(30, 60), draw.number(24, 40) << 10);
    let after = (window as f64 * 2.0 / round_trip.as_secs_f64() / 1_448.0) as u32;
    let about = format!(
        "a device that resets the connection after {after} segments, and a window of {window} bytes, {round_trip}"
    );
    let path = Plan::of(round_trip).with(0, Action::Reset(after));
    let expected = Expected::of(0, Cause::ReceiverWindow)
        .second_sign(Sign::Reset)
        .sign(Sign::Reset)
        .sign(Sign::ForeignSegment);
    through_window(about, window, round_trip, path, expected)
}

fn thins(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(40, 60), draw.number(56, 64) << 10);
    let every = draw.millis(8, 12);
    let about = format!(
        "a device that lets an acknowledgment pass each {every}, and a window of {window} bytes, {round_trip}"
    );
    let path = Plan::of(round_trip).bottleneck(0, 30_000_000, 0).with(1, Action::Thin(every));
    let reason = "the acknowledgments leave there as they should, and when the sender has them is not seen";
    let expected = Expected::of(0, Cause::ReceiverWindow)
        .second_sign(Sign::StretchAcks)
        .unknown_at(
            Vantage::Receiver,
            &[Cause::Pacing, Cause::CongestionWindow, Cause::BottleneckRate],
            reason,
        )
        .second_unknown_at(Vantage::Receiver, reason);
    through_window(about, window, round_trip, path, expected)
}

fn damages(draw: &mut Draw) -> Situation {
    let (round_trip, chance) = (draw.millis(30, 60), draw.real(0.008, 0.015));
    let about = format!("a device that damages {:.1} % of packets, {round_trip}", chance * 100.0);
    let path = Plan::of(round_trip).with(0, Action::Damage(Pick::Random(chance)));
    let before = "the packets are damaged behind this place";
    let expected = Expected::of(0, Cause::CongestionWindow)
        .second(Cause::FastRecovery)
        .second_sign(Sign::RandomLoss)
        .sign(Sign::WrongChecksum)
        .unseen_at(Vantage::Sender, &[Sign::WrongChecksum], before)
        .unseen_at(Vantage::Middle, &[Sign::WrongChecksum], before)
        .unseen_at(Vantage::Live, &[Sign::WrongChecksum], before);
    let mut made = upload(about, 1_800_000, path, expected);
    made.sides[1].settings.receive_window_bytes = Some(1 << 20);
    made
}

fn server_resets(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(30, 60), draw.number(24, 40) << 10);
    let bytes = (window as f64 * 2.0 / round_trip.as_secs_f64()) as usize;
    let about =
        format!("a server that resets after {bytes} bytes, and a window of {window} bytes, {round_trip}");
    let expected = Expected::of(0, Cause::ReceiverWindow).second_sign(Sign::Reset).sign(Sign::Reset);
    let mut made = through_window(about, window, round_trip, Plan::of(round_trip), expected);
    made.sides[1].script = vec![Step::Read(bytes), Step::Reset];
    made
}

fn server_vanishes(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(20, 40), draw.number(24, 40) << 10);
    let bytes = (window as f64 * 0.6 / round_trip.as_secs_f64()) as usize;
    let about = format!("a server whose host vanishes after {bytes} bytes, {round_trip}");
    let expected = Expected::of(0, Cause::Timeout).sign(Sign::TimeoutRetransmission);
    let reason = "what came after the end of the host was not captured there";
    let expected = expected
        .unknown_at(
            Vantage::Receiver,
            &[Cause::ReceiverWindow, Cause::SlowStart, Cause::CongestionWindow],
            reason,
        )
        .unseen_at(Vantage::Receiver, &[Sign::TimeoutRetransmission], reason);
    let mut made = upload(about, 4 * bytes, Plan::of(round_trip), expected);
    made.sides[1] = side(vec![Step::Read(bytes), Step::Vanish]);
    made.sides[0] = side(vec![write(4 * bytes)]);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made.limit = Duration::from_secs(5);
    made
}
