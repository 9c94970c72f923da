//! Tasks and time of the simulator under tokio's names.
#![cfg(feature = "sim")]

use std::time::Duration;

use inhost::sim::{explore, task, time};

#[test]
fn tasks_are_joined_as_they_end_and_ticks_begin_where_they_are_told() {
    explore(0..1, |simulation| {
        simulation.client("client", async |_| {
            let mut set = task::JoinSet::new();
            for ms in [30, 10, 20] {
                set.spawn(async move {
                    time::sleep(Duration::from_millis(ms)).await;
                    ms
                });
            }
            let endless = set.spawn(std::future::pending());
            assert_eq!((set.len(), set.try_join_next()), (4, None));
            assert_eq!(set.join_next().await, Some(Ok(10)));
            endless.abort();
            assert!(endless.is_finished());
            assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
            assert_eq!(set.join_all().await, [20, 30]);
            let start = time::Instant::now() + Duration::from_secs(2);
            let mut ticks = time::interval_at(start, Duration::from_secs(1));
            assert_eq!(ticks.tick().await, start);
            assert_eq!(ticks.tick().await, start + Duration::from_secs(1));
            assert_eq!(time::Instant::now(), start + Duration::from_secs(1));
            let waits = task::spawn(std::future::pending::<()>());
            waits.abort();
            assert!(waits.await.is_err());
            Ok(())
        });
    });
}

#[test]
fn a_timer_of_tokios_says_which_to_use_instead() {
    let mut simulation = inhost::sim::Simulation::new(1);
    simulation.client("client", async |_| {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(())
    });
    let why = simulation.run().unwrap_err().why;
    assert!(why.contains("no reactor running"), "{why}");
    assert!(why.contains("use inhost::sim::{net, task, time}"), "{why}");
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn a_timer_of_tokios_within_its_runtime_is_a_deadlock() {
    let mut simulation = inhost::sim::Simulation::new(1);
    simulation.client("client", async |_| {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(())
    });
    let why = simulation.run().unwrap_err().why;
    assert!(why.starts_with("deadlock at "), "{why}");
}
