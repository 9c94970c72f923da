//! Copies of disks: long transfers to readers that pause, from senders with little memory, through old devices.

use super::common::{bytes_at, bytes_through, talk, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Options, Pick};
use crate::explain::script::Step;
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "backup", make };
    vec![
        recipe("backup-far-disk", far_disk),
        recipe("backup-near-disk", near_disk),
        recipe("backup-restore-small-buffer", small_buffer),
        recipe("backup-without-sack", without_sack),
    ]
}

fn far_disk(draw: &mut Draw) -> Situation {
    let (round_trip, window) = (draw.millis(80, 140), draw.number(120, 240) << 10);
    let (piece, pause) = (bytes_through(window, round_trip, 1.3), draw.millis(600, 700) + round_trip);
    let about = format!(
        "a server that writes to its disk for {pause} after each {piece} bytes, behind a window of {window} bytes, {round_trip}"
    );
    let expected = Expected::of(0, Cause::ReceiverWindow).second(Cause::ZeroWindow);
    let mut made = upload(about, 4 * piece, Plan::of(round_trip), expected);
    made.sides[0].settings.restart_after_idle = false;
    made.sides[1].script = vec![Step::Repeat(3, vec![Step::Read(piece), Step::Wait(pause)]), Step::ReadToEnd];
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made.ours = 1;
    made
}

fn near_disk(draw: &mut Draw) -> Situation {
    let (round_trip, rate) = (draw.millis(2, 5), draw.number(24_000_000, 36_000_000));
    let (piece, pause) = (bytes_at(rate, 0.7), draw.millis(380, 450));
    let window = bytes_at(rate, 0.06);
    let about = format!(
        "a server that writes to its disk for {pause} after each {piece} bytes, behind a window of {window} bytes and {rate} bit/s, {round_trip}"
    );
    let path = Plan::of(round_trip).bottleneck(0, rate, 4 << 20);
    let expected = Expected::of(0, Cause::BottleneckRate).second(Cause::ZeroWindow);
    let mut made = upload(about, 5 * piece, path, expected);
    made.sides[1].script = vec![Step::Repeat(4, vec![Step::Read(piece), Step::Wait(pause)]), Step::ReadToEnd];
    made.sides[1].settings.receive_window_bytes = Some(window as u32);
    made.ours = 1;
    made
}

fn small_buffer(draw: &mut Draw) -> Situation {
    let (round_trip, buffer) = (draw.millis(80, 140), draw.number(18, 24) << 10);
    let (answer, think) = (bytes_through(buffer, round_trip, 2.0), draw.millis(480, 530));
    let about = format!(
        "a server with a send buffer of {buffer} bytes that thinks {think} before each of 3 answers of {answer} bytes, {round_trip}"
    );
    let mut expected = Expected::of(1, Cause::SendBuffer).second(Cause::ThinkTime);
    for at in [Vantage::Sender, Vantage::Middle, Vantage::Receiver] {
        expected = expected.unknown_at(
            at,
            &[Cause::CongestionWindow, Cause::Pacing],
            "in a capture it looks like a congestion window, and like pacing where its segments are spread (docs/explain-causes.md)",
        );
    }
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = talk(3, 200, answer, think);
    made.sides[0].settings.receive_window_bytes = Some(1 << 20);
    made.sides[1].settings.nagle = false;
    made.sides[1].settings.send_buffer_bytes = Some(buffer as usize);
    made.ours = 1;
    made
}

fn without_sack(draw: &mut Draw) -> Situation {
    let (round_trip, losses) = (draw.millis(40, 70), draw.number(16, 21) as u32);
    let about = format!(
        "a device that removes selective acknowledgments from SYNs, and a path that loses {losses} segments of one flight, {round_trip}"
    );
    // Reno without selective acknowledgments repairs one in a round trip.
    let lost = (0..losses).map(|number| 150 + 6 * number).collect();
    let which = Options { sack: true, ..Options::default() };
    let path = Plan::of(round_trip).with(0, Action::Strip(which)).with(0, Action::Lose(Pick::Data(lost)));
    let expected = Expected::of(0, Cause::FastRecovery)
        .second(Cause::CongestionWindow)
        .sign(Sign::RandomLoss)
        .sign(Sign::OptionMissing)
        .unseen_at(Vantage::Receiver, &[Sign::OptionMissing], "the SYN came there without the option");
    let mut made = upload(about, 2_200_000, path, expected);
    made.sides[0].settings.congestion = "reno";
    made.sides[0].settings.restart_after_idle = false;
    made.sides[1].settings.receive_window_bytes = Some(1 << 20);
    made
}
