//! Hosts that lose their power and begin again.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_sim::{LinkConfig, Loss, Node, ProgramResult, Simulation, explore};
use inhost_stack::{KeepAlive, UdpOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PORT: u16 = 7;

/// Answers each byte by how many it had since this start; `disk` counts the starts.
async fn count(node: &Node, disk: &Cell<u32>) -> ProgramResult {
    disk.set(disk.get() + 1);
    let listener = node.bind(PORT)?;
    let had = Rc::new(Cell::new(0));
    loop {
        let mut stream = listener.accept().await?;
        let had = had.clone();
        node.spawn(async move {
            while stream.read_u8().await.is_ok() {
                had.set(had.get() + 1);
                stream.write_u32(had.get()).await?;
            }
            std::io::Result::Ok(())
        })
        .detach();
    }
}

/// A server of [`count`], and the number of its starts.
fn counting(simulation: &mut Simulation) -> Rc<Cell<u32>> {
    let starts = Rc::new(Cell::new(0));
    let disk = starts.clone();
    simulation.host("server", async move |node| count(&node, &disk).await);
    starts
}

/// One exchange; an error when the connection or the server does not last so long.
async fn exchange(node: &Node) -> Result<u32, Box<dyn std::error::Error>> {
    let mut stream = node.dial("server", PORT).await?;
    stream.write_u8(1).await?;
    Ok(stream.read_u32().await?)
}

#[test]
fn a_program_begins_again_without_its_memory_and_with_its_disk() {
    let mut simulation = Simulation::new(1);
    let starts = counting(&mut simulation);
    simulation.client("client", async |node| {
        assert_eq!(exchange(&node).await?, 1);
        assert_eq!(exchange(&node).await?, 2);
        node.sleep(Duration::from_secs(3)).await;
        assert_eq!(exchange(&node).await?, 1);
        Ok(())
    });
    simulation.crash("server", Duration::from_secs(1));
    simulation.restart("server", Duration::from_secs(2));
    simulation.run().unwrap();
    assert_eq!(starts.get(), 2);
}

#[test]
fn who_calls_again_is_served_in_the_end_whatever_was_lost() {
    explore(0..100, |simulation| {
        simulation.set_link(LinkConfig {
            loss: Loss::per_mille(50),
            delay: Duration::from_millis(7),
            ..LinkConfig::default()
        });
        counting(simulation);
        for number in 0..3 {
            simulation.client(&format!("client {number}"), async |node| {
                for _ in 0..20 {
                    // A server that is away does not answer, and one that is back knows nothing of the connection.
                    while !matches!(node.timeout(Duration::from_secs(5), exchange(&node)).await, Ok(Ok(_))) {
                        node.sleep(Duration::from_millis(100)).await;
                    }
                }
                Ok(())
            });
        }
        for time in 1..4 {
            let at = Duration::from_millis(700 * time);
            simulation.crash("server", at);
            simulation.restart("server", at + Duration::from_millis(300));
        }
    });
}

#[test]
fn transfers_that_a_crash_ends_break_no_rule() {
    explore(0..100, |simulation| {
        simulation.set_link(LinkConfig {
            loss: Loss::per_mille(20),
            rate_bits_per_second: Some(20_000_000),
            ..LinkConfig::default()
        });
        simulation.host("server", async |node| {
            let listener = node.bind(PORT)?;
            loop {
                let mut stream = listener.accept().await?;
                node.spawn(async move {
                    let (mut from, mut to) = tokio::io::split(&mut stream);
                    tokio::io::copy(&mut from, &mut to).await
                })
                .detach();
            }
        });
        for number in 0..3_u64 {
            simulation.client(&format!("client {number}"), async move |node| {
                let stream = node.dial("server", PORT).await?;
                let (mut from, mut to) = tokio::io::split(stream);
                let write = node.spawn(async move { while to.write_all(&[1; 5000]).await.is_ok() {} });
                let read = node.spawn(async move { while from.read_u64().await.is_ok() {} });
                let both = async {
                    write.await;
                    read.await;
                };
                let _ = node.timeout(Duration::from_secs(4 + number), both).await;
                Ok(())
            });
        }
        simulation.restart("server", Duration::from_millis(1500));
    });
}

#[test]
fn the_same_seed_gives_the_same_crash() {
    let run = |seed| {
        let mut simulation = Simulation::new(seed);
        simulation.set_link(LinkConfig { loss: Loss::per_mille(100), ..LinkConfig::default() });
        counting(&mut simulation);
        simulation.client("client", async |node| {
            for _ in 0..50 {
                let _ = node.timeout(Duration::from_millis(300), exchange(&node)).await;
                node.sleep(Duration::from_millis(u64::from(node.random_below(100)))).await;
            }
            Ok(())
        });
        simulation.crash("server", Duration::from_millis(1000));
        simulation.restart("server", Duration::from_millis(1500));
        simulation.run().unwrap()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_client_that_crashes_is_noticed_by_keep_alive_alone_and_not_waited_for() {
    let mut simulation = Simulation::new(1);
    let noticed = Rc::new(Cell::new(None));
    let note = noticed.clone();
    simulation.host("server", async move |node| {
        let mut stream = node.bind(PORT)?.accept().await?;
        let (idle, interval) = (Duration::from_secs(60), Duration::from_secs(5));
        stream.set_keep_alive(Some(KeepAlive { idle, interval, probes: 3 }));
        let why = stream.read_u8().await.unwrap_err();
        note.set(Some((why.kind(), node.now())));
        Ok(())
    });
    simulation.client("phone", async |node| {
        let _stream = node.dial("server", PORT).await?;
        std::future::pending::<()>().await;
        Ok(())
    });
    simulation.client("clock", async |node| {
        node.sleep(Duration::from_secs(100)).await;
        Ok(())
    });
    simulation.crash("phone", Duration::from_secs(1));
    simulation.run().unwrap();
    let (kind, at) = noticed.get().expect("the server has noticed");
    // A neighbour that does not answer is found before all probes are sent.
    assert!(matches!(kind, std::io::ErrorKind::TimedOut | std::io::ErrorKind::HostUnreachable), "{kind:?}");
    assert!((60_000..80_000).contains(&at.as_millis()), "{at:?}");
}

#[test]
fn what_comes_to_a_host_without_power_is_lost_at_once() {
    let mut simulation = Simulation::new(1);
    let server = simulation.host("server", async |node| {
        let socket = node.udp(Endpoint::new(Ipv4Addr::UNSPECIFIED, PORT), UdpOptions::default())?;
        let mut place = [0; 16];
        loop {
            socket.receive_from(&mut place).await?;
        }
    });
    simulation.client("client", async |node| {
        let to = Endpoint::new(node.lookup("server").unwrap(), PORT);
        let socket = node.udp(Endpoint::new(Ipv4Addr::UNSPECIFIED, 0), UdpOptions::default())?;
        for _ in 0..2000 {
            socket.send_to(b"are you there", to).await?;
            node.sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    });
    simulation.crash("server", Duration::from_millis(500));
    simulation.run().unwrap();
    assert!(simulation.network().is_down(server));
    let overflowed = simulation.network().statistics(server, 1).overflowed;
    assert!((1400..1600).contains(&overflowed), "{overflowed}");
}

#[test]
fn a_crash_drops_what_tasks_hold_and_polls_none() {
    struct Held(Rc<Cell<bool>>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let mut simulation = Simulation::new(1);
    let dropped = Rc::new(Cell::new(false));
    let flag = dropped.clone();
    simulation.host("server", async move |node| {
        let held = Held(flag.clone());
        node.sleep(Duration::from_secs(2)).await;
        drop(held);
        unreachable!("it crashed before");
    });
    simulation.client("client", async |node| {
        node.sleep(Duration::from_secs(5)).await;
        Ok(())
    });
    simulation.crash("server", Duration::from_secs(1));
    simulation.run().unwrap();
    assert!(dropped.get());
}

#[test]
fn a_failure_after_a_restart_names_where_the_program_was_given() {
    let mut simulation = Simulation::new(1);
    let starts = Cell::new(0);
    simulation.host("server", async move |_| {
        starts.set(starts.get() + 1);
        assert!(starts.get() < 2, "two are too many");
        Ok(())
    });
    simulation.client("client", async |node| {
        node.sleep(Duration::from_secs(5)).await;
        Ok(())
    });
    simulation.restart("server", Duration::from_secs(1));
    let why = simulation.run().unwrap_err().why;
    assert!(why.starts_with("server: a task panicked at 2.000 s: two are too many"), "{why}");
    assert!(why.contains("lab/sim/tests/it/crash.rs"), "{why}");
}

#[test]
#[should_panic(expected = "the program of client runs once")]
fn a_client_is_not_restarted() {
    let mut simulation = Simulation::new(1);
    simulation.client("client", async |_| Ok(()));
    simulation.restart("client", Duration::from_secs(1));
}
