//! CUBIC in the whole stack, against the response function of RFC 9438 §5.1: one loss in every so many segments.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant};
use inhost_sim::{LinkConfig, Loss, Network, Ran, address, interface};
use inhost_stack::{ListenOptions, StackConfig};
use inhost_tcp::Config;

/// Room for the largest window here, both ways.
const BUFFER_BYTES: usize = 32 << 20;
const LINK_BITS_PER_SECOND: u64 = 10_000_000_000;
/// Payload of a segment with timestamps, on 1,500 bytes.
const SEGMENT_BYTES: f64 = 1448.0;

fn config() -> StackConfig {
    let mut tcp = Config::default();
    tcp.send_buffer_limit_bytes = BUFFER_BYTES;
    tcp.send_buffer_initial_bytes = BUFFER_BYTES;
    tcp.receive_buffer_limit_bytes = 2 * BUFFER_BYTES;
    tcp.receive_buffer_initial_bytes = 2 * BUFFER_BYTES;
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 512 << 20;
    config.tcp = tcp;
    config
}

/// The mean window in segments of one transfer between two instants, with every `nth` frame lost.
fn mean_window(round_trip: Duration, nth: u64, from: Duration, until: Duration) -> f64 {
    let mut network = Network::new(Instant::ZERO, 100_000_000);
    let hosts = [1, 2].map(|seed| network.add_host(config(), seed));
    network.check_nothing();
    let back = LinkConfig {
        delay: round_trip.divided_by(2),
        rate_bits_per_second: Some(LINK_BITS_PER_SECOND),
        ..LinkConfig::default()
    };
    let out = LinkConfig { loss: Loss::EveryNth(nth), ..back.clone() };
    network.join(hosts.map(|host| (host, interface(host, false, 1500))), [out, back], 5).unwrap();
    let listener =
        network.host(1).listen(Endpoint::new(address(1, false), 9), ListenOptions::default()).unwrap();
    let received = Rc::new(Cell::new(0u64));
    let counted = received.clone();
    network
        .host(1)
        .spawn(async move {
            let stream = listener.accept().await.unwrap();
            let mut place = vec![0; 1 << 20];
            while let Ok(count @ 1..) = stream.receive(&mut place).await {
                counted.set(counted.get() + count as u64);
            }
        })
        .detach();
    let host = network.host(0).clone();
    network
        .host(0)
        .spawn(async move {
            let stream = host.connect(Endpoint::new(address(1, false), 9)).await.unwrap();
            while stream.send(&[7; 1 << 16], Default::default()).await.is_ok() {}
        })
        .detach();
    assert_eq!(network.run(from, |_| false), Ran::TimeOver);
    let before = received.get();
    assert_eq!(network.run(until - from, |_| false), Ran::TimeOver);
    let bytes = (received.get() - before) as f64;
    bytes / SEGMENT_BYTES / ((until - from).as_secs_f64() / round_trip.as_secs_f64())
}

fn follows(round_trip_ms: u64, nth: u64, from_s: u64, until_s: u64, expected: f64) {
    let (from, until) = (Duration::from_secs(from_s), Duration::from_secs(until_s));
    let mean = mean_window(Duration::from_millis(round_trip_ms), nth, from, until);
    let rate = mean * SEGMENT_BYTES * 8.0 / (round_trip_ms as f64 / 1e3) / 1e6;
    println!("{round_trip_ms} ms, 1 in {nth}: {mean:.0} segments for {expected}, {rate:.0} Mbit/s");
    assert!((mean / expected - 1.0).abs() < 0.2, "{round_trip_ms} ms, 1 in {nth}: {mean} for {expected}");
}

#[test]
fn over_100_ms_the_window_is_that_of_the_curve() {
    follows(100, 10_000, 30, 90, 187.0);
}

#[test]
fn over_10_ms_it_is_that_of_new_reno() {
    // 140 Mbit/s
    follows(10, 10_000, 10, 30, 120.0);
}

#[test]
#[ignore = "long run: make test-long"]
fn at_100_to_1000_megabits_a_second_it_is_that_of_the_curve() {
    // 120 and 440 Mbit/s, and 1.054 * (RTT / p)^(3/4) at 930 Mbit/s.
    follows(100, 100_000, 100, 280, 1054.0);
    follows(10, 100_000, 20, 60, 379.0);
    follows(30, 1_000_000, 60, 180, 2403.0);
}
