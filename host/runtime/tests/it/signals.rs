//! Signals of the system as something to await. A test process of its own, for signals are the process's.

use inhost_base::Duration;
use inhost_runtime::{Runtime, Signal, Signals};
use inhost_stack::StackConfig;

#[test]
fn signals_arrive_one_by_one() {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let signals = Signals::new(runtime.handle(), &[Signal::Hangup, Signal::Terminate]).unwrap();
    let raise = |signal| {
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, signal).unwrap();
    };
    raise(rustix::process::Signal::HUP);
    let limit = Duration::from_secs(5);
    assert_eq!(runtime.run(host.timeout(limit, signals.next())).unwrap(), Ok(Signal::Hangup));
    raise(rustix::process::Signal::TERM);
    assert_eq!(runtime.run(host.timeout(limit, signals.next())).unwrap(), Ok(Signal::Terminate));
    let nothing = host.timeout(Duration::from_millis(20), signals.next());
    assert!(runtime.run(nothing).unwrap().is_err());
}
