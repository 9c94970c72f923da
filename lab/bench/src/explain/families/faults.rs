//! What breaks in the middle of a connection: paths, acknowledgments, hosts, checksums, clients that give up.

use super::common::{LIKE_IDLE, TIMER_AT_RECEIVER, bytes_at, bytes_through, side, talk, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "faults", make };
    vec![
        recipe("faults-path-breaks", path_breaks),
        recipe("faults-acknowledgments-vanish", acknowledgments_vanish),
        recipe("faults-reader-vanishes", reader_vanishes),
        recipe("faults-checksums", checksums),
        recipe("faults-client-gives-up", client_gives_up),
    ]
}

fn path_breaks(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(50, 90), draw.number(24, 40) << 10);
    let after = draw.millis(1_800, 2_200);
    let about =
        format!("a path that carries nothing after {after}, and a window of {window} bytes, {round_trip}");
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::During(after, Duration::from_secs(60))));
    let reason = "what was sent after the path broke never came there";
    let expected = Expected::of(0, Cause::Timeout)
        .second(Cause::ReceiverWindow)
        .sign(Sign::TimeoutRetransmission)
        .unknown_at(Vantage::Receiver, &[&LIKE_IDLE[..], &[Cause::ReceiverWindow]].concat(), reason)
        .unseen_at(Vantage::Receiver, &[Sign::TimeoutRetransmission], reason);
    let mut made = upload(about, bytes_through(window, round_trip, 20.0), path, expected);
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made.limit = Duration::from_secs(8);
    made
}

fn acknowledgments_vanish(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(50, 90), draw.number(40, 64) << 10);
    let (after, lasts) = (draw.millis(1_000, 1_200), draw.millis(1_500, 2_000));
    let bytes = bytes_through(window, round_trip, 1.6);
    let about = format!(
        "a server that sends {bytes} bytes, of which no acknowledgment comes for {lasts}, and a window of {window} bytes, {round_trip}"
    );
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::During(after, lasts)));
    let reason = "the acknowledgments passed here and were lost behind: it looks as if the sender had them";
    let looks_like = [&LIKE_IDLE[..], &[Cause::BrokenRecovery]].concat();
    let expected = Expected::of(1, Cause::SpuriousTimeout)
        .second(Cause::ReceiverWindow)
        .sign(Sign::SpuriousRetransmission)
        .unknown_at(Vantage::Middle, &looks_like, reason)
        .unknown_at(Vantage::Receiver, &looks_like, reason);
    let mut made = upload(about, 0, path, expected);
    made.sides = talk(1, 300, bytes, Duration::ZERO);
    made.sides[0].settings.receive_window_bytes = Some(window as u32);
    made.ours = 1;
    made
}

fn reader_vanishes(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(100, 160), draw.number(3_000_000, 5_000_000));
    let read = bytes_at(rate, 1.9);
    let about = format!("a client whose host vanishes after {read} bytes at {rate} bit/s, {round_trip}");
    let path = Plan::of(round_trip).bottleneck(1, rate, 1 << 20);
    let reason = "what came after the end of the host was not captured there";
    let expected = Expected::of(1, Cause::Timeout)
        .second(Cause::BottleneckRate)
        .sign(Sign::TimeoutRetransmission)
        .unknown_at(Vantage::Receiver, &[Cause::BottleneckRate], reason)
        .unseen_at(Vantage::Receiver, &[Sign::TimeoutRetransmission], reason);
    let mut made = upload(about, 0, path, expected);
    made.sides[0] = side(vec![Step::Read(read), Step::Vanish]);
    made.sides[1] = side(vec![write(4 * read)]);
    made.sides[0].settings.receive_window_bytes = Some(bytes_at(rate, 0.3) as u32);
    made.limit = Duration::from_secs(8);
    made.ours = 1;
    made
}

fn checksums(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(20, 50), draw.number(5_000_000, 8_000_000));
    let lasts = draw.millis(1_600, 2_000);
    let about = format!("a path of {rate} bit/s that damages every packet for {lasts}, {round_trip}");
    let path = Plan::of(round_trip)
        .bottleneck(0, rate, 1 << 20)
        .with(0, Action::Damage(Pick::During(Duration::from_millis(600), lasts)));
    let behind = "the packets are damaged behind this place";
    let mut expected = Expected::of(0, Cause::Timeout)
        .second(Cause::BottleneckRate)
        .sign(Sign::TimeoutRetransmission)
        .sign(Sign::WrongChecksum)
        .unknown_at(Vantage::Receiver, &LIKE_IDLE, TIMER_AT_RECEIVER)
        .unseen_at(Vantage::Receiver, &[Sign::TimeoutRetransmission], TIMER_AT_RECEIVER);
    for at in [Vantage::Sender, Vantage::Middle, Vantage::Live] {
        expected = expected.unseen_at(at, &[Sign::WrongChecksum], behind);
    }
    let mut made = upload(about, bytes_at(rate, 1.4), path, expected);
    made.sides[1].settings.receive_window_bytes = Some(bytes_at(rate, 0.12) as u32);
    made
}

fn client_gives_up(draw: &mut Draw) -> Situation {
    let (round_trip, answer) = (draw.millis(180, 240), draw.number(2_000, 8_000) as usize);
    let think = round_trip.times(2);
    let about = format!(
        "a server that thinks {think} about each of 6 requests, and a client that resets instead of waiting for the last, {round_trip}"
    );
    let expected = Expected::of(1, Cause::ThinkTime).second(Cause::AwaitingAcknowledgment).sign(Sign::Reset);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = talk(6, 300, answer, think);
    let all_but_one = Step::Repeat(5, vec![write(300), Step::Read(answer)]);
    made.sides[0] = side(vec![all_but_one, write(300), Step::Wait(round_trip), Step::Reset]);
    made.ours = 1;
    made
}
