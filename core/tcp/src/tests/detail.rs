//! What a debugger is told of a connection.

use super::trial::*;
use crate::Config;
use inhost_base::Duration;

#[test]
fn numbers_count_from_the_syn_and_agree_with_the_figures() {
    let trial = Trial::calling(plain());
    let detail = trial.connection.detail(trial.now);
    assert_eq!((detail.state, detail.send.unacknowledged, detail.send.next), ("SYN-SENT", 0, 1));
    assert_eq!(detail.send.initial, OURS);

    let mut trial = Trial::established(plain());
    trial.write(&pattern(0, 3000));
    trial.give(segment(501, ACK, 1001), b"ahead of a hole");
    let (detail, info) = (trial.connection.detail(trial.now), trial.connection.info(trial.now));
    assert_eq!((detail.send.unacknowledged, detail.send.next, detail.send.initial), (1001, 3001, OURS));
    assert_eq!(detail.send.initial.wrapping_add(detail.send.next as u32), info.send_next.0);
    assert_eq!(detail.receive.initial.wrapping_add(detail.receive.next as u32), info.receive_next.0);
    assert_eq!((detail.receive.next, &detail.receive.reassembly[..]), (1, &[(501, 516)][..]));
    assert_eq!(detail.send.in_flight_bytes, info.in_flight_bytes);
    assert_eq!(detail.congestion.window_bytes, info.congestion_window_bytes);
    let sent: Vec<(u64, u64, &str)> =
        detail.scoreboard.iter().map(|sent| (sent.start, sent.end, sent.state)).collect();
    assert_eq!(sent, [(1001, 2001, "in flight"), (2001, 3001, "in flight")]);
    let spent: u64 = detail.send_ledger.iter().map(|spent| spent.time_ns).sum();
    assert_eq!(spent, detail.age_ns);
}

#[test]
fn every_timer_that_decides_the_deadline_is_listed() {
    let mut trial = Trial::established(Config { tail_loss_probe: true, ..plain() });
    trial.write(&pattern(0, 3000));
    trial.give(segment(1, ACK, 1), b"data");
    for _ in 0..2000 {
        let (detail, deadline) = (trial.connection.detail(trial.now), trial.connection.deadline());
        let first = detail.timers.first().map(|timer| timer.due_ns);
        assert_eq!(first, Some(deadline.as_nanos()), "{:?}", detail.timers);
        trial.pass(Duration::from_millis(1));
    }
}
