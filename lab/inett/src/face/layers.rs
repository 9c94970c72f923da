//! The time of a host by layer: the meter of the runtime on this thread, where one was asked for.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use inhost_event::Layer;
use inhost_layers::{Meter, Mode};
use inhost_runtime::Runtime;

use super::LayerTimes;

thread_local! {
    /// It lives as long as its runtime.
    static METER: RefCell<Weak<Meter>> = const { RefCell::new(Weak::new()) };
}

/// Has faces of this thread's hosts tell for which layer they work: every round is measured from now on. Cost: some readings
/// of the clock for each segment and each call of a socket. A thread has one such runtime, the latest.
pub fn watch_layers(runtime: &mut Runtime) {
    let clock = runtime.clock();
    let meter = Meter::new(move || clock.now().as_nanos());
    meter.set_one_in(1);
    // Without the list of transitions, which `Mode::Full` keeps.
    meter.set_mode(Mode::Sampled);
    let meter = Rc::new(meter);
    METER.set(Rc::downgrade(&meter));
    runtime.watch_layers(meter);
}

/// So far, in rounds that are over.
pub(super) fn of_thread() -> Option<LayerTimes> {
    let report = METER.with_borrow(Weak::upgrade)?.report();
    Some(Layer::ALL.map(|layer| report.layer_ns(layer)))
}
