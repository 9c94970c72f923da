//! Requirements of RFC 6298 that no other test covers.

use super::trial::*;

// spec: RFC6298 5-5
#[test]
fn after_a_syn_that_timed_out_data_has_three_seconds() {
    let mut trial = Trial::calling(plain());
    trial.pass_ms(1000);
    let mut answer = segment(0, SYN | ACK, 1);
    answer.options.mss = Some(MSS as u16);
    trial.give(answer, b"");
    trial.write(&[1; 500]);
    trial.sent.clear();
    trial.pass_ms(2999);
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_data(1, 500);
}
