//! One byte there and back, in memory.

use crate::Answer;
use crate::two::Two;
use std::time::{Duration, Instant};

/// Round trips between two looks at the clock.
const TRIPS_A_LOOK: u32 = 16;

pub fn memory(length: Duration) -> Result<Answer, String> {
    let mut two = Two::new(1500, false);
    let (caller, called) = two.connect(64 << 10)?;
    two.caller.socket(caller).set_ack_delay(None);
    let mut place = [0; 16];
    let began = Instant::now();
    let (mut last, mut each) = (began, Vec::with_capacity(1 << 20));
    while began.elapsed() < length {
        for _ in 0..TRIPS_A_LOOK {
            let now = two.now();
            two.caller.socket(caller).send_slice(b"x").map_err(|e| e.to_string())?;
            two.caller.poll(now);
            // One poll takes the byte in; the next, after the answer was written, sends it.
            two.called.poll_in(now);
            let count = two.called.socket(called).recv_slice(&mut place).map_err(|e| e.to_string())?;
            two.called.socket(called).send_slice(&place[..count]).map_err(|e| e.to_string())?;
            let now = two.now();
            two.called.poll(now);
            two.caller.poll_in(now);
            match two.caller.socket(caller).recv_slice(&mut place) {
                Ok(1) => {}
                other => return Err(format!("an echo gave {other:?}")),
            }
        }
        let now = Instant::now();
        if now - began > length / 5 {
            each.push((now - last).as_nanos() as f64 / f64::from(TRIPS_A_LOOK));
        }
        last = now;
    }
    each.sort_by(f64::total_cmp);
    let at = |share: f64| each.get((each.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN) / 1e3;
    let settings =
        format!("the stack's own calls, two clock readings a round trip; timed in groups of {TRIPS_A_LOOK}");
    Ok(Answer { settings, figures: vec![("p50", at(0.5)), ("p99", at(0.99))] })
}
