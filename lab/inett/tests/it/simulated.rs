//! Two hosts on virtual time: the figures follow from the seed.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::{Endpoint, Ipv4Addr};
use inhost_inett::driver::{ServeOptions, Stop, run, serve};
use inhost_inett::face::LocalFace;
use inhost_inett::plan::Plan;
use inhost_inett::result::{Outcome, Who};
use inhost_sim::{Duration, LinkConfig, Loss, Simulation};

/// Measures between two hosts, 10 ms apart.
fn measure(seed: u64, loss_per_mille: u32, plan: &str) -> Outcome {
    let plan: Plan = toml::from_str(plan).unwrap();
    let mut simulation = Simulation::new(seed);
    simulation.set_link(LinkConfig {
        delay: Duration::from_millis(5),
        loss: Loss::per_mille(loss_per_mille),
        ..LinkConfig::default()
    });
    let (_stopper, stop) = Stop::new();
    let stopped = stop.clone();
    simulation.host("server", async move |node| {
        let face = LocalFace::new(node.host().clone());
        let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, 5201);
        serve(&face, at, &ServeOptions::default(), &stopped, &mut |_| {}).await?;
        Ok(())
    });
    let outcome = Rc::new(RefCell::new(None));
    let into = outcome.clone();
    simulation.client("client", async move |node| {
        let face = LocalFace::new(node.host().clone());
        let server = Endpoint::new(node.lookup("server").unwrap(), 5201);
        *into.borrow_mut() = Some(run(&face, server, &plan, &stop, &mut |_| {}).await?);
        Ok(())
    });
    simulation.run().unwrap();
    outcome.take().unwrap()
}

#[test]
fn a_transaction_takes_a_round_trip_and_repeats_from_its_seed() {
    let plan = "kind = 'request'\ncount = 200\nrequest_bytes = { uniform = { least = 1, most = 900 } }\n\
        response_bytes = { exponential = { mean = 500 } }\nthink_us = { exponential = { mean = 1000 } }";
    let outcome = measure(7, 0, plan);
    let transactions = outcome.repetitions[0].transactions.unwrap();
    assert_eq!((transactions.count, transactions.failed), (200, 0));
    let times = transactions.times.unwrap();
    assert!(times.least_us >= 19_900.0 && times.p50_us < 25_000.0, "{times:?}");
    assert_eq!(outcome.json(), measure(7, 0, plan).json());
}

#[test]
fn a_stream_over_loss_repeats_from_its_seed_and_the_network_was_the_limit() {
    let plan = "time_ms = 5000\nwarm_up_ms = 1000\nstreams = 2\ndirection = 'both'";
    let outcome = measure(3, 10, plan);
    let repetition = &outcome.repetitions[0];
    let (sent, received) = (repetition.sent.unwrap(), repetition.received.unwrap());
    assert!(sent.bits_per_second > 1e6 && received.bits_per_second > 1e6, "{sent:?} {received:?}");
    assert!(sent.retransmits.unwrap() > 0 && received.retransmits.unwrap() > 0, "{sent:?} {received:?}");
    assert_eq!(repetition.limit.as_ref().unwrap().who, Who::Network, "{repetition:?}");
    assert_eq!(repetition.intervals.len(), 6);
    assert_eq!(outcome.json(), measure(3, 10, plan).json());
    assert_ne!(outcome.json(), measure(4, 10, plan).json());
}

#[test]
fn datagrams_lost_are_counted() {
    let plan = "protocol = 'udp'\nrate_bits_per_second = 4000000\ntime_ms = 4000\ndirection = 'both'";
    let outcome = measure(5, 50, plan);
    let repetition = &outcome.repetitions[0];
    for transfer in [repetition.sent.unwrap(), repetition.received.unwrap()] {
        let datagrams = transfer.datagrams.unwrap();
        assert!((1200..1500).contains(&datagrams.sent), "{datagrams:?}");
        // Two links are passed, each of which loses a twentieth.
        assert!((0.06..0.14).contains(&datagrams.lost_share), "{datagrams:?}");
    }
}

#[test]
fn latency_under_load_is_longer() {
    let alone = measure(1, 0, "kind = 'echo'\ncount = 50");
    let loaded =
        measure(1, 0, "kind = 'echo'\ncount = 50\nbackground_streams = 2\nbackground_direction = 'both'");
    assert!(loaded.summary.unwrap().mean >= alone.summary.unwrap().mean);
    let background = loaded.repetitions[0].sent.unwrap();
    assert!(background.sent_bytes > 100_000, "{background:?}");
}

#[test]
fn connects_and_many_connections_at_once() {
    let connects = measure(1, 0, "kind = 'connect'\ncount = 30\nrepetitions_min = 3\nrepetitions_max = 3");
    assert_eq!(connects.repetitions.len(), 3);
    assert_eq!(connects.repetitions[0].transactions.unwrap().count, 30);
    let at_once = measure(1, 0, "kind = 'connections'\nconnections = 100");
    assert_eq!(at_once.repetitions[0].transactions.unwrap().count, 100);
}
