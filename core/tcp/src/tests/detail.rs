//! What a debugger is told of a connection.

use super::trial::*;
use crate::Config;
use inhost_base::Duration;
use serde_json::{Value, json};

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[test]
fn numbers_count_from_the_syn_and_agree_with_the_figures() {
    let trial = Trial::calling(plain());
    let detail = trial.connection.detail(trial.now);
    let send = &detail["send"];
    assert_eq!(
        (&detail["state"], &send["unacknowledged"], &send["next"]),
        (&"SYN-SENT".into(), &0.into(), &1.into())
    );
    assert_eq!(send["initial"], OURS);

    let mut trial = Trial::established(plain());
    trial.write(&pattern(0, 3000));
    trial.give(segment(501, ACK, 1001), b"ahead of a hole");
    let (detail, info) = (trial.connection.detail(trial.now), trial.connection.info(trial.now));
    let (send, receive) = (&detail["send"], &detail["receive"]);
    let number = |of: &Value| of.as_u64().unwrap() as u32;
    assert_eq!([&send["unacknowledged"], &send["next"], &send["initial"]].map(number), [1001, 3001, OURS]);
    assert_eq!(number(&send["initial"]).wrapping_add(3001), info.send_next.0);
    assert_eq!(number(&receive["initial"]).wrapping_add(number(&receive["next"])), info.receive_next.0);
    assert_eq!((number(&receive["next"]), &receive["reassembly"]), (1, &json!([[501, 516]])));
    assert_eq!(send["in_flight_bytes"], info.in_flight_bytes);
    assert_eq!(detail["congestion"]["window_bytes"], info.congestion_window_bytes);
    let sent: Vec<_> =
        items(&detail["scoreboard"]).map(|sent| json!([sent["start"], sent["end"], sent["state"]])).collect();
    assert_eq!(sent, [json!([1001, 2001, "in flight"]), json!([2001, 3001, "in flight"])]);
    let spent: u64 = items(&detail["send_ledger"]).filter_map(|spent| spent["time_ns"].as_u64()).sum();
    assert_eq!(detail["age_ns"], spent);
}

#[test]
fn every_timer_that_decides_the_deadline_is_listed() {
    let mut trial = Trial::established(Config { tail_loss_probe: true, ..plain() });
    trial.write(&pattern(0, 3000));
    trial.give(segment(1, ACK, 1), b"data");
    for _ in 0..2000 {
        let (detail, deadline) = (trial.connection.detail(trial.now), trial.connection.deadline());
        assert_eq!(detail["timers"][0]["due_ns"], deadline.as_nanos(), "{}", detail["timers"]);
        trial.pass(Duration::from_millis(1));
    }
}
