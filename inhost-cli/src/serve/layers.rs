//! The instrument that says for which layer the processor works.

use crate::config::Instruments;
use inhost_layers::{Meter, Mode, Ring};
use inhost_runtime::Runtime;
use inhost_runtime::control::{Failure, Reply, Server};
use serde_json::{Value, json};
use std::rc::Rc;

/// Transitions that one reply has: writing them delays the host by a few milliseconds.
const TRANSITIONS_A_REPLY: usize = 8_192;

/// Gives the runtime a meter, and the control socket its request.
pub fn start(runtime: &mut Runtime, control: &Server, config: &Instruments) {
    let clock = runtime.clock();
    let meter = Meter::new(move || clock.now().as_nanos());
    meter.set_one_in(config.layers_one_in);
    meter.set_mode(config.layers);
    runtime.watch_layers(Rc::new(meter.clone()));
    control.handle("layers", move |_, request| {
        let reply = answer(&meter, &request);
        async move { reply }
    });
}

fn answer(meter: &Meter, request: &Value) -> Result<Reply, Failure> {
    let mode = match &request["mode"] {
        Value::Null => None,
        mode => {
            let known = serde_json::from_value::<Mode>(mode.clone());
            Some(known.map_err(|_| Failure::new("\"mode\" is off, sampled or full"))?)
        }
    };
    // What was measured until now is the answer, unless it is to be forgotten.
    if request["reset"] == true {
        meter.reset();
    }
    let mut report = meter.report();
    if let Some(one_in) = request["one_in"].as_u64() {
        meter.set_one_in(u32::try_from(one_in).unwrap_or(u32::MAX));
    }
    if let Some(mode) = mode {
        meter.set_mode(mode);
        if report.rounds == 0 {
            // Then the answer is what is measured from now on.
            report.mode = mode;
        }
    }
    let report = match request["transitions"] == true {
        true => report.with_transitions(&latest(&meter.transitions())),
        false => report,
    };
    Ok(Reply::from(json!({ "layers": report })))
}

/// As many of the latest transitions as a reply has.
fn latest(all: &Ring) -> Ring {
    let mut latest = Ring::new(TRANSITIONS_A_REPLY);
    for (at_ns, transition) in all.iter().skip(all.len().saturating_sub(TRANSITIONS_A_REPLY)) {
        latest.push(*at_ns, *transition);
    }
    latest
}
