//! Requirements of RFC 9438 on the whole sender that no other test covers.

use super::trial::*;
use crate::{Config, EcnMode};
use inhost_wire::tcp::Flags;

// spec: RFC9438 4.6-5
#[test]
fn marks_at_one_segment_cost_time() {
    for marked in [false, true] {
        let config = Config { ecn: EcnMode::Request, initial_window_segments: 1, ..plain() };
        let mut trial = Trial::calling(config);
        trial.expect();
        trial.pass_ms(100);
        let mut answer = segment(0, SYN | ACK | Flags::ECE, 1);
        answer.options.mss = Some(MSS as u16);
        trial.give(answer, b"");
        trial.write(&[1; 5000]);
        trial.sent.clear();
        trial.pass_ms(100);
        let flags = if marked { ACK | Flags::ECE } else { ACK };
        trial.give(segment(1, flags, 1001), b"");
        if !marked {
            assert_eq!(trial.sent.len(), 2, "slow start");
            continue;
        }
        let timeout = trial.connection.info(trial.now).retransmission_timeout;
        trial.pass(timeout - inhost_base::Duration::from_millis(1));
        trial.nothing();
        trial.pass_ms(1);
        trial.expect().is_data(1001, 1000);
        trial.nothing();
    }
}

/// A mark that comes long after the last data, when nothing is queued and nothing is out: what is written later has nothing to
/// wait for.
#[test]
fn a_mark_on_an_idle_connection_holds_nothing_back() {
    let config = Config { ecn: EcnMode::Request, initial_window_segments: 1, ..plain() };
    let mut trial = Trial::calling(config);
    trial.expect();
    let mut answer = segment(0, SYN | ACK | Flags::ECE, 1);
    answer.options.mss = Some(MSS as u16);
    trial.give(answer, b"");
    trial.write(&[1; 100]);
    trial.pass_ms(100);
    trial.give(segment(1, ACK, 101), b"");
    // Its queues are freed.
    trial.pass_ms(5000);
    assert!(trial.connection.parts().1.buffers().is_none());
    trial.give(segment(1, ACK | Flags::ECE, 101), b"a");
    trial.sent.clear();
    trial.write(&[2; 100]);
    trial.pass_ms(60_000);
    assert_eq!(trial.connection.info(trial.now).send_next.0.wrapping_sub(OURS), 201, "{:?}", trial.sent);
}
