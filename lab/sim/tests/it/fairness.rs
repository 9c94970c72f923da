//! Connections that share a device with room for one frame get equal shares of it.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant};
use inhost_sim::{LinkConfig, Network, QueueConfig, QueueLimit, Ran, address, interface};
use inhost_stack::{ListenOptions, StackConfig};

/// Connections.
const FLOWS: usize = 4;
/// Bytes until the first of them has enough.
const ENOUGH_BYTES: u64 = 500_000;

#[test]
fn a_slow_device_is_shared() {
    let mut network = Network::new(Instant::ZERO, 10_000_000);
    let hosts = [1, 2].map(|seed| network.add_host(StackConfig::default(), seed));
    let queue = QueueConfig { limit: QueueLimit::Packets(1), ..QueueConfig::default() };
    let slow = LinkConfig { rate_bits_per_second: Some(1_000_000), queue, ..LinkConfig::default() };
    let ends = hosts.map(|host| (host, interface(host, false, 1500)));
    network.join(ends, slow, 5).unwrap();

    let listener =
        network.host(1).listen(Endpoint::new(address(1, false), 9), ListenOptions::default()).unwrap();
    let received: Rc<[Cell<u64>; FLOWS]> = Rc::default();
    let (counted, called) = (received.clone(), network.host(1).clone());
    network
        .host(1)
        .spawn(async move {
            for flow in 0..FLOWS {
                let stream = listener.accept().await.unwrap();
                let counted = counted.clone();
                called
                    .spawn(async move {
                        let mut place = [0; 4096];
                        while let Ok(count @ 1..) = stream.receive(&mut place).await {
                            counted[flow].set(counted[flow].get() + count as u64);
                        }
                    })
                    .detach();
            }
        })
        .detach();
    for _ in 0..FLOWS {
        let host = network.host(0).clone();
        network
            .host(0)
            .spawn(async move {
                let stream = host.connect(Endpoint::new(address(1, false), 9)).await.unwrap();
                while stream.send(&[7; 4096], Default::default()).await.is_ok() {}
            })
            .detach();
    }
    let ran = network.run(Duration::from_secs(600), |_| received.iter().any(|r| r.get() > ENOUGH_BYTES));
    assert_eq!(ran, Ran::Done);
    let shares: Vec<u64> = received.iter().map(Cell::get).collect();
    assert!(shares.iter().all(|&share| share > ENOUGH_BYTES / 2), "{shares:?}");
}
