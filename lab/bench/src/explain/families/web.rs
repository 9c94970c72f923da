//! Pages: short answers over long paths, connections that are kept, servers that are busy.

use super::common::{LIKE_IDLE, TIMER_AT_RECEIVER, side, talk, upload};
use crate::explain::path::Plan;
use crate::explain::path::middlebox::{Action, Pick};
use crate::explain::script::{Step, write};
use crate::explain::situation::{Draw, Expected, Recipe, Situation, Vantage};
use inhost_base::Duration;
use inhost_explain::{Cause, Sign};

/// The situations.
pub fn recipes() -> Vec<Recipe> {
    let recipe = |name, make| Recipe { name, family: "web", make };
    vec![
        recipe("web-answers-far", answers_far),
        recipe("web-page-far", page_far),
        recipe("web-reader-thinks", reader_thinks),
        recipe("web-busy-server", busy_server),
        recipe("web-forms-tail", forms_tail),
        recipe("web-tunnel", tunnel),
    ]
}

fn answers_far(draw: &mut Draw) -> Situation {
    let (round_trip, answer) = (draw.millis(200, 300), draw.number(600, 1_300) as usize);
    let about = format!("two requests, each answered with {answer} bytes at once, {round_trip}");
    let expected = Expected::of(1, Cause::AwaitingAcknowledgment).either().second(Cause::Opening);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = talk(2, 200, answer, Duration::ZERO);
    made.ours = 1;
    made
}

fn page_far(draw: &mut Draw) -> Situation {
    let (round_trip, bytes) = (draw.millis(220, 300), draw.number(120_000, 180_000) as usize);
    let about = format!("one page of {bytes} bytes, {round_trip}");
    let expected = Expected::of(1, Cause::SlowStart).second(Cause::Opening);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = talk(1, 400, bytes, Duration::ZERO);
    made.sides[0].settings.receive_window_bytes = Some(1 << 20);
    // Its rounds are longer than 200 ms: none of them is idle time.
    made.sides[1].settings.restart_after_idle = false;
    made.ours = 1;
    made
}

fn reader_thinks(draw: &mut Draw) -> Situation {
    let (round_trip, mss) = (draw.millis(70, 120), draw.number(600, 1_000) as u16);
    let (think, page) = (round_trip.times(2), draw.number(2_500, 5_000) as usize);
    let about = format!(
        "a client that reads each of 14 pages of {page} bytes for {think} before it asks for the next; an MSS of {mss}, no timestamps, {round_trip}"
    );
    let expected =
        Expected::of(0, Cause::ThinkTime).second(Cause::AwaitingAcknowledgment).sign(Sign::ClampedMss);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = talk(14, 300, page, Duration::ZERO);
    made.sides[0].script = vec![Step::Repeat(14, vec![write(300), Step::Read(page), Step::Wait(think)])];
    for side in &mut made.sides {
        side.settings.mss_bytes = Some(mss);
        side.settings.timestamps = false;
    }
    made
}

fn busy_server(draw: &mut Draw) -> Situation {
    let (round_trip, wait, think) = (draw.millis(40, 90), draw.millis(1_400, 1_700), draw.millis(900, 1_100));
    let about = format!(
        "a server with room for one waiting connection that accepts nothing for {wait}, and then thinks {think}, {round_trip}"
    );
    let reason = "whether the path lost the SYN or the server dropped it (docs/explain-causes.md, SYN lost)";
    let expected = Expected::of(1, Cause::AcceptQueue)
        .second(Cause::ThinkTime)
        .unknown_at(Vantage::Middle, &[Cause::SynLoss], reason)
        .unknown_at(Vantage::Receiver, &[Cause::SynLoss], reason);
    let mut made = upload(about, 0, Plan::of(round_trip), expected);
    made.sides = talk(1, 300, 12_000, think);
    made.sides[1].settings.backlog = Some(1);
    made.sides[1].settings.wait_first = wait + Duration::from_millis(200);
    made.ours = 1;
    made
}

fn forms_tail(draw: &mut Draw) -> Situation {
    let (round_trip, full) = (draw.millis(90, 130), draw.number(1, 3) as usize);
    let bytes = 1_448 * full + draw.number(100, 1_200) as usize;
    let about =
        format!("27 forms of {bytes} bytes, of five in nine of which the last segment is lost, {round_trip}");
    let is_lost = |form: &u32| matches!(form % 9, 1 | 2 | 4 | 6 | 8);
    let lost = (1..=27).filter(is_lost).map(|form| form * (full as u32 + 1)).collect();
    let path = Plan::of(round_trip).with(0, Action::Lose(Pick::Data(lost)));
    let expected = Expected::of(0, Cause::TailLoss).second(Cause::AwaitingAcknowledgment).unknown_at(
        Vantage::Receiver,
        &LIKE_IDLE,
        TIMER_AT_RECEIVER,
    );
    let mut made = upload(about, 0, path, expected);
    made.sides = talk(27, bytes, 300, Duration::ZERO);
    made.sides[0].settings.restart_after_idle = false;
    made.sides[0].settings.nagle = false;
    made
}

fn tunnel(draw: &mut Draw) -> Situation {
    let (round_trip, mtu) = (draw.millis(60, 120), draw.number(1_100, 1_400) as usize);
    let think = draw.millis(800, 1_000);
    let about = format!(
        "a server that thinks {think} before an answer, and a path to the client that drops packets above {mtu} bytes, {round_trip}"
    );
    // The device stands between the server and the middle.
    let (reason, unended) = (
        "the lost segments never came there",
        "the lost segments never came there, and so the end of the thought is not seen",
    );
    let mut expected = Expected::of(1, Cause::MtuBlackHole).second(Cause::ThinkTime).sign(Sign::MtuBlackHole);
    for at in [Vantage::Middle, Vantage::Receiver] {
        expected = expected.unknown_at(at, &LIKE_IDLE, reason).second_unknown_at(at, unended).unseen_at(
            at,
            &[Sign::MtuBlackHole],
            reason,
        );
    }
    let path = Plan::of(round_trip).with(1, Action::Mtu(mtu));
    let mut made = upload(about, 0, path, expected);
    let ask = |answer| [write(300), Step::Read(answer)];
    made.sides[0] = side([ask(200), ask(40_000)].concat());
    let (first, second) =
        (vec![Step::Read(300), write(200)], vec![Step::Read(300), Step::Wait(think), write(40_000)]);
    made.sides[1] = side([first, second].concat());
    made.limit = Duration::from_millis(4_500);
    made.ours = 1;
    made
}
