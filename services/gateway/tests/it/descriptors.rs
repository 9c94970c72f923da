//! A process without descriptors: no other test runs in it.

#![allow(clippy::disallowed_methods, reason = "the far end is the system's, under the system's clock")]

use inhost_base::{Duration, Endpoint};
use inhost_gateway::{GatewayConfig, LoopbackPorts, guest_interface, user_link};
use inhost_runtime::Runtime;
use inhost_stack::StackConfig;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::TcpListener;

/// Want of descriptors is ours, and no refusal of the peer's: the guest's call waits, and succeeds once there are some.
#[test]
fn want_of_descriptors_is_no_refusal() {
    let mut config = GatewayConfig::default();
    config.loopback_ports = LoopbackPorts::All;
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let guest = runtime.host().clone();
    let interface = guest_interface("user0", &config);
    let (driver, running) = user_link(&guest, config, runtime.handle(), [3; 32]).unwrap().split();
    runtime.add_link(&guest, interface, Box::new(driver)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = Endpoint::new([10, 0, 2, 2], listener.local_addr().unwrap().port());

    let before = getrlimit(Resource::Nofile);
    let opened = std::fs::File::open("/dev/null").unwrap();
    let used = std::os::fd::AsRawFd::as_raw_fd(&opened) as u64;
    setrlimit(Resource::Nofile, Rlimit { current: Some(used + 1), ..before }).unwrap();
    let work = async {
        let calling = guest.spawn({
            let guest = guest.clone();
            async move { guest.connect(at).await }
        });
        guest.sleep(Duration::from_millis(300)).await;
        let is_waiting = !calling.is_finished();
        setrlimit(Resource::Nofile, before).unwrap();
        (is_waiting, calling.await)
    };
    let (is_waiting, connected) = runtime.run(guest.timeout(Duration::from_secs(30), work)).unwrap().unwrap();
    assert!(is_waiting, "the call was answered without a descriptor");
    assert!(connected.is_ok(), "{:?}", connected.err());
    let counters = running.gateway.counters();
    assert!(counters.exhausted > 0 && counters.connections_refused == 0, "{counters:?}");
}
